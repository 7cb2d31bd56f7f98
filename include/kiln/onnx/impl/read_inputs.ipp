#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

#include "kiln/onnx/impl/mapped_file.hpp"
#include "kiln/onnx/impl/proto.hpp"
#include "kiln/onnx/import.hpp"

// The inputs of a model file, found without reading its weights.
namespace kiln::onnx {

namespace {

using Wire = google::protobuf::internal::WireFormatLite;
using bytes = std::span<const std::byte>;

[[noreturn]] void malformed() { raise(errc::malformed, "the file is truncated, or not an ONNX model"); }

google::protobuf::io::CodedInputStream stream(bytes from) {
  return google::protobuf::io::CodedInputStream(reinterpret_cast<const std::uint8_t*>(from.data()),
                                                static_cast<int>(from.size()));
}

// Calls f(number, bytes) for each length-delimited field of a message.
template <class F>
void for_fields(bytes message, F&& f) {
  auto in = stream(message);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  while (const std::uint32_t tag = in.ReadTag()) {
    std::uint32_t size = 0;
    if (Wire::GetTagWireType(tag) != Wire::WIRETYPE_LENGTH_DELIMITED) {
      if (!Wire::SkipField(&in, tag)) malformed();
      continue;
    }
    if (!in.ReadVarint32(&size)) malformed();
    const auto at = static_cast<std::size_t>(in.CurrentPosition());
    if (size > message.size() - at || !in.Skip(static_cast<int>(size))) malformed();
    f(Wire::GetTagFieldNumber(tag), message.subspan(at, size));
  }
  if (!in.ConsumedEntireMessage()) malformed();
}

std::string text_of(bytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

}  // namespace

std::vector<value_info> model_inputs(const std::string& path) try {
  constexpr int graph_field = 7, initializer_field = 5, input_field = 11, tensor_name_field = 8;
  const buffer file = map_file(path);
  if (file.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    raise(errc::limit, "a message ends at 2 GiB, this one has " + std::to_string(file.size()) + " bytes");
  std::vector<std::string> defaults;
  std::vector<value_info> out;
  for_fields({file.data(), file.size()}, [&](int model_number, bytes graph) {
    if (model_number != graph_field) return;
    for_fields(graph, [&](int number, bytes entry) {
      if (number == initializer_field)
        for_fields(entry, [&](int field, bytes name) {
          if (field == tensor_name_field) defaults.push_back(text_of(name));
        });
      if (number != input_field) return;
      onnx_proto::ValueInfoProto message;
      auto in = stream(entry);
      if (!message.ParsePartialFromCodedStream(&in)) {
        constexpr int most_nested = 100;  // protobuf's own limit
        if (nests_deeper(entry, false, most_nested))
          raise(errc::limit, "an input's type is nested deeper than the limit of " + std::to_string(most_nested));
        malformed();
      }
      out.push_back(read_value_info(message));
    });
  });
  std::erase_if(
      out, [&](const value_info& v) { return std::find(defaults.begin(), defaults.end(), v.name) != defaults.end(); });
  return out;
} catch (error& e) {
  throw e.at_source(path);
}

}  // namespace kiln::onnx
