#include "kiln/runtime/profile.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/graph/builder.hpp"

namespace kiln {
namespace {

executable two_products() {
  builder b;
  const auto x = b.input("x", dtype::f32, {4, 4});
  b.output(x.dot(x).dot(x), "y");
  return compile(b.finish(), reference_target());
}

TEST(profile, notes_each_step_of_each_run) {
  const executable exe = two_products();
  const argument x(shape(dtype::f32, {4, 4}));
  std::fill_n(const_cast<std::byte*>(x.data()), 64, std::byte{0});
  workspace w = exe.make_workspace();
  std::vector<argument> y(1);
  const run_profile p = profile_runs(exe, w, std::span(&x, 1), y, 3);
  const std::size_t steps = exe.report().steps.size();
  EXPECT_EQ(p.runs, 3u);
  ASSERT_EQ(p.steps.size(), 3 * steps);
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    EXPECT_EQ(p.steps[i].step, i % steps);
    EXPECT_GE(p.steps[i].begin_ms, i == 0 ? 0 : p.steps[i - 1].begin_ms);
  }
  EXPECT_EQ(p.median_ms(exe.report()).size(), steps);
}

TEST(profile, medians_are_those_of_the_steps_that_ran) {
  compile_report r;
  r.steps.resize(2);
  const run_profile p{3, {{0, 0, 5}, {0, 5, 1}, {0, 6, 3}}};
  EXPECT_EQ(p.median_ms(r), (std::vector<double>{3, 0}));
}

TEST(profile, chrome_trace_has_an_event_a_step) {
  compile_report r;
  r.target = "somewhere";
  step_info product, copy;
  product.kernel = "product \"a\"";
  product.instruction = "/net/\xff";
  product.outputs = {shape(dtype::f32, {2, 3})};
  copy.kernel = "copy";
  copy.copy = true;
  r.steps = {product, copy};
  const auto made = nlohmann::json::parse(chrome_trace({1, {{0, 0.5, 2}, {1, 2.5, 0.25}}}, r));
  const auto& events = made.at("traceEvents");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].at("ph"), "M");
  EXPECT_EQ(events[1].at("name"), "product \"a\"");
  EXPECT_EQ(events[1].at("ph"), "X");
  EXPECT_EQ(events[1].at("ts"), 500.0);
  EXPECT_EQ(events[1].at("dur"), 2000.0);
  EXPECT_EQ(events[1].at("args").at("outputs")[0], "f32[2, 3]");
  EXPECT_EQ(events[2].at("cat"), "copy");
}

}  // namespace
}  // namespace kiln
