#pragma once
#include <google/protobuf/io/coded_stream.h>
#include <kiln_onnx.pb.h>

#include <map>
#include <span>
#include <string>

#include "kiln/onnx/node.hpp"

// What the translation units that see protobuf share. The messages are read once into node.hpp's structs.
namespace kiln::onnx {

/// Where a model's external data lies, and the files of it that are already mapped.
struct external_files {
  std::string directory;
  std::int64_t max_bytes = 0;
  std::string real_directory = {};  ///< where a model lies that was read through a symbolic link
  std::map<std::string, buffer> mapped;
  std::span<const std::byte> left_out = {};  ///< raw bytes of the message that is read next, which it lacks
  const buffer* model = nullptr;             ///< what those are a part of; null: they don't outlive the reading
};

/// Whether graphs of a model's bytes, or types of a declaration's, are nested deeper than so many messages: what the
/// reader of messages reports as truncation.
bool nests_deeper(std::span<const std::byte> bytes, bool is_model, int nesting);

/// Reads a message; `malformed` unless every byte belongs to it, `limit` where a model nests too deep.
void parse_message(google::protobuf::MessageLite& into, std::span<const std::byte> bytes, int nesting,
                   std::string_view what);

/// The tensor of a message; takes its raw bytes instead of copying them. A broken message is a `malformed` error, a
/// tensor kiln cannot hold has a fault instead of a value.
tensor read_tensor_message(onnx_proto::TensorProto& message, external_files& files);
/// A sparse tensor as a dense one.
tensor read_sparse_message(onnx_proto::SparseTensorProto& message, external_files& files);

/// A graph's declared input or output.
value_info read_value_info(const onnx_proto::ValueInfoProto& message);

}  // namespace kiln::onnx
