#include <Eigen/LU>
#include <cmath>
#include <limits>

#include "kiln/backend/eigen/impl/isa/linear_algebra.hpp"
#include "kiln/kernel/simd/vector.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

template <class T> using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Calls `use(first, last)` for the matrices of a task.
template <class T, class Use> void for_some(thread_pool& pool, const square_matrices<T>& in, Use&& use) {
  constexpr std::int64_t work = 32 * 1024;  // multiplications that a task is worth
  const std::int64_t each = std::max<std::int64_t>(1, work / std::max<std::int64_t>(1, in.n * in.n * in.n / 3));
  pool.parallel_for((in.count + each - 1) / each,
                    [&](std::int64_t task, unsigned) { use(task * each, std::min(in.count, (task + 1) * each)); });
}

// Decomposes each matrix and calls `use(lu, index)`. One decomposition's memory serves a task's matrices.
template <class T, class Use> void decompose(thread_pool& pool, const square_matrices<T>& in, Use&& use) {
  using step = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  for_some(pool, in, [&](std::int64_t first, std::int64_t last) {
    Eigen::PartialPivLU<matrix<T>> lu(in.n);
    for (std::int64_t k = first; k < last; ++k)
      use(lu.compute(Eigen::Map<const matrix<T>, 0, step>(in.at + k * in.matrix, in.n, in.n, step(in.row, in.col))), k);
  });
}

// Inverses of small matrices in place by Gauss and Jordan, each row as a few vectors: Eigen's general decomposition
// takes ten times as long for them. Step k turns the free column with the greatest element of row k into a column of
// the inverse. Nothing is swapped: in the end row k is the inverse's row `pivot_[k]`, and column `pivot_[k]` its column
// k.
template <class T> class small_inverse {
  using V = native_vec<T>;
  using K = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  using U = rebind_t<V, K>;
  static constexpr std::int64_t lanes = native_lanes<T>;

 public:
  static constexpr std::int64_t most = 64;

  explicit small_inverse(std::int64_t n) : n_(n), row_((n + lanes - 1) / lanes * lanes) {}

  void run(const square_matrices<T>& in, std::int64_t index, T* out) {
    const T* const x = in.at + index * in.matrix;
    for (std::int64_t r = 0; r < n_; ++r) {
      for (std::int64_t c = 0; c < n_; ++c) at_[r * row_ + c] = x[r * in.row + c * in.col];
      std::fill_n(at_ + r * row_ + n_, row_ - n_, T(0));
    }
    std::fill_n(free_, n_, ~K(0) >> 1);
    std::fill_n(free_ + n_, row_ - n_, K(0));
    const auto step = row_ == lanes       ? &small_inverse::eliminate<1>
                      : row_ == 2 * lanes ? &small_inverse::eliminate<2>
                      : row_ == 4 * lanes ? &small_inverse::eliminate<4>
                                          : &small_inverse::eliminate<0>;
    for (std::int64_t k = 0; k < n_; ++k)
      if (!(this->*step)(k)) return std::fill_n(out, n_ * n_, std::numeric_limits<T>::quiet_NaN()), void();
    for (std::int64_t k = 0; k < n_; ++k)
      for (std::int64_t c = 0; c < n_; ++c) out[pivot_[k] * n_ + c] = at_[k * row_ + pivot_[c]];
  }

 private:
  // Bits of the magnitudes of a row's free columns, whose order is theirs.
  U magnitudes(const T* row, std::int64_t v) const { return (U)load<V>(row + v * lanes) & load<U>(free_ + v * lanes); }
  static U numbered(std::int64_t first) {
    U n;
    for (int lane = 0; lane < lanes; ++lane) n[lane] = static_cast<K>(first + lane);
    return n;
  }
  // The free column of row k with the greatest element; -1 where all are 0.
  std::int64_t find_pivot(const T* row, std::int64_t vectors) const {
    U greatest = broadcast<U>(0), place = broadcast<U>(~K(0));
    for (std::int64_t v = 0; v < vectors; ++v) {
      const U x = magnitudes(row, v);
      greatest = x > greatest ? x : greatest;
    }
    const K value = reduce_max(greatest);
    if (value == 0) return -1;
    for (std::int64_t v = 0; v < vectors; ++v) {
      const U at = numbered(v * lanes) | ~(U)(magnitudes(row, v) == broadcast<U>(value));
      place = at < place ? at : place;
    }
    return static_cast<std::int64_t>(reduce_min(place));
  }

  // Vectors of a row, or 0: as many as there are. Loads of what was just stored in parts would wait, so that elements
  // are replaced in registers.
  template <int Vectors> bool eliminate(std::int64_t k) {
    const std::int64_t vectors = Vectors == 0 ? row_ / lanes : Vectors;
    T* const own = at_ + k * row_;
    const std::int64_t p = find_pivot(own, vectors);
    if (p < 0) return false;
    free_[p] = 0;
    pivot_[k] = p;
    const V scale = broadcast<V>(own[p]);
    V scaled[Vectors == 0 ? most / lanes : Vectors];
    U others[Vectors == 0 ? most / lanes : Vectors];
    for (std::int64_t v = 0; v < vectors; ++v) {
      others[v] = (U)(numbered(v * lanes) != broadcast<U>(static_cast<K>(p)));
      scaled[v] = ((V)((U)load<V>(own + v * lanes) & others[v]) + (V)((U)broadcast<V>(T(1)) & ~others[v])) / scale;
    }
    for (std::int64_t r = 0; r < n_; ++r) {
      T* const to = at_ + r * row_;
      const V by = broadcast<V>(-to[p]);
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < vectors; ++v) {
        const V rest = (V)((U)load<V>(to + v * lanes) & others[v]);
        store(to + v * lanes, multiply_add(scaled[v], by, rest));
      }
    }
    for (std::int64_t v = 0; v < vectors; ++v) store(own + v * lanes, scaled[v]);
    return true;
  }

  alignas(64) T at_[most * most];
  alignas(64) K free_[most];
  std::int64_t n_, row_;
  std::int64_t pivot_[most];
};

}  // namespace

template <class T> void determinants(thread_pool& pool, const square_matrices<T>& in, T* out) {
  if (in.n == 0) return std::fill_n(out, in.count, T(1)), void();
  decompose(pool, in, [&](const auto& lu, std::int64_t k) {
    out[k] = (lu.matrixLU().diagonal().array() == T(0)).any() ? T(0) : lu.determinant();
  });
}

template <class T> void inverses(thread_pool& pool, const square_matrices<T>& in, T* out) {
  if (in.n == 0) return;
  if (in.n <= small_inverse<T>::most)
    return for_some(pool, in, [&](std::int64_t first, std::int64_t last) {
      small_inverse<T> inverse(in.n);
      for (std::int64_t k = first; k < last; ++k) inverse.run(in, k, out + k * in.n * in.n);
    });
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
