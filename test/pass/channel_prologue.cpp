#include "kiln/pass/channel_prologue.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "kiln/graph/builder.hpp"

namespace kiln {
namespace {

// Over x [2, 3, 4, 4] and numbers by channel "scale" and "shift" [2, 3, 4, 4], as parameters of a body.
std::optional<channel_prologue_form> form_of(const std::function<value(builder&, value, value, value)>& make) {
  builder b;
  const dims image{2, 3, 4, 4};
  const value x = b.input("x", dtype::f32, image), scale = b.input("scale", dtype::f32, image),
              shift = b.input("shift", dtype::f32, image);
  b.output(make(b, x, scale, shift));
  const program p = b.finish();
  return find_channel_prologue(p.main(), p.main().outputs[0], [](std::size_t k) { return k != 0; });
}

TEST(channel_prologue, batch_norm_and_relu) {
  const auto f = form_of([](builder&, value x, value scale, value shift) { return (x * scale + shift).relu(); });
  ASSERT_TRUE(f);
  EXPECT_EQ(f->data, 0u);
  EXPECT_TRUE(f->scale.present && !f->scale.uniform && f->scale.at == 1);
  EXPECT_TRUE(f->shift.present && !f->shift.uniform && f->shift.at == 2);
  EXPECT_TRUE(f->clamps);
  EXPECT_EQ(f->low, 0);
  EXPECT_EQ(f->high, std::numeric_limits<float>::infinity());
}

TEST(channel_prologue, each_part_is_optional) {
  const auto clamped = form_of([](builder&, value x, value, value) { return x.relu(); });
  ASSERT_TRUE(clamped);
  EXPECT_FALSE(clamped->scale.present || clamped->shift.present);
  const auto scaled = form_of([](builder&, value x, value scale, value) { return scale * x; });
  ASSERT_TRUE(scaled);
  EXPECT_TRUE(scaled->scale.present && !scaled->shift.present && !scaled->clamps);
  const auto numbers = form_of([](builder&, value x, value, value) { return x * 2.0f + 3.0f; });
  ASSERT_TRUE(numbers);
  EXPECT_TRUE(numbers->scale.uniform && numbers->shift.uniform);
  EXPECT_EQ(numbers->scale.value, 2);
  EXPECT_EQ(numbers->shift.value, 3);
}

TEST(channel_prologue, bounds_meet) {
  const auto f = form_of([](builder& b, value x, value, value) {
    return x.relu().min(b.scalar(dtype::f32, 6)).max(b.scalar(dtype::f32, 1));
  });
  ASSERT_TRUE(f);
  EXPECT_EQ(f->low, 1);
  EXPECT_EQ(f->high, 6);
}

TEST(channel_prologue, gates_are_factors_alone) {
  const auto form_of = [](auto&& make) {
    builder b;
    const value x = b.input("x", dtype::f32, {2, 3, 4, 4}), gate = b.input("gate", dtype::f32, {2, 3, 4, 4});
    b.output(make(x, gate));
    const program p = b.finish();
    return find_channel_prologue(
        p.main(), p.main().outputs[0], [](std::size_t) { return false; }, [](std::size_t k) { return k == 1; });
  };
  const auto scaled = form_of([](value x, value gate) { return (gate * x + 1.0f).relu(); });
  ASSERT_TRUE(scaled);
  EXPECT_EQ(scaled->data, 0u);
  EXPECT_TRUE(scaled->scale.present && scaled->scale.gates && !scaled->scale.uniform && scaled->scale.at == 1);
  EXPECT_TRUE(scaled->shift.present && !scaled->shift.gates && scaled->clamps);
  EXPECT_FALSE(form_of([](value x, value gate) { return x + gate; }));
  EXPECT_FALSE(form_of([](value, value gate) { return gate.relu(); }));
  EXPECT_FALSE(form_of([](value, value gate) { return gate * gate; }));
}

TEST(channel_prologue, gates_vary_along_dims_0_and_1_alone) {
  const dims lens{2, 3, 4, 5};
  EXPECT_TRUE(lies_by_image_and_channel({lens, {3, 1, 0, 0}, 0}));
  EXPECT_TRUE(lies_by_image_and_channel({lens, {0, 7, 0, 0}, 5}));
  EXPECT_FALSE(lies_by_image_and_channel({lens, {3, 1, 1, 0}, 0}));
  EXPECT_FALSE(lies_by_image_and_channel({lens, {3, 1, 0, 1}, 0}));
  EXPECT_FALSE(lies_by_image_and_channel({{3}, {1}, 0}));
}

TEST(channel_prologue, what_has_another_form_is_none) {
  const auto none = [](auto make) { EXPECT_FALSE(form_of(make)); };
  none([](builder&, value x, value scale, value) { return x.relu() * scale; });
  none([](builder&, value x, value scale, value shift) { return (x + shift) * scale; });
  none([](builder&, value x, value, value) { return x.exp(); });
  none([](builder&, value x, value, value) { return x * x; });
  none([](builder&, value, value scale, value shift) { return scale + shift; });
}

TEST(channel_prologue, numbers_by_channel_vary_along_dim_1_alone) {
  const dims lens{2, 3, 4};
  EXPECT_TRUE(lies_by_channel({lens, {0, 1, 0}, 0}));
  EXPECT_TRUE(lies_by_channel({lens, {0, 0, 0}, 5}));
  EXPECT_FALSE(lies_by_channel({lens, {3, 1, 0}, 0}));
  EXPECT_FALSE(lies_by_channel({{3}, {1}, 0}));
}

}  // namespace
}  // namespace kiln
