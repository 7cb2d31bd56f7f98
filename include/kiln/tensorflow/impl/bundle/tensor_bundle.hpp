#pragma once
#include <map>
#include <string>
#include <vector>

#include "kiln/core/buffer.hpp"
#include "kiln/onnx/node.hpp"

namespace kiln::tensorflow {

/// Tensors by name in a checkpoint: `PREFIX.index` says where they are in `PREFIX.data-0000n-of-0000m`. A tensor is
/// read, and its checksum compared, when it is asked for; it shares the bytes of its file. Errors name the file:
/// `not_found`, `io`, `malformed`, `limit`, `unsupported`.
class tensor_bundle {
 public:
  explicit tensor_bundle(std::string prefix);

  bool contains(const std::string& name) const { return entries_.contains(name); }
  /// How many tensors there are.
  std::size_t size() const { return entries_.size(); }
  onnx::tensor read(const std::string& name);
  /// A scalar of DT_STRING.
  std::string read_text(const std::string& name);

 private:
  struct part {
    std::int64_t start = 0, length = -1;  ///< of one axis; -1 is all of it
  };
  struct entry {
    std::uint64_t type = 0;
    std::vector<std::int64_t> lens;
    std::uint64_t shard = 0, offset = 0, size = 0;
    std::uint32_t checksum = 0;
    std::vector<std::vector<part>> slices;
  };
  static entry read_entry(const std::string& name, const std::string& value);
  const entry& find(const std::string& name) const;
  buffer bytes_of(const std::string& name, const entry& e);
  onnx::tensor joined(const std::string& name, const entry& e);
  const buffer& shard(std::uint64_t number);
  std::string file_of(std::uint64_t shard) const;

  std::string prefix_;
  std::uint64_t shards_ = 1;
  std::map<std::string, entry> entries_;
  std::map<std::uint64_t, buffer> files_;
  std::uint64_t left_ = 0;  // bytes that may be read: tensors may overlap, but not for ever
};

}  // namespace kiln::tensorflow
