#pragma once
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/kernels/gemm/staged_lines.hpp"

namespace kiln::hip {

/// The atom's name in tiles of `skinny_gemm`: blocks of `cols` columns, whose `warps_n` warps share the depth and
/// read `stages` runs ahead. And in those of `skinny_gemm_staged`: `cols` columns at a time, `stages` slots a warp.
inline constexpr std::string_view few_rows = "few_rows", staged = "staged";
inline constexpr std::int64_t most_few_rows = 32, least_few_rows_cols = 256;

/// Blocks of so many columns fill the device: two and a half a multiprocessor read at the rate of a copy on an H200.
inline bool fills_with(std::int64_t cols, int of, const architecture& where) {
  return 2 * ((cols + of - 1) / of) >= 5 * std::int64_t{where.multiprocessors};
}

/// The shared memory of a block of `skinny_gemm_staged`, and the neighbors that its epilogue takes at a time, so that
/// blocks have about as many columns each.
inline gpu::staged_lines slots_of(const gemm_tile& t, int scale_words = 0) {
  return {t.cols / gpu::staged_lines::tile, t.warps_n, t.stages, t.rows, scale_words};
}
inline constexpr int staged_run = 4;

inline int height_of_few(std::int64_t rows) { return rows <= 8 ? 8 : rows <= 16 ? 16 : 32; }
/// The tile of `skinny_gemm_staged`, whose lines have so many words of scales each, if a block has the memory for it.
inline std::optional<gemm_tile> tile_staged(std::int64_t rows, const architecture& where, int scale_words = 0) {
  for (const int slots : {3, 2}) {
    const gemm_tile t{staged, height_of_few(rows), 32, 64, 1, 8, slots};
    if (static_cast<std::size_t>(slots_of(t, scale_words).bytes()) <= where.shared_bytes) return t;
  }
  return std::nullopt;
}

/// Tiles for a product of so few rows by so many columns that registers hold pieces of, the likely one first.
inline std::vector<gemm_tile> few_rows_tiles(std::int64_t rows, std::int64_t cols, const architecture& where) {
  const int height = height_of_few(rows);
  if (height == 32) return {{few_rows, height, 32, 32, 1, 16, 1}};
  const gemm_tile narrow{few_rows, height, 16, 32, 1, 16, 2}, wide{few_rows, height, 32, 32, 1, 8, 2};
  return height == 8 && fills_with(cols, wide.cols, where) ? std::vector{wide, narrow} : std::vector{narrow, wide};
}

inline int few_rows_shared_bytes(const gemm_tile& t) {
  return t.warps_n * t.rows * gpu::few_rows_step(t.cols) * static_cast<int>(sizeof(float));
}
/// Whether a product has few rows, its left factor in runs of 16 bytes along the depth.
inline bool has_few_rows(const gemm_problem& p, const architecture& where) {
  const auto run = static_cast<int>(16 / size_of(p.type));
  return (atom_for(p.type, where) == "atom_mma" || multiplies_float8(p.type, where)) && p.rows <= most_few_rows &&
         p.batch0 * p.batch1 == 1 && p.a.is_matrix() && p.a.depth_contiguous && p.a.vector == run &&
         p.depth % run == 0 && p.pixels == 0 && epilogue_width(p, false) >= 4;
}
/// Whether its right factor is like that, in memory that no kernel writes.
inline bool reads_right_in_runs(const gemm_problem& p) {
  return p.constant_b && p.b.is_matrix() && p.b.depth_contiguous &&
         static_cast<std::size_t>(p.b.vector) * size_of(p.type) == 16 && p.cols >= least_few_rows_cols;
}

/// The kernel of a product of few rows. `stored` is the type of its weights where they are stored in blocks, with so
/// many words of scales a line: a `stored_argument` then takes the right factor's place among the kernel's parameters.
inline gemm_plan plan_few_rows(const gemm_problem& p, const row_program* epilogue, const gemm_tile& tile,
                               const architecture& where, const std::string& stored = {}, int scale_words = 0) {
  const bool lines = tile.atom == staged;
  const int threads = tile.warps_n * where.lanes;
  kernel_text t(epilogue);
  t.line("#include \"kiln/backend/hip/kernels/gemm/", lines ? "skinny_gemm_staged" : "skinny_gemm", ".hpp\"");
  write_epilogue(t, p, epilogue, false, lines ? staged_run : epilogue_width(p, false));
  const std::string type(stored_name(p.type));
  const std::string plain = (is_narrow(p.type) ? "plain_float8<" : "plain_numbers<") + type + ">",
                    numbers = stored.empty() ? plain : stored;
  const int together = lines || tile.rows > 16 ? 1 : stored.empty() || tile.warps_n == 16 ? 2 : 4;
  t.open_kernel({threads, together, true}, "gemm_kernel(matrix_argument<", type, "> a, ",
                stored.empty() ? "matrix_argument<" + type + ">" : "stored_argument",
                " b, epilogue result, gemm_sizes s)");
  t.line("extern __shared__ __attribute__((aligned(128))) char shared[];");
  const std::string weights = numbers + (stored.empty() ? "::of(b)" : "{b}");
  if (lines)
    t.line("skinny_gemm_staged<", type, ", ", numbers, ", staged_lines{", tile.cols / gpu::staged_lines::tile, ", ",
           tile.warps_n, ", ", tile.stages, ", ", tile.rows, ", ", scale_words, "}>(a, ", weights,
           ", result, s.rows, s.cols, s.depth, shared);");
  else
    t.line("skinny_gemm<", is_narrow(p.type) ? "f16" : type, ", ", numbers, ", ", tile.rows / 8, ", ", tile.cols / 16,
           ", ", tile.warps_n, ", ", tile.stages, ">(a, ", weights,
           ", result, s.rows, s.cols, s.depth, reinterpret_cast<float*>(shared));");
  t.close();
  gemm_plan plan;
  plan.what = t.whole("gemm_kernel");
  const std::int64_t tiles = lines
                                 ? std::min<std::int64_t>(where.multiprocessors, (p.cols + staged_run - 1) / staged_run)
                                 : (p.cols + tile.cols - 1) / tile.cols;
  plan.block = {static_cast<unsigned>(threads)};
  plan.grid = {static_cast<unsigned>(tiles)};
  plan.shared_bytes =
      static_cast<std::size_t>(lines ? slots_of(tile, scale_words).bytes() : few_rows_shared_bytes(tile));
  plan.sizes = sizes_of(p, 1, tiles);
  plan.a = p.a, plan.b = p.b;
  plan.result = epilogue_value(p);
  return plan;
}

}  // namespace kiln::hip
