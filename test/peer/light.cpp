// The ONNX project's light models at full size: their weights, one value a tensor as they come, are drawn at random
// first, so that no two channels are alike.
#include <kiln_onnx.pb.h>

#include <cstring>

#include "peer/compare.hpp"
#include "runtime/compare.hpp"

namespace kiln::peer {
namespace {

// Uniform in [-1, 1).
class numbers {
 public:
  float next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<double>(state_ >> 40) / (1 << 23) - 1);
  }

 private:
  std::uint64_t state_ = 1;
};

// Filters keep the size of what they see; what is one value a channel (scales, means, variances, biases) is near 1.
void draw(onnx_proto::TensorProto& weights, numbers& from) {
  std::int64_t elements = 1;
  for (const std::int64_t n : weights.dims()) elements *= n;
  const bool filter = weights.dims_size() > 1;
  const double inputs = filter ? static_cast<double>(elements / weights.dims(0)) : 1;
  const auto scale = static_cast<float>(filter ? std::sqrt(6 / inputs) : 0.1);
  std::string* const raw = weights.mutable_raw_data();
  raw->resize(static_cast<std::size_t>(elements) * sizeof(float));
  auto* const values = reinterpret_cast<float*>(raw->data());
  for (std::int64_t i = 0; i < elements; ++i) values[i] = from.next() * scale + (filter ? 0.0F : 1.0F);
}

std::string with_random_weights(const std::string& bytes) {
  onnx_proto::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  onnx_proto::GraphProto& graph = *model.mutable_graph();
  std::map<std::string, const onnx_proto::TensorProto*> shapes;
  for (const auto& t : graph.initializer()) shapes[t.name()] = &t;
  numbers from;
  onnx_proto::GraphProto drawn;
  for (const auto& node : graph.node()) {
    if (node.op_type() != "ConstantOfShape") {
      *drawn.add_node() = node;
      continue;
    }
    const onnx_proto::TensorProto& extents = *shapes.at(node.input(0));
    onnx_proto::TensorProto& weights = *drawn.add_initializer();
    weights.set_name(node.output(0));
    weights.set_data_type(onnx_proto::TensorProto::FLOAT);
    std::vector<std::int64_t> dims(extents.int64_data().begin(), extents.int64_data().end());
    if (dims.empty()) {
      dims.resize(extents.raw_data().size() / sizeof(std::int64_t));
      std::memcpy(dims.data(), extents.raw_data().data(), extents.raw_data().size());
    }
    EXPECT_FALSE(dims.empty()) << node.output(0);
    for (const std::int64_t n : dims) weights.add_dims(n);
    draw(weights, from);
  }
  graph.mutable_node()->Swap(drawn.mutable_node());
  graph.mutable_initializer()->MergeFrom(drawn.initializer());
  return model.SerializeAsString();
}

void compare(const std::string& folder, const std::string& bytes) {
  const auto model = std::as_bytes(std::span(bytes));
  const program parsed = onnx::parse_model(model, folder).graph;
  const auto& graph = parsed.main();
  std::map<std::string, argument> inputs;
  for (const value_id v : graph.parameters())
    inputs[std::string(graph.producer(v).name.view())] = testing::random_argument(graph.shape_of(v), 3);
  compare_with_peer(model, folder, {inputs}, 1e-4);
}

class light_networks : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string folder_ = std::string(KILN_SOURCE_DIR) + "/bench/models/light";
  const std::string bytes_ = read_bytes(folder_ + "/" + GetParam() + ".onnx");
};

TEST_P(light_networks, equal_onnx_runtime) { compare(folder_, with_random_weights(bytes_)); }

// Classes with equal weights have large equal sums: what rounds otherwise in one of them is all that softmax sees.
TEST_P(light_networks, of_one_value_a_tensor_equal_onnx_runtime) { compare(folder_, bytes_); }

INSTANTIATE_TEST_SUITE_P(networks, light_networks,
                         ::testing::Values("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50",
                                           "shufflenet", "squeezenet", "vgg19", "zfnet512"),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kiln::peer
