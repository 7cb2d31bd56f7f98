#pragma once
#include "kiln/static_program/plan/records.hpp"
#include "kiln/static_program/plan/written_words.hpp"

namespace kiln::aot {

/// Writes records one after the other, the header in front.
class record_writer {
 public:
  constexpr record_writer() { out_.resize(word_count<header>, 0); }

  /// Position of these words, which may have been written before.
  constexpr std::int64_t put_once(words w) { return written_.put(out_, w); }
  template <class Record, class List> constexpr table put_records(const List& list) {
    words w;
    for (const auto& r : list) put_words(w, static_cast<Record>(r));
    return {put_once(std::move(w)), static_cast<std::int64_t>(list.size())};
  }
  /// Records that nothing shares.
  template <class List> constexpr table put_list(const List& list) {
    const table t{static_cast<std::int64_t>(out_.size()), static_cast<std::int64_t>(list.size())};
    for (const auto& r : list) put_words(out_, r);
    return t;
  }
  constexpr table put_text(std::string_view s) {
    const table t{static_cast<std::int64_t>(out_.size()), static_cast<std::int64_t>(s.size())};
    for (char c : s) out_.push_back(c);
    return t;
  }
  constexpr words finished(const header& h) {
    words front;
    put_words(front, h);
    for (std::size_t k = 0; k < front.size(); ++k) out_[k] = front[k];
    return std::move(out_);
  }

 private:
  words out_;
  written_words written_;
};

}  // namespace kiln::aot
