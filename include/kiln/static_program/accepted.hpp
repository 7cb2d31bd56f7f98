#pragma once
#include <utility>

#include "kiln/static_program/plan/records.hpp"
#include "kiln/static_program/rejected.hpp"

namespace kiln::aot {

// Line K of a net's fault: its first word and its length.
template <class Net> constexpr table fault_line(std::size_t k) {
  table line{Net::front.fault.at, 0};
  for (const std::int64_t end = Net::front.fault.at + Net::front.fault.count; line.at + line.count < end;) {
    if (Net::words[line.at + line.count] != '\n') {
      ++line.count;
    } else if (k-- == 0) {
      return line;
    } else {
      line = {line.at + line.count + 1, 0};
    }
  }
  return {-1, 0};
}
template <class Net, std::size_t K> constexpr auto fault_text() {
  constexpr table line = fault_line<Net>(K);
  static_text<static_cast<std::size_t>(line.count)> t;
  for (std::int64_t i = 0; i < line.count; ++i) t.text[i] = static_cast<char>(Net::words[line.at + i]);
  t.text[line.count] = 0;  // clang prints an array as text where its last element was written, too
  return t;
}
/// Whether a net keeps all rules; the rule that it breaks is the compiler's first error.
template <class Net> constexpr bool accepted() {
  if constexpr (Net::front.fault.count != 0) {
    constexpr std::size_t lines = [] {
      std::size_t n = 0;
      while (fault_line<Net>(n).at >= 0) ++n;
      return n;
    }();
    return []<std::size_t... K>(std::index_sequence<K...>) {
      return sizeof(this_program_cannot_be_built<fault_text<Net, K>()...>) != 0;
    }
    (std::make_index_sequence<lines>{});
  }
  return true;
}

}  // namespace kiln::aot
