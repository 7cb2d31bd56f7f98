#include "kiln/onnx/impl/value_message.hpp"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "kiln/core/object.hpp"
#include "kiln/onnx/impl/mapped_file.hpp"
#include "kiln/onnx/impl/packed.hpp"

// SequenceProto and OptionalProto share their fields: a name, the kind of what is inside, and one field for each kind.
// MapProto has a name, the type of its keys, the keys, and its values as a SequenceProto.
namespace kiln::onnx {

namespace {

using Wire = google::protobuf::internal::WireFormatLite;
using onnx_proto::TensorProto;

enum field : int {
  name_field = 1,
  kind_field = 2,
  tensor_field = 3,
  sequence_field = 5,
  map_field = 6,
  optional_field = 7
};
enum inside : std::uint32_t { inside_tensor = 1, inside_sequence = 3, inside_map = 4, inside_optional = 5 };
enum map_part : int { key_type_field = 2, number_keys_field = 3, text_keys_field = 4, values_field = 5 };
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
  message.set_raw_data(packed(dense));
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
  void put(int number, std::uint64_t v) {
    out.WriteTag(Wire::MakeTag(number, Wire::WIRETYPE_VARINT));
    out.WriteVarint64(v);
  }
};

inside kind_inside(const argument& a) {
  const dtype t = a.get_shape().type;
  return t == dtype::sequence   ? inside_sequence
         : t == dtype::optional ? inside_optional
         : t == dtype::map      ? inside_map
                                : inside_tensor;
}
field field_of(inside k) {
  return k == inside_tensor     ? tensor_field
         : k == inside_sequence ? sequence_field
         : k == inside_map      ? map_field
                                : optional_field;
}

// Calls `take(field, bytes)` for each field that is a message or text, `number(field, v)` for each integer.
void read_fields(std::string_view bytes, const auto& take, const auto& number) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  while (const std::uint32_t tag = in.ReadTag()) {
    const int field = Wire::GetTagFieldNumber(tag);
    if (Wire::GetTagWireType(tag) == Wire::WIRETYPE_VARINT) {
      std::uint64_t v = 0;
      if (!in.ReadVarint64(&v)) broken();
      number(field, static_cast<std::int64_t>(v));
    } else if (Wire::GetTagWireType(tag) != Wire::WIRETYPE_LENGTH_DELIMITED) {
      if (!Wire::SkipField(&in, tag)) broken();
    } else {
      std::string text;
      std::uint32_t size = 0;
      if (!in.ReadVarint32(&size) || !in.ReadString(&text, static_cast<int>(size))) broken();
      take(field, std::move(text));
    }
  }
  if (!in.ConsumedEntireMessage()) broken();
}

named_argument read_map(std::string_view bytes, external_files& files, int depth) {
  named_argument out;
  std::vector<std::int64_t> numbers;
  std::vector<std::string> texts;
  std::vector<argument> values;
  read_fields(
      bytes,
      [&](int field, std::string text) {
        if (field == name_field) out.name = std::move(text);
        if (field == text_keys_field) texts.push_back(std::move(text));
        if (field == values_field) values = items_of(read_value_message(text, dtype::sequence, files, depth + 1).value);
        if (field == number_keys_field) {  // packed
          google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(text.data()),
                                                    static_cast<int>(text.size()));
          for (std::uint64_t v = 0; in.CurrentPosition() < static_cast<int>(text.size());) {
            if (!in.ReadVarint64(&v)) broken();
            numbers.push_back(static_cast<std::int64_t>(v));
          }
        }
      },
      [&](int field, std::int64_t v) {
        if (field == number_keys_field) numbers.push_back(v);
      });
  const auto n = static_cast<std::int64_t>(values.size());
  if (!texts.empty() && !numbers.empty()) raise(errc::malformed, "a map's keys are strings or integers, not both");
  if (static_cast<std::int64_t>(texts.size() + numbers.size()) != n)
    raise(errc::malformed,
          "a map has " + std::to_string(texts.size() + numbers.size()) + " keys and " + std::to_string(n) + " values");
  out.value = map_argument(texts.empty() ? argument::of<std::int64_t>({n}, std::span<const std::int64_t>(numbers))
                                         : string_argument({n}, texts),
                           std::move(values));
  return out;
}

std::string map_message(const map_object& m, const std::string& name) {
  std::string bytes;
  {
    writer w;
    if (!name.empty()) w.put(name_field, name);
    const dtype keys = m.keys.get_shape().type;
    w.put(key_type_field, static_cast<std::uint64_t>(to_element(keys)));
    if (keys == dtype::string)
      for (const std::string& k : strings_of(m.keys)) w.put(text_keys_field, k);
    else
      for (const std::int64_t k : m.keys.to<std::int64_t>()) w.put(number_keys_field, static_cast<std::uint64_t>(k));
    w.put(values_field, value_message(sequence_argument(m.values), ""));
    w.out.Trim();
    bytes = w.bytes;
  }
  return bytes;
}

}  // namespace

named_argument read_value_message(std::string_view bytes, dtype kind, external_files& files, int depth) {
  if (depth > most_nested)
    raise(errc::limit, "values are nested deeper than the limit of " + std::to_string(most_nested));
  if (kind == dtype::map) return read_map(bytes, files, depth);
  named_argument out;
  std::vector<argument> items;
  read_fields(
      bytes,
      [&](int field, std::string text) {
        if (field == name_field)
          out.name = std::move(text);
        else if (field == tensor_field)
          items.push_back(read_tensor_bytes(text, files));
        else if (field == sequence_field || field == map_field || field == optional_field)
          items.push_back(read_value_message(text,
                                             field == sequence_field ? dtype::sequence
                                             : field == map_field    ? dtype::map
                                                                     : dtype::optional,
                                             files, depth + 1)
                              .value);
        else
          raise(errc::unsupported, "a value holds sparse tensors, which kiln does not read");
      },
      [](int, std::int64_t) {});
  if (kind == dtype::sequence)
    out.value = sequence_argument(std::move(items));
  else
    out.value = items.empty() ? empty_optional() : optional_argument(items[0]);
  return out;
}

std::string value_message(const argument& value, const std::string& name) {
  const dtype t = value.get_shape().type;
  if (t == dtype::map) return map_message(entries_of(value), name);
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
      w.put(kind_field, std::uint64_t{kind});
      for (const argument& a : items) w.put(field_of(kind), value_message(a, ""));
    }
    w.out.Trim();
    bytes = w.bytes;
  }
  return bytes;
}

}  // namespace kiln::onnx
