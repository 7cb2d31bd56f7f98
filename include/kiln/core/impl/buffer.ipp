#include <new>

#include "kiln/core/buffer.hpp"

namespace kiln {
namespace {
constexpr std::align_val_t alignment{64};
}  // namespace

namespace detail {

buffer_block* allocate_block(std::size_t bytes) {
  // whole cache lines and one vector of slack: kernels may read past the last element of a partial vector
  const std::size_t padded = (bytes + 127) / 64 * 64;
  auto* data = static_cast<std::byte*>(::operator new(padded, alignment));
  auto* block = new (std::nothrow) buffer_block;
  if (!block) {
    ::operator delete(data, alignment);
    throw std::bad_alloc();
  }
  block->bytes = data;
  block->size = bytes;
  block->owner = data;
  block->release = [](void* p) { ::operator delete(p, alignment); };
  return block;
}

void retain_block(buffer_block* block) noexcept { __atomic_add_fetch(&block->references, 1, __ATOMIC_RELAXED); }

void release_block(buffer_block* block) noexcept {
  if (__atomic_sub_fetch(&block->references, 1, __ATOMIC_ACQ_REL) != 0) return;
  if (block->release) block->release(block->owner);
  delete block;
}

}  // namespace detail

buffer buffer::borrow(const std::byte* bytes, std::size_t size, void* owner, void (*release)(void* owner)) {
  auto* block = new detail::buffer_block;
  block->bytes = const_cast<std::byte*>(bytes);  // never written: borrowed buffers back literals and inputs only
  block->size = size;
  block->owner = owner;
  block->release = release;
  return buffer(block);
}

}  // namespace kiln
