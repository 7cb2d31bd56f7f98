#pragma once
#include "kiln/kernel/attention/paged_problem.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// Attention over caches in pages in one instruction-set level.
struct paged_attention_table {
  std::int64_t (*scratch_floats)(const kernels::paged_problem& p, unsigned workers) = nullptr;
  void (*run)(thread_pool& pool, const kernels::paged_problem& p, float* scratch) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const paged_attention_table* kiln_eigen_paged_attention();

/// Attention over caches in pages.
std::unique_ptr<kernel> lower_paged_attention(const kernel_request& r);

}  // namespace kiln::eigen
