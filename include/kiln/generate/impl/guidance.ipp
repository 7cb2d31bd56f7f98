#include "kiln/generate/guidance.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "kiln/core/error.hpp"

namespace kiln::language {

namespace {

// One row: what its sequence was when the rule was last asked, and the guide after the text in it.
struct guided_row {
  tokens last;
  std::size_t begin;
  guide state;

  void follow(std::span<const token> sequence) {
    if (!last.empty() && std::equal(sequence.begin(), sequence.end(), last.begin(), last.end())) return;
    const bool grew = sequence.size() > last.size() && std::equal(last.begin(), last.end(), sequence.begin());
    const bool goes_on = last.empty() ? false
                         : grew       ? sequence.size() == last.size() + 1 && state.try_advance(sequence.back())
                                      : replay(sequence);
    if (!goes_on) {
      begin = sequence.size();
      state.reset();
    }
    last.assign(sequence.begin(), sequence.end());
  }

 private:
  // Rewound, or another beam's: the same prompt, then what the guide allowed.
  bool replay(std::span<const token> sequence) {
    if (sequence.size() < begin || sequence.size() > last.size() + 1) return false;
    if (!std::equal(sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(begin), last.begin()))
      return false;
    state.reset();
    for (const token id : sequence.subspan(begin))
      if (!state.try_advance(id)) return false;
    return true;
  }
};

class row_guides {
 public:
  explicit row_guides(guide g) : start_(std::move(g)), bits_((start_.vocabulary_size() + 31) / 32) { start_.reset(); }

  void bar(std::size_t row, std::span<const token> sequence, std::span<float> logits) {
    follow(row, sequence);
    rows_[row].state.mask(bits_);
    bool any = false;
    for (std::size_t id = 0; id < logits.size(); ++id) {
      const bool allowed = id < start_.vocabulary_size() && (bits_[id / 32] >> (id % 32) & 1) != 0;
      if (!allowed) logits[id] = -std::numeric_limits<float>::infinity();
      any = any || allowed;
    }
    if (!any) raise(errc::not_found, "guide: no token of the vocabulary may follow in row " + std::to_string(row));
  }

  tokens forced(std::size_t row, std::span<const token> sequence) {
    follow(row, sequence);
    guided_row& r = rows_[row];
    tokens out = r.state.forced();
    for (const token t : out) r.state.advance(t), r.last.push_back(t);
    return out;
  }

 private:
  void follow(std::size_t row, std::span<const token> sequence) {
    while (rows_.size() <= row) rows_.push_back({{}, 0, start_});
    rows_[row].follow(sequence);
  }

  guide start_;
  std::vector<std::uint32_t> bits_;
  std::vector<guided_row> rows_;
};

}  // namespace

logits_rule guided_by(guide g) {
  return [rows = std::make_shared<row_guides>(std::move(g))](std::size_t row, std::span<const token> sequence,
                                                             std::span<float> logits) {
    rows->bar(row, sequence, logits);
  };
}

namespace {

template <class Sequence> void guide_sequence(Sequence& of, guide g, bool forced_tokens) {
  const auto rows = std::make_shared<row_guides>(std::move(g));
  if (forced_tokens)
    of.set_forced([rows](std::span<const token> sequence) { return rows->forced(0, sequence); });
  else
    of.set_forced(nullptr);
  of.set_rule([rows](std::size_t row, std::span<const token> sequence, std::span<float> logits) {
    rows->bar(row, sequence, logits);
  });
}

}  // namespace

void set_guidance(generator& of, guide g, bool forced_tokens) { guide_sequence(of, std::move(g), forced_tokens); }
void set_guidance(request& of, guide g, bool forced_tokens) { guide_sequence(of, std::move(g), forced_tokens); }

}  // namespace kiln::language
