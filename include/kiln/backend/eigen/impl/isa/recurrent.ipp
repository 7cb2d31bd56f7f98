#include "kiln/kernel/rnn/recurrent.hpp"

#include "kiln/backend/eigen/recurrent.hpp"
#include "kiln/kernel/rnn/linear_attention.hpp"

namespace kiln::eigen {

extern "C" [[gnu::visibility("default")]] const recurrent_table* kiln_eigen_recurrent() {
  static constexpr recurrent_table table{
      .packed_floats = kernels::packed_recurrence_size,
      .pack = kernels::pack_recurrence,
      .scratch_floats = kernels::recurrent_scratch_size,
      .seconds = kernels::recurrent_seconds,
      .run = kernels::run_recurrent,
      .linear_attention_scratch_floats = kernels::linear_attention_run::scratch_size,
      .linear_attention = kernels::linear_attention_run::run,
  };
  return &table;
}

}  // namespace kiln::eigen
