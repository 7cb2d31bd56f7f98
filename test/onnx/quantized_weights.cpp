// MatMulNBits and its like: what is imported, and that weights stay as they are stored.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "onnx/anonymous_memory.hpp"
#include "onnx/evaluate.hpp"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
}

namespace kiln::test {
namespace {

constexpr const char* microsoft = "com.microsoft";

struct n_bits {
  std::int64_t k = 64, n = 70, bits = 4, block = 16, level = 0;
  std::vector<std::int64_t> left{3, 64}, order{};
  bool zeros = false, float_zeros = false, scales_of_rank_2 = false, bias = false;

  std::int64_t blocks() const { return (k + block - 1) / block; }
};

class n_bits_model {
 public:
  explicit n_bits_model(const n_bits& c) : c_(c) {
    std::mt19937 engine(7);
    const std::int64_t row = c.blocks() * c.block * c.bits / 8, zero_row = (c.blocks() * c.bits + 7) / 8;
    for (std::int64_t i = 0; i < c.n * row; ++i) data_.push_back(static_cast<std::uint8_t>(engine()));
    for (std::int64_t i = 0; i < c.n * c.blocks(); ++i) scales_.push_back(static_cast<float>(engine() % 100 + 1) / 512);
    for (std::int64_t i = 0; i < c.n * zero_row; ++i) zeros_.push_back(static_cast<std::uint8_t>(engine()));
    for (std::int64_t i = 0; i < c.n * c.blocks(); ++i) float_zeros_.push_back(static_cast<float>(engine() % 64) / 4);
    for (std::int64_t i = 0; i < c.n; ++i) bias_.push_back(static_cast<float>(engine() % 64) / 8);
    std::int64_t size = 1;
    for (const std::int64_t d : c.left) size *= d;
    for (std::int64_t i = 0; i < size; ++i) x_.push_back(static_cast<float>(engine() % 257) / 128 - 1);
  }

  program imported() const {
    graph_parts parts;
    parts.inputs = {value_info("x", 1, {c_.left.begin(), c_.left.end()})};
    std::vector<std::int64_t> scale_lens{c_.n * c_.blocks()};
    if (c_.scales_of_rank_2) scale_lens = {c_.n, c_.blocks()};
    const std::int64_t zero_row = (c_.blocks() * c_.bits + 7) / 8;
    parts.initializers = {tensor<std::uint8_t>("b", 2, {c_.n, c_.blocks(), c_.block * c_.bits / 8}, data_),
                          floats("s", scale_lens, scales_)};
    strings names{"x", "b", "s", "", "", ""};
    if (c_.zeros) parts.initializers.push_back(tensor<std::uint8_t>("z", 2, {c_.n * zero_row}, zeros_)), names[3] = "z";
    if (c_.float_zeros) parts.initializers.push_back(floats("z", {c_.n, c_.blocks()}, float_zeros_)), names[3] = "z";
    if (!c_.order.empty()) parts.initializers.push_back(tensor<std::int32_t>("g", 6, {c_.k}, groups())), names[4] = "g";
    if (c_.bias) parts.initializers.push_back(floats("bias", {c_.n}, bias_)), names[5] = "bias";
    parts.nodes = {node("MatMulNBits", names, {"y"},
                        {attr("K", c_.k), attr("N", c_.n), attr("bits", c_.bits), attr("block_size", c_.block),
                         attr("accuracy_level", c_.level)},
                        "", microsoft)};
    parts.outputs = {value_info("y")};
    return onnx::parse_model(model(graph(parts), {opset(21), opset(1, microsoft)}).bytes()).graph;
  }
  void expect_result(const argument& found) const {
    const auto y = found.to<float>();
    const std::int64_t rows = static_cast<std::int64_t>(x_.size()) / c_.k;
    ASSERT_EQ(static_cast<std::int64_t>(y.size()), rows * c_.n);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < c_.n; ++j) {
        double sum = c_.bias ? bias_[static_cast<std::size_t>(j)] : 0;
        for (std::int64_t k = 0; k < c_.k; ++k)
          sum += static_cast<double>(x_[static_cast<std::size_t>(r * c_.k + k)]) * weight(k, j);
        ASSERT_NEAR(y[static_cast<std::size_t>(r * c_.n + j)], sum, c_.level == 4 ? .1 : 2e-4) << r << ' ' << j;
      }
  }
  argument left() const { return argument(literal::of<float>({dtype::f32, to_dims(c_.left)}, x_)); }

 private:
  std::vector<std::int32_t> groups() const {
    std::vector<std::int32_t> g;
    for (const std::int64_t x : c_.order) g.push_back(static_cast<std::int32_t>(x));
    return g;
  }
  double weight(std::int64_t k, std::int64_t j) const {
    const std::int64_t group = c_.order.empty() ? k / c_.block : c_.order[static_cast<std::size_t>(k)];
    const auto block = static_cast<std::size_t>(j * c_.blocks() + group);
    const auto field = [&](const std::vector<std::uint8_t>& from, std::int64_t row_bytes, std::int64_t at) {
      return from[static_cast<std::size_t>(j * row_bytes + at * c_.bits / 8)] >> (at * c_.bits % 8) &
             ((1 << c_.bits) - 1);
    };
    double zero = 1 << (c_.bits - 1);
    if (c_.zeros) zero = field(zeros_, (c_.blocks() * c_.bits + 7) / 8, group);
    if (c_.float_zeros) zero = float_zeros_[block];
    return (field(data_, c_.blocks() * c_.block * c_.bits / 8, k) - zero) * scales_[block];
  }

  n_bits c_;
  std::vector<std::uint8_t> data_, zeros_;
  std::vector<float> scales_, float_zeros_, bias_, x_;
};

void expect_variant(const n_bits& c, bool keeps = true) {
  const n_bits_model m(c);
  m.expect_result(evaluate(m.imported(), {m.left()})[0]);
  const executable e = compile(m.imported(), eigen_target());
  m.expect_result(e.run(std::vector<argument>{m.left()})[0]);
  bool kept = false;
  for (const step_info& s : e.report().steps) kept = kept || s.kernel.starts_with("dot of ");
  EXPECT_EQ(kept, keeps);
}

TEST(mat_mul_n_bits, is_imported_in_every_form) {
  for (const std::int64_t bits : {2, 4, 8})
    for (const std::int64_t block : {16, 32, 128})
      for (const int zeros : {0, 1, 2})
        for (const std::int64_t level : {0, 4}) {
          SCOPED_TRACE(::testing::Message() << bits << ' ' << block << ' ' << zeros << ' ' << level);
          n_bits c{.k = 192, .n = 130, .bits = bits, .block = block, .level = bits == 8 ? 0 : level, .left = {3, 192}};
          c.zeros = zeros == 1, c.float_zeros = zeros == 2;
          expect_variant(c);
          if (::testing::Test::HasFatalFailure()) return;
        }
}

TEST(mat_mul_n_bits, takes_vectors_batches_a_bias_and_scales_of_either_rank) {
  expect_variant({.k = 128, .n = 150, .left = {128}, .bias = true});
  expect_variant({.k = 128, .n = 150, .left = {2, 1, 3, 128}, .zeros = true, .scales_of_rank_2 = true, .bias = true});
  expect_variant({.k = 130, .n = 150, .left = {2, 130}, .zeros = true});  // a depth that is no number of blocks
}

TEST(mat_mul_n_bits, weights_may_be_of_blocks_in_another_order) {
  n_bits c{.k = 128, .n = 150, .block = 32, .left = {2, 128}, .zeros = true};
  for (std::int64_t k = 0; k < c.k; ++k) c.order.push_back(k / 32);
  expect_variant(c);
  for (std::int64_t k = 0; k < c.k; ++k) c.order[static_cast<std::size_t>(k)] = (k * 5 + 3) % 4;
  expect_variant(c);
  c.bits = 2;
  expect_variant(c);
  c.order[0] = c.order[1];  // blocks of other sizes are written out
  expect_variant(c, false);
}

TEST(gather_block_quantized, reads_the_rows_that_it_needs) {
  std::vector<std::uint8_t> data(64 * 32);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 37);
  std::vector<float> scales(64 * 2);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<float>(i % 7 + 1);
  graph_parts parts;
  parts.inputs = {value_info("rows", 7, {2, 1})};
  parts.initializers = {tensor<std::uint8_t>("data", 2, {64, 32}, data), floats("scale", {64, 2}, scales)};
  parts.nodes = {node("GatherBlockQuantized", {"data", "rows", "scale"}, {"y"},
                      {attr("block_size", 32), attr("bits", 4), attr("quantize_axis", 1)}, "", microsoft)};
  parts.outputs = {value_info("y")};
  const program p = onnx::parse_model(model(graph(parts), {opset(21), opset(1, microsoft)}).bytes()).graph;
  const argument rows(literal::of<std::int64_t>({dtype::i64, {2, 1}}, small_vector<std::int64_t>{63, -64}));
  const executable e = compile(p, eigen_target());
  EXPECT_LT(e.report().constant_bytes, 64 * 64u);  // as they are stored: floats would be four times as many
  const auto y = e.run(std::vector<argument>{rows})[0];
  EXPECT_EQ(y.get_shape().lens, (dims{2, 1, 64}));
  const auto found = y.to<float>();
  for (const std::size_t r : {0, 1})
    for (std::size_t k = 0; k < 64; ++k) {
      const std::size_t row = r == 0 ? 63 : 0;
      const int field = data[row * 32 + k / 2] >> (k % 2 * 4) & 15;
      EXPECT_EQ(found[r * 64 + k], static_cast<float>(field - 8) * scales[row * 2 + k / 32]);
    }
}

// Four matrices of 8 Mi weights in a file: written out they take 128 MiB.
TEST(mat_mul_n_bits, weights_take_no_more_memory_than_their_file) {
  if (anonymous_bytes() < 0) GTEST_SKIP() << "this system does not tell anonymous memory";
  if (__asan_init || __tsan_init) GTEST_SKIP() << "a sanitizer's shadow of the memory counts as memory";
  constexpr std::int64_t side = 4096, layers = 4, data = side * side / 2, scales = side * side / 32 * 4;
  const temporary_folder folder;
  graph_parts parts;
  parts.inputs = {value_info("x0", 1, {1, side})};
  parts.outputs = {value_info("x" + std::to_string(layers))};
  const auto weight = [&](const std::string& name, int type, const std::vector<std::int64_t>& lens, std::int64_t at,
                          std::int64_t bytes) {
    message t = message().numbers(1, lens).number(2, type).text(8, name).number(14, 1);
    for (const auto& [key, held] : {std::pair<std::string, std::string>("location", "weights"),
                                    {"offset", std::to_string(at)},
                                    {"length", std::to_string(bytes)}})
      t.add(13, message().text(1, key).text(2, held));
    parts.initializers.push_back(t);
  };
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string k = std::to_string(i);
    weight("b" + k, 2, {side, side / 32, 16}, i * (data + scales), data);
    weight("s" + k, 1, {side * side / 32}, i * (data + scales) + data, scales);
    parts.nodes.push_back(node("MatMulNBits", {"x" + k, "b" + k, "s" + k}, {"x" + std::to_string(i + 1)},
                               {attr("K", side), attr("N", side), attr("bits", 4), attr("block_size", 32)}, "",
                               microsoft));
  }
  std::ofstream(folder / "weights").put(0);
  std::filesystem::resize_file(folder / "weights", layers * (data + scales));  // zeros, which take no disk
  const auto file = folder.write("model.onnx", model(graph(parts), {opset(21), opset(1, microsoft)}).str());
  std::size_t packed = 0;
  const std::int64_t peak = anonymous_peak([&] {
    const executable e = compile(onnx::read_model(file.string()).graph, eigen_target());
    packed = e.report().packed_bytes;
    EXPECT_EQ(e.report().constant_bytes, 0u);
  });
  EXPECT_LE(packed, static_cast<std::size_t>(layers * (data + scales)));
  EXPECT_LE(peak, layers * (data + scales) * 6 / 5 + (16 << 20));
}

}  // namespace
}  // namespace kiln::test
