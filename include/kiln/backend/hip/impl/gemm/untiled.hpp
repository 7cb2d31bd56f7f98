#pragma once
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"

namespace kiln::hip {

/// The atom's name in the tile of `gemm_untiled`, a thread a run of results.
inline constexpr std::string_view each_result = "each";
inline constexpr int each_threads = 128;

/// How `gemm_untiled` works a product: along which dim its runs go, their elements, and runs of an entry of the batch.
struct each_runs {
  bool along_rows, joined;
  int width;
  std::int64_t runs;
  explicit each_runs(const gemm_problem& p) {
    along_rows = p.steps[0][3] != 1 && p.steps[0][2] == 1;
    width = epilogue_width(p, along_rows);
    const std::int64_t length = along_rows ? p.rows : p.cols, lines = along_rows ? p.cols : p.rows;
    runs = lines * ((length + width - 1) / width);
    const gemm_factor& many = along_rows ? p.a : p.b;
    joined = width > 1 && !many.depth_contiguous && many.vector % width == 0;
  }
  /// Of the whole batch, a run each.
  std::int64_t threads(const gemm_problem& p) const { return runs * p.batch0 * p.batch1; }
};

/// Whether a product may be computed so: short sums of two matrices.
inline bool sums_each(const gemm_problem& p) {
  constexpr std::int64_t most_depth = 64;
  return p.a.is_matrix() && p.b.is_matrix() && !p.phases && p.depth <= most_depth &&
         each_runs(p).threads(p) < (std::int64_t{1} << 30);
}

/// The estimated cycles: what its threads issue and load, or the latency of a lone one, whose loads go four at a time.
inline double cycles_of_each(const gemm_problem& p, const architecture& where) {
  const each_runs r(p);
  const double warps = static_cast<double>(r.threads(p)) / where.lanes / std::max(where.multiprocessors, 1);
  const double loads = 1 + (r.joined ? 1 : r.width), issued = (r.width + 8) / 4.0, depth = static_cast<double>(p.depth);
  return std::max(warps * (depth * std::max(loads, issued) + 40), 150 * depth) + 1500;
}

/// The kernel of such a product.
inline gemm_plan plan_each(const gemm_problem& p, const row_program* epilogue) {
  const each_runs r(p);
  kernel_text t(epilogue);
  t.line("#include \"kiln/backend/hip/kernels/gemm/gemm_untiled.hpp\"");
  write_epilogue(t, p, epilogue, r.along_rows, r.width);
  const std::string factor = cat("matrix_argument<", stored_name(p.type), "> ");
  t.open_kernel(each_threads, "gemm_kernel(", factor, "a, ", factor, "b, epilogue result, gemm_sizes s)");
  t.line("gemm_untiled<", r.joined ? "true" : "false", ">(a, b, result, s, int(blockIdx.x) * ", each_threads,
         " + int(threadIdx.x));");
  t.close();
  gemm_plan plan;
  plan.what = t.whole("gemm_kernel");
  plan.block = {each_threads};
  plan.grid = {blocks_of((r.threads(p) + each_threads - 1) / each_threads)};
  plan.sizes = sizes_of(p, r.runs, 1, 1, p.batch0 * p.batch1);
  plan.a = p.a, plan.b = p.b;
  plan.result = epilogue_value(p);
  return plan;
}

}  // namespace kiln::hip
