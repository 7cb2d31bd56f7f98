#include <algorithm>
#include <cstdlib>
#include <optional>

#include "kiln/backend/eigen/impl/rows/row_walk.hpp"

namespace kiln::eigen {
namespace {

using operand_steps = stack_list<row_loops::steps, row_loops::most_operands>;

// Drops dims of extent 1, the last one that is left aside.
template <class Get> void drop_ones(ints& extents, operand_steps& operands, Get get) {
  for (std::size_t d = extents.size(); d-- > 0;)
    if (extents[d] == 1 && extents.size() > 1) {
      extents.erase(d);
      for (auto& o : operands) get(o).erase(d);
    }
}

// Joins neighboring dims that are contiguous for every operand, innermost first.
template <class Get> void join(ints& extents, operand_steps& operands, Get get) {
  drop_ones(extents, operands, get);
  for (std::size_t d = extents.size(); d-- > 1;) {
    bool contiguous = true;
    for (auto& o : operands) contiguous = contiguous && get(o)[d - 1] == get(o)[d] * extents[d];
    if (!contiguous) continue;
    extents[d - 1] *= extents[d];
    extents.erase(d);
    for (auto& o : operands) {
      get(o)[d - 1] = get(o)[d];
      get(o).erase(d);
    }
  }
}

// Dims whose order is free: an operand's smallest step ends up innermost.
template <class Get> void order_by(row_loops& l, ints& extents, std::size_t operand, Get get) {
  drop_ones(extents, l.operand, get);  // whose steps mean nothing
  for (std::size_t i = 1; i < extents.size(); ++i)
    for (std::size_t j = i; j > 0; --j) {
      const ints& to = get(l.operand[operand]);
      if (std::abs(to[j - 1]) >= std::abs(to[j])) break;
      std::swap(extents[j - 1], extents[j]);
      for (auto& o : l.operand) std::swap(get(o)[j - 1], get(o)[j]);
    }
}

// The operand whose elements a row's loops follow: a full result, or else the full parameter that repeats along the
// fewest dims, since what is read once is more than what is repeated.
std::size_t leading_operand(const tile_program& p, const row_loops& l) {
  for (std::size_t k = p.results(); k-- > 0;)
    if (p.full_result(k)) return p.parameters() + k;
  const auto zeros = [](const ints& extents, const ints& steps) {
    std::size_t n = 0;
    for (std::size_t d = 0; d < extents.size(); ++d) n += extents[d] != 1 && steps[d] == 0;
    return n;
  };
  const auto repeats = [&](std::size_t k) {
    return zeros(l.kept, l.operand[k].kept) + zeros(l.folded, l.operand[k].folded);
  };
  std::optional<std::size_t> found;
  for (std::size_t k = 0; k < p.parameters(); ++k)
    if (p.full_parameter(k) && (!found || repeats(k) < repeats(*found))) found = k;
  return found.value_or(p.parameters() == 0 ? 0 : p.parameters() - 1);
}

}  // namespace

row_loops loops_of(const tile_program& p, std::span<const tensor> in, std::span<const tensor> out) {
  row_loops l;
  const std::size_t rank = p.reduces() ? p.folded().size() : out[0].rank();
  const auto is_folded = [&](std::size_t d) { return p.reduces() && p.folded()[d]; };
  ints full(rank, 1);
  const auto widen = [&](const tensor& t) {
    for (std::size_t d = 0; d < rank; ++d) full[d] = t.lens[d] == 1 ? full[d] : t.lens[d];
  };
  for (const tensor& t : in) widen(t);
  for (const tensor& t : out) widen(t);
  for (const tensor& t : in)  // an empty tensor anywhere makes everything empty
    for (std::size_t d = 0; d < rank; ++d) full[d] = t.lens[d] == 0 ? 0 : full[d];
  for (std::size_t d = 0; d < rank; ++d) (is_folded(d) ? l.folded : l.kept).push_back(full[d]);
  const auto add = [&](const tensor& t) {
    row_loops::steps s;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t step = t.lens[d] == 1 && full[d] != 1 ? 0 : t.strides[d];
      (is_folded(d) ? s.folded : s.kept).push_back(step);
    }
    l.operand.push_back(s);
  };
  for (const tensor& t : in) add(t);
  for (const tensor& t : out) add(t);
  const auto kept = [](row_loops::steps& s) -> ints& { return s.kept; };
  const auto folded = [](row_loops::steps& s) -> ints& { return s.folded; };
  if (p.reduces())
    order_by(l, l.folded, leading_operand(p, l), folded);
  else
    order_by(l, l.kept, l.operand.size() - 1, kept);
  join(l.kept, l.operand, kept);
  join(l.folded, l.operand, folded);
  if (!l.folded.empty()) return l;
  if (p.reduces() || l.kept.empty()) {  // rows of one element
    l.folded.push_back(1);
    for (auto& o : l.operand) o.folded.push_back(1);
    return l;
  }
  l.folded.push_back(l.kept.back());  // without reductions a row is the innermost dim
  l.kept.pop_back();
  for (auto& o : l.operand) {
    o.folded.push_back(o.kept.back());
    o.kept.pop_back();
  }
  return l;
}

}  // namespace kiln::eigen
