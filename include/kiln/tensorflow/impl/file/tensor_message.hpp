#pragma once
#include "kiln/core/buffer.hpp"
#include "kiln/core/wire_format.hpp"
#include "kiln/onnx/node.hpp"

namespace kiln::tensorflow {

/// A TensorShapeProto; extents that are open are below 0.
struct tensor_shape {
  std::vector<std::int64_t> lens;
  bool has_rank = true;
};
tensor_shape read_shape(bytes_view message, const std::string& where);

/// The bytes that constants of a file may take whose values are listed. One value stands for a whole tensor, so that a
/// few bytes of a file ask for any number of them.
class fill_budget {
 public:
  explicit fill_budget(std::size_t file_size)
      : left_((std::int64_t{1} << 30) + 64 * static_cast<std::int64_t>(file_size)) {}
  /// Errors: `limit` beyond what is left.
  void take(std::int64_t bytes, const std::string& where);

 private:
  std::int64_t left_;
};

/// A TensorProto; its content is a part of the file. Errors: `malformed`, `limit`.
onnx::tensor read_tensor(bytes_view message, const std::string& where, const buffer& file, fill_budget& budget);

}  // namespace kiln::tensorflow
