#pragma once
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"

namespace kiln::hip {

/// The atom's name in tiles of `gemm_streamed_along` and `gemm_streamed_across`.
inline constexpr std::string_view streamed = "streamed";

/// How they work a product of few rows by many, or the other way round.
struct streamed_form {
  bool left;                           ///< the left factor has few rows
  int few = 1;                         ///< at least as many, a power of two
  std::int64_t many;                   ///< rows of the other factor
  bool along;                          ///< whose depth is contiguous, or the rows are
  int lines = 0, warps = 8, each = 8;  ///< rows of a block; its warps; rows of a warp, or runs of rows of a block
  streamed_form(const gemm_problem& p, const architecture& where)
      : left(p.rows <= p.cols), many(std::max(p.rows, p.cols)), along(factor(p).depth_contiguous) {
    while (few < std::min(p.rows, p.cols)) few *= 2;
    if (along)
      each = 4;
    else
      warps = 16;
    // a block of 16 warps asks for as much at a time as two of 8
    const auto fills = [&] { return parts() * p.batch0 * p.batch1 * warps >= 8 * std::int64_t{where.multiprocessors}; };
    for (set_lines(p); each > 1 && !fills(); set_lines(p)) each /= 2;
  }
  /// The one of many rows.
  const gemm_factor& factor(const gemm_problem& p) const { return left ? p.b : p.a; }
  /// Elements of 16 bytes.
  static int run(const gemm_problem& p) { return static_cast<int>(16 / size_of(p.type)); }
  /// Blocks that share the many rows.
  std::int64_t parts() const { return (many + lines - 1) / lines; }

 private:
  void set_lines(const gemm_problem& p) { lines = each * (along ? warps : run(p)); }
};

/// Whether a product is one of few rows by many, whose runs of 16 bytes are whole, and of elements that no matrix unit
/// multiplies: a tile of the vector unit has 32 rows.
inline bool streams(const gemm_problem& p, const architecture& where) {
  constexpr std::int64_t most_few = 4, least_many = 256, least_depth = 128;
  if (!p.a.is_matrix() || !p.b.is_matrix() || p.phases || p.pixels != 0 || size_of(p.type) < 2 ||
      atom_for(p.type, where) != "atom_fma")
    return false;
  if (std::min(p.rows, p.cols) > most_few || std::max(p.rows, p.cols) < least_many || p.depth < least_depth)
    return false;
  const gemm_factor& many = p.rows <= p.cols ? p.b : p.a;
  const int run = streamed_form::run(p);
  return many.vector == run && (many.depth_contiguous ? p.depth : std::max(p.rows, p.cols)) % run == 0;
}

/// The kernel of such a product.
inline gemm_plan plan_streamed(const gemm_problem& p, const row_program* epilogue, const architecture& where) {
  const streamed_form f(p, where);
  const int threads = f.warps * where.lanes;
  kernel_text t(epilogue);
  t.line("#include \"kiln/backend/hip/kernels/gemm/gemm_streamed.hpp\"");
  write_epilogue(t, p, epilogue, false, 1);
  const std::string factor = cat("matrix_argument<", stored_name(p.type), "> "), left = f.left ? "true" : "false";
  t.open_kernel(threads, "gemm_kernel(", factor, "a, ", factor, "b, epilogue result, gemm_sizes s)");
  if (f.along) {
    const gemm_factor& few = f.left ? p.a : p.b;
    const bool joined = few.depth_contiguous && few.vector == streamed_form::run(p);
    t.line("gemm_streamed_along<", f.few, ", ", left, joined ? ", true, " : ", false, ", f.each, ", ", f.warps,
           ">(a, b, result, s);");
  } else {
    t.line("extern __shared__ __attribute__((aligned(128))) char shared[];");
    t.line("gemm_streamed_across<", f.few, ", ", left, ", ", f.each, ", ", f.warps,
           ">(a, b, result, s, reinterpret_cast<sum_t<", stored_name(p.type), ">*>(shared));");
  }
  t.close();
  gemm_plan plan;
  plan.what = t.whole("gemm_kernel");
  plan.block = {static_cast<unsigned>(threads)};
  plan.grid = {blocks_of(f.parts() * p.batch0 * p.batch1)};
  const std::size_t sum = std::max<std::size_t>(4, size_of(p.type));
  if (!f.along) plan.shared_bytes = sum * static_cast<std::size_t>(f.warps * f.few * f.lines);
  plan.sizes = sizes_of(p, 1, f.parts());
  plan.a = p.a, plan.b = p.b;
  plan.result = epilogue_value(p);
  return plan;
}

}  // namespace kiln::hip
