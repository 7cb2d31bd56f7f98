// Loops whose iterations are recorded and replayed, and bodies that are given slices.
#include <algorithm>
#include <functional>

#include "kiln/backend/reference/reference_target.hpp"
#include "runtime/loop_programs.hpp"

namespace kiln::testing {
namespace {

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
