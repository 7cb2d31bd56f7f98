#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "peer/onnxruntime.hpp"

/// Compares kiln on the Eigen target with ONNX Runtime, model by model.
namespace kiln::peer {

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Each output within `tolerance` of its own greatest magnitude, as max|x-y| <= tolerance * max|y|.
inline void expect_equal_outputs(const std::vector<argument>& found, const std::vector<argument>& expected,
                                 double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    SCOPED_TRACE("output " + std::to_string(k));
    ASSERT_EQ(found[k].get_shape().type, expected[k].get_shape().type);
    ASSERT_EQ(found[k].get_shape().lens, expected[k].get_shape().lens);
    const auto x = found[k].to<double>(), y = expected[k].to<double>();
    double greatest = 0, apart = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::isfinite(x[i]), std::isfinite(y[i])) << "element " << i << ": " << x[i] << " and " << y[i];
      if (!std::isfinite(y[i])) continue;
      greatest = std::max(greatest, std::fabs(y[i]));
      apart = std::max(apart, std::fabs(x[i] - y[i]));
    }
    EXPECT_LE(apart, tolerance * greatest);
  }
}

/// Runs a model in both. Skips where ONNX Runtime is not in the build tree.
inline void compare_with_peer(std::span<const std::byte> model, const std::string& directory,
                              const std::vector<std::map<std::string, argument>>& runs, double tolerance = 1e-5) {
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  const session peer(*path, model);
  const executable own = compile(onnx::parse_model(model, directory).graph, eigen_target());
  ASSERT_EQ(own.outputs().size(), peer.outputs().size());
  for (const auto& inputs : runs) expect_equal_outputs(own.run(inputs), peer.run(inputs), tolerance);
}

}  // namespace kiln::peer
