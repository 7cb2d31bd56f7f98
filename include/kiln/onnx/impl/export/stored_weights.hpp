#pragma once
#include <map>
#include <optional>
#include <vector>

#include "kiln/graph/module.hpp"

namespace kiln::onnx {

/// What a module reads of weights that are stored in blocks and that operators of com.microsoft read alike: products
/// become MatMulNBits, gathered rows GatherBlockQuantized.
class stored_readers {
 public:
  /// None where the operators are not `wanted`.
  explicit stored_readers(const module_graph& m, bool wanted = true);

  /// The `block_dequantize` whose numbers an instruction reads, or null.
  const std::uint32_t* of_reader(std::uint32_t reader) const {
    const auto at = readers_.find(reader);
    return at == readers_.end() ? nullptr : &at->second;
  }
  /// Whether only such readers read the instruction: no node is written for it.
  bool skips(std::uint32_t i) const { return skipped_[i]; }

 private:
  std::map<std::uint32_t, std::uint32_t> readers_;
  std::vector<bool> skipped_;
};

/// The program with packed floats in blocks as elements, which DequantizeLinear reads; empty where it has none.
std::optional<program> with_single_floats(const program& p);

/// Whether an instruction is a `block_dequantize` of integers that DequantizeLinear says.
bool is_dequantized_in_blocks(const module_graph& m, std::uint32_t i);

/// The `block_dequantize` instructions that need not be written as arithmetic: those which only such readers read, and
/// what DequantizeLinear says, integers or constant floats, an element each.
small_vector<std::uint32_t> written_in_blocks(const module_graph& m);

}  // namespace kiln::onnx
