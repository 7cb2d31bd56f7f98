#pragma once
#include "kiln/pass/constants.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/recompute.hpp"

namespace kiln {

/// What narrow_floats does.
struct narrow_float_options {
  dtype to = dtype::f16;                  ///< f16 or bf16
  small_vector<text> ops{};               ///< the ops that it concerns, by name; none: all of them
  small_vector<std::uint32_t> in_wide{};  ///< instructions of the main module that stay as they are
};

namespace detail {

/// Rewrites a module's arithmetic over f32 and f64 into a float of 16 bits.
template <class Module> class float_narrower {
 public:
  constexpr float_narrower(Module& m, pass_note& note, const narrow_float_options& options, bool is_main)
      : r_(m), note_(note), options_(options), is_main_(is_main) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i)
      if (is_chosen(i) && narrows(i) && fits(i)) narrow(i);
  }

 private:
  static constexpr bool is_wide(dtype t) { return t == dtype::f32 || t == dtype::f64; }
  constexpr shape narrowed_shape(shape s) const {
    if (is_wide(s.type)) s.type = options_.to;
    return s;
  }

  constexpr bool is_chosen(std::uint32_t i) const {
    if (r_[i].kind != instruction_kind::op || r_[i].op.kind() >= op_kind::control) return false;
    if (r_.template get_if<op::convert>({i, 0})) return false;  // the program says itself what it converts to
    bool reads_floats = false, chosen = options_.ops.empty();
    for (const value_id v : r_[i].inputs) reads_floats = reads_floats || is_wide(r_.shape_of(v).type);
    for (const text& name : options_.ops) chosen = chosen || name.view() == r_[i].op.name();
    if (is_main_)
      for (const std::uint32_t kept : options_.in_wide) chosen = chosen && kept != i;
    return reads_floats && chosen;
  }
  // Whether the op over narrow floats gives what it gives over wide ones, in narrow ones.
  constexpr bool narrows(std::uint32_t i) const {
    shapes in;
    for (const value_id v : r_[i].inputs) in.push_back(narrowed_shape(r_.shape_of(v)));
    const auto out = r_[i].op.shape_rule(in);
    if (!out || out->size() != r_[i].results.size()) return false;
    for (std::size_t k = 0; k < out->size(); ++k)
      if (!((*out)[k] == r_[i].results[k]) && !((*out)[k] == narrowed_shape(r_[i].results[k]))) return false;
    return true;
  }
  // Constants beyond the narrow type's range would become infinite; infinities themselves are what they were.
  constexpr bool fits(std::uint32_t i) {
    const double most = options_.to == dtype::f16 ? 65504 : 3.3895313892515355e38;
    for (const value_id v : r_[i].inputs) {
      const constant_view c = viewed_constant(r_, v);
      if (!c || c.from->has_symbols() || !is_wide(c.from->get_shape().type)) continue;
      bool inside = true;
      visit_elements(*c.from, c.from->elements(), [&](const auto& x) {
        if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(x)>>)
          inside = inside && !((x > most || x < -most) && x - x == 0);
      });
      if (!inside) {
        note_.remark(text("'")
                         .append(name_of(i))
                         .append(std::string_view(
                             "' stays in wide floats: it reads a constant beyond the greatest narrow number")));
        return false;
      }
    }
    return true;
  }
  constexpr std::string_view name_of(std::uint32_t i) const {
    return r_[i].name.empty() ? std::string_view(r_[i].op.name()) : r_[i].name.view();
  }

  constexpr value_id narrow_value(value_id v) {
    if (!is_wide(r_.shape_of(v).type)) return v;
    if (v.instruction < widened_.size() && widened_[v.instruction]) return r_.input(v, 0);
    for (const auto& [from, to] : narrowed_)
      if (from == v) return to;
    const value_id to = r_.add(op::convert{options_.to}, {v});
    narrowed_.push_back({v, to});
    return to;
  }
  constexpr void narrow(std::uint32_t i) {
    small_vector<value_id> inputs = r_[i].inputs;
    shapes in;
    for (value_id& v : inputs) {
      v = narrow_value(v);
      in.push_back(r_.shape_of(v));
    }
    note_.count(r_[i].op.name());
    recompute(r_, i, std::move(inputs), *r_[i].op.shape_rule(in), widened_);
  }

  struct pair {
    value_id from, to;
  };
  rewriter<Module> r_;
  pass_note& note_;
  const narrow_float_options& options_;
  bool is_main_;
  small_vector<pair> narrowed_;         // values of wide floats and their conversions
  small_vector<std::uint8_t> widened_;  // by instruction: a conversion back that this pass made
};

}  // namespace detail

/// Computes in a float of 16 bits what a program computes in f32 or f64, with conversions where wide floats come in,
/// go out, or are wanted by the program's own conversions: inputs and outputs keep their types. An op that reads a
/// constant beyond the narrow type's range stays as it is, and so does one that does not compute in that type.
template <class Program> constexpr pass_note narrow_floats(Program& p, const narrow_float_options& options) {
  pass_note note("narrow_floats");
  bool is_main = true;
  for_each_module(p, [&](auto& m) { detail::float_narrower(m, note, options, std::exchange(is_main, false)).run(); });
  return note;
}

}  // namespace kiln
