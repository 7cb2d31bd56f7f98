#include <vector>

#include "kiln/core/wire_format.hpp"
#include "kiln/onnx/impl/file/proto.hpp"

namespace kiln::onnx {

namespace {

enum class kind : std::uint8_t { model, function, graph, node, attribute, declaration, type, container, map };
// The fields of messages that may contain messages of their own kind.
struct contained {
  kind outer;
  std::uint64_t field;
  kind inner;
};
constexpr contained fields[] = {
    {kind::model, 7, kind::graph},        {kind::model, 25, kind::function},    {kind::function, 7, kind::node},
    {kind::graph, 1, kind::node},         {kind::graph, 11, kind::declaration}, {kind::graph, 12, kind::declaration},
    {kind::graph, 13, kind::declaration}, {kind::node, 5, kind::attribute},     {kind::attribute, 6, kind::graph},
    {kind::attribute, 11, kind::graph},   {kind::declaration, 2, kind::type},   {kind::type, 4, kind::container},
    {kind::type, 9, kind::container},     {kind::container, 1, kind::type},     {kind::type, 5, kind::map},
    {kind::map, 2, kind::type},
};

struct message {
  bytes_view bytes;
  kind is;
  int depth;
};

}  // namespace

bool nests_deeper(bytes_view bytes, bool is_model, int nesting) {
  std::vector<message> left{{bytes, is_model ? kind::model : kind::declaration, 0}};
  while (!left.empty()) {
    const message at = left.back();
    left.pop_back();
    if (at.depth > nesting) return true;
    wire_reader all(at.bytes);
    for (wire_field f; all.next(f);)
      for (const contained& c : fields)
        if (c.outer == at.is && c.field == f.number && f.encoding == wire_encoding::delimited)
          left.push_back({f.content, c.inner, at.depth + 1});
  }
  return false;
}

}  // namespace kiln::onnx
