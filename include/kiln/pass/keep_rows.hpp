#pragma once
#include "kiln/graph/module.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/op/linear/dot.hpp"
#include "kiln/op/view/multibroadcast.hpp"

namespace kiln {

namespace detail {

// Rows of a module's values along one axis that has `whole` of them, computed for some of the rows alone.
template <class Module> class row_keeper {
 public:
  constexpr row_keeper(Module& m, std::size_t axis, value_id rows)
      : m_(m), axis_(axis), whole_(0), kept_(m.shape_of(rows).lens[0]), rows_(rows) {}

  constexpr value_id keep(value_id output) {
    whole_ = m_.shape_of(output).lens[axis_];
    const std::size_t count = m_.size();
    cone_ = small_vector<std::uint8_t>(count, 0);
    follow(output);
    // what others read whole is gathered from, not computed twice
    small_vector<std::uint8_t> read_elsewhere(count, 0);
    for (const value_id v : m_.outputs) read_elsewhere[v.instruction] = 1;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t i = 0; i < count; ++i)
        if (!cone_[i])
          for (const value_id v : m_[i].inputs) read_elsewhere[v.instruction] = 1;
      for (std::uint32_t i = 0; i < count; ++i)
        if (cone_[i] && read_elsewhere[i]) cone_[i] = 0, changed = true;
    }
    made_ = small_vector<value_id>(count, value_id{});
    return part_of(output);
  }

 private:
  using instruction = typename Module::instruction;
  constexpr bool has_rows(value_id v) const {
    const dims& lens = m_.shape_of(v).lens;
    return lens.size() > axis_ && lens[axis_] == whole_;
  }
  // Whether a row of the result is computed of the same row of the operands alone.
  constexpr bool goes_by_rows(const instruction& i) const {
    if (i.kind != instruction_kind::op || i.results.size() != 1) return false;
    const std::size_t rank = i.results[0].rank();
    switch (i.op.kind()) {
      case op_kind::pointwise: return true;
      case op_kind::reduction: {
        const auto reduced = reduced_dims(i.op.axes(), rank);
        return reduced && axis_ < rank && !(*reduced)[axis_];
      }
      case op_kind::contraction: return i.op.template get_if<op::dot>() && axis_ + 2 == rank;
      case op_kind::view: return i.op.template get_if<op::multibroadcast>() && m_.shape_of(i.inputs[0]).rank() == rank;
      default: return false;
    }
  }
  // Operands of which rows are read; others are read whole.
  constexpr bool reads_rows(const instruction& i, std::size_t k) const {
    return has_rows(i.inputs[k]) && (i.op.kind() != op_kind::contraction || k == 0);
  }
  constexpr void follow(value_id v) {
    small_vector<value_id> open{v};
    while (!open.empty()) {
      const value_id at = open.back();
      open.pop_back();
      if (cone_[at.instruction] || !has_rows(at) || !goes_by_rows(m_.producer(at))) continue;
      cone_[at.instruction] = 1;
      for (std::size_t k = 0; k < m_.producer(at).inputs.size(); ++k)
        if (reads_rows(m_.producer(at), k)) open.push_back(m_.producer(at).inputs[k]);
    }
  }
  constexpr value_id part_of(value_id v) {
    if (!cone_[v.instruction]) return m_.add(op::gather{static_cast<std::int64_t>(axis_)}, {v, rows_});
    if (made_[v.instruction]) return made_[v.instruction];
    const instruction from = m_.producer(v);
    small_vector<value_id> in = from.inputs;
    for (std::size_t k = 0; k < in.size(); ++k)
      if (reads_rows(from, k)) in[k] = part_of(in[k]);
    typename Module::operation_type op = from.op;
    if (const auto* wide = from.op.template get_if<op::multibroadcast>()) {
      op::multibroadcast narrow = *wide;
      narrow.to[axis_] = kept_;
      op = narrow;
    }
    return made_[v.instruction] = m_.add(op, std::move(in), std::string_view(from.name));
  }

  Module& m_;
  std::size_t axis_;
  dimension whole_, kept_;
  value_id rows_;
  small_vector<std::uint8_t> cone_;
  small_vector<value_id> made_;
};

}  // namespace detail

/// Computes of an output only the rows (indices along `axis`) that a new input lists, i64[count] of any count: what
/// goes row by row before it (products, pointwise ops, norms) is computed for these rows alone, as far as nothing else
/// reads it. A language model's logits are then made for the tokens that are asked for. `count` is the new extent.
template <class Module>
constexpr void keep_rows(Module& m, std::size_t output, std::size_t axis, std::string_view input, dimension count) {
  const value_id rows = m.add_parameter(input, shape(dtype::i64, {count}));
  const value_id from = m.outputs[output];
  m.outputs[output] = value_id{0, 0};  // the whole rows are no output any more
  const value_id kept = detail::row_keeper<Module>(m, axis, rows).keep(from);
  m.outputs[output] = kept;
  m.compact();
}

}  // namespace kiln
