#include "kiln/kernel/attention/paged.hpp"

#include "kiln/backend/eigen/paged_attention.hpp"

namespace kiln::eigen {

extern "C" [[gnu::visibility("default")]] const paged_attention_table* kiln_eigen_paged_attention() {
  static constexpr paged_attention_table table{
      .scratch_floats = kernels::paged_attention_scratch_size,
      .run = kernels::paged_attention,
  };
  return &table;
}

}  // namespace kiln::eigen
