#include "kiln/graph/builder.hpp"

// Which extents of their operands ops want equal. A rule that is not met after this is the op's own to report.
namespace kiln::detail {
namespace {

class settler {
 public:
  settler(const module_graph& m, const small_vector<value_id>& ids) {
    for (const value_id v : ids) given.push_back(m.shape_of(v).lens);
    wanted = given;
  }

  std::size_t rank(std::size_t i) const { return given[i].size(); }
  std::size_t operands() const { return given.size(); }
  dimension extent(std::size_t i, std::size_t d) const { return wanted[i][d]; }
  /// Operand i has this extent, unless it certainly has another.
  void want(std::size_t i, std::size_t d, dimension extent) {
    dimension& own = wanted[i][d];
    if (!(own == extent) && !same(own, extent)) own = extent;
  }
  /// Two operands have one extent: a number rather than a name.
  void agree(std::size_t i, std::size_t d, std::size_t j, std::size_t e) {
    if (extent(i, d).is_constant())
      want(j, e, extent(i, d));
    else
      want(i, d, extent(j, e));
  }

  small_vector<dims> given, wanted;
};

void settle_dot(settler& s) {
  const std::size_t rank = s.rank(0);
  if (s.operands() != 2 || rank < 2 || s.rank(1) != rank) return;
  for (std::size_t d = 0; d + 2 < rank; ++d) s.agree(1, d, 0, d);
  s.agree(1, rank - 2, 0, rank - 1);
}
void settle_concat(settler& s, const op::concat& o) {
  if (s.operands() == 0) return;
  const std::int64_t axis = normal_axis(o.axis, s.rank(0));
  for (std::size_t i = 1; i < s.operands(); ++i)
    if (s.rank(i) != s.rank(0)) return;
  for (std::size_t d = 0; d < s.rank(0); ++d) {
    if (static_cast<std::int64_t>(d) == axis) continue;
    for (std::size_t i = 1; i < s.operands(); ++i) s.agree(0, d, i, d);
    for (std::size_t i = 1; i < s.operands(); ++i) s.agree(i, d, 0, d);
  }
}
void settle_convolution(settler& s, const op::convolution& o) {
  if (s.operands() == 2 && s.rank(0) > 2 && s.rank(1) == s.rank(0)) s.want(0, 1, s.extent(1, 1) * o.group);
}
void settle_gather_nd(settler& s, const op::gather_nd& o) {
  if (s.operands() != 2) return;
  const std::size_t least = std::min(s.rank(0), s.rank(1));
  for (std::size_t d = 0; d < least && static_cast<std::int64_t>(d) < o.batch_dims; ++d) s.agree(1, d, 0, d);
}
void settle_scatter_elements(settler& s) {
  if (s.operands() != 3 || s.rank(1) != s.rank(2)) return;
  for (std::size_t d = 0; d < s.rank(1); ++d) s.want(2, d, s.extent(1, d));
}
void settle_scatter_nd(settler& s) {
  if (s.operands() != 3 || s.rank(1) < 1) return;
  const std::size_t places = s.rank(1) - 1;
  const dimension tuple = s.extent(1, places);
  if (!tuple.is_constant() || tuple.value() < 0 || tuple.value() > static_cast<std::int64_t>(s.rank(0))) return;
  const auto named = static_cast<std::size_t>(tuple.value());
  if (s.rank(2) != places + s.rank(0) - named) return;
  for (std::size_t d = 0; d < places; ++d) s.want(2, d, s.extent(1, d));
  for (std::size_t d = named; d < s.rank(0); ++d) s.want(2, places + d - named, s.extent(0, d));
}
void settle_attention(settler& s) {
  if (s.operands() < 3) return;
  for (std::size_t i = 0; i < s.operands(); ++i)
    if (s.rank(i) != 4) return;
  s.agree(1, 0, 0, 0);
  s.agree(2, 0, 0, 0);
  s.agree(2, 1, 1, 1);
  s.agree(1, 3, 0, 3);
  s.agree(2, 2, 1, 2);
  if (s.operands() < 4) return;
  const dimension scores[] = {s.extent(0, 0), s.extent(0, 1), s.extent(0, 2), s.extent(1, 2)};
  for (std::size_t d = 0; d < 4; ++d)
    if (!(s.extent(3, d) == dimension(1))) s.want(3, d, scores[d]);
}

}  // namespace

void settle_extents(module_graph& m, const operation& op, small_vector<value_id>& ids, std::string_view label) {
  bool known = true;
  for (const value_id v : ids) {
    if (!v) return;
    known = known && is_constant(m.shape_of(v).lens);
  }
  if (known) return;
  settler s(m, ids);
  if (op.is<op::dot>())
    settle_dot(s);
  else if (const auto* concat = op.get_if<op::concat>())
    settle_concat(s, *concat);
  else if (const auto* convolution = op.get_if<op::convolution>())
    settle_convolution(s, *convolution);
  else if (const auto* gather = op.get_if<op::gather_nd>())
    settle_gather_nd(s, *gather);
  else if (op.is<op::scatter_elements>())
    settle_scatter_elements(s);
  else if (op.is<op::scatter_nd>())
    settle_scatter_nd(s);
  else if (op.is<op::attention>())
    settle_attention(s);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (!(s.wanted[i] == s.given[i])) ids[i] = m.add(op::reshape{s.wanted[i]}, {ids[i]}, label);
}

}  // namespace kiln::detail
