// Products with constant weights that are stored in blocks, on the Eigen target.
#include <cmath>

#include "eigen/saved_program.hpp"
#include "kiln/op/quant/block_dequantize.hpp"

namespace kiln::testing {
namespace {

// Rounding the other operand to 8 bits changes results so far: a part in 127 of each product at most, most cancel.
constexpr tolerance rounded{2e-2, 2e-1}, exact{2e-5, 2e-5};

struct weights_form {
  op::block_dequantize op{.bits = 4, .axis = 1, .block = 32, .zero = 8};
  std::int64_t depth = 256, columns = 80;
  dtype scale = dtype::f32;
  bool zeros = false, float_zeros = false;
};

value numbers(builder& b, dtype t, const dims& lens, double low, double high, unsigned seed) {
  return b.constant(random_argument({t, lens}, seed, low, high).to_literal());
}
// weights[columns, depth] as MatMulNBits has them
value real_weights(builder& b, weights_form f, unsigned seed = 5) {
  const std::int64_t blocks = (f.depth + f.op.block - 1) / f.op.block, each = fields_per_byte(f.op.bits);
  if (blocks * f.op.block != f.depth) f.op.extent = f.depth;
  const value data = numbers(b, dtype::u8, {f.columns, blocks * f.op.block / each}, 0, 255, seed);
  const value scale = numbers(b, f.scale, {f.columns, blocks}, .01, .1, seed + 1);
  if (f.float_zeros) return b.add(f.op, data, scale, numbers(b, f.scale, {f.columns, blocks}, 0, 15, seed + 2));
  if (!f.zeros) return b.add(f.op, data, scale);
  return b.add(f.op, data, scale, numbers(b, dtype::u8, {f.columns, (blocks + each - 1) / each}, 0, 255, seed + 2));
}
std::function<void(builder&)> product_of(const weights_form& f, dims left = {3, 256}) {
  return [=](builder& b) { b.output(b.input("x", f.scale, left).dot(real_weights(b, f).transpose({1, 0}))); };
}
void expect_kernel(const std::function<void(builder&)>& make, std::string_view name, std::size_t steps = 1) {
  const executable e = compile_eigen(make);
  std::size_t found = 0;
  for (const step_info& s : e.report().steps) {
    EXPECT_FALSE(s.fallback) << s.kernel;
    found += s.kernel.starts_with(name);
  }
  EXPECT_EQ(found, steps) << e.report().steps[0].kernel;
}

TEST(quantized_weights, multiply_in_every_form) {
  for (const std::int64_t bits : {2, 4, 8})
    for (const std::int64_t block : {16, 64})
      for (const int zeros : {0, 1, 2})
        for (const std::int64_t rows : {1, 4, 20}) {
          SCOPED_TRACE(::testing::Message() << bits << ' ' << block << ' ' << zeros << ' ' << rows);
          weights_form f{.op = {.bits = bits, .axis = 1, .block = block, .zero = 1 << (bits - 1)}, .columns = 131};
          f.zeros = zeros == 1, f.float_zeros = zeros == 2;
          const double size = bits == 8 ? 16 : 1;
          expect_same(product_of(f, {rows, 256}), {exact.relative * size, exact.absolute * size});
          if (::testing::Test::HasFatalFailure()) return;
        }
  expect_kernel(product_of({}), "dot of 4-bit blocks (floats)");
}

TEST(quantized_weights, a_depth_that_is_no_whole_number_of_blocks) {
  weights_form f;
  f.depth = 250;
  expect_same(product_of(f, {2, 250}), exact);
  expect_kernel(product_of(f, {2, 250}), "dot of 4-bit blocks");
}

TEST(quantized_weights, vectors_and_batches) {
  weights_form f;
  f.zeros = true;
  expect_same(product_of(f, {1, 256}), exact);
  const auto batch = [&](builder& b) {
    const value w = real_weights(b, f).transpose({1, 0}).broadcast_to({2, 3, 256, 80});
    b.output(b.input("x", dtype::f32, {2, 3, 5, 256}).dot(w));
  };
  expect_same(batch, exact);
  expect_kernel(batch, "dot of 4-bit blocks");
}

TEST(quantized_weights, blocks_along_the_first_dim) {
  for (const dtype t : {dtype::i4, dtype::u4, dtype::i8, dtype::u8}) {
    const auto make = [&](builder& b) {
      const bool is_signed = is_signed_integer(t);
      const double low = is_signed ? -8 : 0, high = is_signed ? 7 : 15;
      const value w = b.add(op::block_dequantize{.axis = 0, .block = 32}, numbers(b, t, {128, 96}, low, high, 3),
                            numbers(b, dtype::f32, {4, 96}, .01, .1, 4), numbers(b, t, {4, 96}, low, high, 5));
      b.output(b.input("x", dtype::f32, {3, 128}).dot(w));
    };
    expect_same(make, exact);
    expect_kernel(make, "dot of " + std::to_string(bits_of(t)) + "-bit blocks (floats)");
  }
}

TEST(quantized_weights, an_epilogue_runs_in_the_product) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {20, 256});
    const value gate = x.dot(real_weights(b, {}, 5).transpose({1, 0})) + b.input("bias", dtype::f32, {80});
    b.output(gate * gate.sigmoid() * b.input("up", dtype::f32, {20, 80}));
  };
  expect_same(make, exact);
  expect_kernel(make, "dot of 4-bit blocks+epilogue (floats)");
  EXPECT_EQ(compile_eigen(make).report().steps.size(), 1u);
}

TEST(quantized_weights, halves_are_computed_as_floats) {
  for (const dtype t : {dtype::f16, dtype::bf16}) {
    weights_form f;
    f.scale = t;
    const tolerance by_type = t == dtype::f16 ? tolerance{2e-3, 2e-2} : tolerance{2e-2, 2e-1};
    expect_same(product_of(f), by_type);
    expect_kernel(product_of(f), "dot of 4-bit blocks");
  }
}

TEST(quantized_weights, the_other_operand_is_rounded_where_that_is_permitted) {
  for (const std::int64_t bits : {2, 4, 8}) {
    weights_form f{.op = {.bits = bits, .axis = 1, .block = 32, .zero = 1 << (bits - 1), .bytes_suffice = true}};
    if (bits == 8) f.op.zero = 128;
    for (const std::int64_t rows : {1, 9}) {
      const auto make = product_of(f, {rows, 256});
      const auto in = random_inputs(make);
      const double size = bits == 8 ? 16 : 1;
      expect_close(compile_eigen(make).run(in)[0], reference_run(make, in)[0],
                   {rounded.relative, rounded.absolute * size});
    }
  }
}

TEST(quantized_weights, equal_operands_of_a_product_and_other_readers) {
  // one matrix multiplied and gathered from, as an embedding that is the last layer, too
  const auto make = [](builder& b) {
    const value w = real_weights(b, {});
    const value rows =
        w.gather(b.constant(literal::of<std::int64_t>({dtype::i64, {2}}, small_vector<std::int64_t>{7, 3})), 0);
    b.output(rows.dot(w.transpose({1, 0})));
  };
  expect_same(make, std::vector<argument>{}, exact);
}

TEST(quantized_weights, weights_of_a_run_are_computed) {
  const auto make = [](builder& b) {
    const value data = b.input("q", dtype::u8, {80, 128}), scale = b.input("s", dtype::f32, {80, 8});
    b.output(b.input("x", dtype::f32, {3, 256})
                 .dot(b.add(op::block_dequantize{.bits = 4, .axis = 1, .zero = 8}, data, scale).transpose({1, 0})));
  };
  std::vector<argument> in = random_inputs(make);
  in[0] = random_argument({dtype::u8, {80, 128}}, 4, 0, 255);
  expect_same(make, in, exact);
  expect_kernel(make, "dot", 1);
}

// Floats in every way they come: packed, one to a byte, with scales of each type and a factor.
TEST(quantized_weights, floats_are_read_as_they_are_stored) {
  for (const dtype t : {dtype::f4e2m1, dtype::f8e4m3fn, dtype::f8e4m3fnuz, dtype::f8e5m2, dtype::f8e5m2fnuz})
    for (const dtype scales : {dtype::f32, dtype::f16, dtype::f8e8m0, dtype::f8e4m3fn})
      for (const std::int64_t rows : {1, 20}) {
        const auto make = [&](builder& b) {
          const value w = b.add(op::block_dequantize{.axis = 1, .block = 16, .factor = .75F},
                                numbers(b, t, {80, 96}, -5, 5, 3), numbers(b, scales, {80, 6}, .01, .5, 4));
          const dtype x = scales == dtype::f16 ? dtype::f16 : dtype::f32;
          b.output(b.input("x", x, {rows, 96}).dot(w.transpose({1, 0})));
        };
        SCOPED_TRACE(::testing::Message() << to_string(t) << ' ' << to_string(scales) << ' ' << rows);
        expect_same(make, scales == dtype::f16 ? tolerance{4e-3, 2e-2} : tolerance{1e-4, 1e-4});
        expect_kernel(make, "dot of " + std::to_string(bits_of(t)) + "-bit float blocks");
      }
  weights_form packed{.op = {.bits = 4, .axis = 1, .block = 32, .floats = true}};
  expect_same(product_of(packed), exact);
  expect_kernel(product_of(packed), "dot of 4-bit float blocks (floats)");
}

// What a kernel does not read as it is stored is computed before.
TEST(quantized_weights, floats_that_are_no_numbers_stay_right) {
  const auto make = [](builder& b) {
    std::vector<float> x(static_cast<std::size_t>(64 * 80), 1.0F);
    x[7] = std::numeric_limits<float>::infinity();
    const value data = b.constant(literal::of<float>({dtype::f8e5m2, {64, 80}}, x));
    const value w =
        b.add(op::block_dequantize{.axis = 0, .block = 32}, data, numbers(b, dtype::f32, {2, 80}, .5, 1, 3));
    b.output(b.input("x", dtype::f32, {2, 64}).abs().dot(w));
  };
  const auto in = random_inputs(make);
  const auto a = compile_eigen(make).run(in)[0].to_literal().to<float>(),
             c = reference_run(make, in)[0].to_literal().to<float>();
  for (std::size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(a[k] == c[k] || std::abs(a[k] - c[k]) < 1e-4) << k;
}

// The least scale that is a normal float.
// The CPU's kernels flush denormals: half of this scale, the least number above 0, is the least normal float.
TEST(quantized_weights, scales_of_the_least_power_whose_numbers_are_normal) {
  const auto make = [](builder& b) {
    const value scale = b.constant(literal::of<float>({dtype::f8e8m0, {80, 2}}, std::vector<float>(160, 0x1p-125F)));
    const value w =
        b.add(op::block_dequantize{.axis = 1, .block = 32}, numbers(b, dtype::f4e2m1, {80, 64}, -6, 6, 3), scale);
    b.output((b.input("x", dtype::f32, {2, 64}) * 0x1p100F).dot(w.transpose({1, 0})) * 0x1p26F);
  };
  expect_same(make, exact);
}

TEST(quantized_weights, take_the_memory_that_they_are_stored_in) {
  weights_form f{.depth = 1024, .columns = 512, .scale = dtype::f16};
  const auto exact_halves = [&](builder& b) {
    const value scale = numbers(b, dtype::f16, {512, 32}, .01, .1, 6).convert(dtype::f32);
    const value data = numbers(b, dtype::u8, {512, 512}, 0, 255, 7);
    b.output(b.input("x", dtype::f32, {3, 1024}).dot(b.add(f.op, data, scale).transpose({1, 0})));
  };
  const std::size_t data = 512 * 512, scales = 512 * 32;
  EXPECT_EQ(compile_eigen(exact_halves).report().packed_bytes, data + scales * 2);
  f.scale = dtype::f32;
  EXPECT_EQ(compile_eigen(product_of(f, {3, 1024})).report().packed_bytes, data + scales * 4);
  f.zeros = true;
  EXPECT_EQ(compile_eigen(product_of(f, {3, 1024})).report().packed_bytes, data + scales * 5);
}

// Large enough to be packed from 16 bits; whose scales a program widens.
std::function<void(builder&)> product_of_half_scales(dtype t, bool gives_weights = false) {
  return [=](builder& b) {
    const value scale = numbers(b, t, {1050, 32}, .01, .1, 6).convert(dtype::f32);
    const op::block_dequantize by{.bits = 4, .axis = 1, .block = 32, .zero = 8};
    const value w = b.add(by, numbers(b, dtype::u8, {1050, 512}, 0, 255, 7), scale);
    b.output(b.input("x", dtype::f32, {3, 1024}).dot(w.transpose({1, 0})));
    if (gives_weights) b.output(w);
  };
}
bool folds(const executable& e, std::string_view op) {
  for (const pass_note& n : e.report().passes)
    for (const auto& c : n.counts.entries)
      if (n.pass == "constant_folding" && c.name == op) return true;
  return false;
}

TEST(quantized_weights, scales_of_16_bits_are_not_written_out) {
  for (const dtype t : {dtype::f16, dtype::bf16}) {
    SCOPED_TRACE(to_string(t));
    expect_same(product_of_half_scales(t), exact);
    const executable e = compile_eigen(product_of_half_scales(t));
    EXPECT_FALSE(folds(e, "convert"));
    ASSERT_EQ(e.report().steps.size(), 1u);
    const std::size_t columns = (1050 + 15) / 16 * 16;  // whole vectors of any level
    EXPECT_LE(e.report().packed_bytes, columns * (512 + 32 * 2) + 64);
  }
}

TEST(quantized_weights, scales_of_16_bits_of_weights_that_are_read_as_well) {
  const auto make = product_of_half_scales(dtype::f16, true);
  expect_same(make, exact);
  for (const step_info& s : compile_eigen(make).report().steps) EXPECT_FALSE(s.fallback) << s.kernel;
}

// Blocks as files of GGUF have them, each a scale of 16 bits and then its numbers; of four bits, byte j has numbers j
// and j + 16.
std::function<void(builder&)> product_of_file_blocks(std::int64_t bits, std::int64_t columns, std::int64_t blocks,
                                                     std::int64_t rows = 3) {
  return [=](builder& b) {
    const std::int64_t bytes = 2 + 4 * bits;
    const literal random = random_argument({dtype::u8, {columns, blocks, bytes}}, 7, 0, 255).to_literal();
    buffer data = buffer::allocate(static_cast<std::size_t>(random.elements()));
    std::memcpy(data.data(), random.bytes(), data.size());
    for (std::int64_t k = 0; k < columns * blocks; ++k) {
      const half scale(static_cast<float>(k % 9 + 1) * (bits == 4 ? .01F : .001F));
      std::memcpy(data.data() + k * bytes, &scale, 2);
    }
    const auto part = [&](dtype t, std::int64_t width, std::int64_t first, std::int64_t end) {
      return b.constant(literal(shape(t, {columns, blocks, width}), data))
          .slice({.axes = {2}, .starts = {first}, .ends = {end}});
    };
    const op::block_dequantize op{.bits = bits, .axis = 2, .block = 32, .zero = bits == 4 ? 8 : 0};
    value w = b.add(op, part(bits == 4 ? dtype::u8 : dtype::i8, bytes, 2, bytes),
                    part(dtype::f16, bytes / 2, 0, 1).convert(dtype::f32));
    if (bits == 4) w = w.reshape({columns, blocks, 16, 2}).transpose({0, 1, 3, 2});
    b.output(b.input("x", dtype::f32, {rows, blocks * 32}).dot(w.reshape({columns, blocks * 32}).transpose({1, 0})));
  };
}

TEST(quantized_weights, blocks_of_files_with_their_scales) {
  for (const std::int64_t bits : {4, 8})
    for (const auto& [columns, blocks] : {std::pair{80, 8}, {130, 32}}) {  // scales written out; left where they are
      SCOPED_TRACE(::testing::Message() << bits << ' ' << columns);
      for (const std::int64_t rows : {1, 3, 20})
        expect_same(product_of_file_blocks(bits, columns, blocks, rows), exact);
      const auto make = product_of_file_blocks(bits, columns, blocks);
      expect_kernel(make, "dot of " + std::to_string(bits) + "-bit blocks (floats)");
      if (columns > 80) {
        EXPECT_FALSE(folds(compile_eigen(make), "slice"));
      }
    }
}

class saved_quantized_weights : public saved_program_files {};

TEST_F(saved_quantized_weights, with_scales_of_16_bits) {
  const auto make = product_of_half_scales(dtype::f16);
  expect_same_again(make, random_inputs(make));
}

TEST_F(saved_quantized_weights, compute_the_same_bits) {
  weights_form f{.depth = 1024, .columns = 512};
  f.zeros = true;
  const auto make = product_of(f, {3, 1024});
  expect_same_again(make, random_inputs(make));
  f.op.bytes_suffice = true;
  const auto other = product_of(f, {3, 1024});
  expect_same_again(other, random_inputs(other));
}

}  // namespace
}  // namespace kiln::testing
