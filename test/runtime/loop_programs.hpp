#pragma once
#include <atomic>

#include "kiln/graph/builder.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/runtime/run_options.hpp"
#include "runtime/device_fakes.hpp"

/// Programs of one loop, and a device whose work waits.
namespace kiln::testing {

// Loops whose body says whether to go on by what it was told, by a constant, and by what it computed: on a device whose
// kernels are its own, and on one with copies around each. The last kind reads no number.
inline program loop_program(int kind, std::int64_t n = 4) {
  builder body;
  const auto one = []<class T>(T v) { return literal::of<T>({dtype_of<T>, {}}, std::span<const T>(&v, 1)); };
  const value number = body.input("number", dtype::i64, {}), go = body.input("go", dtype::boolean, {}),
              sum = body.input("sum", dtype::f32, {n}), x = body.input("x", dtype::f32, {n});
  body.output(kind == 0 || kind == 3 ? go
              : kind == 1            ? body.constant(one(true))
                                     : body.add(op::less{}, number, body.constant(one(std::int64_t{3}))));
  body.output(sum + (kind == 3 ? x : x * body.add(op::convert{.to = dtype::f32}, number)));
  body.output(sum);
  program p;
  module_graph& m = p.main();
  small_vector<value_id> in;
  in.push_back(m.add_parameter("most", {dtype::i64, {}}));
  in.push_back(m.add_parameter("begins", {dtype::boolean, {}}));
  in.push_back(m.add_parameter("first", {dtype::f32, {n}}));
  in.push_back(m.add_parameter("x", {dtype::f32, {n}}));
  const module_ref iteration = p.add_module(module_graph(body.finish().main()));
  const value_id made = p.main().add_with_shapes(
      op::loop{iteration, 1}, in, {shape(dtype::f32, {n}), shape(dtype::f32, {dimension::symbol("rounds"), n})});
  for (const char* const name : {"last", "all"}) {
    p.main().outputs.push_back({made.instruction, static_cast<std::uint32_t>(p.main().outputs.size())});
    p.main().output_names.push_back(text(name));
  }
  return p;
}

inline std::vector<argument> loop_inputs(std::int64_t most, bool begins, const argument& x) {
  return {argument::of<std::int64_t>({}, std::vector<std::int64_t>{most}),
          argument::of<bool>({}, std::span<const bool>(&begins, 1)), x, x};
}

// A kernel whose work nobody waits for: the last operand is copied.
class deferred_kernel final : public kernel {
 public:
  std::string name() const override { return "deferred"; }
  bool on_device() const override { return true; }
  void run(const launch& l) const override {
    ++runs;
    if (runs == stops_when_given) cancel = true;
    const bool yes = true;
    if (runs == stops_when_done) l.queue->copy(&cancel, &yes, sizeof yes);
    const std::size_t bytes = static_cast<std::size_t>(l.out[0].elements()) * size_of(l.out[0].type);
    l.queue->copy(l.out[0].data, l.in.back().data, bytes);
    l.queue->copy(&done, &runs, sizeof runs);
  }
  static inline int runs = 0, done = 0;  // given to the queue, and of them those that are over
  static inline int stops_when_given = 0, stops_when_done = 0;
  static inline std::atomic<bool> cancel = false;
};
class deferred_target : public target {
 public:
  std::string_view name() const override { return gpu_.name(); }
  bool fuses() const override { return gpu_.fuses(); }
  std::unique_ptr<kernel> make_kernel(const kernel_request&) const override {
    return std::make_unique<deferred_kernel>();
  }
  std::unique_ptr<kernel> make_copy(const derived_data*) const override { return std::make_unique<deferred_kernel>(); }
  bool has_device() const override { return true; }
  std::shared_ptr<const device> get_device() const override { return gpu_.get_device(); }

 private:
  fake::gpu_target gpu_;
};

}  // namespace kiln::testing
