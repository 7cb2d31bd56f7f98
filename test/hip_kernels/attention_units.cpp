// Which rows the blocks of attention on wgmma work, tile after tile.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "kiln/backend/hip/impl/attention/wgmma_tiles.hpp"
#include "kiln/backend/hip/kernels/attention/attention_units.hpp"

namespace kiln::gpu {
namespace {

// Blocks that work tile after tile: each row of each head is in one tile of one block, whose steps have all keys that
// it sees and no step without one.
template <int Units, int Keys, bool Causal> void check_units(const attention_sizes& s, int blocks, bool counted) {
  using units = attention_units<Units, Keys, Causal>;
  const int kv_heads = s.heads / s.group, batches = s.groups / kv_heads;
  std::map<std::array<int, 3>, int> worked;  // batch, head and query
  int counter = 0;
  for (int block = 0; block < blocks; ++block) {
    tile_order order{counted ? &counter : nullptr, block, blocks};
    for (int n = order.first(); n < s.groups * s.tiles; n = order.next()) {
      const units at(s, n);
      int most = 0;
      for (int u = 0; u < Units; ++u) {
        const attention_row first = at.first_row(u);
        if (first.head >= s.group) continue;
        for (int q = first.query; q < std::min(first.query + units::rows, s.queries); ++q) {
          ++worked[{at.batch, at.kv_head * s.group + first.head, q}];
          const int seen = Causal ? std::clamp(q + 1 + s.keys - s.queries, 0, s.keys) : s.keys;
          ASSERT_EQ(at.keys_of(q), seen) << q;
          most = std::max(most, seen);
        }
      }
      ASSERT_EQ(at.steps(), (most + Keys - 1) / Keys) << n;
    }
  }
  ASSERT_EQ(worked.size(), static_cast<std::size_t>(batches * s.heads * s.queries));
  for (const auto& [row, times] : worked) ASSERT_EQ(times, 1) << row[0] << " " << row[1] << " " << row[2];
}

TEST(device_attention, blocks_work_each_unit_of_rows_once) {
  const auto sizes_of = [](int batch, int kv_heads, int group, int queries, int keys, int units, int section) {
    const int tiles = (group * ((queries + 63) / 64) + units - 1) / units;
    return attention_sizes{kv_heads * group, group,   queries, keys,   64, 64, tiles, 1, 1,
                           batch * kv_heads, nullptr, nullptr, section};
  };
  for (const bool counted : {false, true})
    for (const int blocks : {1, 5, 132})
      for (const int section : {1, 2, 4, 6}) {
        SCOPED_TRACE(std::to_string(blocks) + " blocks, sections of " + std::to_string(section));
        check_units<2, 128, true>(sizes_of(2, 3, 1, 300, 333, 2, section), blocks, counted);
        check_units<2, 128, true>(sizes_of(2, 3, 3, 129, 65, 2, section), blocks, counted);
        check_units<1, 128, true>(sizes_of(3, 2, 2, 64, 64, 1, section), blocks, counted);
        check_units<4, 64, false>(sizes_of(1, 6, 3, 70, 77, 4, section), blocks, counted);
      }
}

// How many groups of four warps a block has, on 132 multiprocessors: many where they fill the device.
TEST(device_attention, blocks_have_as_many_units_as_fill_the_device) {
  struct row {
    ints queries;  // batch, heads, queries
    std::int64_t kv_heads;
    int depth;
    bool causal, masked;
    int groups, keys;
    std::int64_t all_keys = 0;  // as many as queries where 0
  };
  const hip::architecture where = hip::architecture::named("sm_90");
  for (const row& r : {row{{16, 12, 512}, 12, 64, false, false, 4, 64},
                       // in causal attention four where queries see few keys in the mean
                       {{16, 12, 512}, 12, 64, true, false, 4, 64},
                       {{16, 12, 1024}, 12, 64, true, false, 2, 128},
                       {{16, 12, 512}, 12, 64, true, false, 2, 128, 641},
                       {{16, 12, 512}, 12, 64, true, true, 2, 128},
                       {{16, 12, 512}, 12, 64, false, true, 2, 128},
                       {{16, 12, 512}, 12, 72, false, false, 2, 128},
                       {{16, 12, 512}, 12, 128, true, false, 2, 128},
                       // of heads of 3 units four groups idle a quarter, two another round
                       {{1, 132, 192}, 132, 64, false, false, 4, 64},
                       {{1, 132, 192}, 132, 128, false, false, 2, 128},
                       {{1, 132, 128}, 132, 64, false, false, 2, 128},
                       {{1, 132, 64}, 132, 64, false, false, 1, 128},
                       {{1, 66, 128}, 33, 128, false, false, 1, 128},
                       // a round more or less of other widths
                       {{1, 12, 2048}, 12, 64, false, false, 4, 64},
                       {{2, 12, 2048}, 12, 64, false, false, 2, 128},
                       // tiles of causal attention differ, and are no whole rounds
                       {{2, 128, 64}, 128, 128, true, false, 1, 128},
                       {{1, 128, 2048}, 8, 128, true, false, 2, 128}}) {
    SCOPED_TRACE(std::to_string(r.queries[1]) + " heads, " + std::to_string(r.queries[2]) + " queries of " +
                 std::to_string(r.depth));
    const hip::wgmma_tiles found(r.queries, r.kv_heads, r.all_keys == 0 ? r.queries[2] : r.all_keys, r.depth, r.causal,
                                 r.masked, where);
    EXPECT_EQ(found.groups, r.groups);
    EXPECT_EQ(found.keys, r.keys);
  }
}
// Heads whose tiles are worked together: in causal attention as many as 24 MB of keys and values belong to.
TEST(device_attention, sections_fit_half_of_the_cache) {
  const auto section = [](std::int64_t batch, std::int64_t heads, std::int64_t keys, bool causal) {
    const ints k{batch, heads, keys, 128}, v{batch, heads, keys, 64};
    const tensor of_k{nullptr, dtype::f16, k, row_major(k)}, of_v{nullptr, dtype::f16, v, row_major(v)};
    const tensor in[] = {of_k, of_k, of_v};
    return hip::wgmma_tiles::section(in, causal);
  };
  EXPECT_EQ(section(2, 128, 1024, true), 64);
  EXPECT_EQ(section(1, 64, 1025, true), 63);
  EXPECT_EQ(section(2, 16, 1024, true), 32);
  EXPECT_EQ(section(1, 8, 1 << 20, true), 1);
  EXPECT_EQ(section(3, 5, 0, true), 15);
  EXPECT_EQ(section(2, 128, 1024, false), 1);
}

// How the copy unit is told to read heads, rows and heads interleaved; what it can't read is no box.
TEST(device_attention, heads_are_boxes_of_the_copy_unit) {
  const tensor x{nullptr, dtype::f16, {3, 12, 70, 80}, {70 * 12 * 80, 80, 12 * 80, 1}};
  const auto boxes = hip::boxes_of_heads(x, 64);
  ASSERT_TRUE(boxes);
  EXPECT_EQ(boxes->mode, hip::copy_mode::tiled);
  EXPECT_FALSE(boxes->bfloat16);
  EXPECT_EQ(boxes->rank, 4);
  EXPECT_EQ(boxes->across, 64u);
  const std::uint64_t extents[] = {80, 70, 12, 3}, steps[] = {12 * 160, 160, 70 * 12 * 160};
  for (std::size_t d = 0; d < 4; ++d) EXPECT_EQ(boxes->extents[d], extents[d]) << d;
  for (std::size_t d = 0; d < 3; ++d) EXPECT_EQ(boxes->step_bytes[d], steps[d]) << d;
  const auto with = [&](auto&& change) {
    tensor other = x;
    change(other);
    return hip::boxes_of_heads(other, 64).has_value();
  };
  EXPECT_TRUE(with([](tensor& t) { t.lens[0] = 1, t.strides[0] = 0; }));
  EXPECT_FALSE(with([](tensor& t) { t.strides[0] = 0; }));
  EXPECT_FALSE(with([](tensor& t) { t.strides[1] = 84; }));
  EXPECT_FALSE(with([](tensor& t) { t.lens[2] = 0; }));
  EXPECT_TRUE(with([](tensor& t) { t.data = reinterpret_cast<std::byte*>(0x1010); }));
  EXPECT_FALSE(with([](tensor& t) { t.data = reinterpret_cast<std::byte*>(0x1008); }));
  EXPECT_FALSE(with([](tensor& t) { t.type = dtype::f32; }));
}

}  // namespace
}  // namespace kiln::gpu
