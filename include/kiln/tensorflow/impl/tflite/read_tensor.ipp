#include <cmath>

#include "kiln/core/mapped_file.hpp"
#include "kiln/core/object.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/tensorflow/impl/tflite/file_parts.hpp"

// Tensors of a TFLite file: types, how they are quantized, constants.
namespace kiln::tensorflow {

namespace {

using onnx::element;

// By the type's number.
constexpr element elements[] = {
    element::f32,     element::f16,       element::i32,       element::u8,       element::i64,    element::string,
    element::boolean, element::i16,       element::complex64, element::i8,       element::f64,    element::complex128,
    element::u64,     element::undefined, element::undefined, element::u32,      element::u16,    element::i4,
    element::bf16,    element::i2,        element::u4,        element::f8e4m3fn, element::f8e5m2,
};

// The bytes of a buffer: in the flatbuffer, or after it in a file that is too large for one.
buffer bytes_of(const parts::Buffer& b, const buffer& file, const std::string& where) {
  if (b.offset() > 1) {
    if (b.offset() > file.size() || b.size() > file.size() - b.offset())
      refuse_part(where, "its bytes " + std::to_string(b.offset()) + " to " + std::to_string(b.offset() + b.size()) +
                             " are outside the file of " + std::to_string(file.size()));
    return buffer_part(file, b.offset(), b.size());
  }
  if (!b.data()) return {};
  const auto* first = reinterpret_cast<const std::byte*>(b.data()->data());
  return buffer_part(file, static_cast<std::size_t>(first - file.data()), b.data()->size());
}

// Their number, the offset of each and of the end, the characters; all numbers of 32 bits.
literal read_strings(const dims& lens, std::int64_t count, const buffer& bytes, const std::string& where) {
  const auto number = [&](std::size_t i) -> std::size_t {
    if (4 * i + 4 > bytes.size()) refuse_part(where, "its list of strings is cut off");
    return flatbuffers::ReadScalar<std::uint32_t>(bytes.data() + 4 * i);
  };
  const std::size_t n = number(0);
  if (count < 0 || n != static_cast<std::size_t>(count) || n > bytes.size())
    refuse_part(where, "it has " + std::to_string(n) + " strings, its shape " + std::to_string(count));
  std::vector<std::string> out;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t from = number(i + 1), to = number(i + 2);
    if (from > to || to > bytes.size()) refuse_part(where, "string " + std::to_string(i) + " is outside the list");
    out.emplace_back(reinterpret_cast<const char*>(bytes.data()) + from, to - from);
  }
  return string_argument(lens, out).to_literal();
}

}  // namespace

element element_of(parts::TensorType type) {
  const auto i = static_cast<std::size_t>(type);
  return i < std::size(elements) ? elements[i] : element::undefined;
}
std::string type_name(parts::TensorType type) {
  const std::string_view name = parts::EnumNameTensorType(type);
  return name.empty() ? "type " + std::to_string(static_cast<int>(type)) : std::string(name);
}

quantization quantization_of(const parts::Tensor& t, const std::string& where) {
  quantization out;
  const parts::Quantization* const q = t.quantization();
  if (!q) return out;
  if (q->details_type() != parts::QuantizationDetails::NONE)
    raise(errc::unsupported, where + " is quantized in blocks or along several dims");
  if (!q->scale()) return out;
  for (const float s : *q->scale()) out.scales.push_back(s);
  if (out.scales.size() == 1 && out.scales[0] == 0) return {};  // what some converters write of no scale
  for (const float s : out.scales)
    if (!std::isfinite(s) || s <= 0) refuse_part(where, "a scale is " + std::to_string(s));
  const std::size_t zeros = count_of(q->zero_point());
  if (zeros > 1 && zeros != out.scales.size())
    refuse_part(where, std::to_string(out.scales.size()) + " scales and " + std::to_string(zeros) + " zero points");
  for (std::size_t i = 0; i < out.scales.size(); ++i)
    out.zeros.push_back(zeros ? q->zero_point()->Get(static_cast<flatbuffers::uoffset_t>(zeros == 1 ? 0 : i)) : 0);
  out.axis = q->quantized_dimension();
  if (out.scales.size() > 1) {
    const std::size_t rank = count_of(t.shape());
    if (out.axis < 0 || out.axis >= static_cast<std::int64_t>(rank))
      refuse_part(where, "it is quantized along dim " + std::to_string(out.axis) + " of " + std::to_string(rank));
    const std::int64_t extent = t.shape()->Get(static_cast<flatbuffers::uoffset_t>(out.axis));
    if (extent != static_cast<std::int64_t>(out.scales.size()))
      refuse_part(where, std::to_string(out.scales.size()) + " scales for an extent of " + std::to_string(extent));
  } else {
    out.axis = 0;
  }
  return out;
}

bool is_constant(const parts::Model& model, const parts::Tensor& t) {
  if (t.external_buffer() != 0) return true;
  if (t.is_variable() || t.buffer() == 0 || t.buffer() >= count_of(model.buffers())) return false;
  const parts::Buffer* const b = model.buffers()->Get(t.buffer());
  if (b && (count_of(b->data()) > 0 || b->offset() > 1)) return true;
  for (const std::int32_t n :
       t.shape() ? std::vector<std::int32_t>(t.shape()->begin(), t.shape()->end()) : std::vector<std::int32_t>())
    if (n == 0) return true;
  return false;
}

onnx::tensor read_constant(const parts::Model& model, const parts::Tensor& t, std::string name, const buffer& file) {
  onnx::tensor out;
  out.name = std::move(name);
  out.type = element_of(t.type());
  const std::string where = "tensor '" + out.name + "'";
  const auto type = to_dtype(out.type);
  if (t.external_buffer() != 0)
    out.fault = "is in another file";
  else if (t.sparsity())
    out.fault = "is sparse";
  else if (!type || is_complex(*type))
    out.fault = "is of " + type_name(t.type()) + ", which constants of a program do not hold";
  else if (count_of(t.shape()) > max_rank)
    out.fault = "has " + std::to_string(count_of(t.shape())) + " dims; kiln's tensors have at most 8";
  if (!out.fault.empty()) return out;
  dims lens;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < count_of(t.shape()); ++d) {
    const std::int64_t n = t.shape()->Get(static_cast<flatbuffers::uoffset_t>(d));
    if (n < 0) refuse_part(where, "an extent of a constant is " + std::to_string(n));
    if (n > 0 && count > (std::int64_t{1} << 40) / n) raise(errc::limit, where + ": a constant has too many elements");
    count *= n;
    lens.push_back(n);
  }
  const parts::Buffer* const held = model.buffers() ? model.buffers()->Get(t.buffer()) : nullptr;
  const buffer bytes = held ? bytes_of(*held, file, where) : buffer();
  if (*type == dtype::string) {
    out.value = read_strings(lens, count, bytes, where);
    return out;
  }
  const std::int64_t wanted = (count * bits_of(*type) + 7) / 8;
  if (static_cast<std::int64_t>(bytes.size()) != wanted)
    refuse_part(where, "it has " + std::to_string(bytes.size()) + " bytes, its type and extents need " +
                           std::to_string(wanted));
  out.value = count ? onnx::literal_of_raw({*type, lens}, bytes) : literal({*type, lens}, buffer::allocate(0));
  return out;
}

}  // namespace kiln::tensorflow
