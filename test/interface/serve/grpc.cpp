#include "kiln/interface/serve/grpc_host.hpp"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "inference.grpc.pb.h"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

// The Open Inference Protocol over gRPC, by gRPC's own client.
namespace kiln::serve {
namespace {

using inference::GRPCInferenceService;
using testing::HasSubstr;

class serve_grpc : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const test::temporary_folder folder;
    test::graph_parts g;
    for (const auto& [name, type] : {std::pair("i8", 3), std::pair("u8", 2), std::pair("bool", 9)}) {
      g.inputs.push_back(test::value_info(name, type, {2}));
      g.nodes.push_back(test::node("Identity", {name}, {std::string(name) + "_out"}));
      g.outputs.push_back(test::value_info(std::string(name) + "_out", type, {2}));
    }
    const std::filesystem::path file = folder.write("types.onnx", test::model(test::graph(g)).str());
    service_options o;
    o.models.models = {"digits=" KILN_SOURCE_DIR "/examples/models/digits/model.onnx", "types=" + file.string()};
    o.api_keys = {"k"};
    o.log = [](std::string_view line) { lines_ += std::string(line) + "\n"; };
    of_ = std::make_unique<service>(o);
    host_ = std::make_unique<grpc_host>(grpc_options{.port = 0, .most_body = 1 << 20}, *of_);
    stub_ = GRPCInferenceService::NewStub(
        grpc::CreateChannel("127.0.0.1:" + std::to_string(host_->port()), grpc::InsecureChannelCredentials()));
  }
  static void TearDownTestSuite() {
    stub_.reset();
    host_.reset();
    of_.reset();
  }
  static inference::ModelInferRequest request(std::int64_t rows) {
    inference::ModelInferRequest r;
    r.set_model_name("digits");
    r.set_id("7");
    auto* const t = r.add_inputs();
    t->set_name("image");
    t->set_datatype("FP32");
    for (const std::int64_t n : {rows, std::int64_t(1), std::int64_t(8), std::int64_t(8)}) t->add_shape(n);
    for (std::int64_t k = 0; k < 64 * rows; ++k)
      t->mutable_contents()->add_fp32_contents(static_cast<float>(k * 7 % 17) / 16);
    return r;
  }
  static grpc::Status infer(const inference::ModelInferRequest& r, inference::ModelInferResponse& to,
                            const std::string& key = "k") {
    grpc::ClientContext c;
    if (!key.empty()) c.AddMetadata("authorization", "Bearer " + key);
    return stub_->ModelInfer(&c, r, &to);
  }
  static void expect_refused(const inference::ModelInferRequest& r, grpc::StatusCode code, const std::string& why) {
    inference::ModelInferResponse to;
    const auto s = infer(r, to);
    EXPECT_EQ(s.error_code(), code) << s.error_message();
    EXPECT_THAT(s.error_message(), HasSubstr(why));
  }
  static inline std::unique_ptr<service> of_;
  static inline std::unique_ptr<grpc_host> host_;
  static inline std::unique_ptr<GRPCInferenceService::Stub> stub_;
  static inline std::string lines_;
};

TEST_F(serve_grpc, tells_of_itself_and_its_models) {
  grpc::ClientContext a, b, c, d;
  inference::ServerLiveResponse live;
  EXPECT_TRUE(stub_->ServerLive(&a, {}, &live).ok() && live.live());
  inference::ServerReadyResponse ready;
  EXPECT_TRUE(stub_->ServerReady(&b, {}, &ready).ok() && ready.ready());
  for (auto* const x : {&c, &d}) x->AddMetadata("authorization", "Bearer k");
  inference::ModelMetadataRequest q;
  q.set_name("digits");
  inference::ModelMetadataResponse m;
  ASSERT_TRUE(stub_->ModelMetadata(&c, q, &m).ok());
  EXPECT_EQ(m.inputs(0).name(), "image");
  EXPECT_EQ(m.inputs(0).datatype(), "FP32");
  EXPECT_EQ(m.inputs(0).shape(0), -1);
  EXPECT_EQ(m.inputs(0).shape(3), 8);
  inference::ModelReadyRequest none;
  none.set_name("none");
  inference::ModelReadyResponse r;
  EXPECT_EQ(stub_->ModelReady(&d, none, &r).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(serve_grpc, infers_from_contents_and_from_bytes) {
  const auto r = request(2);
  inference::ModelInferResponse by_contents, by_bytes;
  ASSERT_TRUE(infer(r, by_contents).ok());
  EXPECT_EQ(by_contents.id(), "7");
  EXPECT_EQ(by_contents.outputs(0).shape(0), 2);
  auto raw = r;
  const auto& values = r.inputs(0).contents().fp32_contents();
  raw.mutable_inputs(0)->clear_contents();
  raw.add_raw_input_contents(values.data(), sizeof(float) * static_cast<std::size_t>(values.size()));
  ASSERT_TRUE(infer(raw, by_bytes).ok());
  EXPECT_EQ(by_bytes.raw_output_contents(0), by_contents.raw_output_contents(0));
  std::vector<float> given(values.begin(), values.end());
  const argument in[] = {argument::of<float>({2, 1, 8, 8}, given)};
  const auto out = of_->models()->tensors.at("digits")->runner->program().run(in);
  ASSERT_EQ(by_bytes.raw_output_contents(0).size(), out[0].as<float>().size_bytes());
  EXPECT_EQ(std::memcmp(by_bytes.raw_output_contents(0).data(), out[0].data(), out[0].as<float>().size_bytes()), 0);
  EXPECT_THAT(lines_, HasSubstr("\"route\":\"ModelInfer\""));
}

TEST_F(serve_grpc, elements_lie_within_their_type) {
  const auto with = [](int i8, unsigned u8) {
    inference::ModelInferRequest r;
    r.set_model_name("types");
    for (const auto& [name, type] : {std::pair("i8", "INT8"), std::pair("u8", "UINT8"), std::pair("bool", "BOOL")}) {
      auto* const t = r.add_inputs();
      t->set_name(name);
      t->set_datatype(type);
      t->add_shape(2);
    }
    for (int k = 0; k < 2; ++k) {
      r.mutable_inputs(0)->mutable_contents()->add_int_contents(i8);
      r.mutable_inputs(1)->mutable_contents()->add_uint_contents(u8);
      r.mutable_inputs(2)->mutable_contents()->add_bool_contents(true);
    }
    return r;
  };
  inference::ModelInferResponse to;
  ASSERT_TRUE(infer(with(-128, 255), to).ok());
  EXPECT_EQ(to.raw_output_contents(0), "\x80\x80");
  EXPECT_EQ(to.raw_output_contents(1), "\xff\xff");
  using grpc::StatusCode;
  expect_refused(with(128, 0), StatusCode::INVALID_ARGUMENT,
                 "inputs[0].contents: expected elements of INT8, found 128");
  expect_refused(with(-129, 0), StatusCode::INVALID_ARGUMENT, "found -129");
  expect_refused(with(0, 256), StatusCode::INVALID_ARGUMENT, "inputs[1].contents: expected elements of UINT8");
  auto raw = with(0, 0);
  for (int k = 0; k < 3; ++k) {
    raw.mutable_inputs(k)->clear_contents();
    raw.add_raw_input_contents("\1\2");
  }
  expect_refused(raw, StatusCode::INVALID_ARGUMENT, "bytes of 0 and 1");
}

TEST_F(serve_grpc, bad_requests_have_codes_and_reasons) {
  using grpc::StatusCode;
  auto r = request(1);
  inference::ModelInferResponse to;
  EXPECT_EQ(infer(r, to, "").error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(infer(r, to, "j").error_code(), StatusCode::UNAUTHENTICATED);
  r.set_model_name("none");
  expect_refused(r, StatusCode::NOT_FOUND, "no model none");
  r = request(1);
  r.set_model_version("3");
  expect_refused(r, StatusCode::NOT_FOUND, "version 1 alone");
  r = request(1);
  r.mutable_inputs(0)->set_datatype("INT8");
  expect_refused(r, StatusCode::INVALID_ARGUMENT, "inputs[0].datatype: expected FP32, found \"INT8\"");
  r = request(1);
  r.mutable_inputs(0)->set_shape(0, 2);
  expect_refused(r, StatusCode::INVALID_ARGUMENT, "expected 128 elements of FP32, found 64");
  r.mutable_inputs(0)->set_shape(0, -1);
  expect_refused(r, StatusCode::INVALID_ARGUMENT, "inputs[0].shape");
  r = request(1);
  r.add_raw_input_contents("abc");
  expect_refused(r, StatusCode::INVALID_ARGUMENT, "no contents beside");
  r.mutable_inputs(0)->clear_contents();
  expect_refused(r, StatusCode::INVALID_ARGUMENT, "expected 256 bytes, found 3");
  r = request(1);
  r.add_outputs()->set_name("none");
  expect_refused(r, StatusCode::INVALID_ARGUMENT, "names of outputs");
  r = request(1);
  r.clear_inputs();
  expect_refused(r, StatusCode::INVALID_ARGUMENT, "expected image, found no such tensor");
  expect_refused(request(5000), StatusCode::RESOURCE_EXHAUSTED, "larger than max");
}

}  // namespace
}  // namespace kiln::serve
