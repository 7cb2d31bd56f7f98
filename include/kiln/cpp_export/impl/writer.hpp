#pragma once
#include <vector>

#include "kiln/core/error.hpp"
#include "kiln/core/source_writer.hpp"
#include "kiln/core/trace.hpp"

namespace kiln::aot {

/// A sum of constant multiples of loop variables: an element offset.
struct index_text {
  std::string s;
  index_text& add(std::string_view variable, std::int64_t step) {
    if (step == 0) return *this;
    if (!s.empty()) s += " + ";
    s += step == 1 ? std::string(variable) : cat(variable, " * ", step);
    return *this;
  }
  index_text& add(std::int64_t constant) {
    if (constant == 0) return *this;
    if (!s.empty()) s += " + ";
    s += std::to_string(constant);
    return *this;
  }
  std::string str() const { return s.empty() ? "0" : s; }
};

/// The C++ type of stored elements; throws for dtypes that exported programs do not know.
inline std::string stored_name(dtype t) {
  if (is_narrow(t) || is_object(t)) raise(errc::unsupported, cat("an exported program has no dtype ", to_string(t)));
  switch (t) {
    case dtype::f64: return "double";
    case dtype::f32: return "float";
    case dtype::boolean: return "bool";
    case dtype::f16:
    case dtype::bf16:
      raise(errc::unsupported, cat("an exported program has no dtype ", to_string(t), ": convert the model to f32"));
    default: return cat("std::", is_unsigned_integer(t) ? "u" : "", "int", size_of(t) * 8, "_t");
  }
}

inline std::string value_name(dtype t) {
  switch (kind_of_values(t)) {
    case scalar_kind::f64: return "double";
    case scalar_kind::f32: return "float";
    case scalar_kind::i64: return "std::int64_t";
    case scalar_kind::u64: return "std::uint64_t";
    default: return "bool";
  }
}

}  // namespace kiln::aot
