#pragma once
#include "kiln/graph/module.hpp"

namespace kiln::aot {

/// A rule that a net breaks, and what breaks it: an op, an input, a weight. Empty where all are kept.
struct broken_rule {
  inline_string<95> where;
  fault why;
  constexpr explicit operator bool() const { return !why.rule.empty(); }
  template <class Expected, class Found>
  static constexpr broken_rule of(std::string_view where, errc code, std::string_view rule, const Expected& expected,
                                  const Found& found) {
    broken_rule r;
    r.where.append(where);
    r.why = fault::of(code, rule, expected, found);
    return r;
  }
};

namespace detail {

// Names are compared by a hash first: nets have hundreds of weights.
template <class Module> constexpr broken_rule equal_names(const Module& m) {
  small_vector<std::uint64_t> hashes;
  const auto all = m.parameters();
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::string_view name = m.producer(all[k]).name.view();
    std::uint64_t hash = name.size();
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
    for (std::size_t j = 0; j < k; ++j)
      if (hashes[j] == hash && m.producer(all[j]).name == name)
        return broken_rule::of(name, errc::invalid_argument, "inputs and weights differ in name", "one", "two of this");
    hashes.push_back(hash);
  }
  return {};
}

template <class Module> constexpr broken_rule short_constant(const Module& m) {
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind != instruction_kind::literal) continue;
    const std::int64_t elements = m[i].constant.elements();
    const std::size_t values = visit_compute(m[i].results[0].type, [&]<class T>(type_tag<T>) {
      const auto* const held = m[i].constant.data().template values<T>();
      return held ? held->size() : 0;
    });
    if (static_cast<std::int64_t>(values) != elements)
      return broken_rule::of("constant", errc::shape_mismatch, "a constant has a value for each element", elements,
                             values);
  }
  return {};
}

// Planning multiplies extents: what would overflow there, or fill any memory, is named here.
template <class Module> constexpr broken_rule too_large(const Module& m) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  for (std::uint32_t i = 0; i < m.size(); ++i)
    for (const shape& s : m[i].results) {
      if (is_object(s.type))
        return broken_rule::of(m[i].kind == instruction_kind::op ? m[i].op.name() : m[i].name.view(), errc::unsupported,
                               "dtype that static programs hold", "numbers or bool", s.type);
      std::int64_t bytes = static_cast<std::int64_t>(size_of(s.type));
      for (const dimension d : s.lens) {
        if (!__builtin_mul_overflow(bytes, d.value(), &bytes) && bytes <= most) continue;
        return broken_rule::of(m[i].kind == instruction_kind::op ? m[i].op.name() : m[i].name.view(), errc::limit,
                               "a value takes at most 2^40 bytes", most, s.lens);
      }
    }
  return {};
}

// Of all instructions of a module, the contractions: static programs multiply in registers of these types.
template <class Module> constexpr broken_rule unmultiplied(const Module& m) {
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind != instruction_kind::op || m[i].op.kind() != op_kind::contraction) continue;
    const dtype t = m[i].results[0].type;
    if (t == dtype::f32 || t == dtype::f64 || is_integer(t)) continue;
    return broken_rule::of(m[i].op.name(), errc::unsupported, "dtype that products run in", "f32, f64 or an integer",
                           t);
  }
  return {};
}

}  // namespace detail

/// What a static program asks of a net as it was built.
template <class Program> constexpr broken_rule check_built(const Program& p) {
  const auto& m = p.main();
  if (m.faulty) {
    broken_rule r{{}, m.first_fault};
    r.where.append(m.first_fault_op.view());
    return r;
  }
  if (m.outputs.empty())
    return broken_rule::of("net", errc::invalid_argument, "a net has an output: b.output(value)", "at least 1", 0);
  if (const broken_rule r = detail::too_large(m)) return r;
  if (const broken_rule r = detail::equal_names(m)) return r;
  return detail::short_constant(m);
}

/// What it asks of the optimized net.
template <class Program> constexpr broken_rule check_steps(const Program& p) {
  const auto& m = p.main();
  if (const broken_rule r = detail::unmultiplied(m)) return r;
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (m[i].kind == instruction_kind::op && m[i].op.kind() == op_kind::control)
      if (const broken_rule r = detail::unmultiplied(p.module(m[i].op.body()))) return r;
  return {};
}

}  // namespace kiln::aot
