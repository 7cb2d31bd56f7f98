#pragma once
#include <memory>
#include <vector>

#include "kiln/backend/eigen/isa.hpp"
#include "kiln/backend/eigen/typed_tiles.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

class block_program;
class block_cursor;

/// A fused body compiled to calls over tiles of contiguous elements. One form serves every body: pointwise groups,
/// row reductions (softmax, norms) and the epilogues of products. `lower/row_body.hpp` defines rows and levels; full
/// results are written by the last level, and kept values stay in row buffers.
class tile_program {
 public:
  /// Elements of a tile: a body's live tiles together stay in L1.
  std::int64_t tile() const { return static_cast<std::int64_t>(4096 / width_); }
  /// Bytes of the widest element in a tile.
  std::size_t width() const { return width_; }

  /// Compiles the body; parameters and results keep their order. A body without reductions may have parameters of one
  /// element per row, as `one_per_row` says by parameter where it isn't empty; others have one for each of the row's.
  explicit tile_program(const module_graph& body, const std::vector<bool>& one_per_row = {});
  ~tile_program();

  /// A parameter or result as the rows see it.
  struct stream {
    std::byte* at = nullptr;  ///< element 0 of the current segment
    std::ptrdiff_t step = 1;  ///< elements from one to the next; 0 repeats
  };

  std::size_t parameters() const { return parameters_.size(); }
  std::size_t results() const { return results_.size(); }
  bool reduces() const { return reduces_; }
  int levels() const { return levels_; }
  /// Whether result or parameter k has an element for each of the row's, else one per row.
  bool full_result(std::size_t k) const { return values_[results_[k]].full; }
  bool full_parameter(std::size_t k) const { return values_[parameters_[k]].full; }
  /// By axis of the full dims: whether it is folded.
  const inline_vector<bool, max_rank>& folded() const { return folded_; }
  /// The program as threaded code over register blocks, or null where it has no such form.
  const block_program* blocks() const { return blocks_.get(); }

  /// Scratch of one worker for rows of `row` elements.
  std::size_t scratch_bytes(std::int64_t row) const;

  /// One worker's position: the parameters and results of the current segment, and its scratch.
  class cursor {
   public:
    cursor(const tile_program& p, std::byte* scratch, std::int64_t row);
    cursor(const cursor&) = delete;
    cursor& operator=(const cursor&) = delete;
    ~cursor();
    stream& parameter(std::size_t k) { return streams_[k]; }
    stream& result(std::size_t k) { return streams_[program_.parameters_.size() + k]; }

    /// Begins a row: folds start anew, parameters of one element per row are read.
    void begin_row();
    /// Runs level `level` over the `n` elements of a segment whose first is element `at` of the row.
    void run(int level, std::int64_t at, std::int64_t n);
    /// Ends level `level` of a row of `row` elements: folds are finished and what the next level reads of one element
    /// per row is computed; after the last level, results of one element per row are written.
    void end_level(int level, std::int64_t row);
    /// As of `block_cursor`.
    void fetch_ahead(std::size_t stream, std::int64_t bytes);
    void fetch_rows(bool yes);
    /// Whether results bypass the caches where they can: for those that nothing reads soon.
    void past_cache(bool yes) { past_cache_ = yes; }

   private:
    friend class tile_program;
    void load(std::uint32_t value, std::int64_t from, std::int64_t n);
    void store_result(std::size_t k, std::int64_t from, std::int64_t n);
    void call_per_row(int level);
    // What fills a tile of a repeated element.
    struct repetition_run {
      const std::byte* of = nullptr;
      std::int64_t count = 0;
    };

    const tile_program& program_;
    stream* streams_;
    std::byte** home_;          // by value: its tile, row buffer or single element
    std::byte** at_;            // by value: where the current tile's elements are
    repetition_run* repeated_;  // by value
    std::byte* spare_;          // a tile for results that are converted
    std::int64_t row_;
    block_cursor* blocks_ = nullptr;
    bool past_cache_ = false;
  };

 private:
  friend class block_compiler;
  enum class source : std::uint8_t { parameter, constant, computed };
  struct value {
    source from = source::computed;
    dtype type = dtype::f32;
    dtype held = dtype::f32;  // of its tile's elements
    bool full = true;         // an element for each of the row's, else one per row
    int level = 0;
    bool kept = false;         // has a row buffer
    std::uint32_t index = 0;   // of the parameter
    std::int32_t result = -1;  // the first result it is
    std::uint32_t slot = 0;    // of its tile
    literal constant;
  };
  struct call {
    enum class what : std::uint8_t { tile, fold, repeat } kind = what::tile;
    operation op;
    tile_function tile = nullptr;  // of the instruction-set level; else the op's own
    fold_function float_fold = nullptr;
    typed_fold_function typed_fold = nullptr;
    convert_function convert = nullptr, round = nullptr;  // the second after the first, if set
    dtype compute = dtype::f32;                           // of the first value input
    dtype natural = dtype::f32;  // what the computation gives, before it is stored as the result's dtype
    inline_vector<std::uint32_t, 6> in;
    std::uint32_t out = 0;
    int level = 0;
    bool per_row = false;  // once a row, on values of one element per row
  };
  // A tile that repeats a value of one element per row, where level `level` reads it.
  struct repetition {
    std::uint32_t value = 0;
    int level = 0;
    std::uint32_t tile = 0;
  };

  // What runs at a level.
  struct level_work {
    std::vector<std::uint32_t> calls;    // over the elements of a row, in order; folds too
    std::vector<std::uint32_t> per_row;  // before the level
    std::vector<std::uint32_t> folds;
  };

  void compile(const module_graph& body, const std::vector<bool>& one_per_row);
  std::uint32_t add_value(value v);
  std::uint32_t add_fold(const operation& op, std::uint32_t in, value made);
  std::uint32_t add_pointwise(const operation& op, std::span<const std::uint32_t> in, value made);
  std::uint32_t full_operand(std::uint32_t v, int level);
  void compute_integers_in_floats();
  bool has_floats() const;
  bool find_typed_calls(std::vector<call>& to) const;
  /// Narrow integers in their own types, if each call that meets them has a function for it; false, and nothing done,
  /// where not all calls have one and `all` is wanted.
  bool compute_in_storage_types(bool all);
  /// The dtype of a tile's elements where `t` is stored: what it computes in, or the same.
  dtype held(dtype t) const;
  void find_slots();
  void list_work();
  void run_call(const call& c, const cursor& k, std::int64_t n) const;

  std::vector<value> values_;
  std::vector<call> calls_;
  std::vector<std::uint32_t> parameters_, results_;
  std::vector<repetition> repetitions_;
  std::vector<std::vector<std::uint32_t>> loads_;  // by level: full parameters it reads
  std::vector<level_work> work_;                   // by level; the last one has only what runs once per row
  std::vector<std::uint32_t> placed_;              // full values that are kept or results
  inline_vector<bool, max_rank> folded_;
  bool reduces_ = false;
  int levels_ = 1;
  std::uint32_t slots_ = 0;
  std::size_t width_ = 1;  // bytes of the widest element
  bool narrow_ = false;    // narrow integers are computed in their storage type
  std::unique_ptr<const block_program> blocks_;
};

}  // namespace kiln::eigen
