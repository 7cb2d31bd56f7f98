#pragma once
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"
#include "kiln/backend/hip/kernels/platform/ring_counter.hpp"

namespace kiln::gpu {

/// Results of 16 bits that leave a group of four warps through a ring of boxes of 64 rows and 64 columns in shared
/// memory, which the copy unit writes out. Where the epilogue reads a matrix of 16 bits (`Result::boxed`), the copy
/// unit has brought its part to the box before, boxes ahead, and results take the places of its elements. Lines of a
/// box are swizzled as those of wgmma's tiles, so that lanes, which hold two neighbors of a row, meet all banks. A
/// scheduler has one warp of a group: what counts is how few instructions an element takes.
template <class Result, int Boxes> class tma_store {
 public:
  static constexpr bool brings = Result::boxed;
  /// The ring of a group, and its barriers.
  KILN_FN tma_store(const Result& result, char* boxes, u64* barriers, int group)
      : result_(result),
        boxes_(boxes + group * Boxes * persistent_tile::box_bytes),
        arrived_(barriers + group * 2 * Boxes),
        left_(arrived_ + Boxes),
        group_(group) {}
  KILN_FN void start() {
    KILN_UNROLL
    for (int i = 0; i < 2 * Boxes; ++i) start_barrier(arrived_ + i, 1);
  }

  /// One thread: has the copy unit bring the operand's part to the next box.
  KILN_FN void bring(const tensor_map& operand, int row, int col) {
    if (at_.round > 0) await_barrier(left_ + at_.place, at_.round - 1);
    arrive_and_expect(arrived_ + at_.place, persistent_tile::box_bytes);
    if constexpr (apart)
      copy_places(box(), operand, col, row % pixels(), row / pixels(), arrived_ + at_.place);
    else
      tma_load(box(), operand, col, row, arrived_ + at_.place);
    at_.next();
  }

  /// The group: applies the epilogue to 64 columns of its sums, from `first` on, and has the copy unit write what it
  /// gives.
  template <int Sums>
  KILN_FN void leave(const float (&sums)[Sums], int first, const tensor_map& to, int row0, int col0, int rows,
                     int cols) {
    write(sums, first, row0, col0, rows, cols);
    fence_shared();
    const bool leads = thread_index() % threads == 0;
    // the box that comes next was read two stores ago
    if (!Result::boxed && leads) await_stores<Boxes - 2>();
    sync_some<threads>(first_group_barrier + group_);
    if (leads) {
      if constexpr (apart)
        store_places(to, box(), col0, row0 % pixels(), row0 / pixels());
      else
        store_box(to, box(), col0, row0);
      store_commit();
      if constexpr (Result::boxed) {
        await_stores<1>();
        if (at_.round > 0 || at_.place > 0) arrive_at(left_ + at_.before());
      }
    }
    sync_warp();
    at_.next();
  }
  /// Before a block ends: its boxes are read.
  KILN_FN void finish() {
    if (thread_index() % threads == 0) await_stores<0>();
  }

 private:
  static constexpr int threads = 128, first_group_barrier = 2;
  static_assert(Boxes >= 2);
  static constexpr bool apart = decltype(Result::place)::apart;
  KILN_FN int pixels() const { return result_.place.pixels; }
  KILN_FN char* box() const { return boxes_ + at_.place * persistent_tile::box_bytes; }

  /// The operands of a lane's columns, which rows share: before any result is written, so that all are asked for at
  /// once.
  template <bool Whole, class Operands> KILN_FN void read_columns(Operands (&x)[8], int col0, int cols) const {
    KILN_UNROLL
    for (int n = 0; n < 8; ++n) {
      const int col = col0 + n * 8 + lane_index() % 4 * 2, left = cols - col;
      if (Whole || left > 0) result_.read(x[n], position{0, 0, 0, col}, Whole || left > 1 ? 2 : 1);
    }
  }
  template <int Sums>
  KILN_FN void write(const float (&sums)[Sums], int first, int row0, int col0, int rows, int cols) const {
    using element = typename Result::element;
    static_assert(sizeof(element) == 2);
    const int lane = lane_index(), row = thread_index() / warp_lanes % 4 * 16 + lane / 4;
    typename Result::template operands<2> x[8];
    if constexpr (Result::rows_alike) {
      if (cols - col0 >= 64)
        read_columns<true>(x, col0, cols);
      else
        read_columns<false>(x, col0, cols);
    }
    if constexpr (Result::boxed) await_barrier(arrived_ + at_.place, at_.round);
    char* const lines = box();
    const int place =
        row * persistent_tile::line_bytes + lane / 4 * 16 + lane % 4 * 4;  // swizzled, of the first columns
    KILN_UNROLL
    for (int n = 0; n < 8; ++n) KILN_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int r = row0 + row + half * 8, at = first + n * 4 + half * 2;
      if constexpr (!Result::rows_alike) {
        const int col = col0 + n * 8 + lane % 4 * 2, left = cols - col;
        if (left > 0 && r < rows) result_.read(x[n], result_.place.at(0, 0, r, col), left < 2 ? left : 2);
      }
      u32& word = *reinterpret_cast<u32*>(lines + ((place ^ n * 16) + half * 8 * persistent_tile::line_bytes));
      if constexpr (Result::boxed) result_.take_boxed(x[n], word);
      const float two[2] = {sums[at], sums[at + 1]};
      if constexpr (elementary::same<element, f16> || elementary::same<element, bf16>)
        word = two_narrow<element>(result_.value(two, x[n], 0), result_.value(two, x[n], 1));
      else
        word = __builtin_bit_cast(u32, pack<element, 2>{{stored<element>(result_.value(two, x[n], 0)),
                                                         stored<element>(result_.value(two, x[n], 1))}});
    }
  }

  const Result& result_;
  char* boxes_;
  u64 *arrived_, *left_;
  int group_;
  ring_counter<Boxes> at_;
};

/// Of results that leave otherwise.
template <class Result> class tma_store<Result, 0> {
 public:
  static constexpr bool brings = false;
  KILN_FN tma_store(const Result&, char*, u64*, int) {}
  KILN_FN void start() {}
  KILN_FN void finish() {}
};

}  // namespace kiln::gpu
