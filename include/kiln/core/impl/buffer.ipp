#include <sys/mman.h>
#include <unistd.h>

#include <limits>
#include <new>
#include <string>

#include "kiln/core/buffer.hpp"
#include "kiln/core/error.hpp"
#include "kiln/core/huge_page.hpp"
#include "kiln/core/memory_source.hpp"
#include "kiln/core/page_memory.hpp"

namespace kiln {
namespace {

constexpr std::align_val_t line_aligned{64}, page_aligned{huge_page};

// Of the machine: more is never to be had, even where the system promises it.
std::size_t physical_memory() {
  static const std::size_t bytes = [] {
    const long pages = ::sysconf(_SC_PHYS_PAGES), each = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && each > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(each)
                                 : std::numeric_limits<std::size_t>::max() / 2;
  }();
  return bytes;
}

// The heap's pages of 4 KiB come and go with buffers from about this size on, one fault each.
constexpr std::size_t least_page_part = std::size_t{64} << 10;

template <const std::align_val_t& Alignment> void free_aligned(void* p) { ::operator delete(p, Alignment); }

// Memory of a source, which lives as long.
struct sourced_memory {
  std::shared_ptr<memory_source> source;
  void* data;
};
void give_back(void* owner) {
  const std::unique_ptr<sourced_memory> m(static_cast<sourced_memory*>(owner));
  m->source->give(m->data);
}

}  // namespace

namespace detail {

namespace {

buffer_block* sourced_block(const memory_scope& scope, std::size_t bytes, std::size_t padded, bool huge) {
  auto block = std::make_unique<buffer_block>();
  const auto alignment = static_cast<std::size_t>(huge ? page_aligned : line_aligned);
  auto owner = std::make_unique<sourced_memory>(
      sourced_memory{scope.source(), scope.source()->take(padded, alignment, scope.reserved())});
  if (huge) ::madvise(owner->data, padded, MADV_HUGEPAGE);
  block->bytes = static_cast<std::byte*>(owner->data);
  block->size = bytes;
  block->owner = owner.release();
  block->release = give_back;
  return block.release();
}

}  // namespace

buffer_block* allocate_block(std::size_t bytes) {
  if (bytes > physical_memory())
    raise(errc::limit, "a buffer fits into memory: " + std::to_string(bytes) +
                           " bytes are asked for, the machine has " + std::to_string(physical_memory()));
  const std::size_t padded = padded_bytes(bytes);
  // Weights and arenas in 4 KiB pages cost a product a page walk for each row it reads.
  const bool huge = padded >= huge_page / 2;
  if (const memory_scope* const scope = memory_scope::current()) return sourced_block(*scope, bytes, padded, huge);
  auto block = std::make_unique<buffer_block>();
  block->size = bytes;
  if (padded >= least_page_part)
    if (const page_part pages = take_pages(bytes); pages.at) {
      block->bytes = pages.at;
      block->owner = pages.owner;
      block->release = pages.give_back;
      return block.release();
    }
  void* data = ::operator new(padded, huge ? page_aligned : line_aligned, std::nothrow);
  if (!data) throw std::bad_alloc();
  if (huge) ::madvise(data, padded, MADV_HUGEPAGE);  // a wish: refusal changes nothing but speed
  block->bytes = static_cast<std::byte*>(data);
  block->owner = data;
  block->release = huge ? free_aligned<page_aligned> : free_aligned<line_aligned>;
  return block.release();
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
  block->bytes = const_cast<std::byte*>(bytes);  // packed constants are written while they are made, others never
  block->size = size;
  block->owner = owner;
  block->release = release;
  return buffer(block);
}

}  // namespace kiln
