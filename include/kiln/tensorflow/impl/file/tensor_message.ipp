#include "kiln/tensorflow/impl/file/tensor_message.hpp"

#include <algorithm>
#include <optional>

#include "kiln/core/mapped_file.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/tensorflow/impl/file/graph_file.hpp"
#include "kiln/tensorflow/impl/file/message.hpp"

// TensorProto and TensorShapeProto of tensor.proto and tensor_shape.proto.
namespace kiln::tensorflow {

namespace {

using onnx::element;

// The field that lists a type's values; 0 where there is none.
constexpr std::uint64_t list_field(element type) {
  switch (type) {
    case element::f32: return 5;
    case element::f64: return 6;
    case element::i32:
    case element::i16:
    case element::i8:
    case element::u16:
    case element::u8: return 7;
    case element::i64: return 10;
    case element::boolean: return 11;
    case element::f16:
    case element::bf16: return 13;
    case element::u32: return 16;
    case element::u64: return 17;
    case element::f8e5m2:
    case element::f8e4m3fn: return 18;
    default: return 0;
  }
}
constexpr bool is_list(std::uint64_t field) {
  return (field >= 5 && field <= 13) || field == 16 || field == 17 || field == 18;
}

// The listed values of a tensor as bytes of its type; the last one stands for all that follow.
class listed_values {
 public:
  explicit listed_values(std::size_t width) : width_(width) {}
  template <class T> void add_real(const T& v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void add_integer(std::uint64_t n) {  // little-endian: the low bytes are the value
    bytes_.append(reinterpret_cast<const char*>(&n), width_);
  }
  void add_bytes(const wire_field& f) { bytes_ += f.text(); }
  std::size_t count() const { return bytes_.size() / width_; }
  buffer filled(std::size_t count) const {
    buffer out = buffer::allocate(count * width_);
    const std::size_t given = std::min(bytes_.size(), count * width_);
    std::memcpy(out.data(), bytes_.data(), given);
    const std::string zero(width_, '\0');
    const char* const last = given ? bytes_.data() + given - width_ : zero.data();
    for (std::size_t at = given; at < count * width_; at += width_) std::memcpy(out.data() + at, last, width_);
    return out;
  }

 private:
  std::size_t width_;
  std::string bytes_;
};

// The extents as a shape, and its elements.
std::pair<shape, std::int64_t> sized_shape(dtype type, const tensor_shape& extents, const std::string& where) {
  std::pair<shape, std::int64_t> out{shape{type, {}}, 1};
  for (const std::int64_t n : extents.lens) {
    if (n < 0) refuse(where, "an extent of a constant is " + std::to_string(n));
    if (n > 0 && out.second > (std::int64_t{1} << 40) / n)
      raise(errc::limit, where + ": a constant has too many elements");
    out.second *= n;
    out.first.lens.push_back(n);
  }
  return out;
}

listed_values read_values(bytes_view message, element type, std::size_t width, const std::string& where,
                          bool has_elements) {
  listed_values out(width);
  std::uint64_t other = 0;
  each_field(message, where, [&](const wire_field& f) {
    if (f.number != list_field(type)) {
      if (is_list(f.number) && (f.encoding != wire_encoding::delimited || !f.content.empty())) other = f.number;
      return;
    }
    switch (f.number) {
      case 5: each_real<float>(f, where, [&](float v) { out.add_real(v); }); break;
      case 6: each_real<double>(f, where, [&](double v) { out.add_real(v); }); break;
      case 11: each_number(f, where, [&](std::uint64_t n) { out.add_integer(n != 0); }); break;
      case 18: out.add_bytes(f); break;
      default: each_number(f, where, [&](std::uint64_t n) { out.add_integer(n); });
    }
  });
  if (out.count() == 0 && other != 0 && has_elements)
    refuse(where, "its values are in field " + std::to_string(other) + ", which is of another type than " +
                      std::string(onnx::to_string(type)));
  return out;
}

}  // namespace

void fill_budget::take(std::int64_t bytes, const std::string& where) {
  if (bytes > left_)
    raise(errc::limit, where + ": listed values stand for a constant of " + std::to_string(bytes) +
                           " bytes, which is more than a file of this size may ask for");
  left_ -= bytes;
}

tensor_shape read_shape(bytes_view message, const std::string& where) {
  tensor_shape out;
  each_field(message, where, [&](const wire_field& f) {
    if (f.number == 3) out.has_rank = f.value == 0;
    if (f.number != 2) return;
    std::int64_t size = 0;
    each_field(f.content, where, [&](const wire_field& d) {
      if (d.number == 1) size = static_cast<std::int64_t>(d.value);
    });
    out.lens.push_back(size);
  });
  return out;
}

onnx::tensor read_tensor(bytes_view message, const std::string& where, const buffer& file, fill_budget& budget) {
  onnx::tensor out;
  std::uint64_t type = 0;
  tensor_shape extents;
  bytes_view content;
  each_field(message, where, [&](const wire_field& f) {
    if (f.number == 1) type = f.value;
    if (f.number == 2) extents = read_shape(f.content, where);
    if (f.number == 4) content = f.content;
  });
  out.type = to_element(type);
  const auto held = to_dtype(out.type);
  if (!held || is_object(*held)) {  // strings and complex numbers
    out.fault = "is of " + type_name(type) + ", which constants of a program do not hold";
    return out;
  }
  if (extents.lens.size() > max_rank) {
    out.fault = "has " + std::to_string(extents.lens.size()) + " dims; kiln's tensors have at most 8";
    return out;
  }
  const auto width = static_cast<std::int64_t>(size_of(*held));
  const auto [s, count] = sized_shape(*held, extents, where);
  if (!content.empty()) {
    if (static_cast<std::int64_t>(content.size()) != count * width)
      refuse(where, "tensor_content has " + std::to_string(content.size()) + " bytes, the shape " +
                        std::to_string(count * width));
    const auto offset = static_cast<std::size_t>(content.data() - file.data());
    out.value = onnx::literal_of_raw(s, buffer_part(file, offset, content.size()));
    return out;
  }
  budget.take(count * width, where);
  const listed_values values = read_values(message, out.type, static_cast<std::size_t>(width), where, count > 0);
  if (static_cast<std::int64_t>(values.count()) > count)
    refuse(where, std::to_string(values.count()) + " values for a constant of " + std::to_string(count) + " elements");
  out.value = literal(s, values.filled(static_cast<std::size_t>(count)));
  return out;
}

}  // namespace kiln::tensorflow
