// Random numbers of ONNX's operators: extents, moments, and independence of the halves that one pair gives.
#include <cmath>
#include <numeric>

#include "onnx/one_operator.hpp"

namespace kiln::test {
namespace {

std::vector<float> normal(std::int64_t count, const char* op, std::vector<message> more = {}) {
  more.push_back(attr("seed", 7.0f));
  more.push_back(attr("mean", 3.0f));
  more.push_back(attr("scale", 2.0f));
  const outcome made = compute({op, 1, more}, {given{{count}, std::vector<float>(static_cast<std::size_t>(count))}});
  EXPECT_EQ(made.lens, ints{count});
  return made.values;
}
double moment(const std::vector<float>& of, int order) {
  return std::accumulate(of.begin(), of.end(), 0.0,
                         [&](double sum, float x) { return sum + std::pow((x - 3.0) / 2.0, order); }) /
         static_cast<double>(of.size());
}

TEST(random_normal, has_as_many_numbers_as_asked_for) {
  for (const std::int64_t count : {0, 1, 2, 7}) {
    const auto made = normal(count, "RandomNormalLike");
    EXPECT_EQ(made.size(), static_cast<std::size_t>(count));
    for (const float x : made) EXPECT_TRUE(std::isfinite(x) && std::abs(x - 3) < 20) << x;
  }
}

// Of 10001 numbers a mean's standard error is 0.01, that of the second, third and fourth moment .014, .04 and .1.
TEST(random_normal, has_the_moments_of_its_distribution) {
  for (const int type : {1, 10, 11}) {  // f32, f16, f64
    const auto made = normal(10001, "RandomNormalLike", {attr("dtype", type)});
    EXPECT_NEAR(moment(made, 1), 0, 0.05) << type;
    EXPECT_NEAR(moment(made, 2), 1, 0.07) << type;
    EXPECT_NEAR(moment(made, 3), 0, 0.2) << type;
    EXPECT_NEAR(moment(made, 4), 3, 0.5) << type;
  }
}

TEST(random_normal, halves_of_pairs_are_independent) {
  const auto made = normal(10000, "RandomNormalLike");
  double both = 0;
  for (std::size_t k = 0; k < 5000; ++k) both += (made[k] - 3.0) * (made[k + 5000] - 3.0) / 4;
  EXPECT_NEAR(both / 5000, 0, 0.07);
  EXPECT_NE(std::vector<float>(made.begin(), made.begin() + 5000), std::vector<float>(made.begin() + 5000, made.end()));
}

}  // namespace
}  // namespace kiln::test
