#pragma once
#include "kiln/runtime/executable.hpp"

namespace kiln::detail {

/// The named inputs and outputs of a compiled program, and the faults of arguments that are given for them.
struct signature {
  /// A dim of an input that is a bare symbol.
  struct symbol_source {
    std::size_t input = 0, dim = 0;
    dimension symbol;
  };
  std::vector<port> inputs, outputs;
  std::vector<symbol_source> symbols;

  /// The inputs before passes see the program, the outputs after them.
  void take_inputs(const program& p);
  void take_inputs(std::vector<port> named);
  void take_outputs(const program& p);

  std::size_t input_index(std::string_view name) const;
  /// Number, types and constant extents.
  void check_count(std::size_t given) const;
  void check_type(std::size_t input, const shape& given) const;
  void check(std::span<const shape> given) const;
  /// Whether inputs that have elements have data.
  void check_data(std::span<const argument> given) const;
  argument allocate_output(std::size_t k, const shape& s) const;
};

/// The bytes of an argument from the first element to the last, gaps included; null where there are none.
struct memory_extent {
  const std::byte *first = nullptr, *end = nullptr;
  explicit memory_extent(const argument& a);
  bool meets(const memory_extent& other) const { return first < other.end && other.first < end; }
};

}  // namespace kiln::detail
