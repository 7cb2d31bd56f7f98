#include "kiln/interface/serve/kserve.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

// The Open Inference Protocol, without a socket.
namespace kiln::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

const std::string digits = KILN_SOURCE_DIR "/examples/models/digits/model.onnx";

class serve_kserve : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const test::temporary_folder folder;
    // identities of several types
    test::graph_parts g;
    const std::vector<std::pair<std::string, int>> types{{"i64", 7}, {"u64", 13}, {"u8", 2}, {"bool", 9}, {"f16", 10}};
    for (const auto& [name, type] : types) {
      g.inputs.push_back(test::value_info(name, type, {"n", 2}));
      g.nodes.push_back(test::node("Identity", {name}, {name + "_out"}));
      g.outputs.push_back(test::value_info(name + "_out", type, {"n", 2}));
    }
    const fs::path types_file = folder.write("types.onnx", test::model(test::graph(g)).str());
    // a row's places in a table, of which the last one is no number of JSON
    test::graph_parts l;
    l.inputs = {test::value_info("at", 7, {"n", 2})};
    l.initializers = {test::floats("table", {3}, {5, 7, std::numeric_limits<float>::infinity()})};
    l.nodes = {test::node("Gather", {"table", "at"}, {"found"})};
    l.outputs = {test::value_info("found", 1, {"n", 2})};
    const fs::path lookup_file = folder.write("lookup.onnx", test::model(test::graph(l)).str());
    model_options o;
    o.models = {"digits=" + digits, types_file.string(), lookup_file.string()};
    o.compile.threads = 2;
    alone_ = load_models(o);
    o.batching = {64, std::chrono::milliseconds(20)};
    joined_ = load_models(o);
  }
  static void TearDownTestSuite() { alone_.reset(), joined_.reset(); }
  static http_reply ask(const std::string& path, const std::string& body = {}, const model_set& of = *alone_,
                        std::size_t json_bytes = 0) {
    http_request r{body.empty() ? "GET" : "POST", "/v2" + path};
    r.body = body;
    if (json_bytes > 0) r.headers["inference-header-content-length"] = std::to_string(json_bytes);
    request_record record;
    return answer_kserve(r, of, record, true);
  }
  static json ok(const std::string& path, const std::string& body = {}, const model_set& of = *alone_) {
    const http_reply r = ask(path, body, of);
    EXPECT_EQ(r.status, 200) << r.body;
    return json::parse(r.body);
  }
  static void expect_refused(const std::string& path, const std::string& body, const std::string& why,
                             int status = 400) {
    const http_reply r = ask(path, body);
    EXPECT_EQ(r.status, status) << body.substr(0, 200);
    EXPECT_THAT(json::parse(r.body)["error"].get<std::string>(), HasSubstr(why));
  }
  static std::string lookup_body(const std::vector<std::int64_t>& at) {
    const json lens = {at.size() / 2, 2};
    return json{{"inputs", {{{"name", "at"}, {"datatype", "INT64"}, {"shape", lens}, {"data", at}}}}}.dump();
  }
  static std::vector<float> image(int seed, std::int64_t rows) {
    std::vector<float> out(static_cast<std::size_t>(64 * rows));
    for (std::size_t k = 0; k < out.size(); ++k)
      out[k] = static_cast<float>((static_cast<int>(k) * 7 + seed * 13) % 17) / 16;
    return out;
  }
  static json digits_body(int seed, std::int64_t rows) {
    return {{"inputs",
             {{{"name", "image"}, {"datatype", "FP32"}, {"shape", {rows, 1, 8, 8}}, {"data", image(seed, rows)}}}}};
  }
  // What the program gives by itself.
  static std::vector<float> expected(int seed, std::int64_t rows) {
    const auto& exe = alone_->tensors.at("digits")->runner->program();
    const auto x = image(seed, rows);
    const argument in[] = {argument::of<float>({rows, 1, 8, 8}, x)};
    const auto out = exe.run(in);
    return {out[0].as<float>().begin(), out[0].as<float>().end()};
  }
  static inline std::shared_ptr<const model_set> alone_, joined_;
};

TEST_F(serve_kserve, tells_of_itself_and_its_models) {
  EXPECT_THAT(ok("")["extensions"], testing::ElementsAre("binary_tensor_data"));
  EXPECT_EQ(ok("/health/live")["live"], true);
  EXPECT_EQ(ok("/health/ready")["ready"], true);
  EXPECT_EQ(ok("/models/digits/ready")["ready"], true);
  const json m = ok("/models/digits/versions/1");
  EXPECT_EQ(m["name"], "digits");
  EXPECT_EQ(m["inputs"][0], json({{"name", "image"}, {"datatype", "FP32"}, {"shape", {-1, 1, 8, 8}}}));
  expect_refused("/models/none", {}, "no model none", 404);
  expect_refused("/models/digits/versions/2", {}, "version 1 alone", 404);
  expect_refused("/models/digits/infer", {}, "expected POST", 405);
  expect_refused("/else", {}, "nothing at /v2/else", 404);
}

TEST_F(serve_kserve, infers_as_the_program_does) {
  const json o = ok("/models/digits/infer", digits_body(1, 3).dump());
  EXPECT_EQ(o["model_name"], "digits");
  EXPECT_EQ(o["outputs"][0]["data"].get<std::vector<float>>(), expected(1, 3));
  EXPECT_EQ(o["outputs"][0]["shape"][0], 3);
  json nested = digits_body(1, 1);
  nested["id"] = "x";
  const auto flat = image(1, 1);
  json rows = json::array();
  for (int r = 0; r < 8; ++r) rows.push_back(std::vector<float>(flat.begin() + 8 * r, flat.begin() + 8 * r + 8));
  nested["inputs"][0]["data"] = {{rows}};
  const json n = ok("/models/digits/infer", nested.dump());
  EXPECT_EQ(n["id"], "x");
  EXPECT_EQ(n["outputs"][0]["data"].get<std::vector<float>>(), expected(1, 1));
}

TEST_F(serve_kserve, types_keep_their_values_as_json_and_as_bytes) {
  json body = {{"inputs", json::array()}};
  const std::map<std::string, std::pair<const char*, json>> all{
      {"i64", {"INT64", {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}}},
      {"u64", {"UINT64", {0, std::numeric_limits<std::uint64_t>::max()}}},
      {"u8", {"UINT8", {0, 255}}},
      {"bool", {"BOOL", {true, false}}},
      {"f16", {"FP16", {0.5, -1024.0}}}};
  for (const auto& [name, value] : all)
    body["inputs"].push_back({{"name", name}, {"datatype", value.first}, {"shape", {1, 2}}, {"data", value.second}});
  for (const json& t : ok("/models/types/infer", body.dump())["outputs"]) {
    const std::string name = t["name"].get<std::string>();
    EXPECT_EQ(t["data"], all.at(name.substr(0, name.find('_'))).second) << name;
  }
  // one input as bytes, one output as bytes
  const std::int64_t values[] = {-5, 1LL << 40};
  body["inputs"][2].erase("data");
  ASSERT_EQ(body["inputs"][2]["name"], "i64");
  body["inputs"][2]["parameters"] = {{"binary_data_size", 16}};
  body["outputs"] = {{{"name", "i64_out"}, {"parameters", {{"binary_data", true}}}}, {{"name", "u8_out"}}};
  const std::string head = body.dump(), bytes(reinterpret_cast<const char*>(values), 16);
  const http_reply r = ask("/models/types/infer", head + bytes, *alone_, head.size());
  ASSERT_EQ(r.status, 200) << r.body;
  ASSERT_EQ(r.headers.at(0).first, "Inference-Header-Content-Length");
  const std::size_t n = std::stoul(r.headers[0].second);
  const json made = json::parse(r.body.substr(0, n));
  EXPECT_EQ(made["outputs"][0]["parameters"]["binary_data_size"], 16);
  EXPECT_EQ(made["outputs"][1]["data"], all.at("u8").second);
  EXPECT_EQ(r.body.substr(n), bytes);
}

TEST_F(serve_kserve, bad_requests_name_what_is_wrong) {
  const std::string infer = "/models/digits/infer";
  const auto with = [](const char* field, const json& value) {
    json b = digits_body(0, 1);
    b["inputs"][0][field] = value;
    return b.dump();
  };
  expect_refused(infer, "{", "no JSON");
  expect_refused(infer, "{}", "inputs: expected a list of tensors, found nothing");
  expect_refused(infer, "{\"inputs\": []}", "expected image, found no such tensor");
  expect_refused(infer, with("name", "other"), "inputs[0].name");
  expect_refused(infer, with("datatype", "FP64"), "inputs[0].datatype: expected FP32, found \"FP64\"");
  expect_refused(infer, with("shape", {1, 1, 8, 9}), "expected 72 elements, found 64");
  expect_refused(infer, with("shape", {-1, 1, 8, 8}), "inputs[0].shape");
  expect_refused(infer, with("shape", {1LL << 40, 1LL << 40, 8, 8}), "inputs[0].shape");
  expect_refused(infer, with("shape", {64, 1}), "image");
  expect_refused(infer, with("shape", {1 << 22, 1, 8, 8}), "expected 268435456 elements, found 64");
  expect_refused(infer, with("shape", {1.5, 1, 8, 8}), "whole numbers");
  expect_refused(infer, with("data", "x"), "inputs[0].data");
  json text = json::array();
  for (int k = 0; k < 64; ++k) text.push_back("1");
  expect_refused(infer, with("data", text), "elements of f32");
  expect_refused(infer, with("parameters", {{"binary_data_size", 4}}), "data");
  json twice = digits_body(0, 1);
  twice["inputs"].push_back(twice["inputs"][0]);
  expect_refused(infer, twice.dump(), "each input once");
  json outputs = digits_body(0, 1);
  outputs["outputs"] = {{{"name", "none"}}};
  expect_refused(infer, outputs.dump(), "the name of an output");
  const std::string body = digits_body(0, 1).dump();
  EXPECT_EQ(ask(infer, body, *alone_, body.size() + 1).status, 400);
  EXPECT_EQ(ask(infer, body + "abc", *alone_, body.size()).status, 400);
}

TEST_F(serve_kserve, requests_that_come_together_share_a_run) {
  tensor_runner& runner = *joined_->tensors.at("digits")->runner;
  ASSERT_TRUE(runner.joins());
  EXPECT_FALSE(alone_->tensors.at("digits")->runner->joins());
  std::vector<std::thread> all;
  std::atomic<int> right = 0;
  for (int k = 0; k < 16; ++k)
    all.emplace_back([&, k] {
      const std::int64_t rows = k % 3 + 1;
      const json o = ok("/models/digits/infer", digits_body(k, rows).dump(), *joined_);
      const auto want = expected(k, rows), found = o["outputs"][0]["data"].get<std::vector<float>>();
      bool same = found.size() == want.size();
      for (std::size_t i = 0; same && i < want.size(); ++i) same = std::abs(found[i] - want[i]) <= 1e-5f;
      right += same;
    });
  // one that is refused is none of the run
  json narrow = digits_body(0, 1);
  narrow["inputs"][0]["shape"] = {1, 1, 8, 7};
  narrow["inputs"][0]["data"] = std::vector<float>(56, 0.f);
  EXPECT_EQ(ask("/models/digits/infer", narrow.dump(), *joined_).status, 400);
  for (std::thread& t : all) t.join();
  EXPECT_EQ(right, 16);
  EXPECT_EQ(runner.statistics().requests, 16u);
  EXPECT_LT(runner.statistics().runs, 16u);
}

TEST_F(serve_kserve, a_run_that_fails_is_the_error_of_its_request_alone) {
  ASSERT_TRUE(joined_->tensors.at("lookup")->runner->joins());
  std::vector<std::thread> all;
  std::atomic<int> right = 0, refused = 0;
  for (int k = 0; k < 12; ++k)
    all.emplace_back([&, k] {
      const std::int64_t last = k % 4 == 3 ? 9 : k % 2;
      const http_reply r = ask("/models/lookup/infer", lookup_body({0, last}), *joined_);
      if (r.status == 400) ++refused;
      if (r.status != 200) return;
      right += json::parse(r.body)["outputs"][0]["data"] == json({5.0, last == 0 ? 5.0 : 7.0});
    });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(right, 9);
  EXPECT_EQ(refused, 3);
}

TEST_F(serve_kserve, what_json_has_no_number_for_is_asked_for_as_bytes) {
  expect_refused("/models/lookup/infer", lookup_body({0, 2}), "binary_data");
  json body = json::parse(lookup_body({0, 2}));
  body["parameters"] = {{"binary_data_output", true}};
  EXPECT_EQ(ask("/models/lookup/infer", body.dump()).status, 200);
}

TEST_F(serve_kserve, more_requests_than_may_wait_are_refused) {
  model_options o;
  o.models = {"digits=" + digits};
  o.most_waiting = 0;
  const auto none = load_models(o);
  const http_reply r = ask("/models/digits/infer", digits_body(1, 1).dump(), *none);
  EXPECT_EQ(r.status, 429);
  EXPECT_THAT(json::parse(r.body)["error"].get<std::string>(), HasSubstr("busy"));
}

TEST_F(serve_kserve, methods_and_readiness) {
  request_record record;
  EXPECT_EQ(answer_kserve({"HEAD", "/v2/health/live"}, *alone_, record, true).status, 200);
  const http_reply wrong = answer_kserve({"DELETE", "/v2/models/digits/infer"}, *alone_, record, true);
  EXPECT_EQ(wrong.status, 405);
  EXPECT_THAT(wrong.headers, testing::Contains(std::pair<std::string, std::string>("Allow", "POST")));
  const http_reply draining = answer_kserve({"GET", "/v2/models/digits/ready"}, *alone_, record, false);
  EXPECT_EQ(draining.status, 503);
  EXPECT_EQ(json::parse(draining.body)["ready"], false);
}

}  // namespace
}  // namespace kiln::serve
