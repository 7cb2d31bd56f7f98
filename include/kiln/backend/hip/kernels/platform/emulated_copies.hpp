#pragma once
#include <stdexcept>

#include "kiln/backend/hip/kernels/platform/emulated.hpp"
#include "kiln/backend/hip/runtime.hpp"

// The copy unit of sm_90 and what waits for it, for lanes that the CPU runs: copies end when they begin. Shared memory
// begins at a multiple of 1024 bytes. Included by platform.hpp.

namespace kiln::gpu {

/// A tensor as the emulated copy unit sees it; `boxes` outlives the map.
inline tensor_map map_of(const hip::tensor_boxes& boxes) { return {{reinterpret_cast<u64>(&boxes)}}; }

/// A barrier in shared memory.
struct emulated_barrier {
  u16 count, pending;
  int bytes : 31;
  u32 phase : 1;
  void settle() {
    if (pending == 0 && bytes == 0) pending = count, phase = phase ^ 1u;
  }
};
static_assert(sizeof(emulated_barrier) == sizeof(u64));
inline emulated_barrier& barrier_at(u64* at) { return *reinterpret_cast<emulated_barrier*>(at); }

inline void start_barrier(u64* at, int count) {
  barrier_at(at) = {static_cast<u16>(count), static_cast<u16>(count), 0, 0};
}
inline void fence_barriers() {}
inline void fence_shared() {}
inline void arrive_at(u64* at) {
  emulated_barrier& b = barrier_at(at);
  if (b.pending == 0) throw std::logic_error("more arrive at a barrier than it counts");
  --b.pending, b.settle();
}
inline void arrive_and_expect(u64* at, int bytes) {
  barrier_at(at).bytes += bytes;
  arrive_at(at);
}
inline void await_barrier(u64* at, int phase) {
  constexpr int long_enough = 1 << 16;
  for (int i = 0; barrier_at(at).phase == static_cast<u32>(phase & 1); ++i) {
    if (i == long_enough) throw std::logic_error("a barrier is never reached");
    wait_for_others();
  }
}
/// Lanes that wait at each number, and how often all have come.
struct emulated_meeting {
  int there = 0, times = 0;
};
extern emulated_meeting meetings[16];
template <int Threads> void sync_some(int number) {
  emulated_meeting& m = meetings[number];
  const int times = m.times;
  if (++m.there == Threads) m.there = 0, ++m.times;
  while (m.times == times) wait_for_others();
}
template <int Count> void leave_registers() {}
template <int Count> void take_registers() {}

inline constexpr int line_bytes_of_box = 128;
/// Where a piece of 16 bytes of a line of a box lies.
inline std::byte* swizzled_piece(const void* box, int line, int piece) {
  return static_cast<std::byte*>(const_cast<void*>(box)) + line * line_bytes_of_box + (piece ^ line % 8) * 16;
}
inline const hip::tensor_boxes& boxes_of(const tensor_map& map) {
  return *reinterpret_cast<const hip::tensor_boxes*>(map.words[0]);
}
/// Calls `piece(in the box, in the tensor, how many bytes exist)` for each piece of a box whose line i is `row(i)` of
/// the tensor, none where it is null.
template <class Row, class Piece>
void for_box(const hip::tensor_boxes& how, const void* box, int along, Row row, Piece piece) {
  constexpr i64 each = 8;  // elements of a piece
  for (int line = 0; line < static_cast<int>(how.across); ++line)
    for (int p = 0; p < static_cast<int>(how.along) / each; ++p) {
      const i64 col = along + p * each, left = static_cast<i64>(how.extents[0]) - col;
      std::byte* const from = row(line);
      piece(swizzled_piece(box, line, p), from ? from + col * 2 : nullptr,
            static_cast<std::size_t>(!from || left < 0 ? 0
                                     : left < each     ? left
                                                       : each) *
                2);
    }
}
inline auto rows_from(const hip::tensor_boxes& how, int across) {
  return [&how, across](int line) {
    const i64 row = across + line;
    return row < 0 || row >= static_cast<i64>(how.extents[1])
               ? nullptr
               : static_cast<std::byte*>(const_cast<void*>(how.base)) + row * static_cast<i64>(how.step_bytes[0]);
  };
}
inline auto places_from(const hip::tensor_boxes& how, int place, int line_of_tensor) {
  return [&how, place, line_of_tensor](int line) {
    const i64 pixels = static_cast<i64>(how.extents[1]), at = place + line, in = line_of_tensor + at / pixels;
    return in >= static_cast<i64>(how.extents[2])
               ? nullptr
               : static_cast<std::byte*>(const_cast<void*>(how.base)) + in * static_cast<i64>(how.step_bytes[1]) +
                     at % pixels * static_cast<i64>(how.step_bytes[0]);
  };
}
inline void arrived(u64* barrier, const hip::tensor_boxes& how) {
  emulated_barrier& b = barrier_at(barrier);
  b.bytes -= static_cast<int>(how.along * how.across) * 2;
  b.settle();
}
template <class Row> void bring(void* to, const hip::tensor_boxes& how, int along, Row row, u64* barrier) {
  for_box(how, to, along, row, [](std::byte* box, const std::byte* tensor, std::size_t bytes) {
    std::memset(box, 0, 16);
    if (bytes != 0) std::memcpy(box, tensor, bytes);
  });
  arrived(barrier, how);
}
template <class Row> void store(const void* from, const hip::tensor_boxes& how, int along, Row row) {
  for_box(how, from, along, row, [](const std::byte* box, std::byte* tensor, std::size_t bytes) {
    if (bytes != 0) std::memcpy(tensor, box, bytes);
  });
}
inline void copy_box(void* to, const tensor_map& map, int along, int across, u64* barrier) {
  bring(to, boxes_of(map), along, rows_from(boxes_of(map), across), barrier);
}
inline void copy_places(void* to, const tensor_map& map, int along, int place, int line, u64* barrier) {
  bring(to, boxes_of(map), along, places_from(boxes_of(map), place, line), barrier);
}
inline void store_box(const tensor_map& map, const void* from, int along, int across) {
  store(from, boxes_of(map), along, rows_from(boxes_of(map), across));
}
inline void store_places(const tensor_map& map, const void* from, int along, int place, int line) {
  store(from, boxes_of(map), along, places_from(boxes_of(map), place, line));
}
inline void store_commit() {}
template <int Pending> void await_stores() {}
/// Windows follow one another from the first place that one begins at in a line to the last, then on the next line.
inline void copy_windows(void* to, const tensor_map& map, int channel, int col, int row, int image, int right, int down,
                         u64* barrier) {
  const hip::tensor_boxes& how = boxes_of(map);
  const auto extent = [&](int d) { return static_cast<int>(how.extents[d]); };
  for (int line = 0; line < static_cast<int>(how.across); ++line) {
    const int x = col + right, y = row + down;
    const bool inside = x >= 0 && x < extent(1) && y >= 0 && y < extent(2) && image < extent(3);
    const auto* at = static_cast<const std::byte*>(how.base) + channel * 2;
    if (inside)
      at += x * static_cast<i64>(how.step_bytes[0]) + y * static_cast<i64>(how.step_bytes[1]) +
            image * static_cast<i64>(how.step_bytes[2]);
    for (int p = 0; p < line_bytes_of_box / 16; ++p) {
      std::byte* piece = swizzled_piece(to, line, p);
      std::memset(piece, 0, 16);
      if (inside) std::memcpy(piece, at + p * 16, 16);
    }
    col += static_cast<int>(how.stride[1]);
    if (col <= extent(1) - 1 + how.upper[0]) continue;
    col = how.lower[0], row += static_cast<int>(how.stride[2]);
    if (row <= extent(2) - 1 + how.upper[1]) continue;
    row = how.lower[1], ++image;
  }
  arrived(barrier, how);
}

}  // namespace kiln::gpu
