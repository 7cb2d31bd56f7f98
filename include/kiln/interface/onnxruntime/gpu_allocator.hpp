#pragma once
#include <map>
#include <mutex>

#include "kiln/interface/onnxruntime/gpu.hpp"

namespace kiln::onnxruntime {

/// How much memory an allocator takes from a GPU.
struct gpu_memory_settings {
  std::uint64_t limit = 0;    ///< the most bytes at a time; 0: none
  bool powers_of_two = true;  ///< whole powers of two, so that blocks serve tensors of many sizes
};

/// Hands out memory of a GPU, or of the host for copies from and to it, and keeps what is freed for the next tensors.
/// What was used on a stream serves that stream alone until the stream ends, since its work may not be done.
class gpu_allocator : public OrtAllocator {
 public:
  gpu_allocator(const gpu& of, bool on_host, gpu_memory_settings how);
  gpu_allocator(const gpu_allocator&) = delete;
  gpu_allocator& operator=(const gpu_allocator&) = delete;
  ~gpu_allocator();

  /// Null where there is no more.
  void* take(std::size_t bytes, const gpu_stream* stream);
  /// Without effect where the memory is not the allocator's.
  void give(void* memory) noexcept;
  const gpu& where() const { return *gpu_; }
  /// Gives memory that no tensor has back to the GPU, which waits for its work.
  void shrink();
  /// Memory that was used on a stream serves all from now on.
  void forget(const gpu_stream* stream);

 private:
  struct block {
    buffer memory;
    const gpu_stream* stream = nullptr;
  };
  using free_list = std::multimap<std::size_t, block>;  // by bytes

  buffer take_new(std::size_t bytes);
  void shrink_locked();
  OrtKeyValuePairs* statistics() const;

  const std::shared_ptr<const gpu> gpu_;
  const bool on_host_;
  const gpu_memory_settings how_;
  mutable std::mutex guard_;
  std::map<void*, block> used_;
  std::map<const gpu_stream*, free_list> free_;
  std::uint64_t in_use_ = 0, most_in_use_ = 0, taken_ = 0, count_ = 0, greatest_ = 0;
};

}  // namespace kiln::onnxruntime
