#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "onnx/anonymous_memory.hpp"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
}

namespace kiln::test {
namespace {

constexpr std::int64_t layers = 4, side = 4096, matrix_bytes = side * side * 4, vector_bytes = side * 4;
constexpr std::int64_t weights_bytes = layers * (matrix_bytes + vector_bytes);

std::string varint(std::int64_t n) {
  std::string out;
  for (; n > 127; n >>= 7) out += static_cast<char>(n | 128);
  return out + static_cast<char>(n);
}

// Tensors of zeros but for their first element, at addresses that are multiples of nothing. Zeros take no disk.
class large_weights : public testing::TestWithParam<bool> {
 protected:
  struct weight {
    std::string name;
    std::vector<std::int64_t> lens;
    float first;
    std::int64_t bytes;
  };

  void SetUp() override {
    if (anonymous_bytes() < 0) GTEST_SKIP() << "this system does not tell anonymous memory";
    if (__asan_init || __tsan_init) GTEST_SKIP() << "a sanitizer's shadow of the memory counts as memory";
    graph_parts parts;
    parts.inputs = {value_info("x0", 1, {1, side})};
    parts.outputs = {value_info("x" + std::to_string(layers))};
    for (std::int64_t i = 0; i < layers; ++i) {
      const std::string k = std::to_string(i), next = std::to_string(i + 1);
      weights_.push_back({"w" + k, {side, side}, 2 + 0x1p-12F, matrix_bytes});  // more bits than 16: packed as f32
      weights_.push_back({"b" + k, {side}, 1, vector_bytes});
      parts.nodes.push_back(
          node("Gemm", {"x" + k, "w" + k, "b" + k}, {"x" + next}, {attr("transB", static_cast<int>(i % 2))}));
    }
    GetParam() ? write_two_files(std::move(parts)) : write_one_file(graph(parts).str());
  }

  static void put(std::ofstream& to, std::int64_t at, float value) {
    to.seekp(at);
    to.write(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void write_one_file(std::string graph) {
    const std::string start = message().number(1, 8).add(8, opset(17)).str() + '\x3a';
    const auto before = static_cast<std::int64_t>(start.size()) + 5;  // with the graph's length
    std::int64_t size = static_cast<std::int64_t>(graph.size());
    std::vector<std::pair<std::int64_t, std::string>> heads;
    for (const weight& w : weights_)
      for (std::string note;; note += '.') {  // longer, until the data are not aligned
        const message described = message().numbers(1, w.lens).number(2, 1).text(8, w.name).text(12, note);
        const std::string head = described.str() + '\x4a' + varint(w.bytes);
        const std::string tag = '\x2a' + varint(static_cast<std::int64_t>(head.size()) + w.bytes);
        const auto length = static_cast<std::int64_t>(tag.size() + head.size());
        if ((before + size + length) % 4 != 1) continue;
        heads.emplace_back(before + size, tag + head);
        size += length + w.bytes;
        break;
      }
    std::ofstream file(folder_ / "model.onnx", std::ios::binary);
    ASSERT_EQ(varint(size).size(), 5u);
    file << start << varint(size) << graph;
    for (std::size_t k = 0; k < heads.size(); ++k) {
      file.seekp(heads[k].first);
      file << heads[k].second;
      put(file, heads[k].first + static_cast<std::int64_t>(heads[k].second.size()), weights_[k].first);
    }
    file.close();
    std::filesystem::resize_file(folder_ / "model.onnx", static_cast<std::uintmax_t>(before + size));
  }

  void write_two_files(graph_parts parts) {
    std::ofstream data(folder_ / "weights.bin", std::ios::binary);
    std::int64_t at = 1;
    for (const weight& w : weights_) {
      message t;
      t.numbers(1, w.lens).number(2, 1).text(8, w.name).number(14, 1);
      t.add(13, message().text(1, "location").text(2, "weights.bin"));
      t.add(13, message().text(1, "offset").text(2, std::to_string(at)));
      parts.initializers.push_back(t);
      put(data, at, w.first);
      at += w.bytes;
    }
    data.close();
    std::filesystem::resize_file(folder_ / "weights.bin", static_cast<std::uintmax_t>(at));
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << model(graph(parts)).str();
  }

  temporary_folder folder_;
  std::vector<weight> weights_;
};

TEST_P(large_weights, at_any_address_are_held_once) {
  const std::string path = (folder_ / "model.onnx").string();
  program read;
  EXPECT_LT(anonymous_peak([&] { read = onnx::read_model(path).graph; }), weights_bytes / 10);
  std::optional<executable> made;
  const std::int64_t peak = anonymous_peak([&] { made = compile(std::move(read), eigen_target()); });
  EXPECT_GE(made->report().packed_bytes, static_cast<std::size_t>(layers * matrix_bytes));
  EXPECT_LE(peak, static_cast<std::int64_t>(made->report().packed_bytes) * 13 / 10 + (64 << 20));
  argument x(shape{dtype::f32, {1, side}});
  std::ranges::fill(x.as<float>(), 0.0f);
  x.as<float>()[0] = 1;
  const auto y = made->run({{"x0", x}});
  EXPECT_NEAR(y[0].as<float>()[0], 31, 0.02);  // four times some more than twice and one more
  EXPECT_EQ(y[0].as<float>()[side - 1], 0);
}

INSTANTIATE_TEST_SUITE_P(large_weights, large_weights, testing::Bool(), [](const auto& info) {
  return info.param ? std::string("in_a_file_of_their_own") : std::string("in_the_models_file");
});

}  // namespace
}  // namespace kiln::test
