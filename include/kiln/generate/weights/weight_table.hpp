#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/core/buffer.hpp"
#include "kiln/core/dtype.hpp"

namespace kiln::language {

/// How a file stores a tensor: a number an element, or GGML's blocks of 32 or 256 adjacent numbers of a row.
enum class weight_format : std::uint8_t { plain, q4_0, q8_0, q4_k, q5_k, q6_k };

/// Numbers and bytes of a block; 1 and 0 for plain tensors.
struct weight_block {
  std::int64_t numbers = 1;
  std::size_t bytes = 0;
};
constexpr weight_block block_of(weight_format f) {
  switch (f) {
    case weight_format::q4_0: return {32, 18};
    case weight_format::q8_0: return {32, 34};
    case weight_format::q4_k: return {256, 144};
    case weight_format::q5_k: return {256, 176};
    case weight_format::q6_k: return {256, 210};
    default: return {};
  }
}
constexpr std::string_view to_string(weight_format f) {
  constexpr std::string_view names[] = {"plain", "Q4_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K"};
  return names[static_cast<unsigned>(f)];
}

/// A tensor of a file: its bytes are a part of the file.
struct weight_entry {
  std::string name;
  weight_format format = weight_format::plain;
  dtype type = dtype::f32;            ///< of a plain tensor
  std::vector<std::int64_t> extents;  ///< row-major: the last one is of adjacent numbers
  buffer bytes;
  std::string fault = {};  ///< why it can't be read, for a type that kiln does not have
};

/// The bytes that such a tensor takes; -1 where 63 bits do not count them, or rows are not whole blocks.
std::int64_t stored_bytes(weight_format format, dtype type, const std::vector<std::int64_t>& extents);

/// The tensors of one or several files by name.
class weight_table {
 public:
  weight_table() = default;
  /// Two tensors of one name are a `malformed` error.
  explicit weight_table(std::vector<weight_entry> all);
  const std::vector<weight_entry>& all() const { return all_; }
  /// Null where there is none of that name.
  const weight_entry* find(std::string_view name) const;

 private:
  std::vector<weight_entry> all_;  // sorted by name
};

}  // namespace kiln::language
