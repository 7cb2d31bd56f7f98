#include <algorithm>
#include <limits>
#include <vector>

#include "kiln/onnx/impl/ops/common.hpp"

// TfIdfVectorizer: counts of n-grams. NGramRepeatBlock: scores without repeated ones.
namespace kiln::onnx {

namespace {

// How often each gram is a window of n tokens, `gap` apart: [batch, grams].
value counted(node_context& c, value x, value grams, std::int64_t n, std::int64_t gap) {
  const dimension windows = x.dim(1) - (n - 1) * gap;
  if (const auto some = at_most(1, windows); some && !*some) return {};
  if (!windows.is_constant()) c.unsupported("n-grams of " + kiln::to_string(x.dim(1)) + " tokens");
  const std::int64_t count = grams.dim(0).value() / n;
  const value at = indices_along(c, 2, 0, windows) + indices_along(c, 2, 1, n) * gap;
  const value tokens = x.gather(at, 1).unsqueeze({2});  // [batch, windows, 1, n]
  const value pool = grams.reshape({count, n});
  const value hits = equal_elements(tokens, pool) | op::reduce_all{{3}};
  return hits.convert(dtype::f32).reduce_sum({1}).reshape({x.dim(0), count});
}

variables import_tf_idf(node_context& c) {
  const bool flat = c.in(0).rank() == 1;
  const auto words = c.texts("pool_strings");
  const value given = flat ? c.in(0).unsqueeze({0}) : c.in(0), x = words.empty() ? given.convert(dtype::i64) : given;
  if ((x.type() == dtype::string) == words.empty()) c.malformed("the input is what the pool holds: strings or numbers");
  if (x.rank() != 2) c.malformed("the input has rank 1 or 2");
  const auto numbers = c.integers("pool_int64s"), starts = c.integers("ngram_counts"),
             columns_of = c.integers("ngram_indexes");
  const auto weights = c.reals("weights");
  const std::size_t tokens = words.empty() ? numbers.size() : words.size();
  const auto mode = c.choice("mode", {"TF", "IDF", "TFIDF"});
  const std::int64_t shortest = c.integer("min_gram_length", 1), longest = c.integer("max_gram_length", 1),
                     skips = c.integer("max_skip_count", 0);
  if (shortest < 1 || longest < shortest || skips < 0) c.malformed("gram lengths are positive and in order");
  std::int64_t columns = 0;
  for (const std::int64_t p : columns_of) {
    if (p < 0 || p >= (1 << 28)) c.malformed("ngram_indexes names a column");
    columns = std::max(columns, p + 1);
  }
  value out = c.build.add(op::fill{{x.dim(0), columns}, 0, dtype::f32});
  std::size_t first = 0;  // index in the pool of the first gram of this length
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const auto n = static_cast<std::int64_t>(k) + 1;
    const auto from = starts[k], to = k + 1 < starts.size() ? starts[k + 1] : static_cast<std::int64_t>(tokens);
    if (from < 0 || to < from || to > static_cast<std::int64_t>(tokens) || (to - from) % n != 0)
      c.malformed("ngram_counts splits the pool into grams");
    const auto count = static_cast<std::size_t>((to - from) / n);
    if (first + count > columns_of.size()) c.malformed("ngram_indexes has a column for each gram");
    const std::vector<std::int64_t> own(columns_of.begin() + static_cast<std::ptrdiff_t>(first),
                                        columns_of.begin() + static_cast<std::ptrdiff_t>(first + count));
    if (count > 0 && n >= shortest && n <= longest) {
      const auto at_from = static_cast<std::size_t>(from), size = static_cast<std::size_t>(to - from);
      const value grams = words.empty()
                              ? c.build.constant<std::int64_t>(dtype::i64, {size}, numbers.subspan(at_from, size))
                              : strings_value(c.build, words.subspan(at_from, size));
      value sum;
      for (std::int64_t gap = 1; gap <= (n == 1 ? 1 : skips + 1); ++gap)
        if (const value found = counted(c, x, grams, n, gap)) sum = sum ? sum + found : found;
      if (sum && mode == "IDF") sum = (sum > c.build.scalar(dtype::f32, 0.0f)).convert(dtype::f32);
      if (sum && mode != "TF" && !weights.empty()) {
        if (weights.size() < first + count) c.malformed("weights has a number for each gram");
        sum = sum * c.build.constant<float>(dtype::f32, {count}, weights.subspan(first, count));
      }
      const value at = c.build.constant<std::int64_t>(dtype::i64, {count}, own);
      if (sum)
        out = c.build.add(op::scatter_elements{1, op::scatter_mode::add}, out,
                          at.unsqueeze({0}).broadcast_to({x.dim(0), count}), sum);
    }
    first += count;
  }
  return {flat ? out.squeeze({0}) : out};
}

// Scores of tokens[batch, length] become -infinity where the last n - 1 tokens and that token occurred before.
variables import_ngram_repeat_block(node_context& c) {
  const value scores = c.in(1);
  const std::int64_t n = c.integer("ngram_size", 0);
  if (n < 1 || c.in(0).rank() != 2 || scores.rank() != 2)
    c.malformed("ngram_size is positive, tokens are [batch, length] and scores [batch, tokens]");
  const dimension length = c.in(0).dim(1), first_of_tail = length - (n - 1), windows = larger(0, first_of_tail);
  if (windows == dimension(0)) return {scores};
  const value tokens = c.in(0).expect_dims({scores.dim(0), length}).convert(dtype::i64);
  value next, repeats;
  if (constexpr std::int64_t few = 8; length.is_constant() && n <= few) {
    const auto tokens_from = [&](dimension from, dimension count) {
      return tokens.slice({{1}, {from}, {from + count}, {}});
    };
    next = tokens_from(n - 1, windows);
    repeats = next.equal(next);
    for (std::int64_t k = 0; k + 1 < n; ++k) {
      const value one = tokens_from(first_of_tail + k, 1).broadcast_to({scores.dim(0), windows});
      const value equals = tokens_from(k, windows).equal(one);
      repeats = k == 0 ? equals : c.build.add(op::logical_and{}, repeats, equals);
    }
  } else {
    const value start = indices_along(c, 2, 0, windows), k = indices_along(c, 2, 1, n);
    const value grams = tokens.gather(start + k, 1);  // [batch, windows, n]
    next = element_at(grams, 2, n - 1);
    repeats = next.equal(next);
    if (n > 1) {
      // read once for each window, so that nothing is read where there are none
      const value tail = dimensions_value(c.build, {}, {first_of_tail}) + indices_along(c, 2, 1, n - 1);
      const value equals =
          grams.slice({{2}, {0}, {n - 1}, {}}).equal(tokens.gather(tail.broadcast_to({windows, n - 1}), 1));
      repeats = (equals | op::reduce_all{{2}}).squeeze({2});
    }
  }
  // the least of the score and infinity is the score
  const auto infinite = [&](float v) { return c.build.scalar(scores.type(), v); };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const value at = repeats.where(next, c.build.scalar(dtype::i64, 0));
  return {c.build.add(op::scatter_elements{1, op::scatter_mode::min}, scores, at,
                      repeats.where(infinite(-infinity), infinite(infinity)))};
}

}  // namespace

std::span<const op_importer> ngram_importers() {
  static constexpr op_importer table[] = {
      {"", "TfIdfVectorizer", 9, import_tf_idf},
      {microsoft, "NGramRepeatBlock", 1, import_ngram_repeat_block},
  };
  return table;
}

}  // namespace kiln::onnx
