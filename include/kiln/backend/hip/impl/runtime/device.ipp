#include "kiln/backend/hip/context.hpp"
#include "kiln/core/error.hpp"

namespace kiln::hip {
namespace {

constexpr int copy_any_way = 4, record_this_thread = 1;  // hipMemcpyDefault, hipStreamCaptureModeThreadLocal
constexpr unsigned apart_from_null_stream = 1;           // hipStreamNonBlocking

class recording final : public device_recording {
 public:
  recording(const runtime_calls& calls, int index, void* made) : calls_(calls), index_(index), made_(made) {}
  ~recording() override {
    if (calls_.hipSetDevice(index_) == 0) calls_.hipGraphExecDestroy(made_);
  }
  void* made() const { return made_; }

 private:
  const runtime_calls& calls_;
  int index_;
  void* made_;
};

class queue final : public device_queue {
 public:
  queue(const runtime_calls& calls, int index, void* users) : calls_(calls), index_(index), stream_(users) {
    enter();
    own_ = users == nullptr;
    if (own_) check(calls_, calls_.hipStreamCreateWithFlags(&stream_, apart_from_null_stream), "hipStreamCreate");
  }
  ~queue() override {
    if (calls_.hipSetDevice(index_) != 0) return;
    for (void* event : events_) calls_.hipEventDestroy(event);
    if (own_) calls_.hipStreamDestroy(stream_);
  }
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;

  void* stream() const override { return stream_; }
  void enter() override { check(calls_, calls_.hipSetDevice(index_), "hipSetDevice"); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    check(calls_, calls_.hipMemcpyAsync(to, from, bytes, copy_any_way, stream_), "hipMemcpyAsync");
  }
  void fill(void* to, int value, std::size_t bytes) override {
    check(calls_, calls_.hipMemsetAsync(to, value, bytes, stream_), "hipMemsetAsync");
  }
  void wait() override { check(calls_, calls_.hipStreamSynchronize(stream_), "hipStreamSynchronize"); }
  void mark() override {
    if (marks_ == events_.size()) {
      events_.push_back(nullptr);
      check(calls_, calls_.hipEventCreate(&events_.back()), "hipEventCreate");
    }
    check(calls_, calls_.hipEventRecord(events_[marks_++], stream_), "hipEventRecord");
  }
  std::vector<double> seconds_between_marks() override {
    wait();
    std::vector<double> out;
    for (std::size_t i = 0; i + 1 < marks_; ++i) {
      float milliseconds = 0;
      check(calls_, calls_.hipEventElapsedTime(&milliseconds, events_[i], events_[i + 1]), "hipEventElapsedTime");
      out.push_back(milliseconds * 1e-3);
    }
    marks_ = 0;
    return out;
  }
  bool begin_recording() override {
    return calls_.hipStreamBeginCapture && calls_.hipGraphInstantiate &&
           calls_.hipStreamBeginCapture(stream_, record_this_thread) == 0;
  }
  std::unique_ptr<device_recording> end_recording() override {
    void *graph = nullptr, *made = nullptr;
    if (calls_.hipStreamEndCapture(stream_, &graph) != 0 || !graph) return nullptr;
    const int code = calls_.hipGraphInstantiate(&made, graph);
    calls_.hipGraphDestroy(graph);
    return code == 0 ? std::make_unique<recording>(calls_, index_, made) : nullptr;
  }
  void replay(const device_recording& work) override {
    check(calls_, calls_.hipGraphLaunch(static_cast<const recording&>(work).made(), stream_), "hipGraphLaunch");
  }

 private:
  const runtime_calls& calls_;
  int index_;
  void* stream_;
  bool own_ = false;
  std::vector<void*> events_;
  std::size_t marks_ = 0;
};

class gpu final : public device {
 public:
  gpu(const runtime_calls& calls, int index) : calls_(calls), index_(index) {}
  buffer allocate(std::size_t bytes) const override {
    struct owner {
      const runtime_calls& calls;
      int index;
      void* memory;
    };
    check(calls_, calls_.hipSetDevice(index_), "hipSetDevice");
    void* memory = nullptr;
    const int code = calls_.hipMalloc(&memory, bytes ? bytes : 64);
    if (code != 0) check(calls_, code, ("hipMalloc of " + std::to_string(bytes) + " bytes").c_str());
    return buffer::borrow(static_cast<const std::byte*>(memory), bytes, new owner{calls_, index_, memory},
                          [](void* self) {
                            auto* const o = static_cast<owner*>(self);
                            if (o->calls.hipSetDevice(o->index) == 0) o->calls.hipFree(o->memory);
                            delete o;
                          });
  }
  bool owns(const void* address) const override { return address && calls_.is_device_memory(address); }
  std::unique_ptr<device_queue> make_queue(void* stream) const override {
    return std::make_unique<queue>(calls_, index_, stream);
  }

 private:
  const runtime_calls& calls_;
  int index_;
};

}  // namespace

std::shared_ptr<const device> make_device(const runtime_calls& calls, int index) {
  return std::make_shared<gpu>(calls, index);
}

}  // namespace kiln::hip
