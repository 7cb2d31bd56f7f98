#include <algorithm>

#include "kiln/core/wire_format.hpp"
#include "kiln/onnx/impl/file/files.hpp"
#include "kiln/onnx/impl/file/proto.hpp"
#include "kiln/onnx/import.hpp"

namespace kiln::onnx {

namespace {

[[noreturn]] void malformed() { raise(errc::malformed, "the file is truncated, or not an ONNX model"); }

// Calls f(field) for each delimited field of a message.
template <class F> void for_fields(bytes_view message, F&& f) {
  wire_reader all(message);
  for (wire_field field; all.next(field);)
    if (field.encoding == wire_encoding::delimited) f(field);
  if (!all.ok()) malformed();
}

value_info read_input(bytes_view bytes) {
  constexpr int most_nested = 100;  // protobuf's own limit
  onnx_proto::ValueInfoProto message;
  if (message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) return read_value_info(message);
  if (nests_deeper(bytes, false, most_nested))
    raise(errc::limit, "an input's type is nested deeper than the limit of " + std::to_string(most_nested));
  malformed();
}

// What a file says of its inputs.
struct declared_inputs {
  std::uint64_t format = 0;
  std::vector<std::string> defaults;
  std::vector<value_info> inputs;
  bool has_default(const value_info& v) const {
    return std::find(defaults.begin(), defaults.end(), v.name) != defaults.end();
  }
};

declared_inputs declared(std::span<const std::byte> file) {
  constexpr std::uint64_t version_field = 1, graph_field = 7;
  constexpr std::uint64_t initializer_field = 5, input_field = 11, tensor_name_field = 8;
  if (file.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    raise(errc::limit, "a message ends at 2 GiB, this one has " + std::to_string(file.size()) + " bytes");
  declared_inputs out;
  const auto read_graph = [&](const wire_field& f) {
    if (f.number == input_field) out.inputs.push_back(read_input(f.content));
    if (f.number != initializer_field) return;
    for_fields(f.content, [&](const wire_field& name) {
      if (name.number == tensor_name_field) out.defaults.push_back(name.text());
    });
  };
  wire_reader all({file.data(), file.size()});
  for (wire_field f; all.next(f);) {
    if (f.number == version_field && f.encoding == wire_encoding::varint) out.format = f.value;
    if (f.number == graph_field && f.encoding == wire_encoding::delimited) for_fields(f.content, read_graph);
  }
  if (!all.ok()) malformed();
  return out;
}

// f(bytes) of a file.
template <class F> std::vector<value_info> of_file(const std::string& path, F&& f) try {
  const buffer file = map_file(path);
  return f(std::span<const std::byte>(file.data(), file.size()));
} catch (error& e) {
  throw e.at_source(path);
}

}  // namespace

std::vector<value_info> model_inputs(std::span<const std::byte> file) {
  declared_inputs found = declared(file);
  std::erase_if(found.inputs, [&](const value_info& v) { return found.has_default(v); });
  return std::move(found.inputs);
}

std::vector<value_info> overridable_inputs(std::span<const std::byte> file) {
  declared_inputs found = declared(file);
  std::erase_if(found.inputs, [&](const value_info& v) { return !found.has_default(v); });
  const bool are_all_listed = found.inputs.size() == found.defaults.size();
  if (found.format < 4 || are_all_listed) return {};
  return std::move(found.inputs);
}

std::vector<value_info> model_inputs(const std::string& path) {
  return of_file(path, [](std::span<const std::byte> bytes) { return model_inputs(bytes); });
}
std::vector<value_info> overridable_inputs(const std::string& path) {
  return of_file(path, [](std::span<const std::byte> bytes) { return overridable_inputs(bytes); });
}

}  // namespace kiln::onnx
