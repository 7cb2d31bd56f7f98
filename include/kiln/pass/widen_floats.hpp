#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/recompute.hpp"

namespace kiln {

namespace detail {

constexpr bool is_half_float(dtype t) { return t == dtype::f16 || t == dtype::bf16; }

/// Rewrites a module's arithmetic over 16-bit floats into f32.
template <class Module> class float_widener {
 public:
  constexpr float_widener(Module& m, pass_note& note) : r_(m), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    bool worth = false;
    for (std::uint32_t i = 0; i < n && !worth; ++i) worth = heavy(i) && widens(i);
    if (!worth) return;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!reads_halves(i)) continue;
      if (converts_to_f32(i))
        read_unrounded(i);
      else if ((!moves(i) || operands_are_wide(i)) && widens(i))
        widen(i);
    }
    note_.remark(
        text("16-bit floats between arithmetic ops are kept in f32 and rounded where the program converts them to "
             "integers, compares or returns them"));
  }

 private:
  constexpr bool is_op(std::uint32_t i) const {
    return r_[i].kind == instruction_kind::op && r_[i].op.kind() < op_kind::control;
  }
  constexpr bool reads_halves(std::uint32_t i) const {
    if (!is_op(i)) return false;
    for (value_id v : r_[i].inputs)
      if (is_half_float(r_.shape_of(v).type)) return true;
    return false;
  }
  // It moves elements and computes nothing: what accepts handles to objects.
  constexpr bool moves(std::uint32_t i) const {
    return r_[i].op.kind() == op_kind::view ||
           (r_[i].op.kind() == op_kind::generic && r_[i].op.info().types.contains(dtype::string));
  }
  // It has a kernel of its own over f32. Pointwise ops and reductions are as quick over halves.
  constexpr bool heavy(std::uint32_t i) const {
    if (!reads_halves(i) || moves(i)) return false;
    return r_[i].op.kind() == op_kind::contraction || r_[i].op.kind() == op_kind::generic;
  }
  constexpr bool operands_are_wide(std::uint32_t i) const {
    for (value_id v : r_[i].inputs)
      if (is_half_float(r_.shape_of(v).type) && !unrounded(v)) return false;
    return true;
  }
  // The f32 that a value of halves was before it was rounded, by this pass or by the program; empty where there is none
  // that a run computes. Constants stay as small as they are.
  constexpr value_id unrounded(value_id v) const {
    if (narrowed(v)) return r_.input(v, 0);
    if (!r_.template get_if<op::convert>(v)) return {};
    const value_id from = r_.input(v, 0);
    return r_.shape_of(from).type == dtype::f32 && !viewed_constant(r_, from) ? from : value_id{};
  }
  constexpr bool converts_to_f32(std::uint32_t i) const {
    const auto* convert = r_.template get_if<op::convert>({i, 0});
    return convert && r_[i].results[0].type == dtype::f32;
  }
  // A conversion to f32 of what arithmetic computed gives that, unless the program returns it.
  constexpr void read_unrounded(std::uint32_t i) {
    const value_id v = r_[i].inputs[0];
    if (!narrowed(v)) return;
    for (const std::uint32_t user : r_.users(i))
      if (user == r_.output_user) return;
    note_.count(r_[i].op.name());
    r_.replace({i, 0}, r_.input(v, 0));
  }
  constexpr bool narrowed(value_id v) const { return v.instruction < narrowed_.size() && narrowed_[v.instruction]; }

  // Whether the op over f32 gives what it gives over halves, in f32. What a result that is no float says was decided on
  // rounded values.
  constexpr bool widens(std::uint32_t i) const {
    if (r_.template get_if<op::convert>({i, 0})) return false;  // the program rounds here
    shapes in;
    for (value_id v : r_[i].inputs) in.push_back(wide_shape(r_.shape_of(v)));
    for (const shape& s : r_[i].results)
      if (!is_float(s.type)) return false;
    const auto out = r_[i].op.shape_rule(in);
    if (!out || out->size() != r_[i].results.size()) return false;
    for (std::size_t k = 0; k < out->size(); ++k)
      if (!((*out)[k] == wide_shape(r_[i].results[k]))) return false;
    return true;
  }
  static constexpr shape wide_shape(shape s) {
    if (is_half_float(s.type)) s.type = dtype::f32;
    return s;
  }
  constexpr value_id wide(value_id v) {
    if (!is_half_float(r_.shape_of(v).type)) return v;
    if (const value_id before = unrounded(v)) return before;
    for (const auto& [from, to] : widened_)
      if (from == v) return to;
    const value_id to = r_.add(op::convert{dtype::f32}, {v});
    widened_.push_back({v, to});
    return to;
  }
  constexpr void widen(std::uint32_t i) {
    shapes results = r_[i].results;
    small_vector<value_id> inputs = r_[i].inputs;
    for (value_id& v : inputs) v = wide(v);
    for (shape& s : results) s = wide_shape(s);
    note_.count(r_[i].op.name());
    recompute(r_, i, std::move(inputs), results, narrowed_);
  }

  struct pair {
    value_id from, to;
  };
  rewriter<Module> r_;
  pass_note& note_;
  small_vector<pair> widened_;           // values of halves and their conversions
  small_vector<std::uint8_t> narrowed_;  // by instruction: a conversion to halves that this pass made
};

}  // namespace detail

/// Computes in f32 what a program computes in f16 or bf16, for targets whose products over such floats would run in f32
/// anyway: in modules with contractions or other ops that have kernels, arithmetic ops read and give f32, with
/// conversions where 16-bit floats come in and go out, and none between them, nor where the program passes to f32 and
/// back. Values are rounded where a condition or an integer is taken from them, where the program converts what comes
/// in, and where they leave; so results have at most the rounding errors of the program as written, and what overflows
/// 16 bits between two ops does not. Ops that only move elements follow their operands.
template <class Program> constexpr pass_note widen_floats(Program& p) {
  return run_on_modules<detail::float_widener>("widen_floats", p);
}

}  // namespace kiln
