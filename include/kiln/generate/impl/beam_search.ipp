#include "kiln/generate/impl/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kiln::language::detail {

namespace {

struct candidate {
  double sum = 0;
  std::size_t beam = 0;
  token next = 0;
};
bool is_better(const candidate& a, const candidate& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  return a.beam != b.beam ? a.beam < b.beam : a.next < b.next;
}

// NaN is the worst score.
float score(float x) { return std::isnan(x) ? -std::numeric_limits<float>::infinity() : x; }

// log(sum(exp(x))) of a row; 0 where every token is barred.
double log_sum(std::span<const float> row) {
  double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const float x : row) greatest = std::max<double>(greatest, score(x));
  if (std::isinf(greatest)) return 0;
  for (const float x : row) sum += std::exp(score(x) - greatest);
  return greatest + std::log(sum);
}

}  // namespace

beam_search::beam_search(const search_options& options, std::span<const token> ends)
    : options_(options), ends_(ends.begin(), ends.end()) {
  // the beams begin alike: all but the first wait until the first has branched
  constexpr double waits = -1e9;
  sums_.assign(static_cast<std::size_t>(options.num_beams), waits);
  sums_[0] = 0;
}

bool beam_search::is_end(token t) const { return std::find(ends_.begin(), ends_.end(), t) != ends_.end(); }
double beam_search::ranked(double sum, std::size_t length) const {
  return sum / std::pow(static_cast<double>(length), options_.length_penalty);
}
void beam_search::add(std::vector<hypothesis>& to, const tokens& sequence, double sum) const {
  to.push_back({sequence, ranked(sum, sequence.size())});
  std::stable_sort(to.begin(), to.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  if (to.size() > sums_.size()) to.pop_back();
}

std::vector<beam_search::choice> beam_search::step(std::span<const float> logits, std::span<const tokens> sequences) {
  const std::size_t beams = sums_.size(), vocabulary = logits.size() / beams;
  // so many that enough are left when some are end tokens
  const std::size_t wanted = std::min((1 + std::max<std::size_t>(1, ends_.size())) * beams, vocabulary);
  std::vector<candidate> all;
  std::vector<token> order(vocabulary);
  for (std::size_t b = 0; b < beams; ++b) {
    const auto row = logits.subspan(b * vocabulary, vocabulary);
    std::iota(order.begin(), order.end(), 0);
    const auto better = [&](token x, token y) {
      const float p = score(row[static_cast<std::size_t>(x)]), q = score(row[static_cast<std::size_t>(y)]);
      return p != q ? p > q : x < y;
    };
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted - 1), order.end(), better);
    const double base = sums_[b] - log_sum(row);
    for (std::size_t k = 0; k < wanted; ++k)
      all.push_back({base + score(row[static_cast<std::size_t>(order[k])]), b, order[k]});
  }
  std::sort(all.begin(), all.end(), is_better);
  std::vector<choice> chosen;
  std::vector<double> sums;
  for (std::size_t rank = 0; rank < all.size() && chosen.size() < beams; ++rank) {
    const candidate& c = all[rank];
    if (is_end(c.next)) {
      if (rank < beams) add(ended_, sequences[c.beam], c.sum);
      continue;
    }
    chosen.push_back({c.beam, c.next});
    sums.push_back(c.sum);
  }
  // all that is left are end tokens
  while (chosen.size() < beams) {
    chosen.push_back({all[0].beam, all[0].next});
    sums.push_back(-std::numeric_limits<double>::infinity());
  }
  if (ended_.size() == beams)
    done_ = options_.early_stopping || ended_.back().score >= ranked(all[0].sum, sequences[0].size());
  sums_ = std::move(sums);
  return chosen;
}

std::vector<tokens> beam_search::best(std::span<const tokens> open, std::size_t count) const {
  std::vector<hypothesis> all = ended_;
  if (!done_)
    for (std::size_t b = 0; b < open.size(); ++b) add(all, open[b], sums_[b]);
  std::vector<tokens> out;
  for (std::size_t k = 0; k < count && k < all.size(); ++k) out.push_back(all[k].sequence);
  return out;
}

}  // namespace kiln::language::detail
