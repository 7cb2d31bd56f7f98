#pragma once
#include <span>

#include "kiln/graph/rewriter.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

/// What `narrow_floats` computes in fewer bits, and in how many.
struct narrow_floats_choice {
  dtype to = dtype::f16;
  /// Names of ops; none, or "all": every one.
  std::span<const std::string_view> ops{};
};

namespace detail {

/// Rewrites a module's arithmetic over f32 and f64 into 16-bit floats.
template <class Module> class float_narrower {
 public:
  constexpr float_narrower(Module& m, pass_note& note, const narrow_floats_choice& choice)
      : r_(m), note_(note), choice_(choice) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i)
      if (is_chosen(i) && narrows(i) && fits(i)) narrow(i);
  }

 private:
  static constexpr bool is_wide(dtype t) { return t == dtype::f32 || t == dtype::f64; }
  constexpr shape narrow_shape(shape s) const {
    if (is_wide(s.type)) s.type = choice_.to;
    return s;
  }

  constexpr bool is_chosen(std::uint32_t i) const {
    if (r_[i].kind != instruction_kind::op || r_[i].op.kind() >= op_kind::control) return false;
    if (r_.template get_if<op::convert>({i, 0})) return false;  // the program says itself what is computed in what
    bool reads = false, chosen = choice_.ops.empty();
    for (value_id v : r_[i].inputs) reads = reads || is_wide(r_.shape_of(v).type);
    for (std::string_view name : choice_.ops) chosen = chosen || name == "all" || name == r_[i].op.name();
    return reads && chosen;
  }
  // Whether the op over narrow floats gives what it gives over wide ones, in narrow floats.
  constexpr bool narrows(std::uint32_t i) const {
    shapes in;
    for (value_id v : r_[i].inputs) in.push_back(narrow_shape(r_.shape_of(v)));
    const auto out = r_[i].op.shape_rule(in);
    if (!out || out->size() != r_[i].results.size()) return false;
    for (std::size_t k = 0; k < out->size(); ++k)
      if (!((*out)[k] == narrow_shape(r_[i].results[k]))) return false;
    return true;
  }
  // Whether every finite number among the constants that it reads stays finite.
  constexpr bool fits(std::uint32_t i) const {
    constexpr double greatest = 65504;
    if (choice_.to != dtype::f16) return true;
    for (value_id v : r_[i].inputs) {
      const literal* const l = r_.constant(v);
      if (!l || !is_wide(l->get_shape().type)) continue;
      for (const double x : l->template to<double>())
        if ((x > greatest || x < -greatest) && x - x == 0) {
          text said(r_[i].op.name());
          if (!r_[i].name.empty()) said.append(std::string_view(" '")).append(r_[i].name.view()).append('\'');
          note_.remark(said.append(std::string_view(" is computed in "))
                           .append(to_string(l->get_shape().type))
                           .append(std::string_view(": a constant that it reads lies outside [-65504, 65504]")));
          return false;
        }
    }
    return true;
  }

  constexpr value_id narrowed(value_id v) {
    if (!is_wide(r_.shape_of(v).type)) return v;
    for (const pair& p : pairs_)
      if (p.wide == v) return p.narrow;
    const value_id to = r_.add(op::convert{choice_.to}, {v});
    pairs_.push_back({v, to});
    return to;
  }
  constexpr void narrow(std::uint32_t i) {
    const auto op = r_[i].op;
    const text name = r_[i].name;
    const shapes wide = r_[i].results;
    shapes results = wide;
    small_vector<value_id> inputs = r_[i].inputs;
    for (value_id& v : inputs) v = narrowed(v);
    for (shape& s : results) s = narrow_shape(s);
    const value_id made = r_.add_with_shapes(op, std::move(inputs), results, name.view());
    for (std::uint32_t k = 0; k < results.size(); ++k) {
      value_id by{made.instruction, k};
      if (is_wide(wide[k].type)) {
        by = r_.add(op::convert{wide[k].type}, {by});
        pairs_.push_back({by, {made.instruction, k}});
      }
      r_.replace({i, k}, by);
    }
    note_.count(op.name());
  }

  struct pair {
    value_id wide, narrow;
  };
  rewriter<Module> r_;
  pass_note& note_;
  const narrow_floats_choice& choice_;
  small_vector<pair> pairs_;  // values and their conversions, either way
};

}  // namespace detail

/// Computes in f16 or bf16 what a program computes in f32 and f64: the chosen ops read and give narrow floats, with
/// conversions where others meet them. Parameters and results keep their types. An op that reads a constant beyond
/// f16's range stays as it is, which the note says.
template <class Program> constexpr pass_note narrow_floats(Program& p, const narrow_floats_choice& choice) {
  return run_on_modules<detail::float_narrower>("narrow_floats", p, choice);
}

}  // namespace kiln
