#include "emulated_copies.hpp"

#include <deque>
#include <functional>
#include <stdexcept>
#include <vector>

namespace kiln::gpu {
namespace {

// Lets the other lanes go on until `done` holds.
template <class Done> void await(Done done, const char* what) {
  constexpr int long_enough = 1 << 16;
  for (int i = 0; !done(); ++i) {
    if (i == long_enough) throw std::logic_error(what);
    wait_for_others();
  }
}

// A barrier in shared memory.
struct emulated_barrier {
  u16 count, pending;
  int bytes : 31;
  u32 phase : 1;
  void settle() {
    if (pending == 0 && bytes == 0) pending = count, phase = phase ^ 1u;
  }
};
static_assert(sizeof(emulated_barrier) == sizeof(u64));
emulated_barrier& barrier_at(u64* at) { return *reinterpret_cast<emulated_barrier*>(at); }

// Lanes that wait at each number, and how often all have come.
struct emulated_meeting {
  int there = 0, times = 0;
};
emulated_meeting meetings[16];

// The stores that a lane has begun, by groups, the last of which is open.
using store_group = std::vector<std::function<void()>>;
std::vector<std::deque<store_group>> stores;
std::deque<store_group>& own_stores() { return stores[static_cast<std::size_t>(now.thread)]; }

constexpr int line_bytes_of_box = 128;
// Where a piece of 16 bytes of a line of a box lies.
std::byte* swizzled_piece(const void* box, int line, int piece) {
  return static_cast<std::byte*>(const_cast<void*>(box)) + line * line_bytes_of_box + (piece ^ line % 8) * 16;
}
const hip::tensor_boxes& boxes_of(const tensor_map& map, hip::copy_mode mode, int rank) {
  const auto& how = *reinterpret_cast<const hip::tensor_boxes*>(map.words[0]);
  if (how.mode != mode || how.rank != rank) throw std::logic_error("a tensor is mapped for other copies");
  return how;
}
// Calls `piece(in the box, in the tensor, how many bytes exist)` for each piece of a box whose line i is `row(i)` of
// the tensor, none where it is null.
template <class Row, class Piece>
void for_box(const hip::tensor_boxes& how, const void* box, int along, Row row, Piece piece) {
  const i64 width = how.width(), each = 16 / width;  // elements of a piece
  for (int line = 0; line < static_cast<int>(how.across); ++line)
    for (int p = 0; p < static_cast<int>(how.along) / each; ++p) {
      const i64 col = along + p * each, left = static_cast<i64>(how.extents[0]) - col;
      std::byte* const from = row(line);
      piece(swizzled_piece(box, line, p), from ? from + col * width : nullptr,
            static_cast<std::size_t>((!from || left < 0 ? 0
                                      : left < each     ? left
                                                        : each) *
                                     width));
    }
}
auto rows_from(const hip::tensor_boxes& how, int across) {
  return [&how, across](int line) {
    const i64 row = across + line;
    return row < 0 || row >= static_cast<i64>(how.extents[1])
               ? nullptr
               : static_cast<std::byte*>(const_cast<void*>(how.base)) + row * static_cast<i64>(how.step_bytes[0]);
  };
}
auto places_from(const hip::tensor_boxes& how, int place, int line_of_tensor) {
  return [&how, place, line_of_tensor](int line) {
    const i64 pixels = static_cast<i64>(how.extents[1]), at = place + line, in = line_of_tensor + at / pixels;
    return in >= static_cast<i64>(how.extents[2])
               ? nullptr
               : static_cast<std::byte*>(const_cast<void*>(how.base)) + in * static_cast<i64>(how.step_bytes[1]) +
                     at % pixels * static_cast<i64>(how.step_bytes[0]);
  };
}
void arrived(u64* barrier, const hip::tensor_boxes& how) {
  emulated_barrier& b = barrier_at(barrier);
  b.bytes -= static_cast<int>(how.along * how.across) * how.width();
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
  own_stores().back().push_back([=, &how] {
    for_box(how, from, along, row, [](const std::byte* box, std::byte* tensor, std::size_t bytes) {
      if (bytes != 0) std::memcpy(tensor, box, bytes);
    });
  });
}
void make_first_group() {
  for (const auto& one : own_stores().front()) one();
  own_stores().pop_front();
}

}  // namespace

void clear_copies(int threads) {
  for (emulated_meeting& m : meetings) m = {};
  stores.assign(static_cast<std::size_t>(threads), std::deque<store_group>(1));
}
void end_stores() {
  while (!own_stores().empty()) make_first_group();
  own_stores().emplace_back();
}

void start_barrier(u64* at, int count) { barrier_at(at) = {static_cast<u16>(count), static_cast<u16>(count), 0, 0}; }
void arrive_at(u64* at) {
  emulated_barrier& b = barrier_at(at);
  if (b.pending == 0) throw std::logic_error("more arrive at a barrier than it counts");
  --b.pending, b.settle();
}
void arrive_and_expect(u64* at, int bytes) {
  barrier_at(at).bytes += bytes;
  arrive_at(at);
}
void await_barrier(u64* at, int phase) {
  await([&] { return barrier_at(at).phase != static_cast<u32>(phase & 1); }, "a barrier is never reached");
}
void meet(int number, int threads) {
  emulated_meeting& m = meetings[number];
  const int times = m.times;
  if (++m.there == threads) m.there = 0, ++m.times;
  await([&] { return m.times != times; }, "some threads never meet the others");
}

void tma_load(void* to, const tensor_map& map, int along, int across, u64* barrier) {
  const hip::tensor_boxes& how = boxes_of(map, hip::copy_mode::tiled, 2);
  bring(to, how, along, rows_from(how, across), barrier);
}
void copy_places(void* to, const tensor_map& map, int along, int place, int line, u64* barrier) {
  const hip::tensor_boxes& how = boxes_of(map, hip::copy_mode::im2col, 3);
  bring(to, how, along, places_from(how, place, line), barrier);
}
void store_box(const tensor_map& map, const void* from, int along, int across) {
  const hip::tensor_boxes& how = boxes_of(map, hip::copy_mode::tiled, 2);
  store(from, how, along, rows_from(how, across));
}
void store_places(const tensor_map& map, const void* from, int along, int place, int line) {
  const hip::tensor_boxes& how = boxes_of(map, hip::copy_mode::im2col, 3);
  store(from, how, along, places_from(how, place, line));
}
void store_commit() { own_stores().emplace_back(); }
void await_groups(int pending) {
  while (own_stores().size() > static_cast<std::size_t>(pending) + 1) make_first_group();
}
// Windows follow one another from the first place that one begins at in a line to the last, then on the next line.
void copy_windows(void* to, const tensor_map& map, int channel, int col, int row, int image, int right, int down,
                  u64* barrier) {
  const hip::tensor_boxes& how = boxes_of(map, hip::copy_mode::im2col, 4);
  const auto extent = [&](int d) { return static_cast<int>(how.extents[d]); };
  for (int line = 0; line < static_cast<int>(how.across); ++line) {
    const int x = col + right, y = row + down;
    const bool inside = x >= 0 && x < extent(1) && y >= 0 && y < extent(2) && image < extent(3);
    const auto* at = static_cast<const std::byte*>(how.base) + channel * how.width();
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
