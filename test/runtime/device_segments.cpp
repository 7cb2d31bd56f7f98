// Programs whose extents only a run knows, with arguments on a device whose memory nobody but its queues can touch.
#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/dynamic/slice_at.hpp"
#include "kiln/runtime/counting_kernel.hpp"
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
  explicit aligned_kernel(std::unique_ptr<kernel> of, bool anywhere = false)
      : of_(std::move(of)), anywhere_(anywhere) {}
  std::string name() const override { return of_->name(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned n) const override {
    return of_->scratch_bytes(in, out, n);
  }
  void run(const launch& l) const override {
    for (const std::span<const tensor> some : {l.in, l.out})
      for (const tensor& t : some) EXPECT_TRUE(anywhere_ || reinterpret_cast<std::uintptr_t>(t.data) % 16 == 0);
    of_->run(l);
    const std::int32_t fault = 1;
    if (reports_faults() && runs++ == faulty) l.queue->copy(l.faults, &fault, sizeof fault);
  }
  bool on_device() const override { return true; }
  bool reports_faults() const override { return reports && !anywhere_; }
  std::string fault_text() const override { return "a fault of a kernel"; }
  static inline bool reports = false;
  static inline int runs = 0, faulty = -1;  // the run that meets data it can't compute

 private:
  std::unique_ptr<kernel> of_;
  bool anywhere_;
};
class aligned_target final : public target {
 public:
  std::string_view name() const override { return gpu_.name(); }
  bool fuses() const override { return gpu_.fuses(); }
  std::string binary_format() const override { return gpu_.binary_format(); }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    return std::make_unique<aligned_kernel>(make_kernel_on_host(make_fallback_kernel(r.instruction.op)));
  }
  std::unique_ptr<kernel> make_copy(const derived_data* derived) const override {
    return std::make_unique<aligned_kernel>(gpu_.make_copy(derived), true);
  }
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

// Finds what is not zero between copies from and to the device, as a GPU's kernel does without them.
class counting_nonzero final : public kernel, public counting_kernel {
 public:
  std::string name() const override { return "counted"; }
  bool on_device() const override { return true; }
  std::size_t scratch_bytes(std::span<const tensor>, std::span<const tensor>, unsigned) const override { return 64; }
  void count(const launch& l) const override {
    ++counted;
    const auto n = static_cast<std::int64_t>(found(l).size());
    l.queue->copy(l.scratch.data(), &n, sizeof n);
  }
  shape made(std::span<const tensor>, std::int64_t count) const override { return {dtype::i64, {1, count}}; }
  void run(const launch& l) const override {
    const std::vector<std::int64_t> at = found(l);
    ASSERT_EQ(l.out[0].lens[1], static_cast<std::int64_t>(at.size()));
    l.queue->copy(l.out[0].data, at.data(), at.size() * sizeof(std::int64_t));
  }
  static inline int counted = 0;

 private:
  static std::vector<std::int64_t> found(const launch& l) {
    std::vector<float> x(static_cast<std::size_t>(l.in[0].elements()));
    if (!x.empty()) l.queue->copy(x.data(), l.in[0].data, x.size() * sizeof(float));
    l.queue->wait();
    std::vector<std::int64_t> out;
    for (std::size_t k = 0; k < x.size(); ++k)
      if (x[k] != 0) out.push_back(static_cast<std::int64_t>(k));
    return out;
  }
};
class counting_target final : public target {
 public:
  std::string_view name() const override { return gpu_.name(); }
  bool fuses() const override { return gpu_.fuses(); }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    if (r.instruction.op.is<op::nonzero>()) return std::make_unique<counting_nonzero>();
    return gpu_.make_kernel(r);
  }
  std::unique_ptr<kernel> make_copy(const derived_data* derived) const override { return gpu_.make_copy(derived); }
  bool has_device() const override { return true; }
  std::shared_ptr<const device> get_device() const override { return gpu_.get_device(); }

 private:
  fake::gpu_target gpu_;
};

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

// Loops whose body says whether to go on by what it was told, by a constant, and by what it computed: on a device whose
// kernels are its own, and on one with copies around each.
program loop_program(int kind) {
  builder body;
  const auto one = []<class T>(T v) { return literal::of<T>({dtype_of<T>, {}}, std::span<const T>(&v, 1)); };
  const value number = body.input("number", dtype::i64, {}), go = body.input("go", dtype::boolean, {}),
              sum = body.input("sum", dtype::f32, {4}), x = body.input("x", dtype::f32, {4});
  body.output(kind == 0   ? go
              : kind == 1 ? body.constant(one(true))
                          : body.add(op::less{}, number, body.constant(one(std::int64_t{3}))));
  body.output(sum + x * body.add(op::convert{.to = dtype::f32}, number));
  body.output(sum);
  program p;
  module_graph& m = p.main();
  small_vector<value_id> in;
  in.push_back(m.add_parameter("most", {dtype::i64, {}}));
  in.push_back(m.add_parameter("begins", {dtype::boolean, {}}));
  in.push_back(m.add_parameter("first", {dtype::f32, {4}}));
  in.push_back(m.add_parameter("x", {dtype::f32, {4}}));
  const module_ref iteration = p.add_module(module_graph(body.finish().main()));
  const value_id made = p.main().add_with_shapes(
      op::loop{iteration, 1}, in, {shape(dtype::f32, {4}), shape(dtype::f32, {dimension::symbol("rounds"), 4})});
  for (const char* const name : {"last", "all"}) {
    p.main().outputs.push_back({made.instruction, static_cast<std::uint32_t>(p.main().outputs.size())});
    p.main().output_names.push_back(text(name));
  }
  return p;
}

TEST(device_segments, loops_keep_their_state_there) {
  const aligned_target own;
  const fake::gpu_target copying;
  for (int kind = 0; kind < 3; ++kind)
    for (const target* gpu : {static_cast<const target*>(&own), static_cast<const target*>(&copying)}) {
      const device& where = *gpu->get_device();
      const executable exe = compile(loop_program(kind), *gpu);
      workspace w = exe.make_workspace();
      for (const std::int64_t most : {0, 1, 2, 5})
        for (const bool begins : {true, false})
          for (const bool sized : {false, true}) {
            SCOPED_TRACE(::testing::Message() << kind << ' ' << most << begins << sized);
            const std::int64_t rounds = !begins ? 0 : kind == 2 ? std::min<std::int64_t>(most, 4) : most;
            const argument x = argument::of<float>({4}, std::vector<float>{1, 2, 3, 4});
            std::vector<argument> out(2);
            if (sized && rounds != 0)
              out = {on_device(where, argument(x.get_shape())),
                     on_device(where, argument(shape{dtype::f32, {rounds, 4}}))};
            exe.run(
                w,
                {{argument::of<std::int64_t>({}, std::vector<std::int64_t>{most}),
                  argument::of<bool>({}, std::span<const bool>(&begins, 1)), on_device(where, x), on_device(where, x)}},
                out);
            const auto values = [&](const argument& a) {
              return where.owns(a.data()) ? floats_of(where, a) : [&] {
                const auto all = a.to<float>();
                return std::vector<float>(all.begin(), all.end());
              }();
            };
            std::vector<float> state{1, 2, 3, 4}, all;
            for (std::int64_t k = 0; k < rounds; ++k) {
              all.insert(all.end(), state.begin(), state.end());
              for (std::size_t i = 0; i < 4; ++i) state[i] += static_cast<float>(k) * static_cast<float>(i + 1);
            }
            EXPECT_EQ(values(out[0]), state);
            EXPECT_EQ(values(out[1]), all);
          }
    }
}

// What an iteration that nobody waited for finds wrong is an error after the last.
TEST(device_segments, faults_in_loops_are_reported) {
  const aligned_target gpu;
  const device& where = *gpu.get_device();
  aligned_kernel::reports = true;
  const executable exe = compile(loop_program(1), gpu);
  workspace w = exe.make_workspace();
  const argument x = on_device(where, argument::of<float>({4}, std::vector<float>{1, 2, 3, 4}));
  const bool begins = true;
  const std::vector<argument> in = {argument::of<std::int64_t>({}, std::vector<std::int64_t>{5}),
                                    argument::of<bool>({}, std::span<const bool>(&begins, 1)), x, x};
  for (const int faulty : {-1, 0, 2, -1}) {
    aligned_kernel::faulty = faulty, aligned_kernel::runs = 0;
    std::vector<argument> out(2);
    std::string found;
    try {
      exe.run(w, in, out);
    } catch (const error& e) {
      found = e.what();
    }
    EXPECT_EQ(found.find("a fault of a kernel") != std::string::npos, faulty >= 0) << found;
    EXPECT_GE(aligned_kernel::runs, 5) << "every iteration runs";
  }
  aligned_kernel::reports = false;
}

}  // namespace
}  // namespace kiln::testing
