#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/core/error.hpp"
#include "kiln/interface/gpus.hpp"
#include "kiln/op/nn/block_attention.hpp"
#include "kiln/runtime/block_reader.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/fallback_kernel.hpp"

/// A GPU for tests: its memory can't be read or written but by its queues, and work waits in its stream until somebody
/// waits for it. So code that takes its memory for the host's crashes, and code that forgets to wait has wrong results.
namespace kiln::fake {

inline std::atomic<std::size_t> live_bytes = 0, copies = 0, streams = 0;
/// What fits in its memory.
inline std::atomic<std::size_t> most_bytes = ~std::size_t{0};

/// Memory under two addresses: the program's, which nobody may touch, and the queues'.
class memory {
 public:
  static memory& all() {
    static auto* const out = new memory;
    return *out;
  }
  std::byte* take(std::size_t bytes) {
    const std::size_t size = (std::max<std::size_t>(bytes, 1) + 4095) / 4096 * 4096;
    if (size > most_bytes - std::min<std::size_t>(most_bytes, live_bytes))
      raise(errc::limit, "fake GPU: out of memory");
    const int file = memfd_create("gpu", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) raise(errc::limit, "fake GPU: no memory");
    const auto map = [&](int access) {
      return static_cast<std::byte*>(mmap(nullptr, size, access, MAP_SHARED, file, 0));
    };
    std::byte* const closed = map(PROT_NONE);
    std::byte* const open = map(PROT_READ | PROT_WRITE);
    close(file);
    std::memset(open, 0xAB, size);  // not zero by chance
    const std::lock_guard lock(guard_);
    blocks_[closed] = {size, open};
    live_bytes += size;
    return closed;
  }
  void give(std::byte* at) {
    const std::lock_guard lock(guard_);
    const auto found = blocks_.find(at);
    munmap(at, found->second.bytes), munmap(found->second.open, found->second.bytes);
    live_bytes -= found->second.bytes;
    blocks_.erase(found);
  }
  bool owns(const void* at) { return open(const_cast<void*>(at)) != at; }
  /// Where a queue finds an address: itself, if it is the host's.
  void* open(void* address) {
    auto* const at = static_cast<std::byte*>(address);
    const std::lock_guard lock(guard_);
    auto found = blocks_.upper_bound(at);
    if (found == blocks_.begin()) return at;
    --found;
    const std::ptrdiff_t offset = at - found->first;
    return offset < static_cast<std::ptrdiff_t>(found->second.bytes) ? found->second.open + offset : at;
  }

 private:
  struct block {
    std::size_t bytes = 0;
    std::byte* open = nullptr;
  };
  std::mutex guard_;
  std::map<std::byte*, block> blocks_;
};

/// Work in order that nobody has waited for.
struct work_list {
  std::mutex guard;
  std::deque<std::function<void()>> waiting;
  std::uint64_t given = 0, done = 0;
  work_list() { ++streams; }
  ~work_list() { --streams; }
  void give(std::function<void()> work) {
    const std::lock_guard lock(guard);
    waiting.push_back(std::move(work)), ++given;
  }
  void run_to(std::uint64_t end) {
    const std::lock_guard lock(guard);
    for (; done < end; ++done) waiting.front()(), waiting.pop_front();
  }
};

class event final : public device_event {
 public:
  explicit event(std::shared_ptr<work_list> of) : of_(std::move(of)), end_(of_->given) {}
  void wait() const override { of_->run_to(end_); }
  std::function<void()> work() const {
    return [of = of_, end = end_] { of->run_to(end); };
  }

 private:
  std::shared_ptr<work_list> of_;
  std::uint64_t end_;
};

class queue final : public device_queue {
 public:
  explicit queue(void* handle)
      : of_(handle ? *static_cast<std::shared_ptr<work_list>*>(handle) : std::make_shared<work_list>()) {}
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;
  void* stream() const override { return const_cast<std::shared_ptr<work_list>*>(&of_); }
  void enter() override {}
  void copy(void* to, const void* from, std::size_t bytes) override {
    ++copies;
    void* const source = memory::all().open(const_cast<void*>(from));
    std::shared_ptr<std::byte[]> kept;
    if (source == from) {  // the host's is read before this returns
      kept.reset(new std::byte[bytes]);
      std::memcpy(kept.get(), from, bytes);
    }
    of_->give(
        [to = memory::all().open(to), source, kept, bytes] { std::memcpy(to, kept ? kept.get() : source, bytes); });
  }
  void fill(void* to, int value, std::size_t bytes) override {
    of_->give([at = memory::all().open(to), value, bytes] { std::memset(at, value, bytes); });
  }
  void wait() override { of_->run_to(of_->given); }
  std::unique_ptr<device_event> record() override { return std::make_unique<event>(of_); }
  void wait_for(const device_event& other) override { of_->give(static_cast<const event&>(other).work()); }
  void mark() override { ++marks_; }
  std::vector<double> seconds_between_marks() override {
    wait();
    return std::vector<double>(std::exchange(marks_, 0) - 1, 1e-6);
  }
  bool begin_recording() override { return false; }
  std::unique_ptr<device_recording> end_recording() override { return nullptr; }
  void replay(const device_recording&) override {}

 private:
  std::shared_ptr<work_list> of_;
  std::size_t marks_ = 0;
};

class gpu final : public device {
 public:
  buffer allocate(std::size_t bytes) const override {
    std::byte* const at = memory::all().take(bytes);
    return buffer::borrow(at, bytes, at, [](void* taken) { memory::all().give(static_cast<std::byte*>(taken)); });
  }
  buffer allocate_on_host(std::size_t bytes) const override { return buffer::allocate(bytes); }
  bool owns(const void* address) const override { return memory::all().owns(address); }
  std::unique_ptr<device_queue> make_queue(void* of) const override { return std::make_unique<queue>(of); }
};

/// Attention over blocks on the host, of blocks in the fake GPU's memory.
class block_attention final : public kernel {
 public:
  block_attention(const op::block_attention& op, std::unique_ptr<kernel> reference)
      : op_(op), reference_(std::move(reference)) {}
  std::string name() const override { return reference_->name(); }
  stride_support input_strides(std::size_t) const override { return stride_support::dense; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    return reference_->scratch_bytes(in, out, threads);
  }
  void run(const launch& l) const override {
    const tensor& table = l.in[3];  // a copy
    auto* const words = reinterpret_cast<std::int64_t*>(table.data);
    for (std::int64_t i = 0; i < table.elements(); ++i)
      if (i % table.lens[1] >= op_.head)
        words[i] = reinterpret_cast<std::intptr_t>(memory::all().open(reinterpret_cast<void*>(words[i])));
    reference_->run(l);
  }

 private:
  op::block_attention op_;
  std::unique_ptr<kernel> reference_;
};

/// The reference computations, between copies from and to the fake GPU.
class gpu_target : public target {
 public:
  std::string_view name() const override { return "hip"; }
  bool fuses() const override { return reference_.fuses(); }
  std::string binary_format() const override { return "fake"; }
  std::unique_ptr<kernel> make_kernel(const kernel_request& request) const override {
    if (const auto* blocks = request.instruction.op.get_if<op::block_attention>())
      return std::make_unique<block_attention>(*blocks, make_fallback_kernel(request.instruction.op));
    return reference_.make_kernel(request);
  }
  std::unique_ptr<kernel> make_copy(const derived_data* derived) const override {
    return make_kernel_on_host(reference_.make_copy(derived));
  }
  bool has_device() const override { return true; }
  std::shared_ptr<const device> get_device() const override { return device_; }

 private:
  reference_target reference_;
  std::shared_ptr<const device> device_ = std::make_shared<gpu>();
};

/// One that reads blocks of caches.
class block_gpu_target final : public gpu_target, public block_reader {
 public:
  std::int64_t block_attention_rows() const override { return 64; }
};

inline gpu_source gpus() {
  gpu_source out;
  out.list = [] { return std::vector<gpu_description>{{"fake", 0xFA4E, "kiln's tests"}}; };
  out.make = [](int, const compile_options&) { return std::make_unique<block_gpu_target>(); };
  return out;
}

}  // namespace kiln::fake
