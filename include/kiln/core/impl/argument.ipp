#include "kiln/core/argument.hpp"

#include "kiln/core/object.hpp"

namespace kiln {
namespace {

std::size_t bytes_to_allocate(const shape& s) {
  for (const dimension d : s.lens)
    if (d.value() < 0) raise(fault::of(errc::invalid_argument, "an extent of an argument is not negative", 0, s.lens));
  return static_cast<std::size_t>(s.bytes().value());
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
  const ints lens = to_ints(shape_.lens), strides = to_ints(shape_.element_strides());
  const std::size_t width = size_of(shape_.type);
  ints at(lens.size(), 0);
  const std::int64_t n = elements();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    std::memcpy(out.data() + static_cast<std::size_t>(i) * width, data_ + offset * static_cast<std::int64_t>(width),
                width);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < lens[d]) break;
      at[d] = 0;
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
