#include "kiln/runtime/source_op.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/runtime/executable.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace kiln;
namespace fs = std::filesystem;

// A cache of its own, and a compiler that counts how often it is called.
class source_op_test : public testing::Test {
 protected:
  source_op_test() {
    folder_.write("compiler", "#!/bin/sh\necho x >> " + (folder_ / "calls").string() + "\nexec c++ \"$@\"\n");
    fs::permissions(folder_ / "compiler", fs::perms::owner_all);
    how.compiler = (folder_ / "compiler").string();
    how.cache = folder_ / "cache";
  }

  int calls() const {
    std::ifstream in(folder_ / "calls");
    int count = 0;
    for (std::string line; std::getline(in, line);) ++count;
    return count;
  }
  fs::path kept() const { return fs::directory_iterator(how.cache)->path(); }
  template <class F> static error failure_of(F&& f) {
    try {
      f();
    } catch (const error& e) {
      return e;
    }
    return error(errc::internal, "nothing was thrown");
  }

  static source_op leaky(const char* type) {
    source_op op;
    op.domain = "source";
    op.type = type;
    op.source = "return x > 0 ? x : slope * x;";
    op.attributes = {{"slope", std::vector<float>{0.25f}}};
    return op;
  }
  // What one run on a target gives.
  static argument run(const operation& op, const std::vector<argument>& in, const target& on) {
    builder b;
    small_vector<value_id> ids;
    std::vector<argument> inputs;
    for (const argument& a : in) {
      const std::string name = "x" + std::to_string(ids.size());
      ids.push_back(b.input(name, a.get_shape().type, a.get_shape().lens).id());
      inputs.push_back(a);
    }
    b.output(b.add_operation(op, ids), "y");
    const executable exe = compile(b.finish(), on);
    return exe.run(std::span<const argument>(inputs)).front();
  }
  static argument floats(const dims& lens, std::vector<float> values, dtype as = dtype::f32) {
    argument a(shape{as, lens});
    encode(as, values.data(), a.data(), a.elements());
    return a;
  }

  test::temporary_folder folder_;
  source_op_options how;
};

TEST_F(source_op_test, computes_for_every_float_type_on_every_target) {
  define_source_op(leaky("types"), how);
  const operation plain = make_custom_operation("source::types"),
                  steep = make_custom_operation("source::types", {{"slope", std::vector<std::int64_t>{2}}});
  for (const dtype t : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16})
    for (const bool reference : {false, true}) {
      const std::unique_ptr<const target> on = reference ? std::unique_ptr<const target>(new reference_target)
                                                         : std::unique_ptr<const target>(new eigen_target);
      std::vector<float> x(3000), less, more;
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i % 17) - 8);
      for (const float v : x) {
        less.push_back(v > 0 ? v : v / 4);
        more.push_back(v > 0 ? v : v * 2);
      }
      argument in(shape{t, {3000}});
      visit_compute(t, [&]<class T>(type_tag<T>) {
        std::vector<T> wide(x.begin(), x.end());
        if constexpr (std::is_floating_point_v<T>) encode(t, wide.data(), in.data(), 3000);
      });
      EXPECT_THAT(run(plain, {in}, *on).to<float>(), testing::ElementsAreArray(less)) << to_string(t);
      EXPECT_THAT(run(steep, {in}, *on).to<float>(), testing::ElementsAreArray(more)) << to_string(t);
    }
}

TEST_F(source_op_test, operands_broadcast_and_attributes_keep_their_kinds) {
  source_op op;
  op.type = "mixed";
  op.operands = {"a", "b"};
  op.attributes = {{"times", std::vector<std::int64_t>{2}}, {"bias", std::vector<float>{0.5f}}};
  op.source = "T sum = bias;\nfor (std::int64_t i = 0; i < times; ++i) sum += max(a, b);\nreturn sum;  // a comment";
  define_source_op(op, how);
  const argument y = run(make_custom_operation("mixed", {{"times", std::vector<std::int64_t>{3}}}),
                         {floats({2, 1}, {1, 4}), floats({3}, {0, 2, 6})}, eigen_target());
  EXPECT_EQ(y.get_shape().lens, (dims{2, 3}));
  EXPECT_THAT(y.to<float>(), testing::ElementsAre(3.5f, 6.5f, 18.5f, 12.5f, 12.5f, 18.5f));
  builder b;
  const auto x = b.input("x", dtype::f32, {2}).id();
  const auto refusal = [&](const custom_attributes& attributes, std::initializer_list<value_id> ids) {
    return std::string(failure_of([&] {
                         b.add_operation(make_custom_operation("mixed", attributes), small_vector<value_id>(ids));
                       }).what());
  };
  EXPECT_THAT(refusal({}, {x}), testing::HasSubstr("number of operands"));
  EXPECT_THAT(refusal({{"scale", std::vector<float>{1}}}, {x, x}),
              testing::HasSubstr("one of the attributes times, bias"));
  EXPECT_THAT(refusal({{"times", std::vector<float>{1}}}, {x, x}), testing::HasSubstr("times is an integer"));
  EXPECT_THAT(refusal({}, {x, b.input("i", dtype::i32, {2}).id()}), testing::HasSubstr("expected f64 or f32 or f16"));
}

TEST_F(source_op_test, compiled_code_is_kept_by_content) {
  define_source_op(leaky("first"), how);
  EXPECT_EQ(calls(), 1);
  source_op other = leaky("first");
  other.domain = "elsewhere";
  define_source_op(other, how);  // the same text
  EXPECT_EQ(calls(), 1);
  other = leaky("second");
  other.source = "return x;";
  define_source_op(other, how);
  EXPECT_EQ(calls(), 2);
}

TEST_F(source_op_test, a_damaged_file_is_compiled_again) {
  define_source_op(leaky("damaged"), how);
  // the loaded code stays: the damaged file takes its name only
  std::string bytes(64, 'x');
  const fs::path object = kept(), draft = folder_ / "draft";
  std::ofstream(draft) << bytes;
  fs::rename(draft, object);
  source_op again = leaky("damaged");
  again.domain = "again";
  define_source_op(again, how);
  EXPECT_EQ(calls(), 2);
  EXPECT_THAT(run(make_custom_operation("again::damaged"), {floats({1}, {-4})}, eigen_target()).to<float>(),
              testing::ElementsAre(-1.0f));
}

TEST_F(source_op_test, no_folder_to_keep_code_in) {
  std::ofstream(folder_ / "file") << "no folder";
  how.cache = folder_ / "file" / "below";
  define_source_op(leaky("unkept"), how);
  EXPECT_THAT(run(make_custom_operation("source::unkept"), {floats({1}, {-4})}, eigen_target()).to<float>(),
              testing::ElementsAre(-1.0f));
}

TEST_F(source_op_test, errors_say_what_is_wrong) {
  source_op op = leaky("broken");
  op.source = "return x +\n slop;";
  const error e = failure_of([&] { define_source_op(op, how); });
  EXPECT_EQ(e.code(), errc::invalid_argument);
  EXPECT_EQ(e.op(), "source::broken");
  EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("broken:2:"), testing::HasSubstr("slop")));
  EXPECT_EQ(find_custom_op("source::broken"), nullptr);
  define_source_op(leaky("broken"), how);  // corrected
  EXPECT_THAT(failure_of([&] { define_source_op(leaky("broken"), how); }).what(), testing::HasSubstr("defined once"));
  op = leaky("names");
  op.operands = {"x", "slope"};
  EXPECT_THAT(failure_of([&] { define_source_op(op, how); }).what(), testing::HasSubstr("found 'slope' twice"));
  op.operands = {"2x"};
  EXPECT_THAT(failure_of([&] { define_source_op(op, how); }).what(), testing::HasSubstr("found '2x'"));
  op = leaky("types_of_none");
  op.types = dtypes::numbers;
  EXPECT_THAT(failure_of([&] { define_source_op(op, how); }).what(), testing::HasSubstr("found another type"));
}

TEST_F(source_op_test, a_missing_compiler_is_named) {
  how.compiler = "no-such-compiler -O1";
  const error given = failure_of([&] { define_source_op(leaky("none"), how); });
  EXPECT_EQ(given.code(), errc::not_found);
  EXPECT_THAT(given.what(), testing::HasSubstr("found no program 'no-such-compiler'"));
  how.compiler.clear();
  const char* const path = std::getenv("PATH");
  const std::string before = path ? path : "";
  setenv("CXX", "nor-this-one", 1);
  EXPECT_THAT(failure_of([&] { define_source_op(leaky("none"), how); }).what(),
              testing::HasSubstr("found no program 'nor-this-one' ($CXX)"));
  unsetenv("CXX");
  setenv("PATH", folder_.path().c_str(), 1);
  EXPECT_THAT(failure_of([&] { define_source_op(leaky("none"), how); }).what(), testing::HasSubstr("PATH has no g++"));
  setenv("PATH", before.c_str(), 1);
}

TEST_F(source_op_test, threads_define_and_run_at_once) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      source_op op = leaky("threads");
      op.domain = "thread" + std::to_string(i);
      define_source_op(op, how);  // all compile or take the same file
      for (int k = 0; k < 20; ++k)
        right +=
            run(make_custom_operation(op.domain + "::threads"), {floats({2}, {-4, 4})}, eigen_target()).to<float>() ==
            small_vector<float>{-1, 4};
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 80);
}

}  // namespace
