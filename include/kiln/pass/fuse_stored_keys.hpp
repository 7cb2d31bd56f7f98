#pragma once
#include "kiln/op/nn/attention.hpp"
#include "kiln/op/pointwise/convert.hpp"
#include "kiln/op/pointwise/mul.hpp"
#include "kiln/pass/fuse_prologue.hpp"

namespace kiln {

/// Keys or values of an attention as they are stored: numbers of 16 or 8 bits that become f32, perhaps times a scale.
struct stored_keys {
  value_id data;
  value_id scale;  ///< of the same dims, or empty
};

/// Whether kernels of attention read keys and values stored so.
constexpr bool stores_keys(dtype t) {
  return t == dtype::f16 || t == dtype::bf16 || t == dtype::i8 || t == dtype::f8e4m3fn || t == dtype::f8e5m2;
}

/// What a value of f32 is if it is such.
template <class Module> constexpr std::optional<stored_keys> find_stored_keys(const Module& m, value_id v) {
  const auto is = [&]<class Op>(std::type_identity<Op>, value_id x) {
    const auto& i = m.producer(x);
    return i.kind == instruction_kind::op && i.op.template is<Op>();
  };
  const auto converted = [&](value_id x) {
    return is(std::type_identity<op::convert>(), x) && m.shape_of(x).type == dtype::f32 &&
           stores_keys(m.shape_of(m.producer(x).inputs[0]).type);
  };
  if (converted(v)) return stored_keys{m.producer(v).inputs[0], {}};
  if (!is(std::type_identity<op::mul>(), v)) return std::nullopt;
  for (std::size_t k = 0; k < 2; ++k)
    if (const value_id x = m.producer(v).inputs[k]; converted(x))
      return stored_keys{m.producer(x).inputs[0], m.producer(v).inputs[1 - k]};
  return std::nullopt;
}

/// An attention in a fused body, and how its keys and values are stored.
template <class Module> struct stored_attention {
  const typename Module::instruction* attention = nullptr;
  stored_keys keys, values;
};

/// What a body is that `fuse_stored_keys` made; empty for other bodies.
template <class Module> constexpr std::optional<stored_attention<Module>> find_stored_attention(const Module& m) {
  const auto& last = m.producer(m.outputs[0]);
  if (m.outputs.size() != 1 || last.kind != instruction_kind::op || !last.op.template is<op::attention>())
    return std::nullopt;
  const auto k = find_stored_keys(m, last.inputs[1]), v = find_stored_keys(m, last.inputs[2]);
  if (!k || !v || m.shape_of(k->data).type != m.shape_of(v->data).type) return std::nullopt;
  return stored_attention<Module>{&last, *k, *v};
}

namespace detail {

/// Whether a value of [batch, heads, keys, depth] is one number for each head, or one for each depth step of it,
/// repeated by views for all keys and batches.
template <class Module> constexpr bool is_same_for_all_keys(const Module& m, value_id v) {
  small_vector<std::uint32_t> views;
  for (; is_kind(m, v.instruction, op_kind::view); v = m.producer(v).inputs[0]) views.push_back(v.instruction);
  layout at = layout::standard(m.shape_of(v).lens);
  for (std::size_t k = views.size(); k-- > 0;) {
    const auto next = m[views[k]].op.map(at);
    if (!next) return false;
    at = *next;
  }
  const auto repeats = [&](std::size_t d) { return at.lens[d] == dimension(1) || at.strides[d] == dimension(0); };
  return at.lens.size() == 4 && repeats(0) && repeats(2) && (repeats(3) || at.strides[3] == dimension(1));
}

/// The type in which the keys or values that are `v` are stored, where one instruction makes f32 of them for one
/// reader.
template <class Program, class Module>
constexpr std::optional<dtype> type_of_stored_keys(const Program& p, const Module& m, const user_lists& users,
                                                   value_id v) {
  const auto& i = m.producer(v);
  if (i.kind != instruction_kind::op || i.results.size() != 1 || users[v.instruction].size() != 1) return std::nullopt;
  const auto* fused = i.op.template get_if<op::fused>();
  if (!fused) {
    const auto found = find_stored_keys(m, v);
    return found && !found->scale ? std::optional(m.shape_of(found->data).type) : std::nullopt;
  }
  if (fused->kind != fusion::pointwise) return std::nullopt;
  const Module& body = p.module(fused->body);
  const auto found = find_stored_keys(body, body.outputs[0]);
  if (!found || body[found->data.instruction].kind != instruction_kind::parameter) return std::nullopt;
  if (found->scale && !repeated_constant(body, found->scale) &&
      (body[found->scale.instruction].kind != instruction_kind::parameter ||
       !is_same_for_all_keys(m, i.inputs[parameter_index(body, found->scale.instruction)])))
    return std::nullopt;
  return body.shape_of(found->data).type;
}

}  // namespace detail

/// Moves the conversion of stored keys and values to f32 into the attention that reads them: its kernel converts them
/// in registers, and a step over a long cache reads the bytes that it has. For targets with such a kernel; it runs
/// after the fusion passes.
template <class Program> constexpr pass_note fuse_stored_keys(Program& p) {
  pass_note note("fuse_stored_keys");
  shared_bodies<Program> bodies(p);
  for_each_unfused(p, [&](auto& m) {
    const user_lists users(m);
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind != instruction_kind::op || !m[i].op.template is<op::attention>()) continue;
      const value_id k = m[i].inputs[1], v = m[i].inputs[2];
      const auto of_keys = detail::type_of_stored_keys(p, m, users, k);
      if (!of_keys || of_keys != detail::type_of_stored_keys(p, m, users, v)) continue;
      detail::prologue_fuser<Program>(p, m, bodies).fuse(k.instruction, i);
      detail::prologue_fuser<Program>(p, m, bodies).fuse(v.instruction, i);
      note.count(to_string(*of_keys));
    }
    m.compact();
  });
  return note;
}

}  // namespace kiln
