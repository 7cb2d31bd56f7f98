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

class event final : public device_event {
 public:
  event(const runtime_calls& calls, int index, void* stream) : calls_(calls), index_(index) {
    check(calls_, calls_.hipEventCreate(&handle_), "hipEventCreate");
    const int code = calls_.hipEventRecord(handle_, stream);
    if (code != 0) calls_.hipEventDestroy(handle_);
    check(calls_, code, "hipEventRecord");
  }
  ~event() override {
    if (calls_.hipSetDevice(index_) == 0) calls_.hipEventDestroy(handle_);
  }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  void* handle() const { return handle_; }
  void wait() const override {
    check(calls_, calls_.hipSetDevice(index_), "hipSetDevice");
    check(calls_, calls_.hipEventSynchronize(handle_), "hipEventSynchronize");
  }

 private:
  const runtime_calls& calls_;
  int index_;
  void* handle_ = nullptr;
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
  std::unique_ptr<device_event> record() override { return std::make_unique<event>(calls_, index_, stream_); }
  void wait_for(const device_event& of) override {
    check(calls_, calls_.hipStreamWaitEvent(stream_, static_cast<const event&>(of).handle(), 0), "hipStreamWaitEvent");
  }
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
    return owned(bytes, "hipMalloc", calls_.hipFree,
                 [&](void** to) { return calls_.hipMalloc(to, bytes ? bytes : 64); });
  }
  buffer allocate_on_host(std::size_t bytes) const override {
    return owned(bytes, "hipHostMalloc", calls_.hipHostFree,
                 [&](void** to) { return calls_.hipHostMalloc(to, bytes ? bytes : 64, 0); });
  }
  bool owns(const void* address) const override { return address && calls_.is_device_memory(address); }
  std::unique_ptr<device_queue> make_queue(void* stream) const override {
    return std::make_unique<queue>(calls_, index_, stream);
  }

 private:
  // Memory that `take` gets and `free` gives back.
  template <class Take> buffer owned(std::size_t bytes, std::string call, int (*free)(void*), const Take& take) const {
    struct owner {
      const runtime_calls& calls;
      int index;
      void* memory;
      int (*free)(void*);
    };
    check(calls_, calls_.hipSetDevice(index_), "hipSetDevice");
    void* memory = nullptr;
    const int code = take(&memory);
    if (code != 0) check(calls_, code, (call + " of " + std::to_string(bytes) + " bytes").c_str());
    return buffer::borrow(static_cast<const std::byte*>(memory), bytes, new owner{calls_, index_, memory, free},
                          [](void* self) {
                            auto* const o = static_cast<owner*>(self);
                            if (o->calls.hipSetDevice(o->index) == 0) o->free(o->memory);
                            delete o;
                          });
  }
  const runtime_calls& calls_;
  int index_;
};

}  // namespace

std::shared_ptr<const device> make_device(const runtime_calls& calls, int index) {
  return std::make_shared<gpu>(calls, index);
}

}  // namespace kiln::hip
