#include <Eigen/LU>
#include <limits>

#include "kiln/backend/eigen/impl/isa/linear_algebra.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

template <class T> using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Decomposes each matrix and calls `use(lu, index)`. One decomposition's memory serves a task's matrices.
template <class T, class Use> void decompose(thread_pool& pool, const square_matrices<T>& in, Use&& use) {
  using step = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  constexpr std::int64_t work = 32 * 1024;  // multiplications that a task is worth
  const std::int64_t each = std::max<std::int64_t>(1, work / std::max<std::int64_t>(1, in.n * in.n * in.n / 3));
  pool.parallel_for((in.count + each - 1) / each, [&](std::int64_t task, unsigned) {
    Eigen::PartialPivLU<matrix<T>> lu(in.n);
    for (std::int64_t k = task * each; k < std::min(in.count, (task + 1) * each); ++k)
      use(lu.compute(Eigen::Map<const matrix<T>, 0, step>(in.at + k * in.matrix, in.n, in.n, step(in.row, in.col))), k);
  });
}

}  // namespace

template <class T> void determinants(thread_pool& pool, const square_matrices<T>& in, T* out) {
  if (in.n == 0) return std::fill_n(out, in.count, T(1)), void();
  decompose(pool, in, [&](const auto& lu, std::int64_t k) {
    out[k] = (lu.matrixLU().diagonal().array() == T(0)).any() ? T(0) : lu.determinant();
  });
}

template <class T> void inverses(thread_pool& pool, const square_matrices<T>& in, T* out) {
  if (in.n == 0) return;
  decompose(pool, in, [&](const auto& lu, std::int64_t k) {
    Eigen::Map<matrix<T>> to(out + k * in.n * in.n, in.n, in.n);
    if ((lu.matrixLU().diagonal().array() == T(0)).any())
      to.setConstant(std::numeric_limits<T>::quiet_NaN());
    else
      to = lu.inverse();
  });
}

template void determinants(thread_pool&, const square_matrices<float>&, float*);
template void determinants(thread_pool&, const square_matrices<double>&, double*);
template void inverses(thread_pool&, const square_matrices<float>&, float*);
template void inverses(thread_pool&, const square_matrices<double>&, double*);

}  // namespace kiln::eigen
