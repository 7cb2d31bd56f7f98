// Attention over caches in blocks: the CPU's kernel against the op's own computation, and both against what it means.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/op/nn/paged_attention.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln {
namespace {

struct caches {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::vector<std::byte*>> blocks;  // of each sequence
};

struct attention_case {
  op::paged_attention op{0, 0, 0.3f, 0};
  std::int64_t heads = 4, kv_heads = 2, depth = 20, width = 24, block = 32;
  dtype stored = dtype::f32;
  bool sinks = false;
  struct length {
    std::int64_t past, tokens;
  };
  std::vector<length> sequences;
};

std::vector<float> random_floats(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& x : out) x = normal(random);
  return out;
}

// Runs all tokens of all sequences in two runs: the past ones, then the new ones; the results of the latter.
std::vector<float> run(const attention_case& c, const target& t) {
  program p;
  module_graph& m = p.main();
  const dimension n = dimension::symbol("n", 1);
  small_vector<value_id> in{m.add_parameter("q", shape(dtype::f32, {1, c.heads, n, c.depth})),
                            m.add_parameter("k", shape(dtype::f32, {1, c.kv_heads, n, c.depth})),
                            m.add_parameter("v", shape(dtype::f32, {1, c.kv_heads, n, c.width})),
                            m.add_parameter("batch", shape(dtype::i64, {1}))};
  if (c.sinks) in.push_back(m.add_parameter("sinks", shape(dtype::f32, {c.heads})));
  m.outputs.push_back(m.add(c.op, in));
  m.output_names.push_back(text("y"));
  compile_options o;
  o.threads = 2;
  const executable exe = compile(p, t, o);

  const auto bytes = static_cast<std::int64_t>(size_of(c.stored)) * c.block * c.kv_heads;
  op::paged_layer at;
  at.values = bytes * c.depth, at.key_scales = at.values + bytes * c.width;
  at.value_scales = at.key_scales + 4 * c.block * c.kv_heads;
  const std::int64_t block_bytes = at.value_scales + 4 * c.block * c.kv_heads;
  caches kept;
  for (const auto& s : c.sequences) {
    kept.blocks.emplace_back();
    for (std::int64_t k = 0; k * c.block < s.past + s.tokens; ++k) {
      kept.memory.emplace_back(static_cast<std::size_t>(block_bytes), std::byte{0x7f});
      kept.blocks.back().push_back(kept.memory.back().data());
    }
  }
  std::vector<float> out;
  workspace w;
  for (const bool is_new : {false, true}) {
    std::vector<op::paged_sequence> sequences;
    std::int64_t tokens = 0;
    for (std::size_t k = 0; k < c.sequences.size(); ++k) {
      const auto& s = c.sequences[k];
      const std::int64_t count = is_new ? s.tokens : s.past;
      if (count > 0) sequences.push_back({count, is_new ? s.past : 0, kept.blocks[k].data()});
      tokens += count;
    }
    if (tokens == 0) continue;
    const op::paged_layer layers[] = {at};
    const op::paged_batch batch{sequences, layers, c.block, c.stored};
    std::vector<argument> in_data;
    const auto add = [&](dims lens, unsigned seed) {
      const shape s(dtype::f32, lens);
      in_data.push_back(argument::of<float>(lens, random_floats(s.elements().value(), seed)));
    };
    add({1, c.heads, tokens, c.depth}, 1 + is_new);
    add({1, c.kv_heads, tokens, c.depth}, 3 + is_new);
    add({1, c.kv_heads, tokens, c.width}, 5 + is_new);
    in_data.push_back(argument::of<std::int64_t>(
        {1}, std::vector<std::int64_t>{static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&batch))}));
    if (c.sinks) add({c.heads}, 9);
    std::vector<argument> made(1);
    exe.run(w, in_data, made);
    const auto values = made[0].to<float>();
    out.assign(values.begin(), values.end());
  }
  return out;
}

void expect_same(const attention_case& c, double tolerance, const std::string& what) {
  const auto found = run(c, eigen_target()), wanted = run(c, reference_target());
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], wanted[k], tolerance) << what << ", " << k;
}

TEST(paged_attention, sequences_of_all_lengths) {
  attention_case c;
  c.sequences = {{0, 1}, {31, 1}, {32, 1}, {700, 1}, {5, 3}, {0, 40}, {33, 33}, {100, 17}, {0, 130}};
  expect_same(c, 3e-6, "alone");
  c.op.window = 20;
  expect_same(c, 3e-6, "window");
  c.op.softcap = 1.5f;
  expect_same(c, 3e-6, "softcap");
  c.sinks = true;
  expect_same(c, 3e-6, "sinks");
  c.op.window = 0, c.op.softcap = 0;
  expect_same(c, 3e-6, "sinks alone");
}

TEST(paged_attention, shapes_of_heads) {
  for (const auto& [heads, kv_heads, depth] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 1, 64},
                                               {6, 2, 32},
                                               {8, 1, 16},
                                               {16, 2, 128},
                                               {32, 1, 64},
                                               {71, 1, 64}}) {
    attention_case c;
    c.heads = heads, c.kv_heads = kv_heads, c.depth = depth, c.width = depth;
    c.op.scale = 0.2f;
    c.sequences = {{70, 1}, {520, 1}, {9, 40}};
    expect_same(c, 5e-6, std::to_string(heads) + " heads over " + std::to_string(kv_heads));
    // as many sequences of one token as make heads meet their keys together
    c.sequences = {{70, 1}, {3, 1}, {12, 1}, {520, 1}, {0, 1}, {31, 1}, {64, 1}, {9, 1}};
    expect_same(c, 5e-6, std::to_string(heads) + " heads of single tokens");
    c.sinks = true, c.op.window = 40, c.block = 64;
    expect_same(c, 5e-6, "sinks of " + std::to_string(heads) + " heads");
  }
}

TEST(paged_attention, stored_types_are_read_as_the_reference_reads_them) {
  for (const dtype stored : {dtype::f16, dtype::bf16, dtype::i8, dtype::f8e4m3fn, dtype::f8e5m2}) {
    attention_case c;
    c.stored = stored;
    c.sequences = {{0, 1}, {45, 1}, {600, 1}, {5, 3}, {33, 60}};
    expect_same(c, 3e-6, std::string(to_string(stored)));
  }
}

// How far storing moves results of normal random values; the values of a row agree in size.
TEST(paged_attention, stored_types_are_as_near_as_their_bits_say) {
  attention_case c;
  c.sequences = {{45, 1}, {600, 1}, {33, 60}};
  const auto exact = run(c, reference_target());
  for (const auto& [stored, tolerance] : {std::pair{dtype::f16, 1e-3},
                                          {dtype::bf16, 1e-2},
                                          {dtype::i8, 0.03},
                                          {dtype::f8e4m3fn, 0.12},
                                          {dtype::f8e5m2, 0.25}}) {
    c.stored = stored;
    const auto near = run(c, eigen_target());
    double worst = 0;
    for (std::size_t k = 0; k < exact.size(); ++k) worst = std::max<double>(worst, std::abs(near[k] - exact[k]));
    EXPECT_LE(worst, tolerance) << to_string(stored);
    EXPECT_GT(worst, 0) << to_string(stored);
  }
}

TEST(paged_attention, a_sequence_sees_itself_alone_up_to_each_token) {
  attention_case c;
  c.heads = c.kv_heads = 1;
  c.sequences = {{3, 2}, {0, 1}};
  const auto q = random_floats(3 * c.depth, 2), k0 = random_floats(3 * c.depth, 3), k1 = random_floats(3 * c.depth, 4),
             v0 = random_floats(3 * c.width, 5), v1 = random_floats(3 * c.width, 6);
  // the first run has the past of the first sequence, three tokens; the second its two new ones and the other's one
  const auto key = [&](std::int64_t j, const std::vector<float>& a, const std::vector<float>& b, std::int64_t n) {
    return j < 3 ? a.data() + j * n : b.data() + (j - 3) * n;
  };
  const auto found = run(c, eigen_target());
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::int64_t first = i == 2 ? 5 : 0, last = 3 + i;
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t j = first; j <= last; ++j) {
      double s = 0;
      for (std::int64_t d = 0; d < c.depth; ++d)
        s += double(q[static_cast<std::size_t>(i * c.depth + d)]) * key(j, k0, k1, c.depth)[d];
      weights.push_back(std::exp(s * 0.3));
      sum += weights.back();
    }
    for (std::int64_t d = 0; d < c.width; ++d) {
      double y = 0;
      for (std::int64_t j = first; j <= last; ++j)
        y += weights[static_cast<std::size_t>(j - first)] / sum * key(j, v0, v1, c.width)[d];
      EXPECT_NEAR(found[static_cast<std::size_t>(i * c.width + d)], y, 2e-6) << i << ", " << d;
    }
  }
}

}  // namespace
}  // namespace kiln
