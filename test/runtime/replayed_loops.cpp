// Loops whose iterations are recorded and replayed.
#include <numeric>
#include <optional>

#include "runtime/loop_programs.hpp"
#include "runtime/recording_device.hpp"

namespace kiln::testing {
namespace {

std::vector<float> times(const std::vector<float>& x, float factor) {
  std::vector<float> out;
  for (const float v : x) out.push_back(factor * v);
  return out;
}
std::vector<float> values_of(const argument& a) {
  const auto v = a.to<float>();
  return {v.begin(), v.end()};
}

class replayed_loops : public ::testing::Test {
 protected:
  using work = recording_kernel;
  using queues = recording_queue;
  static constexpr std::int64_t most = 150;
  static constexpr int parts = 3;  // 64 together

  void SetUp() override { start_anew(); }
  void TearDown() override { start_anew(), work::reports = queues::refuses = queues::loses = false; }
  static void start_anew() { work::start_anew(); }

  // Runs the loop that adds x, which it begins with; the kernels that were given to the queue.
  int run(const executable& exe, workspace& w, const std::vector<float>& x, const run_options& options = {}) {
    work::given = work::done = 0, queues::replays = queues::asked = 0, work::cancel = false;
    std::vector<argument> out(2);
    exe.run(w, loop_inputs(most, true, argument::of<float>({4}, x)), out, options);
    EXPECT_EQ(values_of(out[0]), times(x, most + 1));
    std::vector<float> all;
    for (int k = 1; k <= most; ++k)
      for (const float v : x) all.push_back(static_cast<float>(k) * v);
    EXPECT_EQ(values_of(out[1]), all);
    return work::given;
  }
  // What the run fails with.
  error failure(const executable& exe, workspace& w, const run_options& options = {}) {
    try {
      run(exe, w, {1, 1, 1, 1}, options);
    } catch (const error& e) {
      return e;
    }
    ADD_FAILURE() << "it runs";
    return {errc::internal, ""};
  }

  const recording_target gpu;
  const device& where = *gpu.get_device();
};

// Runs over the same memory are recorded and replayed, with what the memory then holds; others are not.
TEST_F(replayed_loops, serve_runs_over_the_same_memory) {
  const executable exe = compile(loop_program(3), gpu);
  workspace w = exe.make_workspace();
  const auto run = [&](const std::vector<float>& x, std::vector<argument>& out, argument& there) {
    const std::int64_t n = out[1].get_shape().lens[0].value();
    const auto queue = where.make_queue();
    queue->copy(there.data(), x.data(), 16);
    queue->wait();
    start_anew();
    exe.run(w, loop_inputs(n, true, there), out);
    EXPECT_EQ(floats_of(where, out[0]), times(x, static_cast<float>(n + 1)));
    std::vector<float> last = floats_of(where, out[1]);
    last.erase(last.begin(), last.end() - 4);
    EXPECT_EQ(last, times(x, static_cast<float>(n)));
  };
  const argument blank(shape{dtype::f32, {4}});
  argument x = on_device(where, blank), other = on_device(where, blank);
  const auto results = [&](std::int64_t n) {
    return std::vector<argument>{on_device(where, blank), on_device(where, argument(shape{dtype::f32, {n, 4}}))};
  };
  std::vector<argument> out = results(most), few = results(70);
  run({1, 2, 3, 4}, out, x);
  const int kernels = work::given;
  EXPECT_GE(kernels, most);
  EXPECT_EQ(queues::replays, 0);
  run({5, 6, 7, 8}, out, x);
  EXPECT_EQ(work::given, kernels) << "recorded";
  EXPECT_EQ(queues::replays, parts);
  run({9, 8, 7, 6}, out, x);
  EXPECT_EQ(work::given, 0);
  EXPECT_EQ(queues::replays, parts);
  run({1, 1, 2, 2}, out, other);
  EXPECT_EQ(work::given, kernels) << "of other memory";
  run({3, 4, 3, 4}, few, other);
  run({3, 3, 3, 4}, out, other);
  EXPECT_EQ(work::given, kernels) << "the run before was another";
}

// A loop that adds what the elements of x sum to, or how many of them there are: the body is not given x then, and
// knows its extent from the program around it.
program summing_program(bool counts) {
  const dimension n = dimension::symbol("n");
  builder body;
  body.input("number", dtype::i64, {});
  const value go = body.input("go", dtype::boolean, {}), sum = body.input("sum", dtype::f32, {1});
  value added;
  if (counts)
    added =
        body.add(op::convert{.to = dtype::f32}, body.constant(literal::of_dimensions({1}, small_vector<dimension>{n})));
  else
    added = body.input("x", dtype::f32, {dimension::symbol("extent")}).reduce_sum({0});
  body.output(go);
  body.output(sum + added);
  program p;
  module_graph& m = p.main();
  small_vector<value_id> in;
  in.push_back(m.add_parameter("most", {dtype::i64, {}}));
  in.push_back(m.add_parameter("begins", {dtype::boolean, {}}));
  in.push_back(m.add_parameter("first", {dtype::f32, {1}}));
  const value_id x = m.add_parameter("x", {dtype::f32, {n}});
  if (!counts) in.push_back(x);
  const module_ref iteration = p.add_module(module_graph(body.finish().main()));
  const value_id made = p.main().add_with_shapes(op::loop{iteration, 1}, in, {shape(dtype::f32, {1})});
  p.main().outputs.push_back(made);
  p.main().output_names.push_back(text("last"));
  return p;
}

TEST_F(replayed_loops, belong_to_sizes) {
  std::vector<float> all(8);
  std::iota(all.begin(), all.end(), 1.f);
  const argument here = argument::of<float>({8}, all), there = on_device(where, here);
  for (const bool counts : {false, true})
    for (const argument& x : {here, there}) {
      const executable exe = compile(summing_program(counts), gpu);
      workspace w = exe.make_workspace();
      const std::pair<std::int64_t, int> runs[] = {{8, 0}, {8, 1}, {5, 0}, {8, 0}, {8, 1}, {8, 1}};
      for (const auto& [n, replays] : runs) {
        SCOPED_TRACE(::testing::Message() << counts << where.owns(x.data()) << ' ' << n);
        start_anew();
        std::vector<argument> in = loop_inputs(6, true, argument::of<float>({1}, std::vector<float>{1})), out(1);
        in[3] = argument({dtype::f32, {n}}, const_cast<std::byte*>(x.data()));
        exe.run(w, in, out);
        const auto added = static_cast<float>(counts ? n : n * (n + 1) / 2);
        EXPECT_EQ(values_of(out[0]), std::vector<float>{1 + 6 * added});
        EXPECT_EQ(queues::replays, replays);
      }
    }
}

TEST_F(replayed_loops, belong_to_a_body) {
  const std::vector<float> x{1, 2, 3, 4};
  for (const bool destroyed : {false, true}) {
    start_anew();
    std::optional<executable> one = compile(loop_program(0), gpu);  // adds x times the iteration's number
    const executable other = compile(loop_program(3), gpu);
    workspace shared;
    const auto run_one = [&] {
      std::vector<argument> out(2);
      one->run(shared, loop_inputs(most, true, argument::of<float>({4}, x)), out);
      EXPECT_EQ(values_of(out[0]), times(x, 1 + most * (most - 1) / 2));
    };
    run_one(), run_one();
    EXPECT_EQ(queues::replays, parts);
    if (destroyed) one.reset();
    const int kernels = run(other, shared, x);
    EXPECT_GE(kernels, most);
    EXPECT_EQ(run(other, shared, x), kernels);
    EXPECT_EQ(queues::replays, parts);
    if (one) run_one();
  }
}

TEST_F(replayed_loops, report_faults) {
  work::reports = true;
  const executable exe = compile(loop_program(3), gpu);
  workspace w = exe.make_workspace();
  const int kernels = run(exe, w, {1, 2, 3, 4});
  for (const int faulty : {70, 0, 1, static_cast<int>(most), 0}) {
    SCOPED_TRACE(faulty);
    work::faulty = faulty * kernels / static_cast<int>(most);
    if (faulty == 0)
      run(exe, w, {4, 3, 2, 1});
    else
      EXPECT_NE(std::string(failure(exe, w).what()).find("a fault of a kernel"), std::string::npos);
    EXPECT_EQ(queues::replays, parts);
    EXPECT_EQ(work::done, kernels) << "every iteration runs";
  }
}

TEST_F(replayed_loops, stop_when_told) {
  const executable exe = compile(loop_program(3), gpu);
  workspace w = exe.make_workspace();
  run_options options;
  options.cancel = &work::cancel;
  const int kernels = run(exe, w, {1, 2, 3, 4}, options), each = kernels / static_cast<int>(most);
  // while the first 64 are recorded, and the next
  for (const int iteration : {7, 70}) {
    work::stops_when_given = iteration * each;
    EXPECT_EQ(failure(exe, w, options).code(), errc::canceled);
    EXPECT_EQ(queues::noted, nullptr);
    EXPECT_EQ(work::done, iteration / 64 * 64 * each) << "what was noted is not done";
    work::stops_when_given = 0;
  }
  EXPECT_EQ(run(exe, w, {2, 2, 3, 4}, options), kernels - 64 * each) << "the first 64 were recorded";
  EXPECT_EQ(queues::replays, parts);
  // while they are replayed
  work::stops_when_done = 1;
  const error e = failure(exe, w, options);
  EXPECT_EQ(e.code(), errc::canceled);
  EXPECT_NE(std::string(e.what()).find("before iteration 128"), std::string::npos) << e.what();
  EXPECT_EQ(work::done, 128 * each) << "nothing is under way";
  work::stops_when_done = 0;
  EXPECT_EQ(run(exe, w, {3, 2, 3, 4}, options), 0);
}

// Where a platform can't record, iterations are given one by one, and it is asked once.
TEST_F(replayed_loops, may_be_refused) {
  for (const bool refuses : {true, false}) {
    queues::refuses = refuses, queues::loses = !refuses;
    const executable exe = compile(loop_program(3), gpu);
    workspace w = exe.make_workspace();
    const int kernels = run(exe, w, {1, 2, 3, 4});
    EXPECT_EQ(queues::asked, 0);
    EXPECT_EQ(run(exe, w, {4, 2, 3, 4}), refuses ? kernels : 2 * kernels);
    EXPECT_EQ(queues::asked, parts);
    EXPECT_EQ(run(exe, w, {5, 2, 3, 4}), kernels);
    EXPECT_EQ(queues::asked, 0);
    EXPECT_EQ(queues::replays, 0);
  }
}

}  // namespace
}  // namespace kiln::testing
