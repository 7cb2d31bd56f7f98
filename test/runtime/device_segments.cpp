// Programs whose extents only a run knows, with arguments on a device whose memory nobody but its queues can touch.
#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/run_options.hpp"
#include "peer/gpu/alone/fake_gpu.hpp"

namespace kiln::testing {
namespace {

argument on_device(const device& where, const argument& a) {
  buffer memory = where.allocate(static_cast<std::size_t>(a.get_shape().bytes().value()));
  std::byte* const data = memory.data();
  argument to(a.get_shape(), std::move(memory), data);
  const auto queue = where.make_queue();
  queue->copy(to.data(), a.data(), static_cast<std::size_t>(a.get_shape().bytes().value()));
  queue->wait();
  return to;
}
std::vector<float> floats_of(const device& where, const argument& a) {
  std::vector<float> out(static_cast<std::size_t>(a.elements()));
  const auto queue = where.make_queue();
  queue->copy(out.data(), a.data(), out.size() * sizeof(float));
  queue->wait();
  return out;
}

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

}  // namespace
}  // namespace kiln::testing
