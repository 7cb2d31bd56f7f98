#pragma once

#include <utility>

#include "kiln/core/math.hpp"
#include "kiln/kernel/int8/attention_problem.hpp"
#include "kiln/kernel/int8/matrices.hpp"

namespace kiln::kernels {

/// How an attention over bytes is divided: a task packs the keys and values of a matrix and meets them with some of its
/// queries, a few at a time, whose scores stay in L1 or, with many keys, in L2.
template <class Machine> struct byte_attention_tasks {
  static constexpr std::int64_t lanes = native_lanes<std::int32_t>;
  std::int64_t key_words, weight_words, score_row, rows_at_once, rows, row_tasks;

  byte_attention_tasks(const byte_attention& p, unsigned workers)
      : key_words(integer_words<Machine>(p.scores.k)),
        weight_words(integer_words<Machine>(p.scores.n)),
        score_row(round_up(p.scores.n, lanes)) {
    constexpr std::int64_t most_scores = 8 * 1024, least_rows = register_tile<std::int32_t>::rows;
    rows_at_once = std::clamp(most_scores / std::max<std::int64_t>(1, score_row), least_rows, integer_task_rows);
    const std::int64_t wanted = workers == 1 ? 1 : ceil_div(2 * static_cast<std::int64_t>(workers), p.scores.batch);
    row_tasks = std::clamp<std::int64_t>(wanted, 1, ceil_div(p.scores.m, rows_at_once));
    rows = ceil_div(p.scores.m, row_tasks);
  }
  // 32-bit elements of a worker's memory.
  std::int64_t keys_size(const byte_attention& p) const { return packed_columns<Machine>::size(key_words, p.scores.n); }
  std::int64_t values_size(const byte_attention& p) const {
    return packed_columns<Machine>::size(weight_words, p.values.n);
  }
  std::int64_t queries_size() const { return left_rows<Machine>::size(key_words, rows_at_once); }
  std::int64_t weights_size() const { return left_rows<Machine>::size(weight_words, rows_at_once); }
  std::int64_t copies_size() const {
    return multiplied_rows<Machine>::memory(rows_at_once, std::max(key_words, weight_words)) / 4;
  }
  std::int64_t all(const byte_attention& p) const {
    return round_up(keys_size(p), lanes) + round_up(values_size(p), lanes) + queries_size() + weights_size() +
           copies_size() + rows_at_once * score_row;
  }
};

/// 32-bit elements of scratch for `workers` workers.
template <class Machine> std::int64_t byte_attention_scratch(const byte_attention& p, unsigned workers) {
  if (p.scores.batch <= 0 || p.scores.m <= 0) return 0;
  return byte_attention_tasks<Machine>(p, workers).all(p) * workers;
}

/// The softmax of a row of scores as bytes: `count` left operands at `to`, and perhaps some beyond them within a
/// vector. `scores` is written, up to whole vectors. A byte may be one from that which divisions would give, where the
/// quotient is next to the middle between two; bytes of NaN are 0.
template <class Machine>
void soften_to_bytes(typename Machine::left* to, float* scores, std::int64_t count, const byte_attention& p) {
  using V = native_vec<float>;
  using I = native_vec<std::int32_t>;
  using left = typename Machine::left;
  constexpr int lanes = native_lanes<float>;
  constexpr float never = -std::numeric_limits<float>::infinity();
  const std::int64_t all = round_up(count, lanes);
  std::fill(scores + count, scores + all, never);
  V top[2] = {broadcast<V>(never), broadcast<V>(never)};
  for (std::int64_t i = 0; i < all; i += lanes)
    top[i / lanes & 1] = elementary::greater(top[i / lanes & 1], load<V>(scores + i));
  const V greatest = broadcast<V>(reduce_max(elementary::greater(top[0], top[1])));
  V sums[2] = {};
  for (std::int64_t i = 0; i < all; i += lanes) {
    const V w = exp(load<V>(scores + i) - greatest);
    store(scores + i, w);
    sums[i / lanes & 1] += w;
  }
  const byte_rounding nearest = p.weights.to;  // a store of bytes could change it, for all that the compiler knows
  const double total = static_cast<double>(reduce_add(sums[0] + sums[1])) * nearest.scale;
  const V by = broadcast<V>(static_cast<float>(p.factor / total));
  const I shift = broadcast<I>(p.weights.zero + (p.values.a_signed ? Machine::offset : 0)),
          of_nan = broadcast<I>(p.values.a_signed ? Machine::offset : 0);
  for (std::int64_t i = 0; i < all; i += lanes) {
    const V number = nearest.bounded(load<V>(scores + i) * by);
    store(to + i, convert<vec<left, lanes>>(number == number ? I(number) + shift : of_nan));
  }
}

/// Runs an attention over bytes. The sums of both products are exact in 32 bits.
template <class Machine> void attend_to_bytes(thread_pool& pool, const byte_attention& p, std::int32_t* scratch) {
  if (p.scores.batch <= 0 || p.scores.m <= 0 || p.values.n <= 0) return;
  const byte_attention_tasks<Machine> tasks(p, pool.size());
  constexpr std::int64_t lanes = native_lanes<std::int32_t>;
  pool.parallel_for(p.scores.batch * tasks.row_tasks, [&](std::int64_t task, unsigned worker) {
    const std::int64_t matrix = task / tasks.row_tasks, first = task % tasks.row_tasks * tasks.rows,
                       last = std::min(first + tasks.rows, p.scores.m);
    if (first >= last) return;
    std::int32_t* next = scratch + worker * tasks.all(p);
    const auto take = [&](std::int64_t n) { return std::exchange(next, next + round_up(n, lanes)); };
    packed_columns<Machine> keys(p.scores, take(tasks.keys_size(p))), values(p.values, take(tasks.values_size(p)));
    left_rows<Machine> queries(p.scores, take(tasks.queries_size())), weights(p.values, take(tasks.weights_size()));
    std::int32_t* const copies = take(tasks.copies_size());
    auto* const scores = reinterpret_cast<float*>(next);
    keys.pack(matrix, 0, p.scores.n);
    values.pack(matrix, 0, p.values.n);
    requantization score = p.score, result = p.result;
    score.result_row = tasks.score_row;
    if (p.masks) score.addend = p.masks[matrix];
    result.result = p.results[matrix];
    for (std::int64_t row0 = first; row0 < last; row0 += tasks.rows_at_once) {
      const std::int64_t rows = std::min(tasks.rows_at_once, last - row0);
      queries.read(matrix, row0, rows);
      score.result = reinterpret_cast<std::byte*>(scores - row0 * tasks.score_row);
      keys.multiply(queries.addresses(), row0, rows, shifted_rows<requantization>{score, queries.shift(), row0},
                    copies);
      for (std::int64_t r = 0; r < rows; ++r) {
        soften_to_bytes<Machine>(weights.copied(r), scores + r * tasks.score_row, p.scores.n, p);
        weights.take_copied(r);
      }
      values.multiply(weights.addresses(), row0, rows, shifted_rows<requantization>{result, weights.shift(), row0},
                      copies);
    }
  });
}

}  // namespace kiln::kernels
