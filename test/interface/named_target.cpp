#include "kiln/interface/named_target.hpp"

#include <gmock/gmock.h>

#include "kiln/backend/hip/hip_target.hpp"

namespace {

using kiln::named_target;

kiln::error refusal_of(std::string_view name, const kiln::compile_options& options = {}) {
  try {
    (void)named_target(name, options);
  } catch (const kiln::error& e) {
    return e;
  }
  return {kiln::errc::internal, "accepted"};
}

TEST(named_target, finds_targets) {
  EXPECT_EQ(named_target("eigen")->name(), "eigen");
  EXPECT_EQ(named_target("reference")->name(), "reference");
  EXPECT_EQ(named_target("hip:gfx90a")->name(), "hip");
  EXPECT_EQ(named_target("cpu")->name(), "eigen");
  EXPECT_EQ(named_target("ref")->name(), "reference");
}

TEST(named_target, has_names_of_migraphx) {
  for (const char* name : {"cpu", "ref"}) EXPECT_EQ(kiln::migraphx_target_name(named_target(name)->name()), name);
  EXPECT_EQ(kiln::migraphx_target_name("hip"), "gpu");
  EXPECT_EQ(kiln::migraphx_target_name("another"), "another");
}

TEST(named_target, refuses_other_names_and_lists_those_there_are) {
  for (const char* name : {"", "tpu", "hip:", "Eigen"}) {
    const kiln::error e = refusal_of(name);
    EXPECT_EQ(e.code(), kiln::errc::not_found) << name;
    EXPECT_THAT(e.what(), testing::HasSubstr("expected one of eigen, reference, hip, hip:DEVICE, hip:ARCHITECTURE"));
    EXPECT_THAT(e.what(), testing::HasSubstr("found '" + std::string(name) + "'"));
  }
}

TEST(named_target, refuses_to_tune_the_reference) {
  kiln::compile_options options;
  options.tune = true;
  EXPECT_EQ(refusal_of("reference", options).code(), kiln::errc::invalid_argument);
  EXPECT_EQ(named_target("eigen", options)->name(), "eigen");
}

}  // namespace
