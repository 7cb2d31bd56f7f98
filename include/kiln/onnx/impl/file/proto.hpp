#pragma once
#include <kiln_onnx.pb.h>

#include <map>
#include <span>
#include <string>

#include "kiln/onnx/node.hpp"

// What the translation units that use protobuf share. They read messages into node.hpp's structs.
namespace kiln::onnx {

/// Where a model's external data is, and the files of it that are mapped already.
struct external_files {
  std::string directory;
  std::int64_t max_bytes = 0;
  std::string real_directory = {};  ///< of a model that was read through a symbolic link
  std::map<std::string, buffer> mapped;
  std::span<const std::byte> stripped = {};  ///< raw data that the next message to read lacks
  const buffer* model = nullptr;             ///< the buffer of such raw data; null: it is copied
};

/// Whether the graphs of a model's bytes, or the types of a declaration's, nest more than so many messages. protobuf
/// does not tell that from truncation.
bool nests_deeper(std::span<const std::byte> bytes, bool is_model, int nesting);

/// Parses a message. Errors: `malformed` unless every byte belongs to it, `limit` if a model nests too deep.
void parse_message(google::protobuf::MessageLite& into, std::span<const std::byte> bytes, int nesting,
                   std::string_view what);

/// The tensor of a message, whose raw data it takes without a copy. A tensor that kiln cannot hold has a fault instead
/// of a value. Errors: `malformed`.
tensor read_tensor_message(onnx_proto::TensorProto& message, external_files& files);
/// A sparse tensor as a dense one.
tensor read_sparse_message(onnx_proto::SparseTensorProto& message, external_files& files);

/// A graph's declared input or output.
value_info read_value_info(const onnx_proto::ValueInfoProto& message);

}  // namespace kiln::onnx
