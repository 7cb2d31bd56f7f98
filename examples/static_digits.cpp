// The digits network as a static program: the C++ compiler infers its shapes, fuses it, plans its memory and writes its
// loops. Running it needs no kiln library and allocates nothing.
#include <array>
#include <cstdint>
#include <cstdio>
#include <span>

#include "digits_net.hpp"
#include "kiln/fixed/static_program.hpp"

namespace {

// [program]
using digits = kiln::static_program<digits_net>;
static_assert(digits::kernels <= 8);
// [/program]

constexpr std::size_t scans = 360, pixels = 64;
std::array<float, digits::weight_elements> weights;
std::array<float, scans * pixels> images;
std::array<std::int64_t, scans> labels;

// The end of a file, as elements: a tensor file of ONNX ends with its data.
template <class T>
bool read_tail(const char* path, std::span<T> to) {
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
