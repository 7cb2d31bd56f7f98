#pragma once
#include <array>
#include <vector>

#include "kiln/backend/eigen/tile_program.hpp"

namespace kiln::eigen {

struct row_loops;

/// A tile program as threaded code over register blocks: each op is a step, values pass from step to step in vector
/// registers, and memory holds what is read again (slots), what later levels read (row buffers), and values of one
/// element per row (blocks that repeat it). It serves bodies whose ops compute in float; others keep their tiles.
class block_program {
 public:
  using width = kernels::block_width;
  /// Which code of a level runs: narrow blocks, wide ones, wide ones whose results bypass the caches.
  enum class variant : std::uint8_t { narrow, wide, streaming };

  /// The program as blocks, or null where an op or dtype has no steps.
  static std::unique_ptr<block_program> make(const tile_program& p);

  /// A parameter or result that a level reads or writes.
  struct port {
    std::uint32_t index = 0;
    std::uint16_t place = 0;
    dtype type = dtype::f32;
  };
  struct fold {
    operation op;
    const kernels::fold_steps* steps = nullptr;
    std::uint16_t place = 0;
    dtype type = dtype::f32;
  };
  struct level {
    std::array<std::vector<kernels::block_step>, 3> code;  // by variant
    std::array<kernels::row_run, 2> loop = {};             // the wide variants compiled as one loop, or null
    std::array<std::vector<kernels::block_step>, 2>
        per_row;  // once per row, before the level: one row, a strip of rows
    std::vector<port> loads, stores;
    std::vector<std::uint16_t> kept;                           // row buffers it touches
    std::array<std::vector<kernels::block_advance>, 2> moves;  // by width: of kept, loads and stores, contiguous
    std::vector<fold> folds;
    int weight = 2;  // about how many instructions a vector takes, two of which read and write
    // What it prefetches of the next rows, in eighths of them.
    struct share {
      int first = 0, last = 0;
    } of_parameters, of_results;
  };

  const std::vector<level>& levels() const { return levels_; }
  /// Scratch of one worker for rows of `row` elements; `strip` adjacent rows at a time, or 0: one after another.
  std::size_t scratch_bytes(std::int64_t row, std::int64_t strip) const;
  /// Whether every level is a compiled loop; how many rows of `row` elements then go together level by level, and the
  /// elements from one to the next in row buffers.
  bool compiled() const { return compiled_; }
  std::int64_t batch_for(std::int64_t row) const;
  static std::int64_t row_stride(std::int64_t row);
  /// The widest strip whose row buffers stay in L2.
  std::int64_t strip_for(std::int64_t row) const;
  /// Whether what folds have of two pieces of a row folds as its elements do.
  bool folds_join() const;

 private:
  friend class block_cursor;
  friend class block_compiler;
  std::vector<level> levels_;
  std::vector<port> per_row_parameters_, per_row_results_, full_parameters_;
  std::uint16_t places_ = 0, slots_ = 0;
  std::vector<std::uint16_t> slot_places_;     // by place: 1 + its slot, or 0
  std::vector<std::uint16_t> per_row_places_;  // one block each
  std::vector<std::uint16_t> row_buffers_;
  std::vector<std::pair<std::uint16_t, std::size_t>> constant_places_;  // and where in constants_
  buffer constants_;
  std::size_t parameters_ = 0, results_ = 0;
  bool compiled_ = true;
};

/// A worker's run of a block program over rows, or over strips: adjacent rows, one in each lane.
class block_cursor {
 public:
  /// `strip` as in `scratch_bytes`.
  block_cursor(const block_program& p, std::byte* scratch, std::int64_t row, std::int64_t strip);
  /// Prefetches `bytes` ahead of a stream while a row runs: at every level what the level itself reads and writes, or a
  /// share at each level of the row of every stream.
  void fetch_ahead(std::size_t stream, std::int64_t bytes) {
    ahead_[stream] = bytes;
    fetches_ = true;
  }
  void fetch_rows(bool yes) { fetches_rows_ = yes; }
  /// The streams that a tile cursor keeps: parameters, then results.
  void begin_row(const tile_program::stream* streams);
  void run(const tile_program::stream* streams, int level, std::int64_t at, std::int64_t n, bool past_cache);
  void end_level(const tile_program::stream* streams, int level, std::int64_t row);
  /// What the folds of a level have of one row's pieces becomes that of each cursor. Folds must not prepare elements
  /// (`folds_join`).
  static void join_folds(std::span<block_cursor* const> pieces, int level);
  /// All levels of `count` adjacent rows. Streams begin at the first row's first element; their steps (0 or 1) go to
  /// the next row, those in `loops.operand[stream].folded` along a row.
  void strip(const tile_program::stream* streams, std::int64_t count, const row_loops& loops);
  /// All levels of `count` contiguous rows, level by level, for programs that are `compiled`: streams begin at the
  /// first row, and the next one follows after `rows[stream]` bytes.
  void batch(const tile_program::stream* streams, const std::int64_t* rows, std::int64_t count, std::int64_t row,
             bool past_cache);

 private:
  static constexpr std::size_t most_streams = 64;
  bool may_overlap(const tile_program::stream* streams, const block_program::level& l) const;
  bool last_block(const tile_program::stream* streams, const block_program::level& l, std::size_t w, std::int64_t from,
                  std::int64_t n);
  void run_uneven(const tile_program::stream* streams, const block_program::level& l, std::int64_t at, std::int64_t n);
  // What a level over `elements` of each stream prefetches; nothing until `set` says for how many elements at a time.
  struct fetch_list {
    kernels::block_fetch of[most_streams];
    std::int64_t each[most_streams];  // eighths of bytes for an element
    std::size_t count = 0;
    void set(std::int64_t elements) {
      for (std::size_t k = 0; k < count; ++k) of[k].bytes = elements * each[k] / 8;
    }
  };
  fetch_list find_fetches(const tile_program::stream* streams, int level, std::int64_t elements) const;
  void staged(const tile_program::stream* streams, const block_program::level& l, block_program::width w,
              std::int64_t from, std::int64_t count, const std::int64_t* offsets);
  void strip_level(const tile_program::stream* streams, const block_program::level& l, std::int64_t count,
                   const row_loops& loops);
  // A level that is a compiled loop.
  void run_loop(const tile_program::stream* streams, int level, bool aligned_stores, kernels::block_rows& over);
  void set_lanes(const block_program::port& s, const std::byte* from, std::int64_t step, std::int64_t count);
  // Values of one element per row, of that many adjacent rows.
  void run_per_row(int level, std::int64_t rows);
  void start_folds();

  const block_program& p_;
  const kernels::block_machine& machine_;
  kernels::block_frame frame_;
  std::byte** home_;     // by place: row buffers
  std::byte* staging_;   // a block for each parameter and result
  std::int64_t* ahead_;  // by stream
  bool fetches_ = false, fetches_rows_ = false;
  bool wide_ran_ = false;  // a level of this row had wide blocks
  std::size_t block_;      // bytes of one
};

}  // namespace kiln::eigen
