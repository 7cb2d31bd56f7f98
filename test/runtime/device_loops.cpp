// Loops whose iterations are given to a device's queue without a wait for each.
#include <gtest/gtest.h>

#include <atomic>

#include "kiln/graph/builder.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/runtime/run_options.hpp"
#include "runtime/device_fakes.hpp"

namespace kiln::testing {
namespace {

// Loops whose body says whether to go on by what it was told, by a constant, and by what it computed: on a device whose
// kernels are its own, and on one with copies around each. The last kind reads no number.
program loop_program(int kind, std::int64_t n = 4) {
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

std::vector<argument> loop_inputs(std::int64_t most, bool begins, const argument& x) {
  return {argument::of<std::int64_t>({}, std::vector<std::int64_t>{most}),
          argument::of<bool>({}, std::span<const bool>(&begins, 1)), x, x};
}

TEST(device_loops, loops_keep_their_state_there) {
  const aligned_target own;
  const fake::gpu_target copying;
  for (int kind = 0; kind < 3; ++kind)
    for (const target* gpu : {static_cast<const target*>(&own), static_cast<const target*>(&copying)}) {
      const device& where = *gpu->get_device();
      const executable exe = compile(loop_program(kind), *gpu);
      workspace w = exe.make_workspace();
      for (const std::int64_t most : {0, 1, 2, 5})
        for (const bool begins : {true, false})
          for (const char* const results : {"none", "there", "there, at an odd place", "here"}) {
            SCOPED_TRACE(::testing::Message() << kind << ' ' << most << begins << ' ' << results);
            const std::int64_t rounds = !begins ? 0 : kind == 2 ? std::min<std::int64_t>(most, 4) : most;
            const argument x = argument::of<float>({4}, std::vector<float>{1, 2, 3, 4});
            std::vector<argument> out(2);
            const shape all_of{dtype::f32, {rounds, 4}};
            if (rounds != 0 && results == std::string_view("here"))
              out = {argument(x.get_shape()), argument(all_of)};
            else if (rounds != 0 && results != std::string_view("none"))
              for (const shape& s : {x.get_shape(), all_of}) {
                const std::size_t skipped = results == std::string_view("there") ? 0 : 4;
                buffer memory = where.allocate(static_cast<std::size_t>(s.bytes().value()) + skipped);
                std::byte* const data = memory.data() + skipped;
                out[s.rank() - 1] = argument(s, std::move(memory), data);
              }
            exe.run(w, loop_inputs(most, begins, on_device(where, x)), out);
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
TEST(device_loops, faults_in_loops_are_reported) {
  const aligned_target gpu;
  const device& where = *gpu.get_device();
  aligned_kernel::reports = true;
  const executable exe = compile(loop_program(1, 3), gpu);  // pieces of 12 bytes are stacked
  workspace w = exe.make_workspace();
  const std::vector<argument> in =
      loop_inputs(5, true, on_device(where, argument::of<float>({3}, std::vector<float>{1, 2, 3})));
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

// Each case of a loop allocates all that it needs in its first run.
TEST(device_loops, memory_is_kept_from_run_to_run) {
  const aligned_target gpu;
  const device& where = *gpu.get_device();
  const executable exe = compile(loop_program(1), gpu);
  workspace w = exe.make_workspace();
  const argument x = argument::of<float>({4}, std::vector<float>{1, 2, 3, 4});
  const std::vector<argument> in = loop_inputs(5, true, x);
  std::vector<argument> out{on_device(where, argument(x.get_shape())), argument(shape{dtype::f32, {5, 4}})};
  exe.run(w, in, out);
  const std::size_t growths = w.growths(), bytes = w.bytes();
  EXPECT_GT(bytes, 5 * (16 + 16) + 2 * 16u);
  fake::most_bytes = fake::live_bytes.load();
  for (int run = 0; run < 3; ++run) EXPECT_NO_THROW(exe.run(w, in, out));
  fake::most_bytes = ~std::size_t{0};
  EXPECT_EQ(w.growths(), growths);
  EXPECT_EQ(w.bytes(), bytes);
  EXPECT_EQ(floats_of(where, out[0]), (std::vector<float>{11, 22, 33, 44}));
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

// A run that is stopped leaves no work behind, and is stopped while most iterations are still to come.
TEST(device_loops, stop_when_told) {
  using work = deferred_kernel;
  const deferred_target gpu;
  const device& where = *gpu.get_device();
  const executable exe = compile(loop_program(1), gpu);
  const std::vector<argument> in =
      loop_inputs(1000, true, on_device(where, argument::of<float>({4}, std::vector<float>{1, 2, 3, 4})));
  run_options options;
  options.cancel = &work::cancel;
  workspace w = exe.make_workspace();
  for (const bool when_done : {false, true}) {
    SCOPED_TRACE(when_done);
    work::runs = work::done = 0, work::cancel = false;
    (when_done ? work::stops_when_done : work::stops_when_given) = 7;
    errc code{};
    try {
      std::vector<argument> out(2);
      exe.run(w, in, out, options);
    } catch (const error& e) {
      code = e.code();
    }
    EXPECT_EQ(code, errc::canceled);
    EXPECT_GE(work::runs, 7);
    EXPECT_LE(work::runs, when_done ? 1000 : 16) << "kernels of a few iterations";
    EXPECT_EQ(work::done, work::runs) << "nothing is under way";
    work::stops_when_done = work::stops_when_given = 0;
  }
}

// A body whose numbers depend on what it is given: 3 elements at first, then 4.
TEST(device_loops, extents_that_change_are_waited_for) {
  const deferred_target gpu;
  const device& where = *gpu.get_device();
  const dimension length = dimension::symbol("length");
  builder body;
  body.input("number", dtype::i64, {});
  const value go = body.input("go", dtype::boolean, {});
  body.input("v", dtype::i64, {length});
  const value x = body.input("x", dtype::i64, {4});
  small_vector<dimension> lengths{length, length + 1, length + 2, length + 3};
  const value next = x + body.constant(literal::of_dimensions({4}, std::move(lengths)));  // to `deferred`: the latter
  body.output(go), body.output(next), body.output(next);
  program p;
  module_graph& m = p.main();
  small_vector<value_id> in;
  in.push_back(m.add_parameter("most", {dtype::i64, {}}));
  in.push_back(m.add_parameter("begins", {dtype::boolean, {}}));
  in.push_back(m.add_parameter("first", {dtype::i64, {3}}));
  in.push_back(m.add_parameter("x", {dtype::i64, {4}}));
  const module_ref iteration = p.add_module(module_graph(body.finish().main()));
  const value_id made = p.main().add_with_shapes(
      op::loop{iteration, 1}, in, {shape(dtype::i64, {4}), shape(dtype::i64, {dimension::symbol("rounds"), 4})});
  p.main().outputs.push_back({made.instruction, 1});
  p.main().output_names.push_back(text("all"));
  const executable exe = compile(std::move(p), gpu);
  std::vector<argument> given = loop_inputs(3, true, argument());
  given[2] = on_device(where, argument(shape{dtype::i64, {3}}));
  given[3] = on_device(where, argument(shape{dtype::i64, {4}}));
  std::vector<argument> out(1);
  workspace w = exe.make_workspace();
  exe.run(w, given, out);
  const auto all = out[0].to<std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(all.begin(), all.end()),
            (std::vector<std::int64_t>{3, 4, 5, 6, 4, 5, 6, 7, 4, 5, 6, 7}));
}

// A device whose queues record: copies, which are all that a `deferred_kernel` gives them.
class recorded_work final : public device_recording {
 public:
  std::vector<std::function<void(device_queue&)>> work;
};
class recording_queue final : public device_queue {
 public:
  explicit recording_queue(std::unique_ptr<device_queue> of) : of_(std::move(of)) {}
  void* stream() const override { return of_->stream(); }
  void enter() override { of_->enter(); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    give([=](device_queue& q) { q.copy(to, from, bytes); });
  }
  void fill(void* to, int value, std::size_t bytes) override {
    give([=](device_queue& q) { q.fill(to, value, bytes); });
  }
  void wait() override {
    EXPECT_EQ(noted, nullptr) << "nobody waits within a recording";
    of_->wait();
  }
  std::unique_ptr<device_event> record() override { return of_->record(); }
  void wait_for(const device_event& event) override { of_->wait_for(event); }
  void mark() override { of_->mark(); }
  std::vector<double> seconds_between_marks() override { return of_->seconds_between_marks(); }
  bool begin_recording() override {
    EXPECT_EQ(noted, nullptr) << "one recording at a time";
    noted = std::make_unique<recorded_work>();
    return true;
  }
  std::unique_ptr<device_recording> end_recording() override { return std::move(noted); }
  void replay(const device_recording& work) override {
    EXPECT_EQ(noted, nullptr);
    ++replays;
    for (const auto& w : static_cast<const recorded_work&>(work).work) w(*of_);
  }
  static inline std::unique_ptr<recorded_work> noted;  // of whatever queue of the one stream
  static inline int replays = 0;

 private:
  void give(std::function<void(device_queue&)> work) {
    if (noted)
      noted->work.push_back(std::move(work));
    else
      work(*of_);
  }
  std::unique_ptr<device_queue> of_;
};
class recording_device final : public device {
 public:
  explicit recording_device(std::shared_ptr<const device> of) : of_(std::move(of)) {}
  buffer allocate(std::size_t bytes) const override { return of_->allocate(bytes); }
  buffer allocate_on_host(std::size_t bytes) const override { return of_->allocate_on_host(bytes); }
  bool owns(const void* address) const override { return of_->owns(address); }
  std::unique_ptr<device_queue> make_queue(void* stream) const override {
    return std::make_unique<recording_queue>(of_->make_queue(stream));
  }

 private:
  std::shared_ptr<const device> of_;
};
class recording_target final : public deferred_target {
 public:
  std::shared_ptr<const device> get_device() const override { return device_; }

 private:
  std::shared_ptr<const device> device_ = std::make_shared<recording_device>(deferred_target::get_device());
};

// Runs over the same memory are recorded and replayed, with what the memory then holds; others are not.
TEST(device_loops, iterations_are_replayed) {
  using work = deferred_kernel;
  const recording_target gpu;
  const device& where = *gpu.get_device();
  const executable exe = compile(loop_program(3), gpu);
  workspace w = exe.make_workspace();
  const auto run = [&](std::int64_t most, const std::vector<float>& x, std::vector<argument>& out, argument& there) {
    const auto queue = where.make_queue();
    queue->copy(there.data(), x.data(), 16);
    queue->wait();
    work::runs = 0, recording_queue::replays = 0;
    exe.run(w, loop_inputs(most, true, there), out);
    // the body's kernels copy: the state stays, or becomes the other operand
    std::vector<float> all;
    for (std::int64_t k = 0; k < most; ++k) all.insert(all.end(), x.begin(), x.end());
    EXPECT_EQ(floats_of(where, out[1]), all);
    EXPECT_EQ(floats_of(where, out[0]), x);
  };
  const argument blank(shape{dtype::f32, {4}});
  argument x = on_device(where, blank), other = on_device(where, blank);
  const auto results = [&](std::int64_t most) {
    return std::vector<argument>{on_device(where, argument(shape{dtype::f32, {4}})),
                                 on_device(where, argument(shape{dtype::f32, {most, 4}}))};
  };
  std::vector<argument> out = results(150), few = results(70);
  run(150, {1, 2, 3, 4}, out, x);
  const int kernels = work::runs;
  EXPECT_GE(kernels, 150);
  EXPECT_EQ(recording_queue::replays, 0);
  run(150, {5, 6, 7, 8}, out, x);
  EXPECT_EQ(work::runs, kernels) << "recorded";
  EXPECT_EQ(recording_queue::replays, 3) << "64 together";
  run(150, {9, 8, 7, 6}, out, x);
  EXPECT_EQ(work::runs, 0);
  EXPECT_EQ(recording_queue::replays, 3);
  run(150, {1, 1, 2, 2}, out, other);
  EXPECT_EQ(work::runs, kernels) << "of other memory";
  run(70, {3, 4, 3, 4}, few, other);
  run(150, {3, 3, 3, 4}, out, other);
  EXPECT_EQ(work::runs, kernels) << "the run before was another";
}

// A body that reads rows only at its iteration's number is given them, on the host and on devices, wherever they lie;
// one that reads them elsewhere, too, is given all.
program rows_program(std::int64_t n, bool elsewhere) {
  builder body;
  const value number = body.input("number", dtype::i64, {}), go = body.input("go", dtype::boolean, {}),
              sum = body.input("sum", dtype::f32, {n}), rows = body.input("rows", dtype::f32, {5, n});
  value row = body.add(op::gather{.axis = -2}, rows, number);
  if (elsewhere)
    row = row +
          body.add(op::gather{}, rows,
                   number - body.constant(literal::of<std::int64_t>({dtype::i64, {}}, std::vector<std::int64_t>{1})));
  body.output(go);
  body.output(sum + row);
  body.output(row + row);
  program p;
  module_graph& m = p.main();
  small_vector<value_id> in;
  in.push_back(m.add_parameter("most", {dtype::i64, {}}));
  in.push_back(m.add_parameter("begins", {dtype::boolean, {}}));
  in.push_back(m.add_parameter("first", {dtype::f32, {n}}));
  in.push_back(m.add_parameter("rows", {dtype::f32, {5, n}}));
  const module_ref iteration = p.add_module(module_graph(body.finish().main()));
  const value_id made = p.main().add_with_shapes(
      op::loop{iteration, 1}, in, {shape(dtype::f32, {n}), shape(dtype::f32, {dimension::symbol("rounds"), n})});
  for (const char* const name : {"last", "all"}) {
    p.main().outputs.push_back({made.instruction, static_cast<std::uint32_t>(p.main().outputs.size())});
    p.main().output_names.push_back(text(name));
  }
  return p;
}
TEST(device_loops, slices_are_read_where_they_lie) {
  const aligned_target own;
  const fake::gpu_target copying;
  const reference_target host;
  for (const target* t :
       {static_cast<const target*>(&own), static_cast<const target*>(&copying), static_cast<const target*>(&host)})
    for (const std::int64_t n : {3, 4})
      for (const bool elsewhere : {false, true}) {
        SCOPED_TRACE(::testing::Message() << t->name() << ' ' << n << elsewhere);
        const executable exe = compile(rows_program(n, elsewhere), *t);
        std::vector<float> first(static_cast<std::size_t>(n), 1), rows(static_cast<std::size_t>(5 * n));
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i * i % 17);
        workspace w = exe.make_workspace();
        for (const std::int64_t most : {1, 4, 5}) {
          std::vector<argument> in = loop_inputs(most, true, argument::of<float>({n}, first)), out(2);
          in[3] = argument::of<float>({5, n}, rows);
          if (most == 4 && t->has_device()) in[3] = on_device(*t->get_device(), in[3]);
          exe.run(w, in, out);
          std::vector<float> sum = first, all;
          for (std::int64_t k = 0; k < most; ++k)
            for (std::int64_t i = 0; i < n; ++i) {
              const auto at = [&](std::int64_t r) { return rows[static_cast<std::size_t>((r + 5) % 5 * n + i)]; };
              const float row = at(k) + (elsewhere ? at(k - 1) : 0);
              sum[static_cast<std::size_t>(i)] += row, all.push_back(row + row);
            }
          const auto values = [](const argument& a) {
            const auto v = a.to<float>();
            return std::vector<float>(v.begin(), v.end());
          };
          EXPECT_EQ(values(out[0]), sum);
          EXPECT_EQ(values(out[1]), all);
        }
        const auto& remarks = exe.report().remarks;
        const bool gathers = std::any_of(remarks.begin(), remarks.end(),
                                         [](const auto& r) { return r.find("a body of 2 kernels") == r.npos; });
        EXPECT_EQ(gathers, elsewhere);
        std::vector<argument> in = loop_inputs(6, true, argument::of<float>({n}, first)), out(2);
        in[3] = argument::of<float>({5, n}, rows);
        try {
          exe.run(w, in, out);
          ADD_FAILURE() << "there is no row 5";
        } catch (const error& e) {
          EXPECT_NE(std::string(e.what()).find("an index lies within the extent"), std::string::npos) << e.what();
        }
      }
}

}  // namespace
}  // namespace kiln::testing
