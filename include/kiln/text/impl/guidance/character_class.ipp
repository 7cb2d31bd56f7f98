#include "kiln/text/impl/guidance/character_class.hpp"

#include <unicode/uchar.h>

#include <algorithm>

namespace kiln::language::guidance {

namespace {

struct wanted {
  std::uint32_t categories;
  code_ranges found;
};

UBool U_CALLCONV take(const void* context, UChar32 begin, UChar32 end, UCharCategory category) {
  auto* w = static_cast<wanted*>(const_cast<void*>(context));
  if ((U_MASK(category) & w->categories) != 0)
    w->found.emplace_back(static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - 1));
  return true;
}

code_ranges of_categories(std::uint32_t categories, code_ranges others) {
  wanted w{categories, std::move(others)};
  u_enumCharTypes(take, &w);
  return joined(std::move(w.found));
}

}  // namespace

code_ranges joined(code_ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  code_ranges out;
  for (const auto& [low, high] : ranges) {
    if (!out.empty() && low <= out.back().second + 1)
      out.back().second = std::max(out.back().second, high);
    else
      out.emplace_back(low, high);
  }
  return out;
}

code_ranges negated(const code_ranges& ranges) {
  code_ranges out;
  std::uint32_t next = 0;
  for (const auto& [low, high] : joined(ranges)) {
    if (low > next) out.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= last_code_point) out.emplace_back(next, last_code_point);
  return out;
}

code_ranges intersection(const code_ranges& a, const code_ranges& b) {
  code_ranges others = negated(a);
  const code_ranges more = negated(b);
  others.insert(others.end(), more.begin(), more.end());
  return negated(others);
}

const code_ranges& digits() {
  static const code_ranges ranges = of_categories(U_GC_ND_MASK, {});
  return ranges;
}
const code_ranges& word_characters() {
  static const code_ranges ranges = of_categories(U_GC_L_MASK | U_GC_N_MASK, {{'_', '_'}});
  return ranges;
}
const code_ranges& white_space() {
  static const code_ranges ranges = of_categories(U_GC_Z_MASK, {{0x09, 0x0D}, {0x1C, 0x1F}, {0x85, 0x85}});
  return ranges;
}

}  // namespace kiln::language::guidance
