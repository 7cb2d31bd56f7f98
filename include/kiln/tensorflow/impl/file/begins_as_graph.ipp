#include <algorithm>

#include "kiln/core/wire_format.hpp"
#include "kiln/tensorflow/impl/file/graph_file.hpp"

namespace kiln::tensorflow {

bool begins_as_text(std::span<const std::byte> bytes) {
  const auto head = bytes.first(std::min<std::size_t>(bytes.size(), 1024));
  return !head.empty() && std::none_of(head.begin(), head.end(), [](std::byte b) {
    return b < std::byte(' ') && b != std::byte('\n') && b != std::byte('\t') && b != std::byte('\r');
  });
}

bool begins_as_graph(std::span<const std::byte> bytes) {
  if (begins_as_text(bytes)) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 1024));
    if (begins_as_saved_model(bytes)) return false;
    const std::size_t first = text.find("node");
    return first != std::string_view::npos && text.find_first_of("{<", first) != std::string_view::npos;
  }
  wire_reader from(bytes);
  wire_field f;
  // a GraphDef begins with a node, and a node with its name or its operator
  if (!from.next(f) || f.number != 1 || f.encoding != wire_encoding::delimited) return false;
  wire_reader node(f.content);
  bool has_name = false, has_operator = false;
  for (wire_field n; node.next(n);) {
    has_name = has_name || (n.number == 1 && n.encoding == wire_encoding::delimited);
    has_operator = has_operator || (n.number == 2 && n.encoding == wire_encoding::delimited);
  }
  return node.ok() && has_name && has_operator;
}

// Version 1 of the format, then graphs with their signatures. A first version of ONNX's has the name of its producer
// there, whose letters are no fields of such a message.
bool begins_as_saved_model(std::span<const std::byte> bytes) {
  if (begins_as_text(bytes)) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 1024));
    return text.find("saved_model_schema_version") != std::string_view::npos ||
           (text.find("meta_graphs") != std::string_view::npos && text.find("meta_info_def") != std::string_view::npos);
  }
  wire_reader from(bytes);
  wire_field f;
  if (!from.next(f) || f.number != 1 || f.encoding != wire_encoding::varint || f.value != 1) return false;
  if (!from.next(f) || f.number != 2 || f.encoding != wire_encoding::delimited) return false;
  wire_reader meta(f.content);
  bool any = false;
  for (wire_field m; meta.next(m); any = true)
    if (m.number > 7 || m.encoding != wire_encoding::delimited) return false;
  return meta.ok() && any;
}

}  // namespace kiln::tensorflow
