// Decoders of one sequence rewritten so that several share a run: which attentions are found, and what is refused.
#include "kiln/generate/impl/join_rows.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/op/nn/paged_attention.hpp"
#include "kiln/pass/fuse_attention.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::language::detail {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::StartsWith;

const dimension now = dimension::symbol("now", 1), past = dimension::symbol("past");
constexpr std::int64_t heads = 4, kv_heads = 2, depth = 8, width = heads * depth, vocabulary = 11;

decoder_ports ports(std::int64_t context = 64) {
  decoder_ports p;
  p.tokens = "tokens", p.mask = "mask", p.lengths = {"mask"};
  p.caches = {{"past_k", "present_k"}, {"past_v", "present_v"}};
  p.now = now, p.past = past, p.context = context;
  return p;
}

struct graph {
  builder b;
  value mask, q, k, v, all_k, all_v;  // k and v of all positions
  value number(float x) { return b.scalar(dtype::f32, x); }
  value count(std::size_t rank, std::int64_t axis, dimension n) {
    dims lens(rank, dimension(1));
    lens[static_cast<std::size_t>(axis)] = n;
    return b.add(op::iota{lens, axis, dtype::i64});
  }
  value position() { return count(4, 2, now) + b.constant(literal::of_dimensions({1, 1, 1, 1}, {past})); }
  value matrix(std::int64_t rows, std::int64_t cols, int seed) {
    std::vector<float> w;
    for (std::int64_t i = 0; i < rows * cols; ++i)
      w.push_back(std::sin(static_cast<float>(i * 7 + seed * 31)) / std::sqrt(static_cast<float>(rows)));
    return b.constant<float>(dtype::f32, {rows, cols}, w);
  }
};
using attend = std::function<value(graph&)>;

// tokens -> embedding -> the attention -> logits
program decoder(const attend& attention, bool returns_keys = true) {
  graph g;
  const value tokens = g.b.input("tokens", dtype::i64, {1, now});
  g.mask = g.b.input("mask", dtype::i64, {1, past + now});
  const value past_k = g.b.input("past_k", dtype::f32, {1, kv_heads, past, depth});
  const value past_v = g.b.input("past_v", dtype::f32, {1, kv_heads, past, depth});
  const value x = g.matrix(vocabulary, width, 1).gather(tokens, 0);
  const auto split = [&](value y, std::int64_t n) { return y.reshape({1, now, n, depth}).transpose({0, 2, 1, 3}); };
  g.q = split(x.dot(g.matrix(width, width, 2)), heads);
  g.k = split(x.dot(g.matrix(width, kv_heads * depth, 3)), kv_heads);
  g.v = split(x.dot(g.matrix(width, kv_heads * depth, 4)), kv_heads);
  g.all_k = past_k.concat(g.k, 2), g.all_v = past_v.concat(g.v, 2);
  const value y = attention(g).transpose({0, 2, 1, 3}).reshape({1, now, width});
  g.b.output((x + y).dot(g.matrix(width, vocabulary, 5)), "logits");
  g.b.output(returns_keys ? g.all_k : g.all_k * g.number(2), "present_k");
  g.b.output(g.all_v, "present_v");
  return g.b.finish();
}

// Why not, or "unsure: " and what only runs tell.
std::string joined(program& p, std::vector<joined_layer>& layers, std::int64_t context = 64) {
  pass_options simplify;
  simplify.fuse = false;
  optimize(p, simplify);
  fuse_attention(p);
  std::string unsure;
  const std::string why = join_rows(p, ports(context), layers, unsure);
  return why + (unsure.empty() ? "" : "unsure: " + unsure);
}
std::string refusal(const attend& attention, bool returns_keys = true) {
  program p = decoder(attention, returns_keys);
  std::vector<joined_layer> layers;
  return joined(p, layers);
}

// The logits of two sequences that share a run are those that each has alone; the attention that was found.
op::paged_attention expect_joined(const attend& attention, const std::string& what) {
  program p = decoder(attention);
  const executable alone = compile(p, eigen_target());
  std::vector<joined_layer> layers;
  EXPECT_EQ(joined(p, layers), "") << what;
  EXPECT_EQ(layers.size(), 1u) << what;
  if (layers.size() != 1) return {};
  EXPECT_EQ(layers[0].kv_heads, kv_heads) << what;
  op::paged_attention found;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    if (const auto* op = p.main()[i].op.get_if<op::paged_attention>(); p.main()[i].kind == instruction_kind::op && op)
      found = *op;
  const executable together = compile(p, eigen_target());

  const std::vector<std::vector<std::int64_t>> sequences{{1, 5, 3, 9, 2, 2, 7, 10, 4, 6, 8, 1}, {3, 0, 10, 4, 5}};
  std::vector<float> wanted;
  std::vector<std::vector<std::byte>> memory(2, std::vector<std::byte>(2 * kv_heads * 32 * depth * 4));
  std::vector<std::byte*> blocks{memory[0].data(), memory[1].data()};
  std::vector<op::paged_sequence> parts;
  std::vector<std::int64_t> all;
  for (std::size_t k = 0; k < 2; ++k) {
    const auto& s = sequences[k];
    const auto n = static_cast<std::int64_t>(s.size());
    const auto made = alone.run({{"tokens", argument::of<std::int64_t>({1, n}, s)},
                                 {"mask", argument::of<std::int64_t>({1, n}, std::vector<std::int64_t>(s.size(), 1))},
                                 {"past_k", argument(shape(dtype::f32, {1, kv_heads, 0, depth}))},
                                 {"past_v", argument(shape(dtype::f32, {1, kv_heads, 0, depth}))}});
    const auto logits = made[0].to<float>();
    wanted.insert(wanted.end(), logits.begin(), logits.end());
    parts.push_back({n, 0, &blocks[k]});
    all.insert(all.end(), s.begin(), s.end());
  }
  const op::paged_layer at[] = {{0, kv_heads * 32 * depth * 4, 0, 0}};
  const op::paged_batch batch{parts, at, 32, dtype::f32};
  const auto made =
      together.run({{"tokens", argument::of<std::int64_t>({1, static_cast<std::int64_t>(all.size())}, all)},
                    {"kiln.batch", argument::of<std::int64_t>({1}, std::vector<std::int64_t>{static_cast<std::int64_t>(
                                                                       reinterpret_cast<std::uintptr_t>(&batch))})}});
  const auto logits = made[0].to<float>();
  EXPECT_EQ(logits.size(), wanted.size());
  for (std::size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(logits[k], wanted[k], 2e-6) << what << ", " << k;
  return found;
}

value seen(graph& g, std::int64_t window) {
  const value key = g.count(4, 3, past + now), at = g.position();
  value m = g.b.add(op::less_or_equal{}, key, at);
  if (window > 0) m = g.b.add(op::logical_and{}, m, at - key < g.b.scalar(dtype::i64, window));
  return m;
}
value repeated(value x) {
  return x.unsqueeze({2}).broadcast_to({1, kv_heads, 2, past + now, depth}).reshape({1, heads, past + now, depth});
}

TEST(join_rows, attentions_of_all_forms) {
  expect_joined([](graph& g) { return g.q.attention(g.all_k, g.all_v, {.scale = 0.4f, .causal = true}); }, "an op");
  EXPECT_EQ(
      expect_joined([](graph& g) { return g.q.attention(g.all_k, g.all_v, seen(g, 0), {.scale = 0.4f}); }, "a mask")
          .window,
      0);
  EXPECT_EQ(
      expect_joined([](graph& g) { return g.q.attention(g.all_k, g.all_v, seen(g, 3), {.scale = 0.4f}); }, "a window")
          .window,
      3);
  expect_joined(
      [](graph& g) {
        const value padding = g.mask.convert(dtype::boolean).reshape({1, 1, 1, past + now});
        const value low = g.b.add(op::logical_and{}, seen(g, 0), padding).where(g.number(0), g.number(-3e38f));
        return g.q.attention(g.all_k, g.all_v, low, {.scale = 0.4f});
      },
      "an addend");
  expect_joined(
      [](graph& g) { return g.q.attention(repeated(g.all_k), repeated(g.all_v), {.scale = 0.4f, .causal = true}); },
      "repeated heads");
  const auto bounded = expect_joined(
      [](graph& g) {
        const value low = g.number(-std::numeric_limits<float>::infinity());
        const value scores = g.q.dot(repeated(g.all_k).transpose({0, 1, 3, 2})) * g.number(0.4f);
        const value masked = seen(g, 4).where((scores / g.number(1.5f)).tanh() * g.number(1.5f), low);
        const float sinks[] = {0.3f, -1, 0.1f, 2};
        const value sink = g.b.constant<float>(dtype::f32, {1, heads, 1, 1}, sinks);
        const value top = masked.reduce_max({3}).max(sink), e = (masked - top).exp();
        return (e / (e.reduce_sum({3}) + (sink - top).exp())).dot(repeated(g.all_v));
      },
      "bounded scores with sinks");
  EXPECT_EQ(bounded.softcap, 1.5f);
  EXPECT_EQ(bounded.window, 4);
}

TEST(join_rows, windows_are_seen_whatever_the_context) {
  for (const std::int64_t context : {0, 64, 200, 100000}) {
    program p = decoder([](graph& g) { return g.q.attention(g.all_k, g.all_v, seen(g, 100), {.scale = 0.4f}); });
    std::vector<joined_layer> layers;
    EXPECT_EQ(joined(p, layers, context), "") << context;
    std::int64_t window = -1;
    for (std::uint32_t i = 0; i < p.main().size(); ++i)
      if (const auto* op = p.main()[i].op.get_if<op::paged_attention>(); p.main()[i].kind == instruction_kind::op && op)
        window = op->window;
    EXPECT_EQ(window, context == 64 ? 0 : 100) << context;  // no sequence of 64 tokens has one
  }
}

TEST(join_rows, what_is_not_the_same_beside_others_is_refused) {
  const op::attention plain{.scale = 0.4f}, causal{.scale = 0.4f, .causal = true};
  EXPECT_THAT(refusal([&](graph& g) { return g.q.attention(g.all_k, g.all_v, plain); }), HasSubstr("is not causal"));
  EXPECT_THAT(refusal([&](graph& g) {
                const value distance = (g.count(4, 3, past + now) - g.position()).convert(dtype::f32) * g.number(0.1f);
                return g.q.attention(g.all_k, g.all_v, distance, causal);
              }),
              HasSubstr("adds to scores"));
  EXPECT_THAT(refusal([&](graph& g) { return g.q.attention(g.k, g.v, causal); }),
              HasSubstr("no past followed by new ones"));
  EXPECT_THAT(refusal([&](graph& g) { return g.q.attention(g.all_k, g.all_v, causal); }, false),
              HasSubstr("'present_k' is not 'past_k'"));
  EXPECT_THAT(refusal([&](graph& g) { return g.b.add(op::cumsum{2}, g.q).attention(g.all_k, g.all_v, causal); }),
              StartsWith("cumsum mixes tokens"));
  EXPECT_THAT(refusal([&](graph& g) { return (g.q - g.q.reduce_max({2})).attention(g.all_k, g.all_v, causal); }),
              StartsWith("reduce_max mixes tokens"));
  EXPECT_THAT(refusal([&](graph& g) {
                return (g.q * g.count(4, 2, now).convert(dtype::f32)).attention(g.all_k, g.all_v, causal);
              }),
              AllOf(StartsWith("unsure: "), HasSubstr("counts tokens")));
  EXPECT_THAT(
      refusal([&](graph& g) {
        const value length = g.b.constant(literal::of_dimensions({1, 1, 1, 1}, {past + now})).convert(dtype::f32);
        return (g.q / length).attention(g.all_k, g.all_v, causal);
      }),
      HasSubstr("depends on how long one sequence is"));
}

TEST(join_rows, positions_become_an_input) {
  program p = decoder([](graph& g) {
    return (g.q + g.position().convert(dtype::f32) * g.number(0.01f))
        .attention(g.all_k, g.all_v, {.scale = 0.4f, .causal = true});
  });
  std::vector<joined_layer> layers;
  EXPECT_EQ(joined(p, layers), "");
  std::vector<std::string> names;
  for (const value_id v : p.main().parameters()) names.emplace_back(p.main().producer(v).name.view());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("tokens", "kiln.batch", "kiln.positions"));
}

}  // namespace
}  // namespace kiln::language::detail
