#include "kiln/pass/fuse_stored_keys.hpp"

#include "kiln/pass/passes.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

template <class Make> program fused(Make&& make) {
  builder b;
  make(b);
  program p = b.finish();
  fuse_pointwise(p);
  return p;
}
value wide(builder& b, std::string_view name, dtype t) { return b.input(name, t, {1, 2, 3, 4}).convert(dtype::f32); }
bool fuses(program p) {
  const bool changed = fuse_stored_keys(p).changed();
  verify(p);
  return changed;
}

TEST(fuse_stored_keys, an_attention_takes_conversions_and_scales_in) {
  const program before = fused([](builder& b) {
    const value q = b.input("q", dtype::f32, {1, 4, 2, 4}), by = b.input("by", dtype::f32, {1, 2, 1, 4});
    const value k = wide(b, "k", dtype::i8) * by, v = wide(b, "v", dtype::i8) * .25F;
    b.output(q.attention(k, v, {.scale = .5F}));
  });
  program p = before;
  EXPECT_TRUE(fuse_stored_keys(p).changed());
  verify(p);
  std::uint32_t steps = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    steps += p.main()[i].kind == instruction_kind::op && p.main()[i].op.kind() != op_kind::view;
  EXPECT_EQ(steps, 1u);
  small_vector<literal> in;
  for (const value_id v : p.main().parameters()) {
    const shape& s = p.main().shape_of(v);
    small_vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < product(s.lens).value(); ++i) numbers.push_back(i * 7 % 11 - 5);
    in.push_back(literal::of<std::int64_t>(s, numbers));
  }
  EXPECT_EQ(evaluate(p, in), evaluate(before, in));
  EXPECT_FALSE(fuses(p));
}

TEST(fuse_stored_keys, other_forms_stay) {
  const auto with = [](auto&& keys, auto&& values) {
    return fuses(fused([&](builder& b) {
      const value k = keys(b), v = values(b);
      b.output(b.input("q", dtype::f32, {1, 4, 2, 4}).attention(k, v, {}));
    }));
  };
  const auto halves = [](std::string_view name) { return [name](builder& b) { return wide(b, name, dtype::f16); }; };
  EXPECT_TRUE(with(halves("k"), halves("v")));
  // two types, floats, a type without kernels
  EXPECT_FALSE(with(halves("k"), [](builder& b) { return wide(b, "v", dtype::bf16); }));
  EXPECT_FALSE(with(halves("k"), [](builder& b) { return b.input("v", dtype::f32, {1, 2, 3, 4}); }));
  const auto words = [](std::string_view name) { return [name](builder& b) { return wide(b, name, dtype::i16); }; };
  EXPECT_FALSE(with(words("k"), words("v")));
  // a scale for each key, another computation, another reader
  EXPECT_FALSE(with(
      [](builder& b) {
        return wide(b, "k", dtype::f16) * b.input("by", dtype::f32, {1, 1, 3, 1});
      },
      halves("v")));
  EXPECT_FALSE(with([](builder& b) { return wide(b, "k", dtype::f16).exp(); }, halves("v")));
  EXPECT_FALSE(with(
      [](builder& b) {
        const value k = wide(b, "k", dtype::f16);
        b.output(k);
        return k;
      },
      halves("v")));
}

}  // namespace
}  // namespace kiln::test
