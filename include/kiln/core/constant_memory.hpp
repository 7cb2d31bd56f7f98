#pragma once
#include <memory>
#include <mutex>

#include "kiln/core/buffer.hpp"

namespace kiln {

/// Memory for the packed constants of one plan: adjacent buffers in regions of 2 MiB pages. A buffer of a
/// megabyte or two by itself would get pages of 4 KiB, and a product that streams it walks through the page table for
/// each of them. The first MiB is of the heap, since a small program is not worth a page. A region lives as long as any
/// of its buffers, and what one gives back serves the next one. Members may be called from several threads at once.
class constant_memory {
 public:
  constant_memory();
  ~constant_memory();
  constant_memory(const constant_memory&) = delete;
  constant_memory& operator=(const constant_memory&) = delete;

  /// Uninitialized bytes, aligned to 64. Throws as `buffer::allocate`.
  buffer allocate(std::size_t bytes);

 private:
  class region;
  std::mutex mutex_;
  std::shared_ptr<region> last_;
  std::size_t asked_ = 0;  // bytes, so far
};

}  // namespace kiln
