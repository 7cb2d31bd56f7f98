// The emulated device's copy unit and what lanes wait for: an early reuse of shared memory shows, and no wait is
// endless.
#include "emulated_copies.hpp"

#include <gtest/gtest.h>

#include "emulated_device.hpp"

using namespace kiln::gpu;
using kiln::hip::copy_mode;
using kiln::hip::tensor_boxes;

namespace {

constexpr int columns = 64;

tensor_boxes boxes_over(std::vector<u16>& tensor) {
  tensor_boxes to;
  to.base = tensor.data();
  to.extents[0] = columns, to.extents[1] = tensor.size() / columns;
  to.step_bytes[0] = columns * 2;
  to.across = 1;
  return to;
}
void fill(char* box, u16 with) {
  for (int i = 0; i < columns; ++i) reinterpret_cast<u16*>(box)[i] = with;
}
// What the copy unit writes to two rows from one box, which is filled again before the lane waits but for the last
// `Pending` groups of stores.
template <int Pending> std::vector<u16> rows_of_a_reused_box() {
  std::vector<u16> rows(2 * columns);
  const tensor_boxes boxes = boxes_over(rows);
  const tensor_map map = map_of(boxes);
  run_grid(1, 1, warp_lanes, columns * 2, [&](char* box) {
    if (thread_index() != 0) return;
    for (int row = 0; row < 2; ++row) {
      fill(box, static_cast<u16>(row + 1));
      store_box(map, box, 0, row);
      store_commit();
      await_stores<Pending>();
    }
    fill(box, 3);
  });
  return {rows[0], rows[columns]};
}
TEST(device_copies, stores_read_shared_memory_when_they_are_awaited) {
  EXPECT_EQ(rows_of_a_reused_box<0>(), (std::vector<u16>{1, 2}));
  EXPECT_EQ(rows_of_a_reused_box<1>(), (std::vector<u16>{2, 3}));
  EXPECT_EQ(rows_of_a_reused_box<2>(), (std::vector<u16>{3, 3}));
}
TEST(device_copies, tensors_are_mapped_for_one_kind_of_copies) {
  std::vector<u16> rows(columns);
  tensor_boxes boxes = boxes_over(rows);
  boxes.mode = copy_mode::im2col, boxes.rank = 3;
  const tensor_map map = map_of(boxes);
  EXPECT_THROW(run_grid(1, 1, warp_lanes, columns * 2, [&](char* box) { store_box(map, box, 0, 0); }),
               std::logic_error);
}
TEST(device_copies, threads_that_never_meet_are_an_error) {
  EXPECT_THROW(run_grid(1, 1, warp_lanes, 0,
                        [&](char*) {
                          if (thread_index() == 0) sync_some<warp_lanes>(1);
                        }),
               std::logic_error);
  run_grid(1, 1, warp_lanes, 0, [](char*) { sync_some<warp_lanes>(1); });  // nobody is left from before
}

}  // namespace
