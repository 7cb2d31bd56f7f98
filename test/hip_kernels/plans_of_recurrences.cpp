// How a cluster's blocks divide a recurrence, where a device has room for it.
#include <gmock/gmock.h>

#include "hip_kernels/plan_cases.hpp"
#include "kiln/backend/hip/impl/index/recurrent_shapes.hpp"
#include "kiln/op/more.hpp"

namespace kiln::testing {
namespace {

// A layer of four gates; bytes that a run needs beside its operands are 0 where one launch makes all steps.
struct layer {
  lowered_op lowered;
  layer(const hip::context_pointer& where, dtype t, std::int64_t batch, std::int64_t hidden)
      : lowered(
            hip::lower_recurrent, attributes(),
            {shape(t, {3, batch, 4 * hidden}), shape(t, {hidden, 4 * hidden}), shape(t, {4 * hidden}),
             shape(t, {batch, hidden}), shape(dtype::i64, {batch}), shape(t, {batch, hidden}), shape(t, {3 * hidden})},
            where) {}
  static op::recurrent attributes() {
    using f = op::cell_function;
    return {.cell = op::cell_kind::lstm,
            .functions = {f::sigmoid, f::tanh, f::tanh},
            .alpha = {0, 0, 0},
            .beta = {0, 0, 0}};
  }
  std::size_t room() const {
    std::vector<tensor> in;
    for (const shape& s : lowered.shapes) in.push_back(lowered_op::at(nullptr, s));
    const tensor out = lowered_op::at(nullptr, lowered.result);
    return lowered.made->scratch_bytes(in, {&out, 1}, 1);
  }
};

TEST(recurrence_plans, blocks_entries_and_memory_of_held_matrices) {
  struct expected {
    int gates;
    std::int64_t hidden, batch;
    int bytes, blocks, entries, parts, shared;
  };
  const hip::architecture sm_90 = hip::architecture::named("sm_90");
  ASSERT_EQ(sm_90.multiprocessors, 132);
  for (const expected& e : {expected{4, 40, 9, 4, 1, 1, 3, 2464},
                            {4, 40, 1000, 4, 1, 8, 3, 19712},
                            {4, 333, 1, 4, 16, 1, 5, 12768},
                            {4, 333, 9, 4, 16, 4, 5, 28032},
                            {4, 512, 64, 4, 16, 8, 4, 181248},
                            {3, 512, 9, 4, 16, 4, 5, 109952},  // a third state
                            {1, 512, 1, 4, 16, 1, 16, 6272},
                            {4, 333, 9, 8, 16, 4, 5, 178944},
                            {3, 333, 1000, 8, 16, 4, 5, 191232},  // memory has no room for eight
                            {1, 512, 64, 8, 16, 8, 16, 100352}}) {
    SCOPED_TRACE(std::to_string(e.hidden) + " by " + std::to_string(e.batch));
    const auto s = hip::held_for(e.gates, e.hidden, e.batch, e.bytes, e.gates == 3, sm_90);
    ASSERT_TRUE(s);
    EXPECT_EQ(s->blocks, e.blocks);
    EXPECT_EQ(s->entries, e.entries);
    EXPECT_EQ(s->parts, e.parts);
    EXPECT_EQ(s->shared_bytes(), e.shared);
    EXPECT_GE(s->units() * s->blocks, e.hidden);
    EXPECT_GE(s->deep() * s->parts, e.hidden);
    EXPECT_LE(s->threads(), 512);
    EXPECT_LE(static_cast<std::size_t>(s->shared_bytes()), sm_90.shared_bytes);
  }
  const auto blocks = [&](std::int64_t hidden, const char* where, int most) {
    const auto s = hip::held_for(4, hidden, 1, 4, false, hip::architecture::named(where), most);
    return s ? s->blocks : 0;
  };
  EXPECT_EQ(blocks(512, "sm_90", 16), 16);
  EXPECT_EQ(blocks(512, "sm_90", 8), 0);
  EXPECT_EQ(blocks(1200, "sm_90", 16), 0);
  EXPECT_EQ(blocks(64, "gfx90a", 16), 1);
  EXPECT_EQ(blocks(333, "gfx90a", 16), 0);
}

TEST(recurrence_plans, no_units) {
  for (const char* name : {"gfx90a", "gfx1030", "sm_90"}) {
    const hip::architecture where = hip::architecture::named(name);
    for (const int bytes : {4, 8}) EXPECT_FALSE(hip::held_for(4, 0, 3, bytes, false, where)) << name;
    EXPECT_FALSE(hip::cluster_for(4, 0, where)) << name;
    const auto absent = std::make_shared<const hip::context>(where, "");
    EXPECT_EQ(layer(absent, dtype::f32, 3, 0).room(), 0u) << name;
    EXPECT_EQ(layer(absent, dtype::f16, 3, 0).room(), 0u) << name;
  }
}

// A device that has clusters of 16 blocks or has none such.
int clusters_there = 0;
hip::runtime_calls device_of_clusters() {
  hip::runtime_calls calls;
  calls.on = hip::platform::nvidia;
  calls.hipSetDevice = [](int) { return 0; };
  calls.hipModuleLoadData = [](void**, const void*) { return 0; };
  calls.hipModuleGetFunction = [](void**, void*, const char*) { return 0; };
  calls.hipFuncSetAttribute = [](void*, int, int) { return 0; };
  calls.describe = [](int, hip::device_facts& out) {
    out.architecture = "sm_90", out.multiprocessors = 132, out.shared_bytes = 227 * 1024;
  };
  calls.count_clusters = [](int* count, void*, unsigned blocks, unsigned, unsigned) {
    EXPECT_EQ(blocks, 16u);
    *count = clusters_there;
    return clusters_there < 0 ? 1 : 0;
  };
  return calls;
}
TEST(recurrence_plans, clusters_that_a_device_has_no_room_for_are_not_launched) {
  if (const std::string why = why_skipped("sm_90"); !why.empty()) GTEST_SKIP() << why;
  const hip::runtime_calls calls = device_of_clusters();
  const auto room = [&](int clusters, dtype t, std::int64_t hidden) {
    clusters_there = clusters;
    const auto where = std::make_shared<const hip::context>(calls, 0, "");
    return layer(where, t, 3, hidden).room();
  };
  EXPECT_EQ(room(1, dtype::f32, 512), 0u);
  EXPECT_GT(room(0, dtype::f32, 512), 0u);   // eight blocks don't hold it: a launch a step
  EXPECT_GT(room(-1, dtype::f32, 512), 0u);  // the driver knows no such cluster
  EXPECT_EQ(room(0, dtype::f32, 64), 0u);
  EXPECT_EQ(room(0, dtype::f16, 256), 0u);
  EXPECT_EQ(room(1, dtype::f16, 512), 0u);
  EXPECT_GT(room(0, dtype::f16, 512), 0u);
}

}  // namespace
}  // namespace kiln::testing
