// A kernel library of another build is refused before anything of it is called.
#include "kiln/backend/eigen/isa_layout.hpp"

#include <gmock/gmock.h>

#include <cstdlib>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/core/error.hpp"

namespace kiln::eigen {
namespace {

TEST(isa_layout, the_library_at_hand_agrees) { EXPECT_NO_THROW(check_isa(*kiln_eigen_isa())); }

TEST(isa_layout, a_library_of_another_build_is_refused) {
  isa_table stale = *kiln_eigen_isa();
  stale.layout = 64;  // what stood first before there was a number
  try {
    check_isa(stale);
    FAIL() << "a stale library was taken";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unsupported);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("libkiln_eigen.so.1"));
  }
}

struct small {
  int at;
};
struct large {
  long at, more;
};
template <class Table> constexpr std::uint64_t layout_of() {
  layout_hash hash;
  hash.add_fields<Table>();
  return hash.value();
}
struct table {
  void (*run)(const small& in, float* out);
};
struct other_result {
  double (*run)(const small& in, float* out);
};
struct other_operand {
  void (*run)(const large& in, float* out);
};
struct more_operands {
  void (*run)(const small& in, float* out, bool last);
};
struct by_value {
  void (*run)(const small& in, float out);
};
struct longer {
  void (*run)(const small& in, float* out);
  void (*stop)();
};
static_assert(layout_of<table>() == layout_of<table>());
static_assert(layout_of<table>() != layout_of<other_result>());
static_assert(layout_of<table>() != layout_of<other_operand>(), "what an operand refers to counts");
static_assert(layout_of<table>() != layout_of<more_operands>());
static_assert(layout_of<table>() != layout_of<by_value>());
static_assert(layout_of<table>() != layout_of<longer>());

// Kept timings hold where they were taken.
TEST(machine, tells_whether_the_matrix_unit_may_be_used) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // it is forbidden to a whole process
  const bool has = kiln_eigen_isa()->matrix_unit_available();
  EXPECT_EQ(eigen_target().machine(2).find("matrix unit") != std::string::npos, has);
  const auto forbid = [] {
    eigen_target::forbid_matrix_unit();
    std::_Exit(eigen_target().machine(2).find("matrix unit") == std::string::npos ? 0 : 1);
  };
  EXPECT_EXIT(forbid(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace kiln::eigen
