#include "kiln/pass/fuse_stored_weights.hpp"

#include "kiln/pass/constant_folding.hpp"
#include "kiln/pass/expand_block_dequantize.hpp"
#include "kiln/pass/fuse_contraction.hpp"
#include "kiln/pass/gather_stored_numbers.hpp"
#include "kiln/pass/passes.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

literal counted(dtype t, const dims& lens, std::int64_t modulus) {
  small_vector<std::int64_t> values;
  for (std::int64_t i = 0; i < product(lens).value(); ++i) values.push_back(i * 7 % modulus);
  return literal::of<std::int64_t>({t, lens}, values);
}
value stored(builder& b, std::int64_t columns = 80) {
  const value data = b.constant(counted(dtype::u8, {columns, 64}, 256)),
              scale = b.constant(counted(dtype::f32, {columns, 4}, 5));
  return b.add(op::block_dequantize{.bits = 4, .axis = 1, .zero = 8}, data, scale);
}
std::uint32_t count(const program& p, std::string_view op) {
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    n += p.main()[i].kind == instruction_kind::op && p.main()[i].op.name() == op;
  return n;
}
template <class Make> program made(Make&& make) {
  builder b;
  make(b);
  return b.finish();
}

TEST(fuse_stored_weights, a_product_takes_its_weights_in) {
  program p = made([](builder& b) {
    const value y = b.input("x", dtype::f32, {2, 3, 128}).dot(stored(b).transpose({1, 0}).broadcast_to({2, 128, 80}));
    b.output(y.relu());
  });
  const program before = p;
  fuse_contraction(p);
  EXPECT_TRUE(fuse_stored_weights(p).changed());
  verify(p);
  EXPECT_EQ(count(p, "fused"), 1u);
  EXPECT_EQ(count(p, "block_dequantize"), 0u);
  const small_vector<literal> in{counted(dtype::f32, {2, 3, 128}, 9)};
  EXPECT_EQ(evaluate(p, in), evaluate(before, in));
}

TEST(fuse_stored_weights, weights_of_other_forms_stay) {
  const auto stays = [](auto&& make) {
    program p = made(make);
    fuse_contraction(p);
    return !fuse_stored_weights(p).changed();
  };
  const auto x = [](builder& b) { return b.input("x", dtype::f32, {3, 128}); };
  // floats of eight bits that are no numbers, which kernels would read as numbers
  const auto floats = [&](std::uint8_t code) {
    return [&x, code](builder& b) {
      const shape s(dtype::f8e4m3fn, {80, 128});
      buffer bytes = buffer::allocate(static_cast<std::size_t>(s.bytes().value()));
      std::fill_n(bytes.data(), bytes.size(), std::byte{0x38});
      bytes.data()[77] = std::byte{code};
      const value scale = b.constant(counted(dtype::f32, {80, 4}, 5));
      b.output(
          x(b).dot(b.add(op::block_dequantize{.bits = 8, .axis = 1}, b.constant(literal(s, std::move(bytes))), scale)
                       .transpose({1, 0})));
    };
  };
  const auto in_product = [&](std::uint8_t code) {
    program p = made(floats(code));
    fuse_contraction(p);
    fuse_stored_weights(p);
    return count(p, "fused") == 1;
  };
  EXPECT_TRUE(in_product(0x7e));
  EXPECT_FALSE(in_product(0x7f));
  EXPECT_FALSE(in_product(0xff));
  // weights of a run
  EXPECT_TRUE(stays([&](builder& b) {
    const value data = b.input("q", dtype::u8, {80, 64}), scale = b.input("s", dtype::f32, {80, 4});
    b.output(x(b).dot(b.add(op::block_dequantize{.bits = 4, .axis = 1}, data, scale).transpose({1, 0})));
  }));
  EXPECT_FALSE(stays([&](builder& b) { b.output(x(b).dot(stored(b).transpose({1, 0}))); }));
}

// Blocks that are a dim of their own, as views of a file's bytes have them: 80 columns of four.
struct blocks_of_bytes {
  op::block_dequantize op{.bits = 4, .axis = 2, .block = 32, .zero = 8};
  std::int64_t scales = 1;  // of a block of 16 bytes
  bool zeros = false;
  dims apart{};  // the numbers of a block
  ints order{};  // and how they are turned

  value product(builder& b) const {
    const std::int64_t depth = 4 * (op.extent ? op.extent : 32);
    small_vector<value> in{b.constant(counted(dtype::u8, {80, 4, 16}, 256)),
                           b.constant(counted(dtype::f32, {80, 4, scales}, 5))};
    if (zeros) in.push_back(b.constant(counted(dtype::u8, {80, 4, 1}, 16)));
    value w = b.add(op, in);
    if (!order.empty()) w = w.reshape(apart).transpose(order);
    return b.input("x", dtype::f32, {3, depth}).dot(w.reshape({80, depth}).transpose({1, 0}));
  }
};

TEST(fuse_stored_weights, blocks_are_a_dim_of_their_own) {
  const auto products = [](const blocks_of_bytes& from) {
    program p = made([&](builder& b) { b.output(from.product(b)); });
    const program before = p;
    fuse_contraction(p);
    const pass_note note = fuse_stored_weights(p);
    verify(p);
    const literal x = counted(dtype::f32, p.main().shape_of(p.main().parameters()[0]).lens, 9);
    EXPECT_EQ(evaluate(p, {x}), evaluate(before, {x}));
    std::uint32_t n = 0;
    for (const auto& c : note.counts.entries) n += c.name == "product" ? static_cast<std::uint32_t>(c.count) : 0;
    EXPECT_EQ(count(p, "fused"), n);
    return n;
  };
  const dims pairs{80, 4, 16, 2}, halves{80, 4, 2, 16};
  const ints turned{0, 1, 3, 2};
  EXPECT_EQ(products({}), 1u);
  EXPECT_EQ(products({.apart = pairs, .order = turned}), 1u);
  EXPECT_EQ(products({.apart = halves, .order = turned}), 0u);
  EXPECT_EQ(products({.apart = pairs, .order = {0, 3, 1, 2}}), 0u);
  EXPECT_EQ(products({.op = {.bits = 4, .axis = 2, .block = 24, .extent = 24}}), 0u);
  EXPECT_EQ(products({.op = {.bits = 4, .axis = 2, .block = 16}, .scales = 2}), 0u);
  EXPECT_EQ(products({.op = {.bits = 4, .axis = 2, .block = 64}}), 0u);
  EXPECT_EQ(products({.zeros = true}), 0u);
}

TEST(fuse_stored_weights, constants_of_other_forms_are_written_out) {
  const auto written = [](auto&& make) {
    program p = made(make);
    const program before = p;
    const pass_note note = fuse_stored_weights(p);
    verify(p);
    EXPECT_EQ(count(p, "block_dequantize") + count(p, "fused"), 0u);
    const literal x = counted(dtype::f32, p.main().shape_of(p.main().parameters()[0]).lens, 9);
    EXPECT_EQ(evaluate(p, {x}), evaluate(before, {x}));
    return note.changed();
  };
  // blocks across the columns, weights that differ in the batch, blocks of broken words, no product at all
  EXPECT_TRUE(written([&](builder& b) { b.output(b.input("x", dtype::f32, {3, 80}).dot(stored(b))); }));
  EXPECT_TRUE(written([&](builder& b) {
    b.output(b.input("x", dtype::f32, {2, 3, 128}).dot(stored(b).transpose({1, 0}).reshape({2, 128, 40})));
  }));
  EXPECT_TRUE(written([&](builder& b) {
    const value data = b.constant(counted(dtype::u8, {80, 64}, 256)),
                scale = b.constant(counted(dtype::f32, {80, 32}, 5));
    const value w = b.add(op::block_dequantize{.bits = 4, .axis = 1, .block = 4}, data, scale);
    b.output(b.input("x", dtype::f32, {3, 128}).dot(w.transpose({1, 0})));
  }));
  EXPECT_TRUE(written([&](builder& b) { b.output(b.input("x", dtype::f32, {80, 128}) + stored(b)); }));
}

TEST(gather_stored_numbers, rows_are_picked_before_they_are_dequantized) {
  const auto expect = [](const op::block_dequantize& op, const small_vector<literal>& in, std::int64_t axis,
                         bool moves) {
    program p = made([&](builder& b) {
      small_vector<value> operands;
      for (const literal& l : in) operands.push_back(b.constant(l));
      b.output(b.add(op, operands).gather(b.input("i", dtype::i64, {2, 2}), axis));
    });
    const program before = p;
    EXPECT_EQ(gather_stored_numbers(p).changed(), moves);
    verify(p);
    const small_vector<literal> indices{counted(dtype::i64, {2, 2}, 3)};
    EXPECT_EQ(evaluate(p, indices), evaluate(before, indices));
  };
  const literal bytes = counted(dtype::u8, {3, 10}, 256), scales = counted(dtype::f32, {3, 3}, 5);
  expect({.bits = 4, .block = 8, .extent = 17}, {bytes, scales, counted(dtype::u8, {3, 2}, 256)}, 0, true);
  expect({.axis = 0, .block = 1}, {bytes, counted(dtype::f32, {3, 10}, 5)}, 1, true);
  expect({.bits = 4, .block = 8}, {bytes, scales}, 1, false);
  expect({.bits = 4, .axis = 0, .block = 1}, {bytes, counted(dtype::f32, {3, 20}, 5)}, 1, false);
}

TEST(fuse_stored_weights, folding_leaves_them_stored) {
  program p = made([](builder& b) { b.output(b.input("x", dtype::f32, {3, 128}).dot(stored(b).transpose({1, 0}))); });
  const pass_note note = constant_folding(p);
  EXPECT_EQ(count(p, "block_dequantize"), 1u);
  ASSERT_EQ(note.remarks.size(), 1u);
  EXPECT_EQ(note.remarks[0].view(), "kept block_dequantize of constants: they stay as small as they are stored");
}

// Parts of a constant that together are larger than what each means.
TEST(fuse_stored_weights, folding_leaves_parts_of_a_constant_stored) {
  for (const bool late : {false, true})
    for (const std::int64_t block : {32, 16}) {
      const detail::constants_stay_stored scope(late);
      const std::int64_t scales = 32 / block;
      program p = made([&](builder& b) {
        const value data = b.constant(counted(dtype::i8, {2048, 8, 32}, 128)),
                    scale = b.constant(counted(dtype::f32, {2048, 8, scales}, 5));
        for (std::int64_t k = 0; k < 2048; k += 256) {
          const op::slice rows{.axes = {0}, .starts = {k}, .ends = {k + 256}};
          const value w = b.add(op::block_dequantize{.axis = 2, .block = block}, data.slice(rows), scale.slice(rows));
          b.output(b.input("x" + std::to_string(k), dtype::f32, {1, 256}).dot(w.reshape({256, 256}).transpose({1, 0})));
        }
      });
      constant_folding(p);
      verify(p);
      EXPECT_EQ(count(p, "block_dequantize"), 8u) << late << ' ' << block;
      EXPECT_EQ(count(p, "slice"), late && block == 32 ? 16u : 0u) << late << ' ' << block;
    }
}

TEST(expand_block_dequantize, arithmetic_gives_the_same) {
  const auto expect = [](const op::block_dequantize& op, const small_vector<literal>& in) {
    program p = made([&](builder& b) {
      small_vector<value> operands;
      for (const literal& l : in) operands.push_back(b.constant(l));
      b.output(b.add(op, operands));
    });
    const program before = p;
    EXPECT_TRUE(expand_block_dequantize(p).changed());
    verify(p);
    EXPECT_EQ(count(p, "block_dequantize"), 0u);
    EXPECT_EQ(evaluate(p, {}), evaluate(before, {}));
    ASSERT_TRUE(without_block_dequantize(before));
    EXPECT_FALSE(without_block_dequantize(p));
  };
  const literal bytes = counted(dtype::u8, {3, 10}, 256);
  expect({.bits = 4, .axis = 1, .block = 8, .zero = 8}, {bytes, counted(dtype::f32, {3, 3}, 5)});
  expect({.bits = 4, .axis = 1, .block = 8, .extent = 17},
         {bytes, counted(dtype::f16, {3, 3}, 5), counted(dtype::u8, {3, 2}, 256)});
  expect({.bits = 2, .axis = -1, .block = 16}, {bytes, counted(dtype::f64, {3, 3}, 5), counted(dtype::f32, {3, 3}, 4)});
  expect({.axis = 0, .block = 2},
         {counted(dtype::i4, {3, 10}, 8), counted(dtype::f32, {2, 10}, 5), counted(dtype::i4, {2, 10}, 8)});

  program p = made([](builder& b) {
    b.output(stored(b) + stored(b).gather(b.input("i", dtype::i64, {80}), 0));
    b.output(b.add(op::block_dequantize{.bits = 4, .axis = 1}, b.input("q", dtype::u8, {80, 64}),
                   b.constant(counted(dtype::f32, {80, 4}, 5)).convert(dtype::f16)));
  });
  EXPECT_TRUE(expand_block_dequantize(p, false).changed());
  EXPECT_EQ(count(p, "block_dequantize"), 2u);
}

}  // namespace
}  // namespace kiln::test
