// Loops whose iterations are given to a device's queue without a wait for each.
#include "runtime/loop_programs.hpp"

namespace kiln::testing {
namespace {

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

}  // namespace
}  // namespace kiln::testing
