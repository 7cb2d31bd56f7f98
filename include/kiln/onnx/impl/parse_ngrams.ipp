#include <algorithm>
#include <vector>

#include "kiln/onnx/impl/parse.hpp"

// Counts of n-grams.
namespace kiln::onnx {

namespace {

// Each window of n tokens, `gap` apart, against each gram: counts[batch, grams].
value counted(call& c, value x, value grams, std::int64_t n, std::int64_t gap) {
  const dimension windows = x.dim(1) - (n - 1) * gap;
  if (const auto some = at_most(1, windows); some && !*some) return {};
  if (!windows.is_constant()) c.unsupported("n-grams of " + kiln::to_string(x.dim(1)) + " tokens");
  const std::int64_t count = grams.dim(0).value() / n;
  const value at =
      c.build.add(op::iota{{windows, 1}, 0, dtype::i64}) + c.build.add(op::iota{{1, n}, 1, dtype::i64}) * gap;
  const value tokens = x.gather(at, 1).unsqueeze({2});  // [batch, windows, 1, n]
  const value pool = grams.reshape({count, n});
  const value hits = equal_elements(tokens, pool) | op::reduce_all{{3}};
  return hits.convert(dtype::f32).reduce_sum({1}).reshape({x.dim(0), count});
}

variables parse_tf_idf(call& c) {
  const bool flat = c.in(0).rank() == 1;
  const auto words = c.texts("pool_strings");
  const value given = flat ? c.in(0).unsqueeze({0}) : c.in(0), x = words.empty() ? given.convert(dtype::i64) : given;
  if ((x.type() == dtype::string) == words.empty()) c.malformed("the input is what the pool holds: strings or numbers");
  if (x.rank() != 2) c.malformed("the input has rank 1 or 2");
  const auto numbers = c.integers("pool_int64s"), starts = c.integers("ngram_counts"),
             places = c.integers("ngram_indexes");
  const auto weights = c.reals("weights");
  const std::size_t tokens = words.empty() ? numbers.size() : words.size();
  const auto mode = c.text("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") c.malformed("mode is '" + std::string(mode) + "'");
  const std::int64_t shortest = c.integer("min_gram_length", 1), longest = c.integer("max_gram_length", 1),
                     skips = c.integer("max_skip_count", 0);
  if (shortest < 1 || longest < shortest || skips < 0) c.malformed("gram lengths are positive and in order");
  std::int64_t columns = 0;
  for (const std::int64_t p : places) {
    if (p < 0 || p >= (1 << 28)) c.malformed("ngram_indexes names a column");
    columns = std::max(columns, p + 1);
  }
  value out = c.build.add(op::fill{{x.dim(0), columns}, 0, dtype::f32});
  std::size_t first = 0;  // number of the length's first gram in the whole pool
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const auto n = static_cast<std::int64_t>(k) + 1;
    const auto from = starts[k], to = k + 1 < starts.size() ? starts[k + 1] : static_cast<std::int64_t>(tokens);
    if (from < 0 || to < from || to > static_cast<std::int64_t>(tokens) || (to - from) % n != 0)
      c.malformed("ngram_counts splits the pool into grams");
    const auto count = static_cast<std::size_t>((to - from) / n);
    if (first + count > places.size()) c.malformed("ngram_indexes has a column for each gram");
    const std::vector<std::int64_t> own(places.begin() + static_cast<std::ptrdiff_t>(first),
                                        places.begin() + static_cast<std::ptrdiff_t>(first + count));
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

}  // namespace

std::span<const row> ngram_rows() {
  static constexpr row rows[] = {{"", "TfIdfVectorizer", 9, parse_tf_idf}};
  return rows;
}

}  // namespace kiln::onnx
