// Kernels chosen by measurement, with times that the tests make up.
#include <gmock/gmock.h>

#include <filesystem>

#include "kiln/runtime/tuner.hpp"
#include "runtime/compare.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

// Seconds by the names of candidates; others take 1 s. Counts what is timed.
struct made_up_times {
  std::map<std::string, double, std::less<>> of;
  std::map<std::string, int, std::less<>> timed;

  tuning_options options(std::filesystem::path file = {}) {
    tuning_options o;
    o.file = std::move(file);
    o.seconds = [this](std::string_view what, const std::function<void()>& run) {
      run();
      ++timed[std::string(what)];
      const auto at = of.find(what);
      return at == of.end() ? 1.0 : at->second;
    };
    return o;
  }
};

void image_network(builder& b) {
  const value x = b.input("x", dtype::f32, {1, 16, 12, 12});
  const value w = b.constant(random_argument(shape(dtype::f32, {32, 16, 3, 3}), 2).to_literal());
  b.output(x.conv(w, {.pads = {1, 1, 1, 1}}).relu(), "y");
}

template <class Make> executable compiled(Make make, std::shared_ptr<tuner> tuning) {
  builder b;
  make(b);
  compile_options o = plain_options();
  o.tuning = std::move(tuning);
  return compile(b.finish(), eigen_target(), o);
}

std::string kernels_of(const executable& e) {
  std::string all;
  for (const step_info& s : e.report().steps) all += s.kernel + "; ";
  return all;
}

argument result_of(const executable& e) {
  const argument x = random_argument(e.inputs()[0].type, 7);
  return e.run(std::span(&x, 1))[0];
}

TEST(tuner, takes_the_shortest_by_more_than_the_margin) {
  made_up_times times{{{"a", 1.0}, {"b", 0.99}, {"c", 0.7}, {"d", 0.8}}, {}};
  const tuner t(times.options());
  const std::string names[] = {"a", "b", "c", "d"};
  const std::vector<std::function<void()>> runs(4, [] {});
  EXPECT_EQ(t.best_of(names, runs, 0.05).best, 2u);
  EXPECT_EQ(t.best_of(std::span(names, 2), std::span(runs).first(2), 0.05).best, 0u);
  EXPECT_EQ(t.best_of(std::span(names, 2), std::span(runs).first(2), 0.005).best, 1u);
}

TEST(tuner, noise_changes_no_choice) {
  int call = 0;
  tuning_options o;
  o.file.clear();
  // shorter in the median, but not in most rounds by far
  o.seconds = [&](std::string_view what, const std::function<void()>&) {
    return what == "a" ? 1.0 : ++call % 5 < 3 ? 0.9 : 1.1;
  };
  const tuner t(std::move(o));
  const std::string names[] = {"a", "b"};
  const std::vector<std::function<void()>> runs(2, [] {});
  EXPECT_EQ(t.best_of(names, runs, 0.02).best, 0u);
}

TEST(tuner, what_is_far_behind_is_dropped) {
  made_up_times times{{{"slow", 5.0}, {"near", 1.1}}, {}};
  const tuner t(times.options());
  const std::string names[] = {"a", "slow", "near"};
  const std::vector<std::function<void()>> runs(3, [] {});
  EXPECT_EQ(t.best_of(names, runs, 0.05).best, 0u);
  EXPECT_LT(times.timed["slow"], times.timed["near"]);
}

TEST(tuner, ratios_are_those_over_the_first) {
  made_up_times times{{{"a", 2.0}, {"b", 1.0}, {"far", 5.0}}, {}};
  const tuner t(times.options());
  const std::string names[] = {"a", "b", "far"};
  const std::vector<std::function<void()>> runs(3, [] {});
  EXPECT_THAT(t.best_of(names, runs, 0.05).ratios, ::testing::ElementsAre(1.0, 0.5, 2.5));
  EXPECT_THAT(t.best_of(std::span(names, 1), std::span(runs).first(1), 0.05).ratios, ::testing::ElementsAre(1.0));
}

TEST(tuning, says_what_was_measured_for_each_problem_once) {
  made_up_times times{{{"im2col", 0.5}, {"program tuned", 0.5}}, {}};
  tuning_options o = times.options();
  std::map<std::string, std::vector<std::string>> measured;
  std::size_t calls = 0;
  o.measured = [&](std::string_view problem, std::span<const std::string> names, const tuning_result& r) {
    ++calls;
    EXPECT_EQ(r.ratios.size(), names.size());
    EXPECT_EQ(r.ratios[0], 1.0);
    measured[std::string(problem)].assign(names.begin(), names.end());
  };
  const auto tuning = std::make_shared<tuner>(std::move(o));
  compiled(image_network, tuning);
  const std::size_t of_problems = calls;
  EXPECT_GT(of_problems, 1u);
  EXPECT_LE(measured.size(), of_problems);  // a program's plans are compared in pairs
  EXPECT_TRUE(std::any_of(measured.begin(), measured.end(),
                          [](const auto& m) { return m.second[0] == "program as estimated"; }));
  compiled(image_network, tuning);
  EXPECT_EQ(calls, of_problems) << "the cache knows them";
}

TEST(tuning, another_kernel_than_estimated_gives_the_same_values) {
  const executable plain = compiled(image_network, nullptr);
  for (const char* method :
       {"direct_channels", "im2col", "direct_rows", "winograd 1x4", "nhwc_gemm", "winograd 2x2", "winograd 4x4"}) {
    made_up_times times{{{method, 0.1}, {"program tuned", 0.5}}, {}};
    const executable tuned = compiled(image_network, std::make_shared<tuner>(times.options()));
    if (times.timed[method] == 0) continue;
    EXPECT_THAT(kernels_of(tuned), HasSubstr(method));
    expect_close(result_of(tuned), result_of(plain), {1e-3, 1e-3});
  }
}

TEST(tuning, estimates_stand_where_the_whole_is_not_shorter) {
  const std::string estimated = kernels_of(compiled(image_network, nullptr));
  const char* const other = estimated.find("nhwc_gemm") == estimated.npos ? "nhwc_gemm" : "winograd 4x4";
  made_up_times times{{{other, 0.1}}, {}};
  const executable tuned = compiled(image_network, std::make_shared<tuner>(times.options()));
  ASSERT_GT(times.timed[other], 0);
  EXPECT_GT(times.timed["program tuned"], 0);
  EXPECT_EQ(kernels_of(tuned), estimated);
  EXPECT_THAT(tuned.report().remarks, ::testing::Contains(HasSubstr("tuning: program as estimated")));
}

TEST(tuning, choices_are_kept_and_not_timed_again) {
  const test::temporary_folder folder;
  const std::filesystem::path file = folder / "tuned.tsv";
  const std::string estimated = kernels_of(compiled(image_network, nullptr));
  const char* const other = estimated.find("nhwc_gemm") == estimated.npos ? "nhwc_gemm" : "winograd 4x4";
  made_up_times times{{{other, 0.1}, {"program tuned", 0.5}}, {}}, later;
  const std::string first = kernels_of(compiled(image_network, std::make_shared<tuner>(times.options(file))));
  const std::string second = kernels_of(compiled(image_network, std::make_shared<tuner>(later.options(file))));
  EXPECT_THAT(first, HasSubstr(other));
  EXPECT_EQ(second, first);
  EXPECT_TRUE(later.timed.empty());
}

TEST(tuning, an_option_makes_a_tuner_of_its_own) {
  const test::temporary_folder folder;
  const std::filesystem::path file = folder / "tuned.tsv";
  compile_options o = plain_options();
  o.tuning_file = file.string();
  EXPECT_THAT(compile_eigen(image_network, o).report().remarks, ::testing::Each(::testing::Not(HasSubstr("tuning:"))));
  EXPECT_FALSE(std::filesystem::exists(file)) << "only tune reads and writes it";
  o.tune = true;
  EXPECT_THAT(compile_eigen(image_network, o).report().remarks, ::testing::Contains(HasSubstr("tuning: program ")));
  EXPECT_GT(std::filesystem::file_size(file), 0u);
  // a tuner of the caller's is the one that is used
  std::filesystem::remove(file);
  made_up_times times;
  o.tuning = std::make_shared<tuner>(times.options());
  compile_eigen(image_network, o);
  EXPECT_FALSE(times.timed.empty());
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(tuning, a_layer_beside_many_constants_is_another_problem) {
  made_up_times times;
  const auto tuning = std::make_shared<tuner>(times.options());
  compiled(image_network, tuning);
  ASSERT_GT(times.timed["winograd 4x4"], 0);
  times.timed.clear();
  compiled(image_network, tuning);
  EXPECT_EQ(times.timed["winograd 4x4"], 0);
  compiled(
      [](builder& b) {
        image_network(b);
        const value w = b.constant(random_argument(shape(dtype::f32, {300, 300}), 3).to_literal());
        b.output(b.input("z", dtype::f32, {1, 300}).dot(w), "product");
      },
      tuning);
  EXPECT_GT(times.timed["winograd 4x4"], 0);
}

TEST(tuning, nchw_alone_is_a_candidate_for_the_whole) {
  const auto network = [](builder& b) {
    value x = b.input("x", dtype::f32, {1, 32, 12, 12});
    for (unsigned k = 0; k < 3; ++k)
      x = x.conv(b.constant(random_argument(shape(dtype::f32, {32, 32, 3, 3}), k).to_literal()), {.pads = {1, 1, 1, 1}})
              .relu();
    b.output(x, "y");
  };
  const auto nhwc = ::testing::Contains(HasSubstr("NHWC"));
  const executable plain = compiled(network, nullptr);
  ASSERT_THAT(plain.report().remarks, nhwc);
  made_up_times times{{{"program tuned, NCHW only", 0.5}}, {}};
  const executable tuned = compiled(network, std::make_shared<tuner>(times.options()));
  EXPECT_THAT(tuned.report().remarks, ::testing::Not(nhwc));
  expect_close(result_of(tuned), result_of(plain), {1e-3, 1e-3});
}

TEST(tuning, products_and_attention_have_choices) {
  const auto network = [](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 4, 200, 32});
    const value w = b.constant(random_argument(shape(dtype::f32, {32, 32}), 3).to_literal());
    b.output(x.dot(w).relu(), "y");
    b.output(b.add(op::attention{.scale = 0.2F}, {x, x, x}), "z");
  };
  const executable plain = compiled(network, nullptr);
  made_up_times times{{{"tasks of 64 rows", 0.5}, {"128 keys at once", 0.5}, {"program tuned", 0.5}}, {}};
  const executable tuned = compiled(network, std::make_shared<tuner>(times.options()));
  EXPECT_GT(times.timed["tasks of 64 rows"], 0);
  EXPECT_GT(times.timed["128 keys at once"], 0);
  EXPECT_THAT(tuned.report().remarks, ::testing::Contains(HasSubstr("2 of 2 kernels")));
  const argument x = random_argument(plain.inputs()[0].type, 7);
  const auto a = tuned.run(std::span(&x, 1)), b = plain.run(std::span(&x, 1));
  for (std::size_t k = 0; k < 2; ++k) expect_close(a[k], b[k], {1e-4, 1e-5});
}

TEST(tuning, progress_goes_through_the_kernels) {
  made_up_times times;
  tuning_options o = times.options();
  std::size_t last = 0, all = 0;
  o.progress = [&](const tuning_progress& p) { last = p.done, all = p.all; };
  compiled(image_network, std::make_shared<tuner>(std::move(o)));
  EXPECT_GT(all, 0u);
  EXPECT_LT(last, all);
}

TEST(tuning, a_target_without_choices_says_so) {
  builder b;
  image_network(b);
  compile_options o = plain_options();
  made_up_times times;
  o.tuning = std::make_shared<tuner>(times.options());
  const executable e = compile(b.finish(), reference_target(), o);
  EXPECT_THAT(e.report().remarks, ::testing::Contains(HasSubstr("has no kernels to choose from")));
  EXPECT_TRUE(times.timed.empty());
}

}  // namespace
}  // namespace kiln::testing
