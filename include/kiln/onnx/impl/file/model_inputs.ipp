#include <algorithm>

#include "kiln/onnx/impl/file/files.hpp"
#include "kiln/onnx/impl/file/proto.hpp"
#include "kiln/onnx/impl/file/wire_format.hpp"
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

}  // namespace

std::vector<value_info> model_inputs(std::span<const std::byte> file) {
  constexpr std::uint64_t graph_field = 7, initializer_field = 5, input_field = 11, tensor_name_field = 8;
  if (file.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    raise(errc::limit, "a message ends at 2 GiB, this one has " + std::to_string(file.size()) + " bytes");
  std::vector<std::string> defaults;
  std::vector<value_info> out;
  for_fields({file.data(), file.size()}, [&](const wire_field& graph) {
    if (graph.number != graph_field) return;
    for_fields(graph.content, [&](const wire_field& f) {
      if (f.number == input_field) out.push_back(read_input(f.content));
      if (f.number != initializer_field) return;
      for_fields(f.content, [&](const wire_field& name) {
        if (name.number == tensor_name_field) defaults.push_back(name.text());
      });
    });
  });
  std::erase_if(
      out, [&](const value_info& v) { return std::find(defaults.begin(), defaults.end(), v.name) != defaults.end(); });
  return out;
}

std::vector<value_info> model_inputs(const std::string& path) try {
  const buffer file = map_file(path);
  return model_inputs(std::span<const std::byte>(file.data(), file.size()));
} catch (error& e) {
  throw e.at_source(path);
}

}  // namespace kiln::onnx
