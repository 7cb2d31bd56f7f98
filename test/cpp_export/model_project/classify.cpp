// classify IMAGES LABELS COUNT: the trained digits network over ONNX tensor files, whose data come last.
#include <cstdio>
#include <cstdlib>

#include "digits.hpp"

namespace {

digits::network network;

template <class T> bool read_tail(const char* path, T* to, long count) {
  std::FILE* const file = std::fopen(path, "rb");
  const bool whole =
      file && std::fseek(file, -count * static_cast<long>(sizeof(T)), SEEK_END) == 0 &&
      std::fread(to, sizeof(T), static_cast<std::size_t>(count), file) == static_cast<std::size_t>(count);
  if (file) std::fclose(file);
  return whole;
}

float images[360][digits::network::image_size];
std::int64_t labels[360];

}  // namespace

int main(int, char** argv) {
  if (!read_tail(argv[1], images[0], 360 * 64) || !read_tail(argv[2], labels, 360)) return 2;
  int right = 0;
  // [run]
  for (int i = 0; i < 360; ++i) {
    float p[digits::network::probabilities_size];
    network.run(images[i], p);
    int guess = 0;
    for (int k = 1; k < 10; ++k) guess = p[k] > p[guess] ? k : guess;
    right += guess == labels[i];
  }
  // [/run]
  std::printf("%d of 360 right\n", right);
  return right >= 357 ? 0 : 1;
}
