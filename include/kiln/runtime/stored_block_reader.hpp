#pragma once

namespace kiln {

/// A target whose kernels read blocks of a file's weights where they lie: products with views [rows, blocks, bytes] of
/// GGML's Q4_0 and Q8_0, of which numbers and scales are slices, are packed from them.
class stored_block_reader {
 public:
  virtual ~stored_block_reader() = default;
};

}  // namespace kiln
