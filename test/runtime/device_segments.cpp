// Programs whose extents only a run knows, with arguments on a device whose memory nobody but its queues can touch.
#include "kiln/graph/builder.hpp"
#include "kiln/op/dynamic/slice_at.hpp"
#include "kiln/runtime/run_options.hpp"
#include "runtime/device_fakes.hpp"

namespace kiln::testing {
namespace {

// y: each element plus the sum of those that are not zero; x itself is an output, too.
TEST(device_segments, read_and_write_the_devices_memory) {
  const fake::gpu_target gpu;
  const device& where = *gpu.get_device();
  builder b;
  const value x = b.input("x", dtype::f32, {4});
  const dimension n = dimension::symbol("found");
  const value at = b.add(op::nonzero{n}, x).reshape({n});
  b.output(x + x.gather(at, 0).reduce_sum({0}), "y");
  b.output(x, "same");
  const executable exe = compile(b.finish(), gpu);
  const argument given = argument::of<float>({4}, std::vector<float>{1, 0, -3, 5});
  for (const bool in_stream : {false, true}) {
    std::vector<argument> in{on_device(where, given)};
    std::vector<argument> out(2, on_device(where, argument(given.get_shape())));
    out[1] = on_device(where, argument(given.get_shape()));
    workspace w = exe.make_workspace();
    const auto queue = where.make_queue();
    run_options options;
    if (in_stream) {  // what it reads is still to be written there
      in[0] = on_device(where, argument(given.get_shape()));
      queue->copy(in[0].data(), given.data(), 4 * sizeof(float));
      options.stream = queue->stream();
    }
    exe.run(w, in, out, options);
    queue->wait();
    EXPECT_EQ(floats_of(where, out[0]), (std::vector<float>{4, 3, 0, 8}));
    EXPECT_EQ(floats_of(where, out[1]), (std::vector<float>{1, 0, -3, 5}));
  }
}

// A slice that a run places lies in what the device made, and what follows reads it there.
TEST(device_segments, slice_the_devices_memory) {
  const fake::gpu_target gpu;
  const device& where = *gpu.get_device();
  builder b;
  const value x = b.input("x", dtype::f32, {4});
  std::vector<value> operands{x + x};
  for (const char* const name : {"from", "to", "axes", "steps"}) operands.push_back(b.input(name, dtype::i64, {1}));
  const value part = b.add(op::slice_at{{dimension::symbol("length")}}, operands[0], operands[1], operands[2],
                           operands[3], operands[4]);
  b.output(part, "part");
  b.output(part + part, "twice");
  const executable exe = compile(b.finish(), gpu);
  const auto number = [](std::int64_t v) { return argument::of<std::int64_t>({1}, std::vector<std::int64_t>{v}); };
  const argument given = argument::of<float>({4}, std::vector<float>{1, 2, 3, 4});
  for (const std::int64_t step : {1, -2}) {
    const bool back = step < 0;
    const auto out =
        exe.run({{on_device(where, given), number(back ? -1 : 1), number(back ? -9 : 9), number(0), number(step)}});
    const std::vector<float> expected = back ? std::vector<float>{8, 4} : std::vector<float>{4, 6, 8};
    const auto part_of = out[0].to<float>(), twice = out[1].to<float>();
    ASSERT_EQ(part_of.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_EQ(part_of[k], expected[k]);
      EXPECT_EQ(twice[k], 2 * expected[k]);
    }
  }
}

// Kernels are planned, and given scratch memory, for aligned operands: others of the caller's are copied.
TEST(device_segments, operands_at_odd_places_are_copied) {
  const aligned_target gpu;
  const device& where = *gpu.get_device();
  builder b;
  const value x = b.input("x", dtype::f32, {2, 3});
  b.output(x + x.reduce_sum({1}), "y");
  const executable exe = compile(b.finish(), gpu);
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6}, expected = {7, 8, 9, 19, 20, 21};
  std::size_t least = 0;
  for (const std::size_t skipped : {0, 4, 8, 12, 16}) {
    SCOPED_TRACE(skipped);
    const auto behind = [&](const std::vector<float>& values) {
      const std::size_t bytes = values.size() * sizeof(float);
      buffer memory = where.allocate(bytes + skipped);
      std::byte* const data = memory.data() + skipped;
      const auto queue = where.make_queue();
      queue->copy(data, values.data(), bytes);
      queue->wait();
      return argument({dtype::f32, {2, 3}}, std::move(memory), data);
    };
    std::vector<argument> in{behind(numbers)}, out{behind(std::vector<float>(6, -1))};
    workspace w = exe.make_workspace();
    for (int run = 0; run < 3; ++run) {
      const std::size_t before = fake::copies;
      exe.run(w, in, out);
      const std::size_t copied = fake::copies - before;
      if (skipped == 0 && run == 0) least = copied;
      EXPECT_EQ(copied, skipped % 16 == 0 ? least : least + 2);
      EXPECT_EQ(floats_of(where, out[0]), expected);
    }
  }
}

// What a device counts is made in its memory, in the caller's where that has the size, and read there by what follows.
TEST(device_segments, what_a_device_counts_is_made_there) {
  const counting_target gpu;
  const device& where = *gpu.get_device();
  builder b;
  const value x = b.input("x", dtype::f32, {dimension::symbol("n")});
  const dimension n = dimension::symbol("found");
  const value at = b.add(op::nonzero{n}, x);
  b.output(at, "at");
  b.output(x.gather(at.reshape({n}), 0), "values");
  const executable exe = compile(b.finish(), gpu);
  EXPECT_EQ(exe.report().steps[0].kernel, "counted");
  workspace w = exe.make_workspace();
  for (const std::vector<float>& given : {std::vector<float>{1, 0, -3, 5}, {0, 0, 2}, {0, 0}, {}, {0, 4, 4, 4, 4, 4}}) {
    std::vector<float> values;
    std::vector<std::int64_t> places;
    for (std::size_t k = 0; k < given.size(); ++k)
      if (given[k] != 0) values.push_back(given[k]), places.push_back(static_cast<std::int64_t>(k));
    const auto count = static_cast<std::int64_t>(values.size());
    const argument here = argument::of<float>({static_cast<std::int64_t>(given.size())}, std::span(given));
    for (const bool sized : {false, true})
      for (const bool there : {false, true}) {
        if (given.empty() && there) continue;
        std::vector<argument> out(2);
        if (sized && count != 0)
          out = {on_device(where, argument(shape{dtype::i64, {1, count}})),
                 on_device(where, argument(shape{dtype::f32, {count}}))};
        const int before = counting_nonzero::counted;
        exe.run(w, {{there ? on_device(where, here) : here}}, out);
        EXPECT_EQ(counting_nonzero::counted, before + 1);
        std::vector<std::int64_t> found(values.size());
        std::vector<float> taken(values.size());
        const auto queue = where.make_queue();
        if (count != 0) {
          queue->copy(found.data(), out[0].data(), found.size() * sizeof(std::int64_t));
          queue->copy(taken.data(), out[1].data(), taken.size() * sizeof(float));
        }
        queue->wait();
        EXPECT_EQ(found, places);
        EXPECT_EQ(taken, values);
        EXPECT_EQ(out[0].get_shape().lens, (dims{1, count}));
      }
  }
}

// Programs of several targets use one workspace by turns: none takes what another left there for its own.
TEST(device_segments, programs_share_a_workspace) {
  const counting_target gpu;
  const reference_target cpu;
  const device& where = *gpu.get_device();
  const auto make = [](const target& t, bool finds, bool sums) {
    builder b;
    value x = b.input("x", dtype::f32, {4});
    if (sums) {
      const value y = x.reshape({2, 2});
      x = ((y + y.reduce_sum({1})).reduce_max({0}) + y).reshape({4});
    }
    b.output(finds ? b.add(op::nonzero{dimension::symbol("found")}, x) : x, "made");
    return compile(b.finish(), t);
  };
  const argument there = on_device(where, argument::of<float>({4}, std::vector<float>{1, -2, 0, 3}));
  const argument wide = argument::of<float>({8}, std::vector<float>{1, 9, 0, 9, -2, 9, 3, 9}),
                 apart({dtype::f32, {4}, {2}}, const_cast<std::byte*>(wide.data()));
  struct user {
    executable of;
    argument in;
    std::vector<double> expected;
  };
  std::vector<user> users;
  users.push_back({make(gpu, true, true), there, {0, 1, 2, 3}});   // a planned segment, then a count
  users.push_back({make(gpu, true, false), there, {0, 1, 3}});     // a count
  users.push_back({make(gpu, true, false), apart, {0, 2, 3}});     // a count of what is copied there
  users.push_back({make(cpu, true, true), apart, {0, 1, 3}});      // a planned segment that copies its input
  users.push_back({make(cpu, false, true), apart, {3, 4, 0, 7}});  // one plan
  users.push_back({make(gpu, false, true), there, {4, 4, 3, 9}});  // one plan
  for (std::size_t first = 0; first < users.size(); ++first)
    for (std::size_t second = 0; second < users.size(); ++second) {
      workspace w;
      for (const std::size_t k : {first, second, first, second}) {
        SCOPED_TRACE(::testing::Message() << first << ' ' << second << ", now " << k);
        std::vector<argument> out(1);
        users[k].of.run(w, {{users[k].in}}, out);
        std::vector<double> found;
        if (out[0].get_shape().type == dtype::f32)
          for (const float v : out[0].to<float>()) found.push_back(v);
        else
          for (const std::int64_t v : out[0].to<std::int64_t>()) found.push_back(static_cast<double>(v));
        EXPECT_EQ(found, users[k].expected);
      }
    }
}

}  // namespace
}  // namespace kiln::testing
