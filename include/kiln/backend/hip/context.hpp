#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/kept_code.hpp"
#include "kiln/runtime/tuning_cache.hpp"

namespace kiln::hip {

/// Blocks of a launch, or threads of a block.
struct extent3 {
  unsigned x = 1, y = 1, z = 1;
};

/// A compiled kernel, loaded on its device when it first runs.
class function {
 public:
  function(const class context& owner, std::string entry, std::string code);
  ~function();
  function(const function&) = delete;
  function& operator=(const function&) = delete;
  /// Machine code.
  const std::string& code() const { return code_; }
  /// Whether the device, which is here, runs a cluster of so many blocks of these threads and shared memory.
  bool has_room_for_cluster(int blocks, int threads, std::size_t shared_bytes) const;
  /// Gives the kernel to a queue; `values` are the kernel's parameters in order, of exactly its parameters' types.
  template <class... Values>
  void launch(device_queue& queue, extent3 grid, extent3 block, std::size_t shared_bytes,
              const Values&... values) const {
    void* list[] = {const_cast<void*>(static_cast<const void*>(&values))..., nullptr};
    give(queue, grid, block, shared_bytes, list);
  }
  /// The same with the addresses of the parameters' values.
  void give(device_queue& queue, extent3 grid, extent3 block, std::size_t shared_bytes, void** values) const;
  /// What the kernel is passed for the device's copy unit to read such a tensor.
  gpu::tensor_map map(const tensor_boxes& how) const;

 private:
  void load() const;
  const runtime_calls* calls_;
  int index_;
  bool chained_;
  std::uint64_t few_blocks_;  ///< that a multiprocessor has at most one of
  std::string entry_, code_;
  mutable std::once_flag once_;
  mutable std::atomic<bool> divided_ = false;
  mutable void* module_ = nullptr;
  mutable void* handle_ = nullptr;
};

/// What a target and its kernels share: the architecture, the device where it is here, and the kernels made so far.
class context : public std::enable_shared_from_this<context> {
 public:
  /// Device `index` of a platform that has one here.
  context(const runtime_calls& calls, int index, std::string cache);
  /// An absent device: kernels compile, nothing runs.
  context(architecture where, std::string cache);

  /// The same for one program: with the code that it keeps, and choices by timing where `tuned` is not null.
  std::shared_ptr<const context> for_program(std::shared_ptr<kept_code> kept,
                                             std::shared_ptr<tuning_cache> tuned) const;

  const architecture& arch() const { return arch_; }
  const runtime_calls* calls() const { return calls_; }
  int index() const { return index_; }
  /// Whether kernels are chosen by timing candidates on the device.
  bool tunes() const { return tuned_ && calls_; }
  /// Which candidate the program, or the tuning's cache, has for a problem; and keeps it in both.
  std::optional<std::string> choice(std::string_view problem) const;
  void keep_choice(std::string_view problem, std::string_view candidate) const;
  /// The folder of what is kept between programs; empty: nothing is.
  const std::string& cache() const { return cache_; }
  /// The kernel of a source: of the program's code, compiled, or found in the cache. Equal sources give one function.
  std::shared_ptr<const function> build(const source& what) const;

 private:
  context(std::shared_ptr<const context> whole, std::shared_ptr<kept_code> kept, std::shared_ptr<tuning_cache> tuned);
  std::shared_ptr<const function> shared(const source& what, const std::string& key,
                                         const std::function<std::string()>& code) const;
  architecture arch_;
  const runtime_calls* calls_ = nullptr;
  int index_ = 0;
  std::string cache_;
  std::shared_ptr<tuning_cache> tuned_;
  std::shared_ptr<kept_code> kept_;       // of a program
  std::shared_ptr<const context> whole_;  // that all programs share
  mutable std::mutex lock_;
  mutable std::map<std::string, std::weak_ptr<const function>> made_;
};

/// The device of a context.
std::shared_ptr<const device> make_device(const runtime_calls& calls, int index);

}  // namespace kiln::hip
