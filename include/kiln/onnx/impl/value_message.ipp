#include "kiln/onnx/impl/value_message.hpp"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "kiln/core/object.hpp"
#include "kiln/onnx/impl/mapped_file.hpp"
#include "kiln/onnx/impl/packed.hpp"

// SequenceProto and OptionalProto share their fields: a name, the kind of what is inside, and one field for each kind.
namespace kiln::onnx {

namespace {

using Wire = google::protobuf::internal::WireFormatLite;
using onnx_proto::TensorProto;

enum field : int { name_field = 1, kind_field = 2, tensor_field = 3, sequence_field = 5, optional_field = 7 };
enum inside : std::uint32_t { inside_tensor = 1, inside_sequence = 3, inside_optional = 5 };
constexpr int most_nested = 16;

[[noreturn]] void broken() { raise(errc::malformed, "the file is truncated, or holds no such value"); }

argument read_tensor_bytes(const std::string& bytes, external_files& files) {
  TensorProto message;
  parse_message(message, {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, 8, "a tensor");
  tensor t = read_tensor_message(message, files);
  if (!t.fault.empty()) raise(errc::unsupported, "tensor '" + t.name + "' " + t.fault);
  return argument(t.value);
}

std::string tensor_message(const argument& value, const std::string& name) {
  const argument dense = value.contiguous();
  const dtype type = dense.get_shape().type;
  TensorProto message;
  for (const dimension d : dense.get_shape().lens) message.add_dims(d.value());
  message.set_data_type(static_cast<int>(to_element(type)));
  if (!name.empty()) message.set_name(name);
  if (type == dtype::string) {
    for (std::string& s : strings_of(dense)) message.add_string_data(std::move(s));
    return message.SerializeAsString();
  }
  const std::int64_t bytes = file_bytes(type, dense.elements());
  if (bytes >= (std::int64_t{1} << 31) - 4096)
    raise(errc::limit, "a tensor message ends at 2 GiB, this one has " + std::to_string(bytes) + " bytes");
  message.set_raw_data(packed(type, dense.data(), dense.elements()));
  return message.SerializeAsString();
}

struct writer {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream{&bytes};
  google::protobuf::io::CodedOutputStream out{&stream};
  void put(int number, std::string_view text) {
    out.WriteTag(Wire::MakeTag(number, Wire::WIRETYPE_LENGTH_DELIMITED));
    out.WriteVarint32(static_cast<std::uint32_t>(text.size()));
    out.WriteRaw(text.data(), static_cast<int>(text.size()));
  }
  void put(int number, std::uint32_t v) {
    out.WriteTag(Wire::MakeTag(number, Wire::WIRETYPE_VARINT));
    out.WriteVarint32(v);
  }
};

inside kind_inside(const argument& a) {
  const dtype t = a.get_shape().type;
  return t == dtype::sequence ? inside_sequence : t == dtype::optional ? inside_optional : inside_tensor;
}
field field_of(inside k) {
  return k == inside_tensor ? tensor_field : k == inside_sequence ? sequence_field : optional_field;
}

}  // namespace

named_argument read_value_message(std::string_view bytes, dtype kind, external_files& files, int depth) {
  if (depth > most_nested)
    raise(errc::limit, "values are nested deeper than the limit of " + std::to_string(most_nested));
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  named_argument out;
  std::vector<argument> items;
  while (const std::uint32_t tag = in.ReadTag()) {
    const int number = Wire::GetTagFieldNumber(tag);
    if (Wire::GetTagWireType(tag) != Wire::WIRETYPE_LENGTH_DELIMITED) {
      if (!Wire::SkipField(&in, tag)) broken();
      continue;
    }
    std::string text;
    std::uint32_t size = 0;
    if (!in.ReadVarint32(&size) || !in.ReadString(&text, static_cast<int>(size))) broken();
    if (number == name_field)
      out.name = std::move(text);
    else if (number == tensor_field)
      items.push_back(read_tensor_bytes(text, files));
    else if (number == sequence_field)
      items.push_back(read_value_message(text, dtype::sequence, files, depth + 1).value);
    else if (number == optional_field)
      items.push_back(read_value_message(text, dtype::optional, files, depth + 1).value);
    else
      raise(errc::unsupported, "a value holds a map or sparse tensors, which kiln does not read");
  }
  if (!in.ConsumedEntireMessage()) broken();
  if (kind == dtype::sequence)
    out.value = sequence_argument(std::move(items));
  else
    out.value = items.empty() ? empty_optional() : optional_argument(items[0]);
  return out;
}

std::string value_message(const argument& value, const std::string& name) {
  const dtype t = value.get_shape().type;
  if (t != dtype::sequence && t != dtype::optional) return tensor_message(value, name);
  std::vector<argument> items;
  if (t == dtype::sequence)
    items = items_of(value);
  else if (const argument* held = value_of_optional(value))
    items.push_back(*held);
  std::string bytes;
  {
    writer w;
    if (!name.empty()) w.put(name_field, name);
    if (!items.empty() || t == dtype::sequence) {
      const inside kind = items.empty() ? inside_tensor : kind_inside(items[0]);
      w.put(kind_field, static_cast<std::uint32_t>(kind));
      for (const argument& a : items) w.put(field_of(kind), value_message(a, ""));
    }
    w.out.Trim();
    bytes = w.bytes;
  }
  return bytes;
}

}  // namespace kiln::onnx
