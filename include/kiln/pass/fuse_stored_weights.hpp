#pragma once
#include <algorithm>
#include <optional>
#include <span>

#include "kiln/pass/constants.hpp"
#include "kiln/pass/constants_stay_stored.hpp"
#include "kiln/pass/fuse_prologue.hpp"
#include "kiln/pass/stored_weights.hpp"

namespace kiln {

namespace detail {

/// Whether kernels read a constant's numbers as they are stored: those of eight bits are neither infinite nor NaN.
bool are_finite_numbers(const literal& l);

/// The matrix product that an instruction of `m` is or has in its fused body, and its right operand in `m`; empty where
/// there is none.
template <class Program, class Module>
constexpr value_id right_operand_of_dot(const Program& p, const Module& m, std::uint32_t i) {
  if (m[i].kind != instruction_kind::op || m[i].results.size() != 1) return {};
  const auto* fused = m[i].op.template get_if<op::fused>();
  if (!fused) return m[i].op.template is<op::dot>() ? m[i].inputs[1] : value_id{};
  if (fused->kind != fusion::contraction) return {};
  const Module& body = p.module(fused->body);
  value_id found;
  for (std::uint32_t k = 0; k < body.size(); ++k) {
    if (!is_kind(body, k, op_kind::contraction)) continue;
    if (found || !body[k].op.template is<op::dot>()) return {};
    found = body[k].inputs[1];
    const value_id left = body[k].inputs[0];
    if (body[left.instruction].kind != instruction_kind::parameter || left == found) return {};
  }
  if (!found || body[found.instruction].kind != instruction_kind::parameter) return {};
  for (std::uint32_t k = 0, reads = 0; k < body.size(); ++k)
    for (const value_id v : body[k].inputs)
      if (v == found && ++reads > 1) return {};
  return m[i].inputs[parameter_index(body, found.instruction)];
}

/// The constant that a value is, seen through views, or null.
template <class Module> constexpr const literal* viewed_literal(const Module& m, value_id v) {
  while (is_kind(m, v.instruction, op_kind::view)) v = m.producer(v).inputs[0];
  return m.producer(v).kind == instruction_kind::literal ? &m.producer(v).constant : nullptr;
}

/// Whether an operand of weights in blocks is a constant, or one of 16 bits that kernels widen
/// (constants_stay_stored.hpp).
template <class Module> constexpr bool is_stored_operand(const Module& m, value_id v) {
  if (viewed_literal(m, v)) return true;
  if constexpr (std::is_same_v<Module, module_graph>)
    if (!std::is_constant_evaluated()) return is_left_to_widen(m, v.instruction);
  return false;
}
/// Its elements; empty where it is neither.
template <class R> constexpr std::optional<literal> stored_operand(const R& r, value_id v) {
  const bool widens = r.template get_if<op::convert>(v) != nullptr;
  const constant_view c = viewed_constant(r, widens ? r.input(v, 0) : v);
  if (!c) return std::nullopt;
  const literal stored = laid_out(*c.from, c.at);
  if (!widens) return stored;
  const literal* const from = &stored;
  auto made = fold(r.producer(v).op, std::span(&from, 1), r.producer(v).results);
  return made.empty() ? std::nullopt : std::optional(std::move(made[0]));
}

/// Computes what constants that are stored in blocks mean.
template <class Module> constexpr std::uint32_t write_out_stored_constants(Module& m) {
  rewriter<Module> r(m);
  std::uint32_t count = 0;
  const std::uint32_t n = r.size();
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!r.template get_if<op::block_dequantize>({i, 0}) || r.users(i).empty()) continue;
    small_vector<literal> values;
    for (const value_id v : r[i].inputs)
      if (auto l = stored_operand(r, v)) values.push_back(std::move(*l));
    if (values.size() != r[i].inputs.size()) continue;
    small_vector<const literal*> pointers;
    for (const literal& l : values) pointers.push_back(&l);
    auto made = fold(r[i].op, std::span<const literal* const>(pointers.data(), pointers.size()), r[i].results);
    if (made.empty()) continue;
    r.replace({i, 0}, r.add_literal(std::move(made[0]), r[i].inputs));
    ++count;
  }
  return count;
}

}  // namespace detail

/// Whether a target's kernels read weights of this form.
template <class Module> using stored_weights_filter = bool (*)(const stored_weights& weights, const Module& m);
inline constexpr dtype just_f32[] = {dtype::f32};

/// Moves the dequantization of constant weights that are stored in blocks into the matrix product that reads them, bare
/// or with its epilogue: the weights stay as they are stored, and the product's kernel reads them so. For targets with
/// such a kernel, of products over floats of these types whose weights `reads` accepts; it runs after the fusion
/// passes.
template <class Program>
constexpr pass_note fuse_stored_weights(Program& p, std::span<const dtype> types = just_f32,
                                        stored_weights_filter<typename Program::module_type> reads = nullptr) {
  pass_note note("fuse_stored_weights");
  shared_bodies<Program> bodies(p);
  for_each_unfused(p, [&](auto& m) {
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      const value_id right = detail::right_operand_of_dot(p, m, i);
      if (!right) continue;
      const dtype t = m.shape_of(right).type;
      if (std::find(types.begin(), types.end(), t) == types.end()) continue;
      const auto weights = find_stored_weights(m, right, t);
      if (!weights || (reads && !reads(*weights, m))) continue;
      bool constant = true;
      for (const value_id v : weights->operands) constant = constant && detail::is_stored_operand(m, v);
      const literal* const numbers = detail::viewed_literal(m, weights->operands[0]);
      constant = constant && numbers && detail::are_finite_numbers(*numbers);
      if (!constant) continue;
      for (const std::uint32_t from : weights->instructions)
        detail::prologue_fuser<Program>(p, m, bodies).fuse(from, i);
      note.count("product");
    }
    m.compact();
    for (std::uint32_t k = detail::write_out_stored_constants(m); k > 0; --k) note.count("constant");
  });
  return note;
}

}  // namespace kiln
