#pragma once
#include "kiln/core/text.hpp"
#include "kiln/meta/reflect.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln {

/// Names a module of the same program: the attribute of control and fused ops.
struct module_ref {
  std::uint32_t index = 0;
  friend constexpr bool operator==(module_ref, module_ref) = default;
};

namespace detail {

template <class T> inline constexpr bool is_list = false;
template <class T, std::size_t N> inline constexpr bool is_list<inline_vector<T, N>> = true;

constexpr void put_dimension(text& out, dimension d) {
  if (d.is_constant())
    out.append(d.raw());
  else
    out.append(std::string_view(to_string(d)));
}

template <class T> constexpr void put_value(text& out, const T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    out.append(std::string_view(v ? "true" : "false"));
  } else if constexpr (std::is_same_v<T, dimension>) {
    put_dimension(out, v);
  } else if constexpr (std::is_same_v<T, module_ref>) {
    out.append('@').append(static_cast<std::int64_t>(v.index));
  } else if constexpr (std::is_same_v<T, layout>) {
    put_value(out, v.lens);
    out.append('/');
    put_value(out, v.strides);
    out.append('+');
    put_value(out, v.offset);
  } else if constexpr (is_list<T>) {
    out.append('[');
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (i) out.append(std::string_view(", "));
      put_value(out, v[i]);
    }
    out.append(']');
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out.append(std::string_view(v));
  } else if constexpr (std::is_integral_v<T>) {  // before to_string: an integer converts to a dimension
    out.append(static_cast<std::int64_t>(v));
  } else if constexpr (requires { std::string_view(to_string(v)); }) {
    out.append(std::string_view(to_string(v)));
  } else if constexpr (std::is_enum_v<T>) {
    out.append(static_cast<std::int64_t>(v));
  } else {
    static_assert(std::is_floating_point_v<T>,
                  "kiln: an op attribute is a number, bool, enum, dtype, dimension, text or list");
    out.append(v);
  }
}

constexpr void mix(std::uint64_t& h, std::uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xbf58476d1ce4e5b9u;
  h ^= h >> 29;
}

template <class T> constexpr void mix_value(std::uint64_t& h, const T& v) {
  if constexpr (std::is_same_v<T, dimension>) {
    mix(h, static_cast<std::uint64_t>(v.raw()));
  } else if constexpr (std::is_same_v<T, module_ref>) {
    mix(h, v.index);
  } else if constexpr (std::is_same_v<T, layout>) {
    mix_value(h, v.lens);
    mix_value(h, v.strides);
    mix_value(h, v.offset);
  } else if constexpr (is_list<T>) {
    for (const auto& x : v) mix_value(h, x);
    mix(h, v.size());
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    for (char c : std::string_view(v)) mix(h, static_cast<std::uint64_t>(c));
  } else if constexpr (std::is_same_v<T, float>) {
    mix(h, std::bit_cast<std::uint32_t>(v));
  } else if constexpr (std::is_same_v<T, double>) {
    mix(h, std::bit_cast<std::uint64_t>(v));
  } else {
    mix(h, static_cast<std::uint64_t>(v));
  }
}

template <class T> void substitute_value(T& v, const bindings& values) {
  if constexpr (std::is_same_v<T, dimension>) {
    v = values.substitute(v);
  } else if constexpr (std::is_same_v<T, layout>) {
    substitute_value(v.lens, values);
    substitute_value(v.strides, values);
    substitute_value(v.offset, values);
  } else if constexpr (is_list<T>) {
    if constexpr (std::is_same_v<typename T::value_type, dimension>)
      for (auto& d : v) d = values.substitute(d);
  }
}

template <class T> void collect_value(const T& v, small_vector<dimension>& out) {
  if constexpr (std::is_same_v<T, dimension>) {
    collect_symbols(v, out);
  } else if constexpr (std::is_same_v<T, layout>) {
    collect_value(v.lens, out);
    collect_value(v.strides, out);
    collect_value(v.offset, out);
  } else if constexpr (is_list<T>) {
    if constexpr (std::is_same_v<typename T::value_type, dimension>)
      for (const auto& d : v) collect_symbols(d, out);
  }
}

}  // namespace detail

/// Writes the attributes as `{name = value, …}`; nothing for an op without any.
template <class Op> constexpr void print_fields(const Op& op, text& out) {
  if constexpr (field_count<Op> != 0) {
    bool first = true;
    out.append('{');
    for_each_field(op, [&](std::string_view name, const auto& v) {
      if (!first) out.append(std::string_view(", "));
      first = false;
      out.append(name).append(std::string_view(" = "));
      detail::put_value(out, v);
    });
    out.append('}');
  }
}

template <class Op> constexpr std::uint64_t hash_fields(const Op& op) {
  std::uint64_t h = 0x8445d61a4e774912u;
  for_each_field(op, [&](std::string_view, const auto& v) { detail::mix_value(h, v); });
  return h;
}

/// Replaces bound symbols in every dimension attribute.
template <class Op> void substitute_fields(Op& op, const bindings& values) {
  for_each_field(op, [&](std::string_view, auto& v) { detail::substitute_value(v, values); });
}

/// Appends every symbol that the attributes mention.
template <class Op> void collect_field_symbols(const Op& op, small_vector<dimension>& out) {
  for_each_field(op, [&](std::string_view, const auto& v) { detail::collect_value(v, out); });
}

/// Appends every module that the attributes name.
template <class Op> void collect_bodies(const Op& op, small_vector<module_ref>& out) {
  for_each_field(op, [&]<class T>(std::string_view, const T& v) {
    if constexpr (std::is_same_v<T, module_ref>) out.push_back(v);
  });
}

}  // namespace kiln
