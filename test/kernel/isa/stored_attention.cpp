// Attention over keys and values that are stored in floats of 16 or 8 bits or in bytes, against the one over floats of
// the same numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernel/isa/random_values.hpp"
#include "kiln/kernel/attention/attention.hpp"

namespace {

using namespace kiln::kernels;
using kiln::dtype;
using kiln::testing::random_values;

struct sizes {
  std::int64_t heads, kv_heads, queries, keys, depth, width;
  bool causal = false;
};

// 0: no scales; 1: one for each head; 2: one for each depth step of it.
enum class scaling { none, heads, channels };

template <class Stored> constexpr dtype type_of = dtype::f32;
template <> constexpr dtype type_of<kiln::half> = dtype::f16;
template <> constexpr dtype type_of<kiln::bfloat16> = dtype::bf16;
template <> constexpr dtype type_of<std::int8_t> = dtype::i8;
template <> constexpr dtype type_of<kiln::float8_e4m3fn> = dtype::f8e4m3fn;
template <> constexpr dtype type_of<kiln::float8_e5m2> = dtype::f8e5m2;

template <class Stored> Stored stored(float x) {
  if constexpr (std::is_same_v<Stored, std::int8_t>)
    return static_cast<std::int8_t>(std::lround(x * 127));
  else
    return Stored(x);
}

std::vector<float> run(kiln::thread_pool& pool, attention_problem p, std::size_t size) {
  std::vector<float> out(size, -77.F);
  p.out = out.data();
  const std::int64_t floats = attention_scratch_size(p, pool.size());
  std::vector<kiln::vec<float, 16>> scratch(static_cast<std::size_t>(floats / 16 + 1),
                                            kiln::broadcast<kiln::vec<float, 16>>(std::nanf("")));
  scratch.back() = kiln::broadcast<kiln::vec<float, 16>>(5);
  attention(pool, p, reinterpret_cast<float*>(scratch.data()));
  EXPECT_EQ(floats % 16, 0);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(scratch.back()[i], 5.F) << "written after the scratch";
  return out;
}

template <class Stored> void check(const sizes& s, scaling how, bool masked = false) {
  SCOPED_TRACE(testing::Message() << to_string(type_of<Stored>) << ", " << s.heads << " heads over " << s.kv_heads
                                  << ", " << s.queries << " queries, " << s.keys << " keys, depths " << s.depth
                                  << " and " << s.width << ", scales " << int(how));
  kiln::thread_pool pool(2);
  attention_problem p;
  p.batch = 2, p.heads = s.heads, p.kv_heads = s.kv_heads, p.queries = s.queries, p.keys = s.keys, p.depth = s.depth;
  p.value_depth = s.width, p.causal = s.causal, p.scale = .75F;
  const std::int64_t q_row = s.depth + 1, k_row = s.depth + 2, v_row = s.width + 3, out_row = s.width + 5;
  const auto q = random_values<float>(2 * s.heads * s.queries * q_row, 1);
  p.q = {q.data(), s.heads * s.queries * q_row, s.queries * q_row, q_row};
  std::vector<Stored> k, v;
  for (const float x : random_values<float>(2 * s.kv_heads * s.keys * k_row, 2)) k.push_back(stored<Stored>(x));
  for (const float x : random_values<float>(2 * s.kv_heads * s.keys * v_row, 3)) v.push_back(stored<Stored>(x));
  const std::ptrdiff_t k_head = s.keys * k_row, v_head = s.keys * v_row;
  p.out_batch = s.heads * s.queries * out_row, p.out_head = s.queries * out_row, p.out_row = out_row;
  const auto mask = random_values<float>(2 * s.heads * s.queries * s.keys, 6);
  if (masked) {
    p.add_mask = mask.data(), p.mask_col = 1, p.mask_row = s.keys, p.mask_head = s.queries * s.keys;
    p.mask_batch = s.heads * p.mask_head;
  }
  const float unit = std::is_same_v<Stored, std::int8_t> ? 1 / 127.F : 1;
  std::vector<float> k_by = random_values<float>(s.kv_heads * s.depth, 4),
                     v_by = random_values<float>(s.kv_heads * s.width, 5);
  for (auto* by : {&k_by, &v_by})
    for (float& x : *by) x *= how == scaling::none ? 1 : unit;
  // the same numbers as floats
  attention_problem wide = p;
  std::vector<float> wide_k(k.size()), wide_v(v.size());
  const auto factor = [&](const std::vector<float>& by, std::int64_t head, std::int64_t depth, std::int64_t c) {
    return how == scaling::none ? 1 : by[static_cast<std::size_t>(head * depth + (how == scaling::channels ? c : 0))];
  };
  for (std::size_t i = 0; i < k.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i), c = at % k_row;
    if (c < s.depth) wide_k[i] = static_cast<float>(k[i]) * factor(k_by, at / k_head % s.kv_heads, s.depth, c);
  }
  for (std::size_t i = 0; i < v.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i), c = at % v_row;
    if (c < s.width) wide_v[i] = static_cast<float>(v[i]) * factor(v_by, at / v_head % s.kv_heads, s.width, c);
  }
  wide.k = {wide_k.data(), s.kv_heads * k_head, k_head, k_row};
  wide.v = {wide_v.data(), s.kv_heads * v_head, v_head, v_row};
  p.stored = type_of<Stored>;
  p.k = {k.data(), s.kv_heads * k_head, k_head, k_row};
  p.v = {v.data(), s.kv_heads * v_head, v_head, v_row};
  if (how != scaling::none) {
    p.k_scale = {k_by.data(), s.depth, how == scaling::channels ? 1 : 0};
    p.v_scale = {v_by.data(), s.width, how == scaling::channels ? 1 : 0};
  }
  const auto size = static_cast<std::size_t>(2 * p.out_batch);
  const std::vector<float> found = run(pool, p, size), expected = run(pool, wide, size);
  float greatest = 0;
  for (std::size_t i = 0; i < size; ++i)
    if (static_cast<std::int64_t>(i) % out_row < s.width) greatest = std::max(greatest, std::abs(expected[i]));
  for (std::size_t i = 0; i < size; ++i) ASSERT_NEAR(found[i], expected[i], 2e-5 * greatest) << i;
}

template <class Stored> class stored_attention : public testing::Test {};
using types_of_keys = testing::Types<kiln::half, kiln::bfloat16, std::int8_t, kiln::float8_e4m3fn, kiln::float8_e5m2>;
TYPED_TEST_SUITE(stored_attention, types_of_keys);

TYPED_TEST(stored_attention, single_queries_over_many_keys) {
  for (const scaling how : {scaling::none, scaling::heads, scaling::channels}) {
    if (how == scaling::none && std::is_same_v<TypeParam, std::int8_t>) continue;  // scores of bytes are no scores
    check<TypeParam>({4, 4, 1, 1100, 64, 64}, how);
    check<TypeParam>({6, 2, 1, 700, 40, 33}, how);
    check<TypeParam>({8, 1, 1, 65, 17, 128}, how);
  }
}

TYPED_TEST(stored_attention, few_and_many_queries) {
  for (const std::int64_t queries : {3, 5, 30, 130}) {
    check<TypeParam>({2, 1, queries, 531, 36, 50}, scaling::channels);
    check<TypeParam>({2, 2, queries, 531, 32, 64, true}, scaling::heads);
  }
}

TYPED_TEST(stored_attention, heads_of_a_group_have_their_own_masks) {
  check<TypeParam>({6, 2, 1, 300, 32, 32}, scaling::heads, true);
  check<TypeParam>({4, 2, 1, 300, 32, 32, true}, scaling::heads, true);
}

}  // namespace
