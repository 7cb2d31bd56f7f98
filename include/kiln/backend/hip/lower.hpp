#pragma once
#include <map>
#include <mutex>

#include "kiln/backend/hip/context.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::hip {

// One function a family of ops: a kernel where the target has one for these types and attributes, else null. A kernel
// of the family derives from `gpu_kernel`; in `prepare` it builds the functions for its operands' sizes, in `run` it
// gives them to `launch::queue`.

/// A kernel on the device. Shapes and layouts are known when a workspace is bound: `prepare` and `run` get the same
/// tensors then (in `prepare` their addresses count from an aligned base), so a kernel keeps what it built for sizes in
/// a `by_sizes` cache.
class gpu_kernel : public kernel {
 public:
  gpu_kernel(std::shared_ptr<const context> where, std::string name)
      : where_(std::move(where)), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  bool on_device() const override { return true; }

 protected:
  const context& where() const { return *where_; }
  std::shared_ptr<const context> where_;
  std::string name_;
};

/// What a kernel built, by a key of the sizes it was built for; of very many sizes, half are forgotten. All
/// members may be called from several threads at once.
template <class Built> class by_sizes {
 public:
  /// The one for this key, made by `make` where there is none.
  template <class Make> std::shared_ptr<const Built> get(const std::string& key, Make&& make) const {
    {
      const std::lock_guard guard(lock_);
      if (const auto at = known_.find(key); at != known_.end()) return at->second;
    }
    std::shared_ptr<const Built> made = std::make_shared<const Built>(make());
    const std::lock_guard guard(lock_);
    constexpr std::size_t most = 512;
    if (known_.size() >= most)
      for (std::size_t n = 0; n < most / 2; ++n) known_.erase(known_.begin());
    return known_.emplace(key, std::move(made)).first->second;
  }

 private:
  mutable std::mutex lock_;
  mutable std::map<std::string, std::shared_ptr<const Built>> known_;
};

/// Everything about operands that a kernel's text may depend on, as a key: extents, strides and alignment.
std::string key_of(std::span<const tensor> in, std::span<const tensor> out);

using context_pointer = std::shared_ptr<const context>;

/// Whether operands and results have the same extents in every run.
bool is_fixed(const kernel_request& r);

/// Fused pointwise and reduction bodies, and single pointwise or reduction ops.
std::unique_ptr<kernel> lower_rows(const kernel_request& r, const context_pointer& where);
/// Copies between any two layouts.
std::unique_ptr<kernel> make_copy(const context_pointer& where);
/// Gathers, scatters, pads, sorts: ops that compute where elements come from.
std::unique_ptr<kernel> lower_index(const kernel_request& r, const context_pointer& where);
/// Ops that find how many results there are: kernels that are `counting_kernel`s, too.
std::unique_ptr<kernel> lower_select(const kernel_request& r, const context_pointer& where);
/// Pooling and other windows.
std::unique_ptr<kernel> lower_window(const kernel_request& r, const context_pointer& where);
/// Recurrent layers.
std::unique_ptr<kernel> lower_recurrent(const kernel_request& r, const context_pointer& where);
/// Sums of few elements along axes: resizing, sampling at positions, regions.
std::unique_ptr<kernel> lower_sampling(const kernel_request& r, const context_pointer& where);
/// Other recurrences over sequences, and ops of a kernel of their own: determinants, random numbers.
std::unique_ptr<kernel> lower_sequence(const kernel_request& r, const context_pointer& where);
/// Matrix products with their epilogue.
std::unique_ptr<kernel> lower_dot(const kernel_request& r, const context_pointer& where);
/// Convolutions of few channels a group, depthwise ones among them, forwards and transposed, with their epilogue.
std::unique_ptr<kernel> lower_grouped(const kernel_request& r, const context_pointer& where);
/// Convolutions and transposed ones with their epilogue.
std::unique_ptr<kernel> lower_convolution(const kernel_request& r, const context_pointer& where);
/// Attention.
std::unique_ptr<kernel> lower_attention(const kernel_request& r, const context_pointer& where);
/// Attention over blocks of caches.
std::unique_ptr<kernel> lower_block_attention(const kernel_request& r, const context_pointer& where);

}  // namespace kiln::hip
