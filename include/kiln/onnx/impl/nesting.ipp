#include <google/protobuf/wire_format_lite.h>

#include <vector>

#include "kiln/onnx/impl/proto.hpp"

namespace kiln::onnx {

namespace {

using Wire = google::protobuf::internal::WireFormatLite;

enum class kind : std::uint8_t { model, function, graph, node, attribute, declaration, type, holder, map };
// What lies in a message, as far as it may hold its own kind again.
struct inside {
  kind outer;
  int field;
  kind inner;
};
constexpr inside places[] = {
    {kind::model, 7, kind::graph},        {kind::model, 25, kind::function},    {kind::function, 7, kind::node},
    {kind::graph, 1, kind::node},         {kind::graph, 11, kind::declaration}, {kind::graph, 12, kind::declaration},
    {kind::graph, 13, kind::declaration}, {kind::node, 5, kind::attribute},     {kind::attribute, 6, kind::graph},
    {kind::attribute, 11, kind::graph},   {kind::declaration, 2, kind::type},   {kind::type, 4, kind::holder},
    {kind::type, 9, kind::holder},        {kind::holder, 1, kind::type},        {kind::type, 5, kind::map},
    {kind::map, 2, kind::type},
};

struct level {
  std::span<const std::byte> bytes;
  kind is;
  int depth;
};

}  // namespace

bool nests_deeper(std::span<const std::byte> bytes, bool is_model, int nesting) {
  std::vector<level> open{{bytes, is_model ? kind::model : kind::declaration, 0}};
  while (!open.empty()) {
    const level at = open.back();
    open.pop_back();
    if (at.depth > nesting) return true;
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(at.bytes.data()),
                                              static_cast<int>(at.bytes.size()));
    in.SetTotalBytesLimit(std::numeric_limits<int>::max());
    while (const std::uint32_t tag = in.ReadTag()) {
      if (Wire::GetTagWireType(tag) != Wire::WIRETYPE_LENGTH_DELIMITED) {
        if (!Wire::SkipField(&in, tag)) break;
        continue;
      }
      std::uint32_t size = 0;
      if (!in.ReadVarint32(&size)) break;
      const auto from = static_cast<std::size_t>(in.CurrentPosition());
      if (size > at.bytes.size() - from || !in.Skip(static_cast<int>(size))) break;
      for (const inside& p : places)
        if (p.outer == at.is && p.field == Wire::GetTagFieldNumber(tag))
          open.push_back({at.bytes.subspan(from, size), p.inner, at.depth + 1});
    }
  }
  return false;
}

}  // namespace kiln::onnx
