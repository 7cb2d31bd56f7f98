#pragma once
#include "kiln/graph/fold.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/recompute.hpp"

namespace kiln {

/// What narrow_floats does.
struct narrow_float_options {
  dtype to = dtype::f16;            ///< f16 or bf16
  small_vector<text> ops{};         ///< the ops that it concerns, by name; none: all of them
  small_vector<value_id> beyond{};  ///< values of the main module that `to` does not hold: ops that compute or read one
                                    ///< stay as they are, and so do bodies of control ops that do
};

/// The greatest finite number of a float of 16 bits.
constexpr double greatest_narrow(dtype to) { return to == dtype::f16 ? 65504 : 3.3895313892515355e38; }

namespace detail {

/// The modules that an op calls, and those that they call, are marked.
template <class Program, class Operation>
constexpr void mark_bodies(const Program& p, const Operation& op, small_vector<std::uint8_t>& marked) {
  small_vector<module_ref> called;
  if constexpr (std::is_same_v<Operation, operation>) op.bodies(called);
  if (op.kind() == op_kind::control) called.push_back(op.body());
  for (const module_ref r : called) {
    if (std::exchange(marked[r.index], std::uint8_t{1})) continue;
    for (std::uint32_t i = 0; i < p.module(r).size(); ++i)
      if (p.module(r)[i].kind == instruction_kind::op) mark_bodies(p, p.module(r)[i].op, marked);
  }
}

/// Rewrites a module's arithmetic over f32 and f64 into a float of 16 bits.
template <class Module> class float_narrower {
 public:
  /// `beyond`: as of the options, of this module.
  constexpr float_narrower(Module& m, pass_note& note, const narrow_float_options& options,
                           std::span<const value_id> beyond)
      : r_(m), note_(note), options_(options) {
    // what a view shows, and what it is of, are the same numbers
    for (value_id v : beyond) {
      beyond_.push_back(v);
      for (; r_.is_kind(v, op_kind::view); beyond_.push_back(v)) v = r_.input(v, 0);
    }
  }

  /// Whether the instruction computes or reads a number that the narrow type does not hold.
  constexpr bool is_beyond(std::uint32_t i) const {
    for (std::uint32_t k = 0; k < r_[i].results.size(); ++k)
      if (is_beyond(value_id{i, k})) return true;
    for (const value_id v : r_[i].inputs)
      if (is_beyond(v)) return true;
    return false;
  }

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i)
      if (is_chosen(i) && says_if_it_narrows(i) && fits(i)) narrow(i);
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
    return reads_floats && chosen && !is_beyond(i) && !(viewed_constant(r_, {i, 0}) && is_read_beyond(i));
  }
  // Whether an op that stays reads the instruction through views.
  constexpr bool is_read_beyond(std::uint32_t i) const {
    if (beyond_.empty()) return false;
    for (const std::uint32_t user : r_.users(i))
      if (user != r_.output_user && (is_beyond(user) || (r_.is_kind({user, 0}, op_kind::view) && is_read_beyond(user))))
        return true;
    return false;
  }
  constexpr bool is_beyond(value_id v) const {
    for (;; v = r_.input(v, 0)) {
      for (const value_id known : beyond_)
        if (known == v) return true;
      if (!r_.is_kind(v, op_kind::view)) return false;
    }
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
  constexpr bool says_if_it_narrows(std::uint32_t i) {
    const bool out = narrows(i);
    if (!out)
      note_.remark(text("'")
                       .append(r_[i].op.name())
                       .append(std::string_view("' stays in wide floats: it does not compute in "))
                       .append(to_string(options_.to)));
    return out;
  }
  // Constants beyond the narrow type's range would become infinite; infinities themselves are what they were.
  constexpr bool fits(std::uint32_t i) {
    const double most = greatest_narrow(options_.to);
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
                         .append(std::string_view("' stays in "))
                         .append(to_string(c.from->get_shape().type))
                         .append(std::string_view(": it reads a constant beyond the greatest "))
                         .append(to_string(options_.to)));
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
    value_id to = r_.add(op::convert{options_.to}, {v});
    if (r_.producer(v).kind == instruction_kind::literal) to = narrow_constant(v, to);
    narrowed_.push_back({v, to});
    return to;
  }
  // Constants are converted here: a file holds them in half the bytes.
  constexpr value_id narrow_constant(value_id v, value_id conversion) {
    const literal* const from[] = {&r_.producer(v).constant};
    auto made =
        fold(r_.producer(conversion).op, std::span<const literal* const>(from), r_.producer(conversion).results);
    return made.empty() ? conversion : r_.add_literal(std::move(made[0]));
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
  small_vector<value_id> beyond_;
  small_vector<pair> narrowed_;         // values of f32 or f64 and their conversions
  small_vector<std::uint8_t> widened_;  // by instruction: a conversion back that this pass made
};

}  // namespace detail

/// Computes in a float of 16 bits what a program computes in f32 or f64, with conversions where f32 and f64 come in, go
/// out, or are wanted by the program's own conversions: inputs and outputs keep their types. An op that reads a
/// constant beyond the narrow type's range, or reads or computes a value that the options name, stays as it is, and so
/// does one that does not compute in that type.
template <class Program> constexpr pass_note narrow_floats(Program& p, const narrow_float_options& options) {
  using narrower = detail::float_narrower<typename Program::module_type>;
  pass_note note("narrow_floats");
  small_vector<std::uint8_t> stays(p.modules(), 0);
  if (!options.beyond.empty()) {
    const narrower look(p.main(), note, options, options.beyond);  // compacts nothing: the options name instructions
    for (std::uint32_t i = 0; i < p.main().size(); ++i)
      if (p.main()[i].kind == instruction_kind::op && look.is_beyond(i)) detail::mark_bodies(p, p.main()[i].op, stays);
  }
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    if (!stays[k])
      narrower(p.module({k}), note, options, k == 0 ? std::span(options.beyond) : std::span<const value_id>()).run();
  return note;
}

}  // namespace kiln
