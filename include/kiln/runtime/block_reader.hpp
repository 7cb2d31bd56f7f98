#pragma once
#include <cstdint>

namespace kiln {

/// A target whose kernels compute attention over blocks of caches (`op::block_attention`).
class block_reader {
 public:
  virtual ~block_reader() = default;
  /// Rows of a tile of theirs: a row of that op's table has at most as many tokens, times the heads that share keys.
  virtual std::int64_t block_attention_rows() const = 0;
};

}  // namespace kiln
