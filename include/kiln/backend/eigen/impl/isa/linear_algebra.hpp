#pragma once
#include "kiln/backend/eigen/linear_algebra.hpp"

// What the units of one instruction-set level give `kiln_eigen_linear_algebra`.
namespace kiln::eigen {

/// Products by kiln's register tiles.
template <class T> product_functions<T> tiled_products();
/// Products by Eigen.
product_functions<std::uint64_t> eigen_products();

template <class T> void determinants(thread_pool& pool, const square_matrices<T>& in, T* out);
template <class T> void inverses(thread_pool& pool, const square_matrices<T>& in, T* out);

fourier_plan* plan_fourier(const fourier_kind& kind);

}  // namespace kiln::eigen
