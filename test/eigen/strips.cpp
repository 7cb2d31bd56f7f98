// Weights of several MiB that lie by columns are packed strip by strip, and a file's pages given back after each.
#include "kiln/backend/eigen/strips.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "kiln/config.hpp"
#include "runtime/compare.hpp"
#include "support/process_memory.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::testing {
namespace {

using eigen::pack_in_strips;
using eigen::strip_columns;

constexpr std::int64_t mib = std::int64_t{1} << 20;
constexpr tolerance close{3e-5, 3e-5};

TEST(strips, leave_one_of_them_in_memory) {
  if (KILN_SANITIZES_ADDRESSES) GTEST_SKIP() << "shadow memory counts too";
  constexpr std::int64_t column = 3000, columns = 10001, into = 777;
  const test::temporary_folder folder;
  const buffer stored = map_file(folder.write("weights", std::string(column * columns + into, 'x')).string());
  const thread_pool pool(2);
  const std::int64_t before = test::status_bytes("RssFile:");
  std::int64_t done = 0, most = 0, letters = 0;
  pack_in_strips(pool, stored, stored.data() + into, column, columns, [&](std::int64_t first, std::int64_t end) {
    EXPECT_EQ(first, done);
    EXPECT_EQ(first % strip_columns, 0);
    const std::byte* const from = stored.data() + into;
    letters += std::count(from + first * column, from + end * column, std::byte{'x'});
    most = std::max(most, test::status_bytes("RssFile:") - before);
    done = end;
  });
  EXPECT_EQ(done, columns);
  EXPECT_EQ(letters, column * columns);
  EXPECT_GT(most, 3 * mib);
  EXPECT_LT(most, 9 * mib);  // code that is read for the first time, too
  EXPECT_LT(test::status_bytes("RssFile:") - before, mib);
}

TEST(strips, of_long_columns_are_whole_panels) {
  std::vector<std::int64_t> firsts;
  const buffer stored = buffer::allocate(130 * 70000);
  const thread_pool pool(2);
  pack_in_strips(pool, stored, stored.data(), 70000, 130,
                 [&](std::int64_t first, std::int64_t) { firsts.push_back(first); });
  EXPECT_THAT(firsts, ::testing::ElementsAre(0, 64, 128));
}

// Three strips, the last one of no whole panels.
TEST(strips, make_the_same_product) {
  for (const dtype t : {dtype::f16, dtype::f32}) {
    const auto make = [t](builder& b) {
      const value w = b.constant(random_argument({t, {10003, 512}}, 9, -.5, .5).to_literal()).convert(dtype::f32);
      b.output(b.input("x", dtype::f32, {3, 512}).dot(w.transpose({1, 0})));
    };
    compile_options options;
    options.threads = 2;
    const auto in = random_inputs(make);
    expect_close(compile_eigen(make, options).run(in)[0], reference_run(make, in)[0], close);
  }
}

}  // namespace
}  // namespace kiln::testing
