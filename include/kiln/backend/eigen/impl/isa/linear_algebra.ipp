#include "kiln/backend/eigen/impl/isa/linear_algebra.hpp"

namespace kiln::eigen {

extern "C" [[gnu::visibility("default")]] const linear_algebra_table* kiln_eigen_linear_algebra() {
  static const linear_algebra_table table{
      .f64 = tiled_products<double>(),
      .u32 = tiled_products<std::uint32_t>(),
      .u64 = eigen_products(),
      .determinants_f32 = determinants<float>,
      .determinants_f64 = determinants<double>,
      .inverses_f32 = inverses<float>,
      .inverses_f64 = inverses<double>,
      .plan_fourier = plan_fourier,
  };
  return &table;
}

}  // namespace kiln::eigen
