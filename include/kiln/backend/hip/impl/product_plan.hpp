#pragma once
#include <array>

#include "kiln/backend/hip/context.hpp"
#include "kiln/backend/hip/impl/kernel_values.hpp"
#include "kiln/backend/hip/impl/row_program.hpp"
#include "kiln/runtime/contraction_parts.hpp"

namespace kiln::hip {

/// One factor of a product: its type in the kernel's text (a template of kernels/operand.hpp or
/// kernels/image_operand.hpp without its dtype), and the bytes of the value, whose first eight are the address.
struct product_factor {
  std::string type;
  std::vector<std::byte> value;
  bool depth_contiguous = true;
  int vector = 1;  ///< elements that one copy moves
};

/// A product as blocks see it.
struct product_problem {
  dtype type = dtype::f32;
  std::int64_t rows = 1, cols = 1, depth = 1;
  std::int64_t batch0 = 1, batch1 = 1;
  product_factor a, b;
  std::vector<std::string> headers;  ///< of kernels/, that the factors' types need
  bool constant_b = false;           ///< the right factor does not depend on earlier kernels
  std::int64_t channels = 0;         ///< of a group of an image that is a factor
  std::int64_t pixels = 0;           ///< of an image, where rows count pixels through all images; else 0
  std::int64_t images = 0;           ///< that are a factor
  /// Steps along the batch indices, rows and columns: of the result, then of the tail's operands.
  std::vector<std::array<std::int64_t, 4>> steps;
  std::vector<dtype> types;          ///< the same: their dtypes
  std::vector<std::size_t> aligned;  ///< the same: bytes to which their addresses are aligned, at most 16
};

/// How blocks divide a product. See kernels/product.hpp.
struct product_tile {
  std::string_view atom;
  int rows, cols, depth, warps_m, warps_n, stages, splits = 1;
  bool cluster = false;  ///< the blocks that share a tile sum through each other's shared memory
};

/// A product's kernel: its source, how it is launched, and what it is passed beside addresses.
struct product_plan {
  source what;
  extent3 grid, block;
  std::size_t shared_bytes = 0, scratch_bytes = 0, partial_bytes = 0;
  std::vector<std::byte> a, b, result, sizes;
};

/// Tiles with their estimated times, from the products and bytes of a step and the blocks that run together; the least
/// first.
std::vector<product_tile> tiles_for(const product_problem& p, const architecture& where);

/// The kernel of a product and of `tail`, a pointwise body whose parameter 0 is the product; null where nothing
/// follows.
product_plan plan_product(const product_problem& p, const row_program* tail, const product_tile& tile,
                          const architecture& where);
/// The same with the tile of the least estimate or, where the context tunes, of the least time: the first few are timed
/// on the device, and the cache keeps which it was.
product_plan plan_product(const product_problem& p, const row_program* tail, const context& where);

/// Gives a planned product to a queue. `extra` are the addresses of the tail's operands.
void run_product(const product_plan& plan, const function& f, device_queue& queue, std::span<std::byte> scratch,
                 const void* a, const void* b, void* result, std::span<const void* const> extra);

/// Elements that one store of a product's result moves, along its rows or its columns; at most 8.
int finish_width(const product_problem& p, bool along_rows);
/// Writes the struct that finishes sums (kernels/finish.hpp): reads the tail's operands in runs, computes, and writes.
void write_finisher(kernel_text& t, const product_problem& p, const row_program* tail, bool along_rows, int width);
/// That struct's value but for its addresses, which `put_addresses` writes: of the result, and of the tail's operands.
std::vector<std::byte> finisher_value(const product_problem& p);
void put_addresses(std::vector<std::byte>& finisher, const void* result, std::span<const void* const> extra);

/// The largest count of elements of `bytes` each, up to 16 bytes, that divides every step and keeps to the alignment.
int vector_of(std::size_t bytes, std::size_t aligned, std::initializer_list<std::int64_t> steps);
std::size_t alignment_of(const void* address);

/// Which dtypes products have kernels for.
bool multiplies(dtype t);
/// The tail of a contraction as a pointwise body, in `out`; false where it holds what kernels don't compute.
bool read_tail(const contraction_parts& parts, std::optional<row_program>& out);

}  // namespace kiln::hip
