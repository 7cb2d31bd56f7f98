#include "kiln/pass/fuse_attention.hpp"

#include <gtest/gtest.h>

#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

constexpr auto fuse = [](graph& p) { fuse_attention(p); };

constexpr auto plain = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {1, 2, 3, 4}), k = b.input("k", dtype::f32, {1, 2, 5, 4}),
             v = b.input("v", dtype::f32, {1, 2, 5, 6});
  b.output((q.dot(k.transpose({0, 1, 3, 2})) * 0.5f).softmax().dot(v));
};
constexpr std::string_view plain_text = R"(main:
  %0 = q : f32[1, 2, 3, 4]
  %1 = k : f32[1, 2, 5, 4]
  %2 = v : f32[1, 2, 5, 6]
  %3 = attention{scale = 0.5, causal = false}(%0, %1, %2) : f32[1, 2, 3, 6]
  return output_0 = %3
)";
static_assert(print(after(plain, fuse)).view() == plain_text);

// repeated keys and values, a mask of fewer dims, a division, a scaled query
constexpr auto grouped = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {2, 4, 3, 8}), k = b.input("k", dtype::f32, {2, 2, 5, 8}),
             v = b.input("v", dtype::f32, {2, 2, 5, 8}), mask = b.input("mask", dtype::f32, {2, 1, 3, 5});
  const auto repeat = [](node x) { return x.unsqueeze({2}).broadcast_to({2, 2, 2, 5, 8}).reshape({2, 4, 5, 8}); };
  b.output(((q * 0.5f).dot(repeat(k).transpose({0, 1, 3, 2})) / 2.0f + mask).softmax().dot(repeat(v)));
};
static_assert(kernel_count(after(grouped, fuse)) == 1);

// projections are split into heads by a reshape and one transposition, which takes the exchange of dims with it
constexpr auto heads = [](graph_builder& b) {
  const auto split = [&](std::string_view name, ints order) {
    return b.input(name, dtype::f32, {1, 5, 8}).reshape({1, 5, 2, 4}).transpose(order);
  };
  const node q = split("q", {0, 2, 1, 3}), k = split("k", {0, 2, 3, 1}), v = split("v", {0, 2, 1, 3});
  b.output(q.dot(k).softmax().dot(v).transpose({0, 2, 1, 3}).reshape({1, 5, 8}));
};
static_assert(kernel_count(after(heads, fuse)) == 2);  // the last reshape copies

// a condition and a sum: the mask is made of both
constexpr auto conditional = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {1, 2, 3, 4}), k = b.input("k", dtype::f32, {1, 2, 5, 4}),
             v = b.input("v", dtype::f32, {1, 2, 5, 4}), seen = b.input("seen", dtype::boolean, {1, 1, 3, 5}),
             mask = b.input("mask", dtype::f32, {1, 1, 1, 5});
  const node s = q.dot(k.transpose({0, 1, 3, 2})) / 2.0f;
  b.output((seen.where(s, b.scalar(dtype::f32, -1e9f)) + mask).softmax().dot(v));
};
constexpr auto hidden = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {1, 2, 3, 4}), k = b.input("k", dtype::f32, {1, 2, 5, 4}),
             v = b.input("v", dtype::f32, {1, 2, 5, 4}), gone = b.input("gone", dtype::boolean, {3, 5});
  b.output(gone.where(b.scalar(dtype::f32, -1e9f), q.dot(k.transpose({0, 1, 3, 2}))).softmax().dot(v));
};

// softmax as algebra leaves it: a product with the reciprocal, before or behind the repetition
constexpr auto reciprocal = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {2, 3, 4}), k = b.input("k", dtype::f32, {2, 5, 4}),
             v = b.input("v", dtype::f32, {2, 5, 4});
  const node s = q.dot(k.transpose({0, 2, 1}));
  const node e = (s - s.reduce_max({-1})).exp();
  b.output((e * e.reduce_sum({-1}).recip()).dot(v));
  const node e2 = (s * 2.0f - (s * 2.0f).reduce_max({-1})).exp();
  b.output(e2.dot(v));
};
constexpr auto reciprocal_behind = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {2, 3, 4}), k = b.input("k", dtype::f32, {2, 5, 4}),
             v = b.input("v", dtype::f32, {2, 5, 4});
  const node s = q.dot(k.transpose({0, 2, 1}));
  const node e = (s - s.reduce_max({-1})).exp();
  b.output((e.reduce_sum({-1}).broadcast_to({2, 3, 5}).recip() * e).dot(v));
};

// declined: weights that are read, another axis, a bias too small to hide, a scale behind the mask
constexpr auto weights_read = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {1, 1, 3, 4}), k = b.input("k", dtype::f32, {1, 1, 4, 3});
  const node w = q.dot(k).softmax();
  b.output(w.dot(b.input("v", dtype::f32, {1, 1, 3, 4})));
  b.output(w);
};
constexpr auto other_axis = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {1, 1, 3, 4}), k = b.input("k", dtype::f32, {1, 1, 4, 3});
  b.output(q.dot(k).softmax(2).dot(b.input("v", dtype::f32, {1, 1, 3, 4})));
};
constexpr auto weakly_hidden = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {1, 1, 3, 4}), k = b.input("k", dtype::f32, {1, 1, 4, 3}),
             c = b.input("c", dtype::boolean, {1, 1, 3, 3});
  b.output(c.where(q.dot(k), b.scalar(dtype::f32, -2.0f)).softmax().dot(b.input("v", dtype::f32, {1, 1, 3, 4})));
};
constexpr auto scaled_mask = [](graph_builder& b) {
  const node q = b.input("q", dtype::f32, {1, 1, 3, 4}), k = b.input("k", dtype::f32, {1, 1, 4, 3}),
             m = b.input("m", dtype::f32, {1, 1, 3, 3});
  b.output(((q.dot(k) + m) * 2.0f).softmax().dot(b.input("v", dtype::f32, {1, 1, 3, 4})));
};

std::size_t attentions(const graph& p) {
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    n += p.main()[i].kind == instruction_kind::op && p.main()[i].op.is<op::attention>();
  return n;
}

TEST(fuse_attention, keeps_the_meaning) {
  const auto check = [](auto build, std::size_t expected) {
    const graph p = after(build, fuse);
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
    EXPECT_EQ(attentions(p), expected) << print(p).view();
    EXPECT_LE(difference(made_by(build), p), 1e-6) << print(p).view();
  };
  check(plain, 1);
  check(grouped, 1);
  check(heads, 1);
  check(conditional, 1);
  check(hidden, 1);
  check(reciprocal_behind, 1);
  check(weights_read, 0);
  check(other_axis, 0);
  check(weakly_hidden, 0);
  check(scaled_mask, 0);
}

TEST(fuse_attention, reads_grouped_keys_once) {
  const graph p = after(grouped, fuse);
  for (std::uint32_t i = 0; i < p.main().size(); ++i) {
    if (p.main()[i].kind != instruction_kind::op || !p.main()[i].op.is<op::attention>()) continue;
    EXPECT_EQ(p.main().shape_of(p.main()[i].inputs[1]).lens, (dims{2, 2, 5, 8}));
    EXPECT_EQ(p.main().shape_of(p.main()[i].inputs[2]).lens, (dims{2, 2, 5, 8}));
    EXPECT_EQ(p.main().shape_of(p.main()[i].inputs[3]).lens, (dims{2, 1, 3, 5}));
    EXPECT_EQ(p.main()[i].op.get_if<op::attention>()->scale, 0.25f);
  }
}

TEST(fuse_attention, a_mask_takes_the_name_of_the_scores_extent) {
  const dimension past = dimension::symbol("past"), total = dimension::symbol("total");
  graph_builder b;
  const node q = b.input("q", dtype::f32, {1, 2, 1, 4}), k = b.input("k", dtype::f32, {1, 2, past + 1, 4}),
             v = b.input("v", dtype::f32, {1, 2, past + 1, 4}), mask = b.input("mask", dtype::f32, {1, 1, 1, total});
  b.output((q.dot(k.transpose({0, 1, 3, 2})) + mask.broadcast_to({1, 2, 1, past + 1})).softmax().dot(v));
  graph p = b.finish();
  fuse_attention(p);
  EXPECT_EQ(attentions(p), 1u) << print(p).view();
  EXPECT_TRUE(find_faults(p).empty());
}

// a mask of a given extent names that of scores whose own is open, and through them that of the values
TEST(fuse_attention, scores_that_a_mask_named_are_found) {
  const dimension length = dimension::symbol("length"), past = dimension::symbol("past");
  const auto fused = [&](dimension keys, dims named, dimension masked = 101) {
    graph_builder b;
    const node q = b.input("q", dtype::f32, {1, 4, length, 4}), k = b.input("k", dtype::f32, {1, 2, keys, 4}),
               v = b.input("v", dtype::f32, {1, 2, keys, 4}), mask = b.input("mask", dtype::f32, {1, 1, 1, masked});
    const auto repeat = [&](node x) {
      return x.unsqueeze({2}).broadcast_to({1, 2, 2, keys, 4}).reshape({1, 4, keys, 4});
    };
    const node scores = q.dot(repeat(k).transpose({0, 1, 3, 2})).broadcast_to(named);
    const node weights = (mask.broadcast_to(named) + scores).softmax();
    b.output(weights.dot(repeat(v).broadcast_to({1, 4, named[3], 4})));
    graph p = b.finish();
    fuse_attention(p);
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
    return p;
  };
  const graph p = fused(length + 100, {1, 4, length, 101});
  ASSERT_EQ(attentions(p), 1u) << print(p).view();
  for (std::uint32_t i = 0; i < p.main().size(); ++i) {
    if (p.main()[i].kind != instruction_kind::op || !p.main()[i].op.is<op::attention>()) continue;
    EXPECT_EQ(p.main().shape_of(p.main()[i].inputs[2]).lens, (dims{1, 2, length + 100, 4}));
  }
  // one key, which the mask really repeats
  EXPECT_EQ(attentions(fused(past, {1, 4, length, 101})), 0u);
  // a mask that doesn't say how many there are
  EXPECT_EQ(attentions(fused(length + 100, {1, 4, length, 101}, 1)), 0u);
}

TEST(fuse_attention, queries_that_a_mask_named_keep_that_name) {
  const dimension more = dimension::symbol("more");
  for (const bool images : {true, false}) {
    const dims named = images ? dims{1, 2, 6, 13} : dims{6, 13};
    const auto of = [&](dimension rows) { return images ? dims{1, 2, rows, 4} : dims{rows, 4}; };
    graph_builder b;
    const node q = b.input("q", dtype::f32, of(more + 2)), k = b.input("k", dtype::f32, of(more + 9)),
               v = b.input("v", dtype::f32, of(more + 9)), mask = b.input("mask", dtype::f32, {6, 13});
    const node scores = q.dot(k.transpose(images ? ints{0, 1, 3, 2} : ints{1, 0})).broadcast_to(named);
    const node weights = (scores + mask.broadcast_to(named)).softmax();
    b.output(weights.dot(v.broadcast_to(of(13))).relu());
    graph p = b.finish();
    fuse_attention(p);
    EXPECT_EQ(attentions(p), 1u) << print(p).view();
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
  }
}

TEST(fuse_attention, a_score_that_is_read_again_stays) {
  const graph p = after(reciprocal, fuse);
  EXPECT_EQ(attentions(p), 0u);  // both outputs read the same scores
  EXPECT_LE(difference(made_by(reciprocal), p), 1e-6);
}

}  // namespace
}  // namespace kiln::test
