#pragma once
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/backend/hip/kernels/reduce/select_least.hpp"

// Boxes that overlap no better one. A block works a class: it selects the best boxes that are left, so many at a time,
// drops those that overlap one it kept, and notes for each of the others which better ones of them it overlaps; a
// thread then goes over them in order.

namespace kiln::gpu {

/// A box by its corners and their area.
struct corner_box {
  float low[2], high[2], area;
  KILN_FN corner_box(const float* p, bool centered) {
    for (int d = 0; d < 2; ++d) {
      const float x = centered ? p[1 - d] - p[3 - d] / 2 : p[d], y = centered ? p[1 - d] + p[3 - d] / 2 : p[d + 2];
      low[d] = x < y ? x : y, high[d] = x < y ? y : x;
    }
    area = (high[0] - low[0]) * (high[1] - low[1]);
  }
  /// Whether the boxes overlap by more than that much, intersection over union.
  KILN_FN bool overlaps(const corner_box& b, float most) const {
    float shared = 1;
    for (int d = 0; d < 2; ++d) {
      const float end = high[d] < b.high[d] ? high[d] : b.high[d], begin = low[d] < b.low[d] ? b.low[d] : low[d];
      shared *= end - begin > 0.0f ? end - begin : 0.0f;
    }
    const float both = area + b.area - shared;
    return (shared != 0 && both > 0 ? shared / both : 0) > most;
  }
};

/// The boxes that class `row` of all batches keeps, best first, at kept[row, …], and how many. Of equal scores the
/// lower box comes first.
template <bool Centered, bool Least, int Lanes>
KILN_FN void suppress_boxes(int* kept, i64* counts, const float* boxes, const float* scores, const i64* most,
                            const float* most_overlap, const float* least, const box_sizes& n, i64 row, int lane) {
  constexpr int some = Lanes, room = 4 * some, words = some / 64;
  KILN_SHARED u64 entries[room];
  KILN_SHARED float corners[some * 4];
  KILN_SHARED u64 overlapped[some * words];  // of each box, the better ones; all where it is out
  KILN_SHARED i64 kept_so_far;
  const i64 count = n.boxes;
  const float *const own = boxes + row / n.classes * count * 4, *const score = scores + row * count;
  int* const to = kept + row * count;
  const float bound = most_overlap[0];
  u64 last = 0;  // the entry of the last box that was looked at: 0 is none's
  i64 found = 0;
  for (bool first = true; count > 0 && found < most[0]; first = false) {
    select_least<some, room, 1, Lanes>(entries, count, some, lane, [&](int, i64 k) {
      if (Least && !(score[k] > least[0])) return worst_entry<u64>();
      constexpr u32 sign = 0x80000000u;
      const u32 bits = __builtin_bit_cast(u32, score[k] == 0 ? 0.0f : score[k]);
      const u64 entry = u64(~(bits & sign ? ~bits : bits | sign)) << 32 | static_cast<u32>(k);
      return !first && entry <= last ? worst_entry<u64>() : entry;
    });
    const u64 mine = entries[lane];
    last = entries[some - 1];
    const bool is_box = mine != worst_entry<u64>();
    const float* const at = own + (is_box ? place_of(mine) : 0) * 4;
    KILN_UNROLL
    for (int c = 0; c < 4; ++c) corners[lane * 4 + c] = at[c];
    const corner_box box(at, Centered);
    bool out = !is_box;
    for (i64 k = 0; k < found && !out; ++k) out = box.overlaps(corner_box(own + i64(to[k]) * 4, Centered), bound);
    sync_block();
    KILN_UNROLL
    for (int w = 0; w < words; ++w) {
      u64 bits = 0;
      for (int k = w * 64; k < w * 64 + 64 && k < lane && !out; ++k)
        if (box.overlaps(corner_box(corners + k * 4, Centered), bound)) bits |= u64(1) << (k % 64);
      overlapped[lane * words + w] = out ? ~u64(0) : bits;
    }
    sync_block();
    if (lane == 0) {
      u64 stays[words] = {};
      for (int k = 0; k < some && found < most[0]; ++k) {
        const u64* const over = overlapped + k * words;
        // the last bit is that of the last box, which is better than none
        bool drops = over[words - 1] == ~u64(0);
        KILN_UNROLL
        for (int w = 0; w < words; ++w) drops = drops || (over[w] & stays[w]) != 0;
        if (drops) continue;
        KILN_UNROLL
        for (int w = 0; w < words; ++w)
          if (w == k / 64) stays[w] |= u64(1) << (k % 64);
        to[found++] = static_cast<int>(place_of(entries[k]));
      }
      kept_so_far = found;
    }
    sync_block();
    found = kept_so_far;
    if (last == worst_entry<u64>()) break;
    sync_block();
  }
  if (lane == 0) counts[1 + row] = found;
}
/// What class `row` of all batches keeps, as batch, class and box.
template <int Lanes>
KILN_FN void write_boxes(i64* out, const int* kept, const i64* counts, const box_sizes& n, i64 row, int lane) {
  const i64 before = counts[1 + row], end = row + 1 < n.tiles ? counts[2 + row] : counts[0];
  for (i64 k = lane; k < end - before; k += Lanes) {
    i64* const to = out + (before + k) * 3;
    to[0] = row / n.classes, to[1] = row % n.classes, to[2] = kept[row * n.boxes + k];
  }
}

}  // namespace kiln::gpu
