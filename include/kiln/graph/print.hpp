#pragma once
#include "kiln/graph/literal_values.hpp"
#include "kiln/graph/module.hpp"

namespace kiln {

namespace detail {

constexpr void print_shape(const shape& s, text& out) {
  out.append(to_string(s.type));
  put_value(out, s.lens);
}

constexpr void print_number(std::uint64_t v, text& out) { out.append_unsigned(v); }
template <class T> constexpr void print_number(const T& v, text& out) { put_value(out, v); }

constexpr void print_value(value_id v, text& out) {
  out.append('%').append(static_cast<std::int64_t>(v.instruction));
  if (v.result) out.append('.').append(static_cast<std::int64_t>(v.result));
}

// A hash of all elements, or of some that lie evenly among many: weights in a file are then not read for their print.
constexpr std::uint64_t printed_hash(const literal& l) {
  constexpr std::int64_t many = 4096, some = 64;
  const std::int64_t count = l.elements();
  if (count <= many || l.has_symbols()) return hash_literal(l, count);
  std::uint64_t h = hash_literal(l, 0);
  const dtype type = l.get_shape().type;
  visit_compute(type, [&]<class T>(type_tag<T>) {
    const std::byte* const bytes = l.data().data();
    const auto* const held = l.data().values<T>();
    for (std::int64_t k = 0; k < some; ++k) {
      const auto at = static_cast<std::size_t>((count - 1) * k / (some - 1));
      T v{};
      if (bytes)
        decode(type, bytes + at * size_of(type), &v, 1);
      else if (held)
        v = (*held)[at];
      mix_value(h, v);
    }
  });
  return h;
}

// Up to 8 values in full, else a hash.
constexpr void print_literal(const literal& l, text& out) {
  out.append(std::string_view("literal "));
  print_shape(l.get_shape(), out);
  if (!l.get_shape().is_constant() || is_object(l.get_shape().type)) return;
  if (l.elements() <= 8) {
    out.append(std::string_view(" {"));
    bool first = true;
    visit_elements(l, 8, [&](const auto& v) {
      if (!first) out.append(std::string_view(", "));
      first = false;
      print_number(v, out);
    });
    out.append('}');
    return;
  }
  out.append(std::string_view(" #"));
  const std::uint64_t h = printed_hash(l);
  for (int shift = 60; shift >= 0; shift -= 4) out.append("0123456789abcdef"[h >> shift & 15]);
}

template <class Operation>
constexpr void print_instruction(const basic_instruction<Operation>& i, std::uint32_t at, text& out) {
  out.append(std::string_view("  "));
  print_value({at, 0}, out);
  if (i.results.size() > 1) out.append(':').append(static_cast<std::int64_t>(i.results.size()));
  out.append(std::string_view(" = "));
  if (i.kind == instruction_kind::literal) {
    print_literal(i.constant, out);
  } else {
    if (i.kind == instruction_kind::parameter) {
      out.append(std::string_view(i.is_weight ? "@" : "")).append(i.name.view());
    } else {
      out.append(i.op.name());
      i.op.print(out);
      out.append('(');
      for (std::size_t k = 0; k < i.inputs.size(); ++k) {
        if (k) out.append(std::string_view(", "));
        print_value(i.inputs[k], out);
      }
      out.append(')');
    }
    for (std::size_t k = 0; k < i.results.size(); ++k) {
      out.append(std::string_view(k ? ", " : " : "));
      print_shape(i.results[k], out);
    }
  }
  out.append('\n');
}

template <class Module> constexpr void print_module(const Module& m, text& out) {
  for (std::uint32_t i = 0; i < m.size(); ++i) print_instruction(m[i], i, out);
  for (std::size_t k = 0; k < m.outputs.size(); ++k) {
    out.append(std::string_view("  return "));
    if (k < m.output_names.size() && !m.output_names[k].empty())
      out.append(m.output_names[k].view()).append(std::string_view(" = "));
    print_value(m.outputs[k], out);
    out.append('\n');
  }
}

template <class Program> constexpr text print_program(const Program& p) {
  text out;
  for (std::uint32_t k = 0; k < p.modules(); ++k) {
    const auto& m = p.module({k});
    if (k && m.size() == 0) continue;  // a body that nothing calls any more
    out.append(m.name.view());
    if (k) out.append(std::string_view(" @")).append(static_cast<std::int64_t>(k));
    out.append(std::string_view(":\n"));
    print_module(m, out);
  }
  return out;
}

}  // namespace detail

/// A program as text, one instruction a line: `%3 = add(%1, %2) : f32[1, 8]`, weights as `@name`, constants of up to 8
/// elements by value and others by hash: of all elements up to 4096, of 64 of more. The same characters in constant
/// evaluation and at run time.
template <class Program> constexpr text print(const Program& p) { return detail::print_program(p); }
/// The same, compiled once.
text print(const program& p);

}  // namespace kiln
