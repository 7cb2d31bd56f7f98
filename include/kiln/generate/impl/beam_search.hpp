#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "kiln/generate/search_options.hpp"
#include "kiln/text/token.hpp"

namespace kiln::language::detail {

/// Beam search over the rows of one batch entry, which share a prompt. Scores are sums of log-probabilities, divided by
/// the length to the power `length_penalty` once a beam has ended. An end token is in no returned sequence.
class beam_search {
 public:
  beam_search(const search_options& options, std::span<const token> ends);

  /// Where a beam of the next step comes from.
  struct choice {
    std::size_t from = 0;
    token next = 0;
  };
  /// Chooses the next beams; `logits` are the rows' scores one after the other. Sequences are those so far.
  std::vector<choice> step(std::span<const float> logits, std::span<const tokens> sequences);
  bool is_done() const { return done_; }
  /// The best sequences, best first: ended ones, and the open ones where these have not all ended.
  std::vector<tokens> best(std::span<const tokens> open, std::size_t count) const;

 private:
  struct hypothesis {
    tokens sequence;
    double score = 0;
  };
  double ranked(double sum, std::size_t length) const;
  void add(std::vector<hypothesis>& to, const tokens& sequence, double sum) const;
  bool is_end(token t) const;

  search_options options_;
  tokens ends_;
  std::vector<double> sums_;
  std::vector<hypothesis> ended_;
  bool done_ = false;
};

}  // namespace kiln::language::detail
