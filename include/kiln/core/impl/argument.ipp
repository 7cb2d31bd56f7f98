#include "kiln/core/argument.hpp"

#include <algorithm>

#include "kiln/core/object.hpp"

namespace kiln {
namespace {

std::size_t bytes_to_allocate(const shape& s) {
  for (const dimension d : s.lens)
    if (d.value() < 0) raise(fault::of(errc::invalid_argument, "an extent of an argument is not negative", 0, s.lens));
  return static_cast<std::size_t>(s.bytes().value());
}

// Elements at strides in row-major order. The last two dims are copied in tiles, so that a transposed matrix is read
// and written by whole cache lines.
template <class Element> void copy_strided(const shape& s, const std::byte* from, std::byte* to) {
  ints lens = to_ints(s.lens), strides = to_ints(s.element_strides());
  while (lens.size() < 2) {
    lens.insert(0, 1);
    strides.insert(0, 0);
  }
  const std::size_t outer = lens.size() - 2;
  const std::int64_t rows = lens[outer], columns = lens[outer + 1], down = strides[outer], right = strides[outer + 1];
  std::int64_t matrices = 1;
  for (std::size_t d = 0; d < outer; ++d) matrices *= lens[d];
  if (rows == 0 || columns == 0) return;
  constexpr std::int64_t tile = 32, width = sizeof(Element);
  ints at(outer, 0);
  for (std::int64_t m = 0; m < matrices; ++m, to += rows * columns * width) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < outer; ++d) offset += at[d] * strides[d];
    const std::byte* const matrix = from + offset * width;
    for (std::int64_t r = 0; r < rows; r += tile)
      for (std::int64_t c = 0; c < columns; c += tile)
        for (std::int64_t i = r; i < std::min(r + tile, rows); ++i)
          for (std::int64_t j = c; j < std::min(c + tile, columns); ++j)
            std::memcpy(to + (i * columns + j) * width, matrix + (i * down + j * right) * width, width);
    for (std::size_t d = outer; d-- > 0;) {
      if (++at[d] < lens[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace

argument::argument(const shape& s) : shape_(s.with(s.lens)), owner_(buffer::allocate(bytes_to_allocate(s))) {
  data_ = owner_.data();
  if (is_object(s.type)) std::memset(data_, 0, owner_.size());  // handles of nothing
}

argument::argument(const literal& l) : shape_(l.get_shape()), owner_(l.data()) {
  if (l.has_symbols()) raise(errc::unsupported, "a literal that holds symbols is bound before it is read");
  if (reinterpret_cast<std::uintptr_t>(owner_.data()) % size_of(shape_.type) != 0) {
    owner_ = buffer::allocate(l.data().size());
    std::memcpy(owner_.data(), l.bytes(), owner_.size());
  }
  data_ = owner_.data();
}

void argument::check(dtype t) const {
  if (t != shape_.type) raise(fault::of(errc::invalid_argument, "element type of the argument", shape_.type, t));
  if (!shape_.standard()) raise(errc::invalid_argument, "a strided argument is read through contiguous()");
}

argument argument::contiguous() const { return shape_.standard() ? *this : copy(); }

argument argument::copy() const {
  argument out(shape_);
  const std::size_t width = size_of(shape_.type);
  if (shape_.standard()) {
    if (elements() != 0) std::memcpy(out.data(), data_, static_cast<std::size_t>(elements()) * width);
  } else {
    switch (width) {
      case 1: copy_strided<std::uint8_t>(shape_, data_, out.data()); break;
      case 2: copy_strided<std::uint16_t>(shape_, data_, out.data()); break;
      case 4: copy_strided<std::uint32_t>(shape_, data_, out.data()); break;
      case 8: copy_strided<std::uint64_t>(shape_, data_, out.data()); break;
      default: raise(fault::of(errc::internal, "bytes of an element", "1, 2, 4 or 8", width));
    }
  }
  return is_object(shape_.type) ? retained(out.shape_, out.data_) : out;
}

literal argument::to_literal() const {
  const argument dense = contiguous();
  if (dense.owner_ && dense.owner_.data() == dense.data_) return literal(dense.shape_, dense.owner_);
  const argument own = dense.copy();
  return literal(own.shape_, own.owner_);
}

}  // namespace kiln
