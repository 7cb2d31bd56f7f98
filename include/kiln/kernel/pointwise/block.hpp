#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::kernels {

/// One step of threaded code over register blocks: it works on the accumulator, a block of floats that stays in vector
/// registers, and ends by calling the next step.
struct block_step {
  void (*call)() = nullptr;  ///< a step function of the width that the program runs at
  const void* op = nullptr;  ///< attributes
  std::uint16_t in[2] = {};  ///< memory operands, as places
  std::uint16_t out = 0;     ///< where the step writes to, as a place
};

/// What a run of steps sees: places are addresses of blocks (a stream's current block, a slot, a repeated scalar).
struct block_frame {
  std::byte** at = nullptr;
  std::int64_t valid = 0;  ///< leading lanes of the block that folds count
  float* spare = nullptr;  ///< a block of the machine's own
  bool varied = false;     ///< whether per-row values differ from lane to lane (each lane is a row)
};

/// How a place moves from block to block.
struct block_advance {
  std::uint16_t place;
  std::int64_t bytes;
};

/// Memory that is needed later: each block prefetches `bytes` of it.
struct block_fetch {
  const std::byte* at;
  std::int64_t bytes;
};

/// Blocks in a row, and what changes from one to the next.
struct block_loop {
  std::int64_t blocks = 1;
  const block_advance* moves = nullptr;
  std::size_t move_count = 0;
  block_fetch* fetches = nullptr;
  std::size_t fetch_count = 0;
};

/// What a compiled loop runs over: whole rows, with the fold results and per-row values of row r in lane r of their
/// places; or, with 0 rows, a stretch of one row, whose folds go on in their places.
struct block_rows {
  std::int64_t elements = 0;  ///< of a row, or of the stretch
  std::int64_t rows = 0;
  const block_advance* moves = nullptr;  ///< the places that follow a row, and their bytes from row to row
  std::size_t move_count = 0;
  block_fetch* fetches = nullptr;  ///< bytes: for a vector
  std::size_t fetch_count = 0;
};
/// Runs a level over rows; places stay.
using row_run = void (*)(const block_step* program, block_frame& frame, const block_rows& over);

/// Runs a program's steps over blocks; then the places that move point past the last one.
using block_run = void (*)(const block_step* program, block_frame& frame, const block_loop& loop);

/// A block is `narrow` (one vector) or `wide`; each width has step functions of its own.
enum class block_width : std::uint8_t { narrow, wide };
inline constexpr std::size_t block_widths = 2;

/// Steps of a pointwise op: by width, and by which argument the accumulator is.
struct pointwise_steps {
  void (*of[block_widths][3])() = {};
  int weight = 0;  ///< about how many instructions a vector takes
};

/// Steps of a reduction: lanes are combined with those of a place; `join` combines all lanes of the first `vectors` of
/// a wide block, ends the fold of `count` elements and fills the block with it; `finish` ends the folds of n lanes that
/// each took `count` elements; `start` sets a wide block to the identity. `prepares`: elements are not combined as they
/// are, so that what was folded of some must not be folded as one.
struct fold_steps {
  void (*of[block_widths])() = {};
  void (*start)(const void* op, float* block) = nullptr;
  void (*join)(const void* op, float* block, std::size_t vectors, std::int64_t count) = nullptr;
  void (*finish)(const void* op, float* block, std::int64_t n, std::int64_t count) = nullptr;
  bool prepares = false;
};

/// How a block is stored in memory. In registers integers are floats: bytes exactly, 32-bit ones, which are only read,
/// rounded to nearest.
enum class block_form : std::uint8_t { f32, f16, bf16, boolean, u8, i8, i32 };
inline constexpr std::size_t block_forms = 7, stored_block_forms = 6;

/// Steps that no op owns.
struct move_steps {
  void (*load[block_forms][block_widths])() = {};
  void (*store[stored_block_forms][block_widths])() = {};
  void (*stream[block_widths])() = {};                     ///< non-temporal stores; the address is aligned to vectors
  void (*round[stored_block_forms][block_widths])() = {};  ///< to what the form can hold
  void (*repeat)() = nullptr;                              ///< narrow: stores to every vector of a wide block
  void (*divide[block_widths])() = {};                     ///< by a place that repeats one value
  void (*end[block_widths])() = {};
};

/// The machine of one instruction-set level.
struct block_machine {
  std::int64_t lanes[block_widths] = {};  ///< powers of two
  move_steps move;
  block_run run[block_widths] = {};
  /// A compiled loop of these wide steps where just the places of `moves` follow the rows, or null.
  row_run (*find_loop)(const block_step* program, const block_advance* moves, std::size_t count) = nullptr;
  void (*fill)(float* block, float value) = nullptr;  ///< a wide block of one value
  void (*fence)() = nullptr;                          ///< orders streamed stores before later ones
};

}  // namespace kiln::kernels
