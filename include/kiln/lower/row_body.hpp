#pragma once
#include <optional>

#include "kiln/graph/module.hpp"

namespace kiln::lower {

/// What an instruction of a row body is.
enum class row_op : std::uint8_t { parameter, literal, view, pointwise, reduction };

/// What an op is in a row body; empty where it cannot be in one.
constexpr std::optional<row_op> row_op_of(op_kind kind) {
  switch (kind) {
    case op_kind::view: return row_op::view;
    case op_kind::pointwise: return row_op::pointwise;
    case op_kind::reduction: return row_op::reduction;
    default: return std::nullopt;
  }
}

/// When full results are written: by the level that computes them, or all of them by the last one.
enum class row_results : std::uint8_t { at_own_level, at_last_level };

/// A fused body of pointwise ops and reductions over one set of axes, as passes over rows. A row is what one reduction
/// folds; a value is full (an element for each of the row's) or has one element per row. Level L is the L-th pass over
/// a row: a reduction of level-L values is known after it and belongs to level L + 1, as does what is computed from it.
/// A body without reductions has one level, and all that it computes is full. `Dims` are symbolic or constant extents;
/// with `Most`, lists hold up to that many elements in place.
template <class Dims, std::size_t Most = 0> struct row_body {
  template <class T>
  using list = std::conditional_t<Most == 0, small_vector<T>, inline_vector<T, Most == 0 ? 1 : Most>>;

  // [value]
  struct value {
    row_op op = row_op::parameter;
    std::uint32_t source = 0;              ///< itself; of a view: the value that it repeats or renames
    inline_vector<std::uint32_t, 6> in{};  ///< sources of its operands
    bool full = false;
    int level = 0;             ///< full: the level that computes it; else the first level that may read it
    bool kept = false;         ///< full, computed, and read by a later level
    std::uint32_t index = 0;   ///< which parameter
    std::uint32_t buffer = 0;  ///< kept: which row buffer
  };
  // [/value]
  struct result {
    std::uint32_t value = 0;  ///< a source
    bool full = true;         ///< of full extents; the value may have one element per row, which is repeated
    int level = 0;            ///< full: the level that writes it; else the first level that may
  };

  list<value> values{};  ///< by instruction of the body
  list<std::uint32_t> parameters{};
  list<result> results{};
  Dims full{};                             ///< extents of full values
  inline_vector<bool, max_rank> folded{};  ///< by axis; false where the extent is 1
  bool reduces = false;
  int levels = 1;
  std::uint32_t buffers = 0;

  constexpr bool folds_in(std::uint32_t k, int level) const {
    return values[k].op == row_op::reduction && values[k].level == level + 1;
  }
  constexpr bool writes_in(std::size_t result, int level) const {
    return results[result].full && results[result].level == level;
  }
  /// Which values `level` reads or computes. With `keeps`, values that later levels read are computed once and read
  /// from row buffers; else each level computes what it needs from the parameters.
  constexpr list<bool> needed(int level, bool keeps) const {
    list<bool> need{};
    need.resize(values.size());
    for (std::uint32_t k = 0; k < values.size(); ++k) {
      if (folds_in(k, level)) need[values[k].in[0]] = true;
      if (keeps && values[k].kept && values[k].level == level) need[k] = true;
    }
    for (std::size_t r = 0; r < results.size(); ++r)
      if (writes_in(r, level)) need[results[r].value] = true;
    for (std::size_t k = values.size(); k-- > 0;) {
      const value& v = values[k];
      if (!need[k] || !v.full || v.op != row_op::pointwise || (keeps && v.kept && v.level < level)) continue;
      for (std::uint32_t i : v.in) need[i] = true;
    }
    return need;
  }
  constexpr auto row_elements() const {
    auto n = typename Dims::value_type(1);
    for (std::size_t d = 0; d < full.size(); ++d)
      if (folded[d]) n = n * full[d];
    return n;
  }
};

template <class Operation> constexpr std::optional<row_op> row_op_of(const basic_instruction<Operation>& i) {
  if (i.kind == instruction_kind::parameter) return row_op::parameter;
  if (i.kind == instruction_kind::op) return row_op_of(i.op.kind());
  return i.constant.elements() == 1 ? std::optional(row_op::literal) : std::nullopt;
}
template <class Operation> constexpr const dims& lens_of(const basic_instruction<Operation>& i) {
  return i.results[0].lens;
}

namespace detail {

constexpr std::uint32_t producer(value_id v) { return v.instruction; }
constexpr std::uint32_t producer(std::uint32_t v) { return v; }

template <class Body, class Outputs, std::size_t Most> class row_analysis {
 public:
  using dims_type = std::remove_cvref_t<decltype(lens_of(std::declval<const Body&>()[0]))>;
  using body_type = row_body<dims_type, Most>;
  using value = typename body_type::value;
  constexpr row_analysis(const Body& from, const Outputs& outputs) : from_(from), outputs_(outputs) {}

  constexpr std::optional<body_type> run(row_results when) {
    if (!find_rows()) return std::nullopt;
    for (std::uint32_t i = 0; i < from_.size(); ++i)
      if (!add(i)) return std::nullopt;
    for (const auto& v : outputs_) add_result(producer(v));
    if (when == row_results::at_last_level)
      for (auto& r : to_.results)
        if (r.full) r.level = to_.levels - 1;
    find_kept();
    return std::move(to_);
  }

 private:
  constexpr const dims_type& lens(std::uint32_t i) const { return lens_of(from_[i]); }

  // The extents and axes of all reductions; false where they differ.
  constexpr bool find_rows() {
    for (const auto& v : outputs_) to_.full = lens(producer(v));
    for (std::uint32_t i = 0; i < from_.size(); ++i) {
      if (row_op_of(from_[i]) != row_op::reduction) continue;
      const dims_type& full = lens(producer(from_[i].inputs[0]));
      if (to_.reduces && !(full == to_.full && lens(i) == reduced_)) return false;
      to_.reduces = true;
      to_.full = full;
      reduced_ = lens(i);
    }
    for (std::size_t d = 0; d < to_.full.size(); ++d)
      to_.folded.push_back(to_.reduces && !(to_.full[d] == reduced_[d]));
    return true;
  }
  // Rows of one element: everything but the reductions and what follows them counts as full.
  constexpr bool has_row_extents(std::uint32_t i) const {
    return to_.reduces && !(to_.full == reduced_) && lens(i) == reduced_;
  }

  constexpr bool add(std::uint32_t i) {
    const std::optional<row_op> op = row_op_of(from_[i]);
    if (!op) return false;
    value v;
    v.op = *op;
    v.source = i;
    if (*op == row_op::parameter) {
      v.full = !has_row_extents(i);
      v.index = static_cast<std::uint32_t>(to_.parameters.size());
      to_.parameters.push_back(i);
    } else if (*op == row_op::view) {
      v.source = source(producer(from_[i].inputs[0]));
      v.full = to_.values[v.source].full;
      v.level = to_.values[v.source].level;
    } else if (*op != row_op::literal) {
      v.full = !to_.reduces;
      for (const auto& in : from_[i].inputs) {
        v.in.push_back(source(producer(in)));
        const value& operand = to_.values[v.in.back()];
        v.full = v.full || operand.full;
        if (v.level < operand.level) v.level = operand.level;
      }
      if (*op == row_op::reduction) {
        v.full = false;
        ++v.level;
      }
      raise_levels(v.full, v.level);
    }
    to_.values.push_back(v);
    return !to_.reduces || !v.full || lens(i) == to_.full;
  }
  constexpr std::uint32_t source(std::uint32_t i) const { return to_.values[i].source; }
  constexpr void raise_levels(bool full, int level) {
    const int levels = full ? level + 1 : level;
    if (to_.levels < levels) to_.levels = levels;
  }

  constexpr void add_result(std::uint32_t i) {
    typename body_type::result r;
    r.value = source(i);
    const value& v = to_.values[r.value];
    r.full = to_.reduces && to_.full == reduced_ ? v.full : !has_row_extents(i);
    r.level = v.level;
    raise_levels(r.full, r.level);
    to_.results.push_back(r);
  }
  constexpr void keep(std::uint32_t k, int reader) {
    value& v = to_.values[k];
    if (v.op == row_op::pointwise && v.full && v.level < reader) v.kept = true;
  }
  constexpr void find_kept() {
    for (const value& v : to_.values)
      if (v.full || v.op == row_op::reduction)
        for (std::uint32_t i : v.in) keep(i, v.op == row_op::reduction ? v.level - 1 : v.level);
    for (const auto& r : to_.results)
      if (r.full) keep(r.value, r.level);
    for (value& v : to_.values)
      if (v.kept) v.buffer = to_.buffers++;
  }

  const Body& from_;
  const Outputs& outputs_;
  body_type to_{};
  dims_type reduced_{};
};

}  // namespace detail

/// The row body of a sequence of instructions: of a module, or of the nodes of a static program's step, for whose
/// elements `row_op_of` and `lens_of` are overloaded. Empty where it holds other ops than pointwise ones, reductions,
/// views of rows and constants of one element, where its reductions fold different axes or extents, or where another
/// value has extents of its own.
template <std::size_t Most = 0, class Body, class Outputs>
constexpr auto find_row_body(const Body& body, const Outputs& outputs, row_results when = row_results::at_own_level) {
  return detail::row_analysis<Body, Outputs, Most>(body, outputs).run(when);
}
template <class Operation>
constexpr auto find_row_body(const basic_module<Operation>& body, row_results when = row_results::at_own_level) {
  return find_row_body(body, body.outputs, when);
}

}  // namespace kiln::lower
