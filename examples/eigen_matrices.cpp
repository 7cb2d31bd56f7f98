// Eigen's matrices in and out of a compiled program, without copies.
#include "kiln/eigen.hpp"

#include <fmt/format.h>
#include <Eigen/LU>

#include <cmath>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/runtime/executable.hpp"

// [program]
// How far points are from the mean, as the distribution they come from has it (Mahalanobis 1936).
kiln::program distances() {
  using kiln::dtype;
  kiln::builder b;
  const auto points = b.input("points", dtype::f64, {5, 3}), mean = b.input("mean", dtype::f64, {3}),
             precision = b.input("precision", dtype::f64, {3, 3});
  const auto off = points - mean;
  b.output((off.dot(precision) * off).reduce_sum({1}).squeeze({1}).sqrt(), "distances");
  return b.finish();
}
// [/program]

int main() {
  // [run]
  const Eigen::Matrix<double, 5, 3> points{{1, 0, 2}, {0, 1, 1}, {2, 2, 0}, {1, 3, 1}, {0, 0, 3}};
  const Eigen::RowVector3d mean = points.colwise().mean();
  const Eigen::MatrixXd off = points.rowwise() - mean;
  const Eigen::Matrix3d precision = (off.transpose() * off / 4 + Eigen::Matrix3d::Identity() * 0.1).inverse();

  const kiln::executable compiled = kiln::compile(distances(), kiln::eigen_target());
  // column-major matrices, as they are; the result is Eigen's memory, too
  Eigen::VectorXd found(5);
  kiln::workspace w = compiled.make_workspace();
  const kiln::argument inputs[] = {kiln::as_argument(points), kiln::as_argument(mean), kiln::as_argument(precision)};
  kiln::argument outputs[] = {kiln::as_argument(found)};
  compiled.run(w, inputs, outputs);
  // [/run]

  // [map]
  // a result of the program's own memory, as a map
  const kiln::argument result = compiled.run(inputs)[0];
  const auto mapped = kiln::as_map<const Eigen::VectorXd>(result);
  // [/map]

  const Eigen::VectorXd expected = (off * precision).cwiseProduct(off).rowwise().sum().cwiseSqrt();
  fmt::print("distances:");
  for (const double d : found) fmt::print(" {:.3f}", d);
  fmt::print("\n");
  return (found - expected).norm() < 1e-12 && mapped == found ? 0 : 1;
}
