// How rows are cut into tasks, in which order their loops run, and rows that are cut with operands apart.
#include "kiln/backend/eigen/rows.hpp"

#include <gtest/gtest.h>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/op/ops.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using task_function = void (*)(void*, std::int64_t, unsigned);
using run_function = void (*)(thread_pool&, std::int64_t, task_function, void*);
run_function& run_of(thread_pool& pool);
// An explicit instantiation may name a private member.
template <auto Member> struct member_of_pool {
  friend run_function& run_of(thread_pool& pool) { return pool.*Member; }
};
template struct member_of_pool<&thread_pool::run_>;

// The tasks of each job that a pool is given meanwhile; of one pool at a time.
class recorded_jobs {
 public:
  explicit recorded_jobs(thread_pool& pool) : pool_(pool) {
    tasks.clear();
    given = run_of(pool);
    run_of(pool) = [](thread_pool& self, std::int64_t count, task_function call, void* body) {
      tasks.push_back(count);
      given(self, count, call, body);
    };
  }
  ~recorded_jobs() { run_of(pool_) = given; }
  recorded_jobs(const recorded_jobs&) = delete;
  recorded_jobs& operator=(const recorded_jobs&) = delete;
  std::int64_t most() const { return tasks.empty() ? 0 : *std::max_element(tasks.begin(), tasks.end()); }

 private:
  inline static std::vector<std::int64_t> tasks;
  inline static run_function given;
  thread_pool& pool_;
};

void run(const module_graph& body, std::span<const tensor> in, std::span<const tensor> out, thread_pool& pool,
         bool unread = false) {
  const auto kernel = eigen::make_rows_kernel(body, "rows");
  buffer scratch = buffer::allocate(kernel->scratch_bytes(in, out, pool.size()) + 64);
  launch l{in, out, {scratch.data(), scratch.size()}, &pool};
  l.unread = unread;
  kernel->run(l);
}

// The tasks of the job that a body of one parameter is, or 0 where the caller does it.
std::int64_t tasks_of(const module_graph& body, const shape& in, const shape& out) {
  thread_pool pool(2);
  argument x = random_argument(in, 3), y(out);
  const tensor from = tensor_of(x), to = tensor_of(y);
  const recorded_jobs jobs(pool);
  run(body, {&from, 1}, {&to, 1}, pool);
  return jobs.most();
}

TEST(rows, threads_share_what_pays_for_their_call) {
  const auto squares = [](std::int64_t n) {
    const shape full{dtype::f32, {n}};
    module_graph body;
    const value_id x = body.add_parameter("x", full);
    body.outputs.push_back(body.add_with_shapes(op::mul{}, {x, x}, {full}));
    return tasks_of(body, full, full);
  };
  EXPECT_LE(squares(30'000), 1);
  EXPECT_GE(squares(50'000), 2);
}

TEST(rows, folds_of_nothing_take_few_tasks) {
  const shape full{dtype::f32, {1'000'000, 0}}, column{dtype::f32, {1'000'000, 1}};
  module_graph body;
  const value_id x = body.add_parameter("x", full), square = body.add_with_shapes(op::mul{}, {x, x}, {full});
  body.outputs.push_back(body.add_with_shapes(op::reduce_sum{.axes = {1}}, {square}, {column}));
  const std::int64_t tasks = tasks_of(body, full, column);
  EXPECT_GE(tasks, 2);
  EXPECT_LE(tasks, 200);
}

// Loops follow the operand that repeats least, whichever comes first: a sum has the same bits.
TEST(rows, loops_follow_what_is_read_once) {
  std::vector<double> expected;
  for (const bool declared_first : {false, true})
    for (const bool multiplied_first : {false, true}) {
      const dims all{3, 37, 9, 11}, plane{1, 1, 9, 11};
      const auto make = [&](builder& b) {
        value mask, x;
        if (declared_first) mask = b.input("mask", dtype::f32, plane);
        x = b.input("x", dtype::f32, all);
        if (!declared_first) mask = b.input("mask", dtype::f32, plane);
        b.output((multiplied_first ? mask * x : x * mask).reduce_sum({1, 2, 3}));
      };
      std::vector<argument> in{random_argument({dtype::f32, all}, 1), random_argument({dtype::f32, plane}, 2)};
      if (declared_first) std::swap(in[0], in[1]);
      expect_same(make, in, {1e-5, 1e-4});
      const executable e = compile_eigen(make);
      EXPECT_EQ(e.report().steps.size(), 1u);
      const auto sums = e.run(in)[0].to<double>();
      if (expected.empty()) expected.assign(sums.begin(), sums.end());
      for (std::size_t k = 0; k < sums.size(); ++k) EXPECT_EQ(sums[k], expected[k]);
    }
}

// An image's strides: by planes, or with the channels innermost.
tensor image_of(argument& a, bool nhwc) {
  tensor t = tensor_of(a);
  const std::int64_t channels = t.lens[1], width = t.lens[3];
  if (nhwc) t.strides = {channels * t.lens[2] * width, 1, channels * width, channels};
  return t;
}
template <class T> T at(const argument& a, bool nhwc, std::int64_t channel, std::int64_t pixel) {
  const auto channels = a.get_shape().lens[1].value(), pixels = a.elements() / channels;
  return a.as<T>()[static_cast<std::size_t>(nhwc ? pixel * channels + channel : channel * pixels + pixel)];
}

// An image as one row that threads cut, with results in both layouts and operands of other widths in the layout that
// the row does not have: tiles of these are written out, also where stores go past the caches.
TEST(rows, cut_rows_read_and_write_images_apart) {
  constexpr std::int64_t channels = 64, side = 56;
  const dims lens{1, channels, side, side};
  const shape full{dtype::f32, lens}, one{dtype::f32, {1, 1, 1, 1}};
  module_graph body;
  const value_id x = body.add_parameter("x", full), half = body.add_parameter("half", {dtype::f16, lens}),
                 byte = body.add_parameter("byte", {dtype::u8, lens}),
                 keep = body.add_parameter("keep", {dtype::boolean, lens});
  const value_id top = body.add_with_shapes(op::reduce_max{.axes = {1, 2, 3}}, {x}, {one}),
                 all = body.add_with_shapes(op::multibroadcast{lens}, {top}, {full}),
                 y = body.add_with_shapes(op::mul{}, {x, all}, {full});
  const auto wide = [&](value_id v) { return body.add_with_shapes(op::convert{dtype::f32}, {v}, {full}); };
  const value_id sum = body.add_with_shapes(op::add{}, {y, wide(half)}, {full}),
                 more = body.add_with_shapes(op::add{}, {sum, wide(byte)}, {full});
  body.outputs.push_back(y);
  body.outputs.push_back(body.add_with_shapes(op::where{}, {keep, more, y}, {full}));
  ASSERT_NE(eigen::tile_program(body).blocks(), nullptr);

  std::vector<argument> in{random_argument(full, 1), random_argument({dtype::f16, lens}, 2),
                           random_argument({dtype::u8, lens}, 3, 0, 255), random_argument({dtype::boolean, lens}, 4)};
  float greatest = -1;
  for (const float v : in[0].as<float>()) greatest = std::max(greatest, v);
  for (const unsigned threads : {1U, 2U, 3U})
    for (const bool in_nhwc : {false, true})
      for (const bool unread : {false, true}) {
        SCOPED_TRACE(::testing::Message() << threads << " threads, NHWC " << in_nhwc << ", unread " << unread);
        thread_pool pool(threads);
        argument first(full), last(full);
        std::vector<tensor> from;
        for (argument& a : in) from.push_back(image_of(a, in_nhwc));
        const std::vector<tensor> to{image_of(first, true), image_of(last, false)};
        run(body, from, to, pool, unread);
        const auto halves = in[1].to<float>();
        for (std::int64_t c = 0; c < channels; ++c)
          for (std::int64_t i = 0; i < side * side; ++i) {
            const auto k = static_cast<std::size_t>(in_nhwc ? i * channels + c : c * side * side + i);
            const float scaled = at<float>(in[0], in_nhwc, c, i) * greatest;
            const float sums = scaled + halves[k] + static_cast<float>(std::to_integer<int>(in[2].data()[k]));
            ASSERT_EQ(at<float>(first, true, c, i), scaled) << c << ' ' << i;
            ASSERT_EQ(at<float>(last, false, c, i), in[3].data()[k] != std::byte{} ? sums : scaled) << c << ' ' << i;
          }
      }
}

}  // namespace
}  // namespace kiln::testing
