#include <Eigen/Core>

#include "kiln/backend/eigen/impl/isa/linear_algebra.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

using T = std::uint64_t;

// Eigen's blocks of a product, in memory of the caller.
struct blocking : Eigen::internal::level3_blocking<T, T> {
  blocking(std::int64_t m, std::int64_t n, std::int64_t k) {
    m_mc = m, m_nc = n, m_kc = k;
    Eigen::internal::computeProductBlockingSizes<T, T>(m_kc, m_mc, m_nc);
  }
  blocking(std::int64_t m, std::int64_t n, std::int64_t k, T* scratch) : blocking(m, n, k) {
    m_blockA = scratch;
    m_blockB = scratch + size(m_mc, m_kc);
  }
  std::int64_t size() const { return size(m_mc, m_kc) + size(m_nc, m_kc); }

 private:
  static std::int64_t size(std::int64_t a, std::int64_t b) { return (a * b + 7) / 8 * 8; }  // lines of 64 bytes
};

// One block of a product, zero before. To Eigen all is transposed: the result's contiguous rows are columns, and the
// operands change places.
template <int Left, int Right>
void add_product(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::ptrdiff_t a_step, const T* b,
                 std::ptrdiff_t b_step, T* c, std::ptrdiff_t c_row, T* scratch) {
  blocking blocks(n, m, k, scratch);
  Eigen::internal::general_matrix_matrix_product<Eigen::Index, T, Right, false, T, Left, false, Eigen::ColMajor,
                                                 1>::run(n, m, k, b, b_step, a, a_step, c, 1, c_row, T(1), blocks,
                                                         nullptr);
}

// How a product is cut: rows first, which share nothing but the right operand's packing, then columns.
struct split {
  std::int64_t rows, cols;  // of a task
  split(std::int64_t batch, std::int64_t m, std::int64_t n, unsigned workers) {
    const std::int64_t wanted = workers == 1 ? 1 : 4 * static_cast<std::int64_t>(workers);
    const auto share = [](std::int64_t all, std::int64_t pieces, std::int64_t least) {
      return std::min(all, std::max(least, (all + pieces - 1) / pieces));
    };
    const std::int64_t row_tasks = (wanted + batch - 1) / batch;
    rows = share(m, row_tasks, 32);
    const std::int64_t made = batch * ((m + rows - 1) / rows);
    cols = share(n, (wanted + made - 1) / made, 64);
  }
};

std::int64_t scratch_size(std::int64_t m, std::int64_t n, std::int64_t k, unsigned workers) {
  return blocking(n, m, k).size() * workers;
}

void run(thread_pool& pool, const kernels::gemm_problem<T>& p, bool, T* scratch) {
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  constexpr int by_row = Eigen::ColMajor, by_column = Eigen::RowMajor;  // transposed
  const split tasks(p.batch, p.m, p.n, pool.size());
  const std::int64_t down = (p.m + tasks.rows - 1) / tasks.rows, across = (p.n + tasks.cols - 1) / tasks.cols;
  const std::int64_t each = scratch_size(p.m, p.n, p.k, 1);
  // steps along extents of 1 do not matter
  const auto line = [](std::int64_t extent, std::ptrdiff_t step) { return step == 1 || extent == 1; };
  const bool a_rows = line(p.k, p.a_col), a_columns = line(p.m, p.a_row), b_rows = line(p.n, p.b_col),
             b_columns = line(p.k, p.b_row);
  pool.parallel_for(p.batch * down * across, [&](std::int64_t task, unsigned worker) {
    const std::int64_t matrix = task / (down * across), row = task / across % down * tasks.rows,
                       col = task % across * tasks.cols;
    const std::int64_t m = std::min(tasks.rows, p.m - row), n = std::min(tasks.cols, p.n - col);
    const T* const a = p.a + matrix * p.a_batch + row * p.a_row;
    const T* const b = p.b + matrix * p.b_batch + col * p.b_col;
    T* const c = p.c + matrix * p.c_batch + row * p.c_row + col;
    for (std::int64_t r = 0; r < m; ++r) std::fill_n(c + r * p.c_row, n, T(0));
    if (p.k == 0) return;
    if ((a_rows || a_columns) && (b_rows || b_columns)) {
      const auto add = a_rows   ? b_rows ? add_product<by_row, by_row> : add_product<by_row, by_column>
                         : b_rows ? add_product<by_column, by_row>
                                : add_product<by_column, by_column>;
      return add(m, n, p.k, a, a_rows ? p.a_row : p.a_col, b, b_rows ? p.b_row : p.b_col, c, p.c_row,
                 scratch + worker * each);
    }
    using step = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
    using matrix_map = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using strided = Eigen::Map<const matrix_map, 0, step>;
    Eigen::Map<matrix_map, 0, Eigen::OuterStride<>>(c, m, n, Eigen::OuterStride<>(p.c_row)).noalias() +=
        strided(a, m, p.k, step(p.a_row, p.a_col)).lazyProduct(strided(b, p.k, n, step(p.b_row, p.b_col)));
  });
}

}  // namespace

product_functions<std::uint64_t> eigen_products() { return {.scratch_size = scratch_size, .run = run}; }

}  // namespace kiln::eigen
