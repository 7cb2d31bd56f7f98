#pragma once
#include <complex>
#include <string>
#include <vector>

#include "kiln/core/object.hpp"

// Files pack elements of less than a byte, the first in the lowest bits; in memory each has a byte.
namespace kiln::onnx {

/// The bytes of so many elements in a file.
constexpr std::int64_t file_bytes(dtype t, std::int64_t count) {
  return t == dtype::c128 ? count * 16 : (count * bits_of(t) + 7) / 8;
}

/// A complex tensor of pairs of Part.
template <class Part> literal complex_literal(const shape& s, const std::byte* pairs) {
  std::vector<std::complex<double>> elements;
  const std::int64_t count = s.elements().value();
  for (std::int64_t i = 0; i < count; ++i) {
    Part parts[2];
    std::memcpy(parts, pairs + static_cast<std::size_t>(i) * sizeof parts, sizeof parts);
    elements.emplace_back(parts[0], parts[1]);
  }
  return complex_argument(s.type, s.lens, elements).to_literal();
}
inline literal complex_literal(const shape& s, const std::byte* pairs) {
  return s.type == dtype::c64 ? complex_literal<float>(s, pairs) : complex_literal<double>(s, pairs);
}

template <class Part> std::string complex_bytes(const argument& a) {
  std::string out;
  for (const std::complex<double>& z : complexes_of(a)) {
    const Part parts[2] = {static_cast<Part>(z.real()), static_cast<Part>(z.imag())};
    out.append(reinterpret_cast<const char*>(parts), sizeof parts);
  }
  return out;
}

/// A tensor of packed elements.
inline literal unpacked(const shape& s, const std::byte* from) {
  const int bits = bits_of(s.type), each = 8 / bits;
  const std::int64_t count = s.elements().value();
  buffer data = buffer::allocate(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    data.data()[i] = from[i / each] >> static_cast<int>(i % each) * bits & std::byte((1 << bits) - 1);
  return {s, std::move(data)};
}

/// The row-major elements of a tensor of numbers, as in a file.
inline std::string packed(const argument& given) {
  const argument a = given.contiguous();
  const dtype t = a.get_shape().type;
  if (t == dtype::c64) return complex_bytes<float>(a);
  if (t == dtype::c128) return complex_bytes<double>(a);
  const std::byte* from = a.data();
  const std::int64_t count = a.elements();
  std::string out(static_cast<std::size_t>(file_bytes(t, count)), '\0');
  const int bits = bits_of(t), each = bits < 8 ? 8 / bits : 0;
  if (!each) {
    if (count) std::memcpy(out.data(), from, out.size());
    return out;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    char& to = out[static_cast<std::size_t>(i / each)];
    to = static_cast<char>(static_cast<unsigned char>(to) | std::to_integer<unsigned>(from[i]) << i % each * bits);
  }
  return out;
}

}  // namespace kiln::onnx
