#include "kiln/generate/impl/join_rows.hpp"
#include "kiln/op/index/arg_max.hpp"
#include "kiln/op/index/concat.hpp"
#include "kiln/op/index/cumsum.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/op/index/gather_elements.hpp"
#include "kiln/op/index/iota.hpp"
#include "kiln/op/index/one_hot.hpp"
#include "kiln/op/index/scatter_elements.hpp"
#include "kiln/op/index/topk.hpp"
#include "kiln/op/linear/dot.hpp"
#include "kiln/op/nn/paged_attention.hpp"
#include "kiln/op/view/multibroadcast.hpp"
#include "kiln/op/view/reshape.hpp"
#include "kiln/op/view/reverse.hpp"
#include "kiln/op/view/slice.hpp"

namespace kiln::language::detail {

namespace {

using instruction = basic_instruction<operation>;

// The axis of a value's tokens: nothing where there is none, and a fault where extents mention them otherwise.
struct token_axis {
  std::optional<std::size_t> at;
  bool is_clear = true;
  std::size_t from_back = 0;
};
token_axis find_axis(const shape& s, dimension now) {
  token_axis out;
  for (std::size_t d = 0; d < s.rank(); ++d) {
    small_vector<dimension> named;
    collect_symbols(s.lens[d], named);
    for (const dimension symbol : named) {
      if (!(symbol == now)) continue;
      if (out.at || !(s.lens[d] == now)) out.is_clear = false;
      out.at = d;
    }
  }
  if (out.at) out.from_back = s.rank() - *out.at;
  return out;
}

bool names_axis(std::int64_t axis, std::size_t rank, const token_axis& tokens) {
  return tokens.at && static_cast<std::size_t>(normal_axis(axis, rank)) == *tokens.at;
}
dimension product_before(const shape& s, std::size_t axis) {
  dimension n = 1;
  for (std::size_t d = 0; d < axis; ++d) n = n * s.lens[d];
  return n;
}

// Whether one operand's tokens stay apart in the first result.
bool view_keeps(const instruction& i, const shape& in, const token_axis& from, const token_axis& to) {
  if (!to.at) return false;
  if (const auto* s = i.op.get_if<op::slice>()) {
    for (const std::int64_t a : s->axes)
      if (names_axis(a, in.rank(), from)) return false;
    return true;
  }
  if (const auto* r = i.op.get_if<op::reverse>()) {
    for (const std::int64_t a : r->axes)
      if (names_axis(a, in.rank(), from)) return false;
    return true;
  }
  if (i.op.get_if<op::multibroadcast>()) return from.from_back == to.from_back;
  if (i.op.name() == "transpose") return true;
  // the others only split and join extents
  return product_before(in, *from.at) == product_before(i.results[0], *to.at);
}
bool indexing_keeps(const instruction& i, std::size_t k, const shape& in, const token_axis& from,
                    const token_axis& to) {
  const std::size_t rank = in.rank();
  const auto elsewhere = [&](std::int64_t axis) { return !names_axis(axis, rank, from) && from.at == to.at; };
  if (const auto* op = i.op.get_if<op::concat>()) return elsewhere(op->axis);
  if (const auto* op = i.op.get_if<op::gather>()) {
    if (k == 1) return to.at.has_value();
    return !names_axis(op->axis, rank, from) && to.at.has_value();
  }
  if (const auto* op = i.op.get_if<op::gather_elements>()) return elsewhere(op->axis);
  if (const auto* op = i.op.get_if<op::scatter_elements>()) return elsewhere(op->axis);
  if (const auto* op = i.op.get_if<op::cumsum>()) return elsewhere(op->axis);
  if (const auto* op = i.op.get_if<op::topk>()) return elsewhere(op->axis);
  if (const auto* op = i.op.get_if<op::arg_max>()) return elsewhere(op->axis);
  return false;
}
bool dot_keeps(std::size_t k, const shape& in, const token_axis& from, const token_axis& to) {
  if (!to.at) return false;
  const bool is_batch = from.from_back > 2;
  return from.from_back == to.from_back && (is_batch || (k == 0 && *from.at + 2 == in.rank()));
}
bool keeps(const instruction& i, std::size_t k, const shape& in, const token_axis& from, const token_axis& to) {
  if (i.op.get_if<op::paged_attention>()) return true;
  switch (i.op.kind()) {
    case op_kind::pointwise: return to.at && from.from_back == to.from_back;
    case op_kind::reduction: {
      const auto reduced = reduced_dims(i.op.axes(), in.rank());
      return reduced && !(*reduced)[*from.at] && from.at == to.at;
    }
    case op_kind::view: return view_keeps(i, in, from, to);
    case op_kind::contraction: return i.op.get_if<op::dot>() && dot_keeps(k, in, from, to);
    default: return indexing_keeps(i, k, in, from, to);
  }
}

}  // namespace

bool keeps_apart(const module_graph& m, std::uint32_t at, std::size_t k, dimension extent) {
  const instruction& i = m[at];
  const auto axis_of = [&](const shape& s) {
    token_axis out;
    for (std::size_t d = 0; d < s.rank(); ++d)
      if (s.lens[d] == extent) out.is_clear = !out.at, out.at = d;
    if (out.at) out.from_back = s.rank() - *out.at;
    return out;
  };
  const shape& in = m.shape_of(i.inputs[k]);
  const token_axis from = axis_of(in), to = axis_of(i.results[0]);
  return from.at && to.at && from.is_clear && to.is_clear && keeps(i, k, in, from, to);
}

namespace {

// Whether what mixes tokens is no affair of a run to try: sums and extremes over them, and parts of them by number.
bool mixes_surely(const module_graph& m, const instruction& i) {
  if (i.op.get_if<op::slice>() || i.op.get_if<op::reverse>()) return true;
  if (const auto* op = i.op.get_if<op::gather>())
    return op && m.producer(i.inputs[1]).kind == instruction_kind::literal;
  // experts count tokens in integers
  return (i.op.kind() == op_kind::reduction || i.op.get_if<op::cumsum>()) && is_float(i.results[0].type);
}

}  // namespace

rows_verdict check_rows_apart(const program& p, dimension now) {
  rows_verdict out;
  const module_graph& m = p.main();
  for (const std::uint32_t at : m.order()) {
    const instruction& i = m[at];
    const auto name = [&] {
      const std::string op(i.kind == instruction_kind::op ? i.op.name() : "a constant");
      return i.name.empty() ? op : op + " '" + std::string(i.name.view()) + "'";
    };
    token_axis to;
    for (const shape& s : i.results) {
      to = find_axis(s, now);
      if (!to.is_clear && out.unsure.empty())
        out.unsure = name() + " has an extent that is not one for each token: " + kiln::to_string(s);
    }
    if (i.kind != instruction_kind::op) {
      if (i.kind == instruction_kind::literal && to.at && out.unsure.empty()) out.unsure = name() + " counts tokens";
      continue;
    }
    if (const auto* counts = i.op.get_if<op::iota>(); counts && names_axis(counts->axis, i.results[0].rank(), to))
      if (out.unsure.empty()) out.unsure = name() + " counts tokens";
    to = find_axis(i.results[0], now);
    for (std::size_t k = 0; k < i.inputs.size(); ++k) {
      const shape& in = m.shape_of(i.inputs[k]);
      const token_axis from = find_axis(in, now);
      if (!from.at || !from.is_clear || keeps(i, k, in, from, to)) continue;
      if (mixes_surely(m, i)) return {name() + " mixes tokens", {}};
      if (out.unsure.empty()) out.unsure = name() + " may mix tokens";
    }
  }
  return out;
}

}  // namespace kiln::language::detail
