#pragma once
#include "kiln/backend/eigen/tile_program.hpp"

namespace kiln::eigen {

/// The loops around a tile program for given operands: dims kept and folded, each joined where every operand is
/// contiguous across them.
struct row_loops {
  static constexpr std::size_t most_operands = 48;
  ints kept, folded;  // extents
  // steps in elements, by operand (parameters, then results)
  struct steps {
    ints kept, folded;
  };
  inline_vector<steps, most_operands> operand;

  std::int64_t rows() const { return product(kept); }
  std::int64_t row() const { return product(folded); }
};

/// Runs a program over whole tensors; scratch as `rows_scratch_bytes` says.
void run_rows(const tile_program& p, const launch& l);
std::size_t rows_scratch_bytes(const tile_program& p, std::span<const tensor> in, std::span<const tensor> out,
                               unsigned threads);

/// A kernel that runs a fused pointwise or reduction body.
std::unique_ptr<kernel> make_rows_kernel(const module_graph& body, std::string name);

}  // namespace kiln::eigen
