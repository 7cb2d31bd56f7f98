#pragma once
#include "kiln/core/dtype.hpp"
#include "kiln/kernel/index/problem.hpp"
#include "kiln/op/index/scatter_mode.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// Operators that address elements by index, or select among them, in one instruction-set level.
struct index_table {
  /// See the functions of these names in `kernels`.
  bool (*places)(const kernels::index_list& list, std::int64_t first, std::int64_t n, std::int64_t extent,
                 std::int64_t step, std::int64_t* to) = nullptr;
  void (*gather_slices)(std::byte* to, const std::byte* from, const std::int64_t* at, std::int64_t n,
                        std::size_t bytes) = nullptr;
  bool (*element_positions)(const kernels::element_indices& e, std::int64_t first, std::int64_t n,
                            std::int64_t* to) = nullptr;
  /// Of numbers other than 16-bit floats, and bools.
  void (*scatter)(const kernels::slice_updates& u, dtype type, op::scatter_mode mode) = nullptr;

  void (*scan)(thread_pool& pool, const kernels::scan_problem& p, dtype type, bool product) = nullptr;

  std::size_t (*top_scratch)(const kernels::top_problem& p, dtype type, unsigned threads) = nullptr;
  void (*top)(thread_pool& pool, const kernels::top_problem& p, dtype type, std::byte* scratch) = nullptr;

  void (*extremes)(thread_pool& pool, const kernels::extreme_problem& p, dtype type) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const index_table* kiln_eigen_index();

/// Gathers and scatters by element and by tuple, of any dtype, and one-hot codes.
std::unique_ptr<kernel> lower_index(const kernel_request& r);
/// The greatest or least elements and places of extremes, of numbers; running sums and products, of all but 16-bit
/// floats.
std::unique_ptr<kernel> lower_selection(const kernel_request& r);

}  // namespace kiln::eigen
