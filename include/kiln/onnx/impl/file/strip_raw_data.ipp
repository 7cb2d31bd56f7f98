#include "kiln/onnx/impl/file/strip_raw_data.hpp"

namespace kiln::onnx {
namespace {

// Numbers of fields in onnx.proto.
constexpr std::uint64_t model_graph = 7, graph_initializer = 5, tensor_raw_data = 9;
constexpr std::size_t large = std::size_t{1} << 14;

void append(std::string& to, bytes_view bytes) { to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }

// Appends an initializer without its raw data; false where the bytes are not a tensor with one raw data field at most.
bool strip_tensor(bytes_view message, std::string& to, bytes_view& raw) {
  wire_reader all(message);
  std::string stripped;
  for (wire_field f; all.next(f);) {
    if (f.number != tensor_raw_data)
      append(stripped, f.whole);
    else if (f.encoding == wire_encoding::delimited && f.content.size() >= large && raw.empty())
      raw = f.content;
    else
      return false;
  }
  append_field(to, graph_initializer, stripped);
  return all.ok();
}

bool strip_graph(bytes_view message, stripped_model& to, std::string& graph) {
  wire_reader all(message);
  for (wire_field f; all.next(f);) {
    if (f.number != graph_initializer || f.encoding != wire_encoding::delimited) {
      append(graph, f.whole);
      continue;
    }
    bytes_view raw;
    if (std::string tensor; f.content.size() >= large && strip_tensor(f.content, tensor, raw))
      graph += tensor;
    else
      append(graph, f.whole), raw = {};
    to.raw.push_back(raw);
  }
  return all.ok();
}

}  // namespace

std::optional<stripped_model> strip_raw_data(bytes_view model) {
  if (model.size() < large) return std::nullopt;
  stripped_model out;
  std::string graph;
  int graphs = 0;
  wire_reader all(model);
  for (wire_field f; all.next(f);) {
    if (f.number != model_graph || f.encoding != wire_encoding::delimited)
      append(out.message, f.whole);
    else if (++graphs > 1 || !strip_graph(f.content, out, graph))
      return std::nullopt;
  }
  if (!all.ok() || graphs != 1) return std::nullopt;
  append_field(out.message, model_graph, graph);
  return out.message.size() <= model.size() / 2 ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace kiln::onnx
