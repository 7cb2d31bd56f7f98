#include "kiln/onnx/impl/file/value_message.hpp"

#include "kiln/core/object.hpp"
#include "kiln/onnx/impl/file/packed_elements.hpp"

// SequenceProto and OptionalProto have the same fields: a name, the kind of their values, and one field for each kind.
// MapProto has a name, the type of its keys, the keys, and its values as a SequenceProto.
namespace kiln::onnx {

namespace {

using onnx_proto::TensorProto;

enum field : std::uint64_t {
  name_field = 1,
  kind_field = 2,
  tensor_field = 3,
  sequence_field = 5,
  map_field = 6,
  optional_field = 7
};
enum content_kind : std::uint64_t { tensor_kind = 1, sequence_kind = 3, map_kind = 4, optional_kind = 5 };
enum map_part : std::uint64_t { key_type_field = 2, number_keys_field = 3, text_keys_field = 4, values_field = 5 };
constexpr int most_nested = 16;

[[noreturn]] void broken() { raise(errc::malformed, "the file is truncated, or holds no such value"); }

argument read_tensor_bytes(bytes_view bytes, external_files& files) {
  TensorProto message;
  parse_message(message, bytes, 8, "a tensor");
  tensor t = read_tensor_message(message, files);
  if (!t.fault.empty()) raise(errc::unsupported, "tensor '" + t.name + "' " + t.fault);
  return argument(t.value);
}

std::string tensor_message(const argument& value, const std::string& name) {
  TensorProto message;
  const dtype type = value.get_shape().type;
  if (const std::int64_t bytes = type == dtype::string ? 0 : file_bytes(type, value.elements());
      bytes >= (std::int64_t{1} << 31) - 4096)
    raise(errc::limit, "a tensor message ends at 2 GiB, this one has " + std::to_string(bytes) + " bytes");
  if (!name.empty()) message.set_name(name);
  set_tensor(message, value);
  return message.SerializeAsString();
}

content_kind kind_of(const argument& a) {
  const dtype t = a.get_shape().type;
  return t == dtype::sequence   ? sequence_kind
         : t == dtype::optional ? optional_kind
         : t == dtype::map      ? map_kind
                                : tensor_kind;
}
field field_of(content_kind k) {
  return k == tensor_kind     ? tensor_field
         : k == sequence_kind ? sequence_field
         : k == map_kind      ? map_field
                              : optional_field;
}

// Calls f(field) for each field of a message that is delimited or a varint.
void for_fields(bytes_view message, const auto& f) {
  wire_reader all(message);
  for (wire_field field; all.next(field);)
    if (field.encoding == wire_encoding::delimited || field.encoding == wire_encoding::varint) f(field);
  if (!all.ok()) broken();
}

named_argument read_map(bytes_view bytes, external_files& files, int depth) {
  named_argument out;
  std::vector<std::int64_t> numbers;
  std::vector<std::string> texts;
  std::vector<argument> values;
  for_fields(bytes, [&](const wire_field& f) {
    if (f.encoding == wire_encoding::varint) {
      if (f.number == number_keys_field) numbers.push_back(static_cast<std::int64_t>(f.value));
      return;
    }
    if (f.number == name_field) out.name = f.text();
    if (f.number == text_keys_field) texts.push_back(f.text());
    if (f.number == values_field)
      values = items_of(read_value_message(f.content, dtype::sequence, files, depth + 1).value);
    if (f.number != number_keys_field) return;
    wire_reader packed(f.content);
    for (std::uint64_t v = 0; packed.next(v);) numbers.push_back(static_cast<std::int64_t>(v));
    if (!packed.ok()) broken();
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
  if (!name.empty()) append_field(bytes, name_field, name);
  const dtype keys = m.keys.get_shape().type;
  append_field(bytes, key_type_field, static_cast<std::uint64_t>(to_element(keys)));
  if (keys == dtype::string)
    for (const std::string& k : strings_of(m.keys)) append_field(bytes, text_keys_field, k);
  else
    for (const std::int64_t k : m.keys.to<std::int64_t>())
      append_field(bytes, number_keys_field, static_cast<std::uint64_t>(k));
  append_field(bytes, values_field, value_message(sequence_argument(m.values), ""));
  return bytes;
}

}  // namespace

void set_tensor(TensorProto& to, const argument& value) {
  const argument dense = value.contiguous();
  const dtype type = dense.get_shape().type;
  for (const dimension d : value.get_shape().lens) to.add_dims(d.value());
  to.set_data_type(static_cast<int>(to_element(type)));
  if (type != dtype::string) return to.set_raw_data(packed(dense));
  for (std::string& s : strings_of(dense)) to.add_string_data(std::move(s));
}

named_argument read_value_message(bytes_view bytes, dtype kind, external_files& files, int depth) {
  if (depth > most_nested)
    raise(errc::limit, "values are nested deeper than the limit of " + std::to_string(most_nested));
  if (kind == dtype::map) return read_map(bytes, files, depth);
  named_argument out;
  std::vector<argument> items;
  for_fields(bytes, [&](const wire_field& f) {
    if (f.encoding == wire_encoding::varint) return;
    const auto inner = [&](dtype k) { return read_value_message(f.content, k, files, depth + 1).value; };
    if (f.number == name_field)
      out.name = f.text();
    else if (f.number == tensor_field)
      items.push_back(read_tensor_bytes(f.content, files));
    else if (f.number == sequence_field || f.number == map_field || f.number == optional_field)
      items.push_back(inner(f.number == sequence_field ? dtype::sequence
                            : f.number == map_field    ? dtype::map
                                                       : dtype::optional));
    else
      raise(errc::unsupported, "a value has sparse tensors, which kiln does not read");
  });
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
  if (!name.empty()) append_field(bytes, name_field, name);
  if (items.empty() && t != dtype::sequence) return bytes;
  const content_kind of = items.empty() ? tensor_kind : kind_of(items[0]);
  append_field(bytes, kind_field, of);
  for (const argument& a : items) append_field(bytes, field_of(of), value_message(a, ""));
  return bytes;
}

}  // namespace kiln::onnx
