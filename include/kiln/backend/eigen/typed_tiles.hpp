#pragma once
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/core/dtype.hpp"
#include "kiln/kernel/pointwise/pair_rows_problem.hpp"

namespace kiln::eigen {

/// acc = combine(acc, prepare(in[i])) over n contiguous elements; `acc` is of the type that they compute in.
using typed_fold_function = void (*)(const void* op, const void* in, std::int64_t n, void* acc);
/// n contiguous elements as another type.
using convert_function = void (*)(const void* from, void* to, std::int64_t n);
/// n times the element at `from`.
using repeat_function = void (*)(const void* from, void* to, std::int64_t n);
/// Each of `count` elements, `step` apart, `times` times one after another; writes up to 64 bytes past the last one.
using spread_function = void (*)(const void* from, std::ptrdiff_t step, void* to, std::int64_t count,
                                 std::int64_t times);

/// Rows of two operands: see `row_pairs`.
using pair_function = void (*)(const kernels::row_pairs& p);

/// Tiles of f64, integers from 8 bits on and bools in one instruction-set level (kernel/pointwise/typed_tile.hpp):
/// elements are in their storage type. Null where there is none.
struct typed_tile_table {
  tile_function (*tile)(std::size_t op, dtype type) = nullptr;
  typed_fold_function (*fold)(std::size_t op, dtype type) = nullptr;
  convert_function (*convert)(dtype from, dtype to) = nullptr;  ///< those types, f32, f16 and bf16
  convert_function (*round)(dtype to) = nullptr;                ///< f32 to f32 of values that f16 or bf16 can hold
  repeat_function (*repeat)(std::size_t width) = nullptr;       ///< elements of so many bytes
  spread_function (*spread)(std::size_t width) = nullptr;       ///< elements of so many bytes
  pair_function (*pair)(std::size_t op, dtype type) = nullptr;  ///< of f32, i64, i32, u8 and bools
};

/// The table of the level that the dynamic loader picked.
extern "C" const typed_tile_table* kiln_eigen_typed_tiles();

}  // namespace kiln::eigen
