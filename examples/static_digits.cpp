// The digits network as a static program: the C++ compiler infers its shapes, fuses it, plans its memory and writes its
// loops. Running it needs no kiln library and allocates nothing.
#include <array>
#include <cstdint>
#include <cstdio>
#include <span>

#include "kiln/static_program/static_program.hpp"

namespace {

// [net]
constexpr auto net = [](auto& b) {
  using namespace kiln;
  const auto layer = [&](auto x, std::string_view weight, std::string_view bias, std::int64_t from, std::int64_t to) {
    const auto w = b.weight(weight, dtype::f32, {to, from, 3, 3});
    const auto c = b.weight(bias, dtype::f32, {to});
    return x.conv(w, {.pads = {1, 1, 1, 1}}).add_along(1, c).relu();
  };
  const op::pooling halved{.lengths = {2, 2}, .stride = {2, 2}};

  auto x = b.input("image", dtype::f32, {1, 1, 8, 8});
  x = layer(x, "conv1.weight", "conv1.bias", 1, 16);
  x = layer(x, "conv2.weight", "conv2.bias", 16, 32).pool(halved);
  x = layer(x, "conv3.weight", "conv3.bias", 32, 64).pool(halved).flatten();
  x = x.dot(b.weight("hidden.weight", dtype::f32, {256, 64}));
  x = (x + b.weight("hidden.bias", dtype::f32, {64})).relu();
  x = x.dot(b.weight("head.weight", dtype::f32, {64, 10}));
  x = x + b.weight("head.bias", dtype::f32, {10});
  b.output(x.softmax(), "probabilities");
};
using digits = kiln::static_program<net>;
static_assert(digits::kernels <= 8);
// [/net]

constexpr std::size_t scans = 360, pixels = 64;
std::array<float, digits::weight_elements> weights;
std::array<float, scans * pixels> images;
std::array<std::int64_t, scans> labels;

// The end of a file, as elements: a tensor file of ONNX ends with its data.
template <class T> bool read_tail(const char* path, std::span<T> to) {
  std::FILE* const file = std::fopen(path, "rb");
  const bool whole = file && std::fseek(file, -static_cast<long>(to.size_bytes()), SEEK_END) == 0 &&
                     std::fread(to.data(), sizeof(T), to.size(), file) == to.size();
  if (file) std::fclose(file);
  if (!whole) std::fprintf(stderr, "static_digits: cannot read %s\n", path);
  return whole;
}

}  // namespace

int main() {
  if (!read_tail<float>("examples/models/digits/weights.bin", weights) ||
      !read_tail<float>("examples/models/digits/test_data_set_0/input_0.pb", images) ||
      !read_tail<std::int64_t>("examples/models/digits/labels.pb", labels))
    return 2;

  static digits network(weights);
  std::size_t right = 0;
  for (std::size_t i = 0; i < scans; ++i) {
    const auto image = std::span(images).subspan(i * pixels).first<pixels>();
    const auto probabilities = network(image);
    std::size_t guess = 0;
    for (std::size_t k = 1; k < probabilities.size(); ++k)
      if (probabilities[k] > probabilities[guess]) guess = k;
    right += static_cast<std::int64_t>(guess) == labels[i];
  }
  const double accuracy = static_cast<double>(right) / scans;
  std::printf("accuracy %.4f on %zu scans, %zu kernels in an arena of %zu bytes\n", accuracy, scans, digits::kernels,
              digits::arena_bytes);
  return accuracy >= 0.99 ? 0 : 1;
}
