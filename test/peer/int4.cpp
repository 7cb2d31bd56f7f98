#include "kiln/quantize/int4.hpp"
#include "kiln/onnx/export.hpp"
#include "peer/compare.hpp"
#include "runtime/compare.hpp"

// Weights that kiln stores in blocks are what ONNX Runtime reads.
namespace kiln::peer {
namespace {

using namespace quantize;

void expect_alike(const int4_options& options, double tolerance) {
  builder b;
  const auto weights = [&](const dims& lens, unsigned seed) {
    return b.constant(testing::random_argument({dtype::f32, lens}, seed).to_literal());
  };
  const value ids = b.input("ids", dtype::i64, {2, 3});
  const value x = weights({40, 64}, 1).gather(ids, 0);
  b.output(x.reshape({6, 64}).dot(weights({64, 80}, 2)).relu().dot(weights({80, 32}, 3)), "y");
  const std::string bytes = onnx::export_model(to_int4(prepared(b.finish()), options).graph);
  const argument numbers(
      literal::of<std::int64_t>({dtype::i64, {2, 3}}, small_vector<std::int64_t>{0, 39, 7, 7, 21, 3}));
  compare_with_peer(std::as_bytes(std::span(bytes.data(), bytes.size())), ".", {{{"ids", numbers}}}, tolerance);
}

TEST(int4_weights, every_method_and_form_is_read_alike) {
  for (const std::int64_t block : {16, 32, 64, 128, 256})  // ONNX Runtime refuses 512
    for (const bool symmetric : {true, false})
      for (const weight_method m : {weight_method::rtn, weight_method::k_quant, weight_method::hqq}) {
        SCOPED_TRACE(::testing::Message() << to_string(m) << " in blocks of " << block);
        expect_alike({.format = {4, block, symmetric}, .method = m}, 1e-4);
      }
  expect_alike({.format = {8, 32, true}}, 1e-4);
  expect_alike({.format = {8, 32, false}}, 1e-4);
}
TEST(int4_weights, embeddings_are_read_alike) {
  for (const bool symmetric : {true, false}) expect_alike({.format = {4, 32, symmetric}, .ops = {"gather"}}, 1e-5);
}
TEST(int4_weights, products_of_bytes_are_alike) { expect_alike({.bytes_suffice = true}, 1e-2); }

}  // namespace
}  // namespace kiln::peer
