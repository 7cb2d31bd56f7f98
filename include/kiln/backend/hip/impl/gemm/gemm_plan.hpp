#pragma once
#include <array>
#include <variant>

#include "kiln/backend/hip/context.hpp"
#include "kiln/backend/hip/impl/rows/row_program.hpp"
#include "kiln/backend/hip/kernels/conv/arguments.hpp"
#include "kiln/backend/hip/kernels/gemm/arguments.hpp"
#include "kiln/lower/contraction.hpp"

namespace kiln::hip {

using gpu::epilogue_operand;
using gpu::gemm_sizes;
using matrix_argument = gpu::matrix_argument<void>;
using image_argument = gpu::image_argument<void>;
using result_argument = gpu::result_argument<void>;

/// One factor of a GEMM as its kernel is passed it; the address comes with each run.
struct gemm_factor {
  std::variant<matrix_argument, image_argument> value;
  bool depth_contiguous = true;
  int vector = 1;                 ///< elements that one copy moves
  std::string image_arguments{};  ///< further template arguments of an image_operand
  /// Of an image: rows and columns of its kernel where that runs backwards and each tap is as far from the window's
  /// corner in memory for every window; else 0.
  int backwards_rows = 0, backwards_cols = 0;
  bool is_matrix() const { return value.index() == 0; }
  /// The factor's type in the kernel's text.
  std::string text(dtype type) const;
};

/// The phases of a transposed convolution (kernels/conv/phases.hpp), where they lie, and the elements from the result's
/// first to one past its last. A problem of them has the extents of the largest.
struct gemm_phases {
  gpu::phase_shape shape;
  gpu::phase_argument<void> place{};
  std::int64_t reach = 0;
};

/// A GEMM as blocks see it.
struct gemm_problem {
  dtype type = dtype::f32;
  std::int64_t rows = 1, cols = 1, depth = 1;
  std::int64_t batch0 = 1, batch1 = 1;
  gemm_factor a, b;
  bool constant_b = false;    ///< the right factor does not depend on earlier kernels
  std::int64_t channels = 0;  ///< of a group of an image that is a factor
  std::int64_t pixels = 0;    ///< of an image, where rows count the pixels of all images; else 0
  std::int64_t images = 0;    ///< that are a factor
  /// Where the first batch index counts phases.
  std::optional<gemm_phases> phases;
  /// Steps along the batch indices, rows and columns: of the result, then of the epilogue's operands.
  std::vector<std::array<std::int64_t, 4>> steps;
  std::vector<dtype> types;          ///< the same: their dtypes
  std::vector<std::size_t> aligned;  ///< the same: bytes to which their addresses are aligned, at most 16
  double work = 0;                   ///< instructions that the epilogue's functions take for an element (`work_of`)
};
/// About how many instructions the elementary functions of an epilogue take for an element; null: no epilogue.
double work_of(const row_program* epilogue);

/// How blocks divide a GEMM. See kernels/gemm/gemm.hpp.
struct gemm_tile {
  std::string_view atom;
  int rows, cols, depth, warps_m, warps_n, stages, splits = 1;
  bool cluster = false;    ///< the blocks that share a tile sum through each other's shared memory
  bool alternate = false;  ///< in turns: two groups of warps have a tile each, one multiplies while the other stores
  int boxes = 0;           ///< in turns: of each group of warps, through which results leave by the copy unit
  /// Whether blocks work tile after tile, some of their warps copying only (kernels/gemm/gemm_persistent.hpp).
  bool persistent() const { return atom == "wgmma" && warps_m == gpu::persistent_tile::warps_m; }
};

/// A GEMM's kernel: its source, how it is launched, and what it is passed beside addresses.
struct gemm_plan {
  source what;
  extent3 grid, block;
  std::size_t shared_bytes = 0, scratch_bytes = 0, partial_bytes = 0;
  gemm_factor a, b;
  std::vector<std::byte> result;
  gemm_sizes sizes{};
  std::optional<tensor_boxes> boxes_a, boxes_b;             ///< where the copy unit reads the factors
  std::optional<tensor_boxes> boxes_result, boxes_operand;  ///< where it writes the result and reads for the epilogue
  std::size_t boxed = 0;                                    ///< which of the epilogue's operands
};

/// Tiles with their estimated times, from the products and bytes of a step and the blocks that run together; the least
/// first.
std::vector<gemm_tile> tiles_for(const gemm_problem& p, const architecture& where);

/// The kernel of a GEMM and of `epilogue`, a pointwise body whose parameter 0 is the product; null where nothing
/// follows.
gemm_plan plan_gemm(const gemm_problem& p, const row_program* epilogue, const gemm_tile& tile,
                    const architecture& where);
/// The same with the tile of the least estimate or, where the context tunes, of the least time: the first few are timed
/// on the device, and the cache keeps which it was.
gemm_plan plan_gemm(const gemm_problem& p, const row_program* epilogue, const context& where);

/// A problem's sizes as its kernel is passed them; addresses of partial sums come with each run. `entries` are those of
/// a batch that is worked without tiles.
inline gemm_sizes sizes_of(const gemm_problem& p, std::int64_t tiles_m, std::int64_t tiles_n, int splits = 1,
                           std::int64_t entries = 0) {
  const auto count = [](std::int64_t n) { return static_cast<int>(n); };
  return {count(p.rows),   count(p.cols), count(p.depth), count(tiles_m), count(tiles_n),
          count(p.batch1), splits,        nullptr,        nullptr,        count(entries)};
}

/// Gives a planned GEMM to a queue. `extra` are the addresses of the epilogue's operands; of the batch, the first
/// `entries` are computed where these are not 0.
void run_gemm(const gemm_plan& plan, const function& f, device_queue& queue, std::span<std::byte> scratch,
              const void* a, const void* b, void* result, std::span<const void* const> extra, std::int64_t entries = 0);

/// Entries of a batch that one launch computes: a grid's second dim has at most 65535 blocks. (Few tiles alone have
/// their depth split.)
constexpr std::int64_t most_gemm_entries = 65535;
/// A batch as launches of at most `most` entries, about as many in each; the last may have fewer.
struct batch_parts {
  std::int64_t count, each, last;
  constexpr batch_parts(std::int64_t entries, std::int64_t most)
      : count((entries + most - 1) / most), each((entries + count - 1) / count), last(entries - each * (count - 1)) {}
};

/// Whether rows are pixels of lines or images that are not evenly spaced in the result or an operand of the epilogue.
bool lies_apart(const gemm_problem& p);
/// Whether an operand's elements are neighbors along the rows (2) or the columns (3) of positions, and runs of `width`
/// of them are aligned as one load needs.
bool contiguous(const gemm_problem& p, std::size_t k, std::size_t along, int width);
/// Elements that one store of a GEMM's result moves, along its rows or its columns; at most 8.
int epilogue_width(const gemm_problem& p, bool along_rows);
/// Writes the struct `epilogue` (kernels/gemm/epilogue.hpp): reads the epilogue's operands in runs, computes, and
/// writes. The copy unit brings operand `boxed`; 0: none. The kernel `moves` the factors' type, too.
void write_epilogue(kernel_text& t, const gemm_problem& p, const row_program* epilogue, bool along_rows, int width,
                    std::size_t boxed = 0);
/// That struct's value but for its addresses, which `put_addresses` writes: of the result, and of the epilogue's
/// operands.
std::vector<std::byte> epilogue_value(const gemm_problem& p);
void put_addresses(std::vector<std::byte>& epilogue, const void* result, std::span<const void* const> extra);

/// Moves the inner dims of a batch into the problem's, with `most` entries at most, and their steps into `inner`; what
/// is left counts launches. Returns how many entries each last launch of the innermost of these has, 0 where all.
std::int64_t take_batch(gemm_problem& p, loop_nest& outer, std::vector<std::array<std::int64_t, 2>>& inner,
                        std::int64_t most);

/// A count of blocks as a grid's first extent. Errors: limit, beyond what a launch has.
inline unsigned blocks_of(std::int64_t count) {
  constexpr auto most = (std::int64_t{1} << 31) - 1;
  if (count < 0 || count > most) raise(fault::of(errc::limit, "blocks of a launch", most, count));
  return static_cast<unsigned>(count);
}

/// The largest count of elements of `bytes` each, up to 16 bytes, that divides every step and keeps to the alignment.
int vector_of(std::size_t bytes, std::size_t aligned, std::initializer_list<std::int64_t> steps);
std::size_t alignment_of(const void* address);
/// What is left of an alignment, of at most 16 bytes, so many elements of `bytes` each on.
std::size_t alignment_after(std::size_t aligned, std::size_t bytes, std::span<const std::int64_t> steps);

/// The matrix instruction that multiplies a dtype: the name of its header in kernels/atom/ and of its template.
std::string_view atom_for(dtype type, const architecture& where);
/// Whether the matrix unit multiplies floats of eight bits as they are.
constexpr bool multiplies_float8(dtype type, const architecture& where) {
  return where.matrices == matrix_unit::wgmma && (type == dtype::f8e4m3fn || type == dtype::f8e5m2);
}
/// Rows of its tile.
int atom_rows(std::string_view atom, const architecture& where);
/// A contraction with its epilogue as a pointwise body, where it has one.
struct fused_contraction {
  lower::contraction_body<module_graph> body;
  std::optional<row_program> epilogue{};
};
/// The contraction or transposed convolution of an instruction; empty where kernels don't compute its dtype or
/// epilogue.
std::optional<fused_contraction> read_contraction(const kernel_request& r);

}  // namespace kiln::hip
