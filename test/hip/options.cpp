// What needs neither a device nor a compiler for kernels.
#include <gtest/gtest.h>

#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/runtime/tuning_cache.hpp"

namespace kiln::hip {
namespace {

TEST(hip_options, the_file_of_tuned_kernels) {
  EXPECT_EQ(tuning_file_of({}), tuning_cache::default_file().string());
  hip_options o;
  o.cache = "/tmp/kernels";
  EXPECT_EQ(tuning_file_of(o), "/tmp/kernels/tuned.tsv");
  o.keep = false;
  EXPECT_EQ(tuning_file_of(o), "");
  o.tuning_file = "/tmp/mine.tsv";
  EXPECT_EQ(tuning_file_of(o), "/tmp/mine.tsv");
}

}  // namespace
}  // namespace kiln::hip
