// Programs whose extents only a run knows, with arguments on a device whose memory nobody but its queues can touch.
#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/dynamic/slice_at.hpp"
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

// Kernels of a fake GPU that expect operands at addresses that 16 divides.
class aligned_kernel final : public kernel {
 public:
  explicit aligned_kernel(std::unique_ptr<kernel> of) : of_(std::move(of)) {}
  std::string name() const override { return of_->name(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned n) const override {
    return of_->scratch_bytes(in, out, n);
  }
  void run(const launch& l) const override {
    for (const std::span<const tensor> some : {l.in, l.out})
      for (const tensor& t : some) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data) % 16, 0u);
    of_->run(l);
  }
  bool on_device() const override { return true; }

 private:
  std::unique_ptr<kernel> of_;
};
class aligned_target final : public target {
 public:
  std::string_view name() const override { return gpu_.name(); }
  bool fuses() const override { return gpu_.fuses(); }
  std::string binary_format() const override { return gpu_.binary_format(); }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    return std::make_unique<aligned_kernel>(make_kernel_on_host(make_fallback_kernel(r.instruction.op)));
  }
  std::unique_ptr<kernel> make_copy(const derived_data* derived) const override { return gpu_.make_copy(derived); }
  bool has_device() const override { return true; }
  std::shared_ptr<const device> get_device() const override { return gpu_.get_device(); }

 private:
  fake::gpu_target gpu_;
};

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

}  // namespace
}  // namespace kiln::testing
