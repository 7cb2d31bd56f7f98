// What goes wrong on a device is an error, never a hang; and many threads run one executable.
#include <gmock/gmock.h>

#include <thread>

#include "kiln/backend/hip/context.hpp"
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/runtime/run_options.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

bool no_device() { return hip::device_count(hip::platform::amd) + hip::device_count(hip::platform::nvidia) == 0; }

std::string text_of(const std::function<void()>& f) {
  try {
    f();
    return {};
  } catch (const error& e) {
    return e.what();
  }
}

TEST(device_faults, an_error_says_which_call_failed_and_whether_the_device_is_lost) {
  hip::runtime_calls calls;
  calls.hipGetErrorString = [](int) { return "the platform's words"; };
  EXPECT_EQ(text_of([&] { hip::check(calls, 0, "hipMalloc"); }), "");
  const std::string memory = text_of([&] { hip::check(calls, 2, "hipMalloc"); });
  EXPECT_THAT(memory, HasSubstr("hipMalloc failed: the platform's words (2)"));
  EXPECT_THAT(memory, ::testing::Not(HasSubstr("lost")));
  for (const int code : {700, 702, 710, 714, 715, 716, 717, 718, 719})
    EXPECT_THAT(text_of([&] { hip::check(calls, code, "hipStreamSynchronize"); }),
                HasSubstr("what this process has on the device is lost"));
  for (const int code : {701, 709, 713, 720})
    EXPECT_THAT(text_of([&] { hip::check(calls, code, "hipLaunchKernel"); }), ::testing::Not(HasSubstr("lost")));
}

executable sums(const hip_target& gpu) {
  builder b;
  const auto x = b.input("x", dtype::f32, {33, 65});
  b.output(x.softmax() + x);
  return compile(b.finish(), gpu);
}

TEST(device_faults, filters_that_reach_outside_the_spectrum) {
  if (no_device()) GTEST_SKIP() << "NOT RUN: no GPU here";
  builder b;
  const value highest = b.input("highest", dtype::f32, {});
  b.output(b.add(op::mel_weights{4, 64}, b.scalar(dtype::i64, 8000), b.scalar(dtype::f32, 20.0F), highest));
  const executable exe = compile(b.finish(), hip_target());
  for (const bool outside : {true, false}) {
    const float hertz = outside ? 9000.0F : 3900.0F;
    const argument x = argument::of<float>({}, std::span(&hertz, 1));
    const std::string said = text_of([&] { exe.run({&x, 1}); });
    EXPECT_EQ(said.find("mel filters lie within the spectrum") != std::string::npos, outside) << said;
  }
}

// In a process of its own, whose exit status says what came of it.
void fault_and_run_again() {
  const hip_target gpu;
  const executable exe = sums(gpu);
  const argument x = random_argument(exe.inputs()[0].type, 1);
  const std::span<const argument> given(&x, 1);
  exe.run(given);
  const hip::runtime_calls& calls = hip::any_runtime();
  const auto where = std::make_shared<const hip::context>(calls, 0, "");
  const auto faulty = where->build({"faulty", "extern \"C\" __global__ void faulty(int* at) { *at = 1; }"});
  const auto queue = gpu.get_device()->make_queue();
  int* const nowhere = reinterpret_cast<int*>(4096);
  const std::string first = text_of([&] {
    faulty->launch(*queue, {1}, {1}, 0, nowhere);
    queue->wait();
  });
  const std::string second = text_of([&] { exe.run(given); }), third = text_of([&] { sums(hip_target()).run(given); });
  for (const std::string& s : {first, second, third}) {
    std::fprintf(stderr, "%s\n", s.c_str());
    if (s.find("is lost") == std::string::npos) std::_Exit(1);
  }
  std::_Exit(0);
}

TEST(device_faults, after_a_kernel_that_faults_each_run_says_that_the_device_is_lost) {
  if (no_device()) GTEST_SKIP() << "NOT RUN: no GPU here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fault_and_run_again(), ::testing::ExitedWithCode(0), "is lost");
}

// Each thread has a workspace and a stream; from its third run on the steps are replayed.
TEST(device_threads, eight_of_them_run_one_executable) {
  if (no_device()) GTEST_SKIP() << "NOT RUN: no GPU here";
  const hip_target gpu;
  const executable exe = sums(gpu);
  constexpr unsigned threads = 8;
  constexpr int runs = 25;
  std::vector<argument> given, expected;
  for (unsigned k = 0; k < threads; ++k) {
    given.push_back(random_argument(exe.inputs()[0].type, k));
    expected.push_back(exe.run(std::span<const argument>(&given.back(), 1))[0]);
  }
  std::vector<std::thread> all;
  for (unsigned k = 0; k < threads; ++k)
    all.emplace_back([&, k] {
      argument x = gpu.to_device(given[k]), y = gpu.allocate(exe.outputs()[0].type);
      workspace w = exe.make_workspace();
      const auto queue = gpu.get_device()->make_queue();
      run_options options;
      options.stream = queue->stream();
      for (int n = 0; n < runs; ++n) {
        exe.run(w, {&x, 1}, {&y, 1}, options);
        queue->wait();
        expect_close(gpu.to_host(y), expected[k], {0, 0});
      }
    });
  for (std::thread& t : all) t.join();
}

}  // namespace
}  // namespace kiln::testing
