#pragma once
#include <algorithm>

#include "kiln/runtime/device.hpp"
#include "kiln/runtime/impl/run/run_memory.hpp"

namespace kiln::detail {

/// What a tensor reaches, from its lowest element to its highest.
struct reach {
  std::int64_t low = 0, high = 0;  // elements from the first one
  explicit reach(const tensor& t) {
    if (t.elements() == 0) return;
    high = 1;
    for (std::size_t d = 0; d < t.rank(); ++d) (t.strides[d] < 0 ? low : high) += t.strides[d] * (t.lens[d] - 1);
  }
  std::size_t bytes(const tensor& t) const { return static_cast<std::size_t>(high - low) * size_of(t.type); }
};

/// The host's copies of tensors on the device.
class mirror {
 public:
  mirror(device_queue& queue, std::span<const tensor> from) {
    std::size_t bytes = 0;
    for (const tensor& t : from) bytes += aligned(reach(t).bytes(t));
    memory_ = buffer::allocate(std::max<std::size_t>(bytes, 64));
    std::byte* at = memory_.data();
    for (const tensor& t : from) {
      const reach r(t);
      const std::int64_t before = r.low * static_cast<std::int64_t>(size_of(t.type));
      if (r.bytes(t) != 0) queue.copy(at, t.data + before, r.bytes(t));
      tensors_.push_back(t);
      tensors_.back().data = at - before;
      at += aligned(r.bytes(t));
    }
  }
  std::span<const tensor> tensors() const { return {tensors_.data(), tensors_.size()}; }

 private:
  buffer memory_;
  std::vector<tensor> tensors_;
};

}  // namespace kiln::detail
