#include "cpp_export/exported.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::test {
namespace {

/// Builds image networks whose weights a seed decides, scaled so that every layer keeps its input's magnitude.
class image_network {
 public:
  value input(std::int64_t side) { return b_.input("image", dtype::f32, {1, 3, side, side}); }
  value weight(const dims& lens, double scale, double middle = 0) {
    small_vector<double> values;
    for (std::int64_t i = product(lens).value(); i > 0; --i) values.push_back(middle + scale * dice_.real());
    return b_.constant(dtype::f32, lens, std::span<const double>(values.data(), values.size()));
  }
  value convolve(value x, std::int64_t to, std::int64_t kernel, std::int64_t stride = 1) {
    const std::int64_t from = x.dim(1).value(), pad = kernel / 2;
    const double scale = std::sqrt(3.0 / static_cast<double>(from * kernel * kernel));
    return x.conv(weight({to, from, kernel, kernel}, scale),
                  {.stride = {stride, stride}, .pads = {pad, pad, pad, pad}});
  }
  value normalize(value x) {
    const std::int64_t n = x.dim(1).value();
    return x.batch_norm(weight({n}, 0.2, 1), weight({n}, 0.2), weight({n}, 0.2), weight({n}, 0.2, 1));
  }
  value biased(value x) { return x.add_along(1, weight({x.dim(1)}, 0.2)); }
  value dense(value x, std::int64_t to) {
    const std::int64_t from = x.dim(1).value();
    x = x.dot(weight({from, to}, std::sqrt(3.0 / static_cast<double>(from))));
    return x + weight({to}, 0.2);
  }
  program finish(value v) {
    b_.output(v, "scores");
    return b_.finish();
  }

 private:
  builder b_;
  dice dice_{11};
};

const op::pooling stem_pool{.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}};

/// He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition" (2015): 18 layers, batch norm and all.
program resnet18(std::int64_t side) {
  image_network n;
  value x = n.normalize(n.convolve(n.input(side), 64, 7, 2)).relu().pool(stem_pool);
  for (const std::int64_t to : {64, 128, 256, 512})
    for (int block = 0; block < 2; ++block) {
      const std::int64_t stride = block == 0 && to != 64 ? 2 : 1;
      value y = n.normalize(n.convolve(x, to, 3, stride)).relu();
      y = n.normalize(n.convolve(y, to, 3));
      if (stride != 1) x = n.normalize(n.convolve(x, to, 1, stride));
      x = (y + x).relu();
    }
  return n.finish(n.dense(x.reduce_mean({2, 3}).flatten(), 1000));
}

/// Iandola, Han, Moskewicz, Ashraf, Dally and Keutzer, "SqueezeNet" (2016), version 1.1.
program squeezenet(std::int64_t side) {
  image_network n;
  const op::pooling halved{.lengths = {3, 3}, .stride = {2, 2}};
  const auto fire = [&](value x, std::int64_t narrow, std::int64_t wide) {
    x = n.biased(n.convolve(x, narrow, 1)).relu();
    return n.biased(n.convolve(x, wide, 1)).relu().concat(n.biased(n.convolve(x, wide, 3)).relu(), 1);
  };
  value x = n.biased(n.convolve(n.input(side), 64, 3, 2)).relu().pool(halved);
  x = fire(fire(x, 16, 64), 16, 64).pool(halved);
  x = fire(fire(x, 32, 128), 32, 128).pool(halved);
  x = fire(fire(x, 48, 192), 48, 192);
  x = fire(fire(x, 64, 256), 64, 256);
  x = n.biased(n.convolve(x, 1000, 1)).relu();
  return n.finish(x.reduce_mean({2, 3}).flatten().softmax());
}

program through_a_file(const program& p) {
  const temporary_folder folder;
  const std::string path = folder / "model.onnx";
  onnx::write_model(path, p);
  return onnx::read_model(path).graph;
}

// Through an ONNX file, as a user's model comes: exported to C++, built and run, against the executable.
void expect_network(const program& built, std::size_t most_kernels) {
  program p = through_a_file(built);
  dice d{5};
  const literal image = random_literal(p.main().shape_of(p.main().parameters()[0]), d);
  argument in(image.get_shape());
  std::copy_n(image.bytes(), image.get_shape().bytes().value(), in.data());
  const literal expected = compile(p, eigen_target()).run(std::vector<argument>{in})[0].to_literal();
  optimize(p);
  EXPECT_LE(to_cpp(p).steps, most_kernels);
  const std::vector<literal> found = run_exported(p, {image}, "-O2 -march=native");
  ASSERT_EQ(found.size(), 1u) << "the exported program does not build or run";
  EXPECT_TRUE(close(found[0], expected, 2e-5));
}

TEST(exported_network, resnet18) { expect_network(resnet18(64), 24); }
TEST(exported_network, squeezenet) { expect_network(squeezenet(64), 34); }

}  // namespace
}  // namespace kiln::test
