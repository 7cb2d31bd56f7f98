#pragma once
#include <functional>

#include "runtime/device_fakes.hpp"

/// A device for tests whose work is recorded and replayed.
namespace kiln::testing {

/// A device whose queues record.
class recorded_work final : public device_recording {
 public:
  std::vector<std::function<void(device_queue&)>> work;
};
class recording_queue final : public device_queue {
 public:
  explicit recording_queue(std::unique_ptr<device_queue> of) : of_(std::move(of)) {}
  void* stream() const override { return of_->stream(); }
  void enter() override { of_->enter(); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    give([=](device_queue& q) { q.copy(to, from, bytes); });
  }
  void fill(void* to, int value, std::size_t bytes) override {
    give([=](device_queue& q) { q.fill(to, value, bytes); });
  }
  void wait() override {
    EXPECT_EQ(noted, nullptr) << "nobody waits within a recording";
    of_->wait();
  }
  std::unique_ptr<device_event> record() override { return of_->record(); }
  void wait_for(const device_event& event) override { of_->wait_for(event); }
  void mark() override { of_->mark(); }
  std::vector<double> seconds_between_marks() override { return of_->seconds_between_marks(); }
  bool begin_recording() override {
    EXPECT_EQ(noted, nullptr) << "one recording at a time";
    ++asked;
    if (refuses) return false;
    noted = std::make_unique<recorded_work>();
    return true;
  }
  std::unique_ptr<device_recording> end_recording() override {
    if (loses) noted.reset();
    return std::move(noted);
  }
  void replay(const device_recording& work) override {
    EXPECT_EQ(noted, nullptr);
    ++replays;
    for (const auto& w : static_cast<const recorded_work&>(work).work) w(*of_);
  }
  static inline std::unique_ptr<recorded_work> noted;  // of whatever queue of the one stream
  /// Work of the fake GPU's processor.
  void compute(std::function<void()> work) {
    give([work = std::move(work)](device_queue& q) {
      (*static_cast<std::shared_ptr<fake::work_list>*>(q.stream()))->give(work);
    });
  }
  static inline int replays = 0, asked = 0;           // recordings that ran, and that were wished for
  static inline bool refuses = false, loses = false;  // to record, and what was recorded

 private:
  void give(std::function<void(device_queue&)> work) {
    if (noted)
      noted->work.push_back(std::move(work));
    else
      work(*of_);
  }
  std::unique_ptr<device_queue> of_;
};
class recording_device final : public device {
 public:
  explicit recording_device(std::shared_ptr<const device> of) : of_(std::move(of)) {}
  buffer allocate(std::size_t bytes) const override { return of_->allocate(bytes); }
  buffer allocate_on_host(std::size_t bytes) const override { return of_->allocate_on_host(bytes); }
  bool owns(const void* address) const override { return of_->owns(address); }
  std::unique_ptr<device_queue> make_queue(void* stream) const override {
    return std::make_unique<recording_queue>(of_->make_queue(stream));
  }

 private:
  std::shared_ptr<const device> of_;
};

/// A kernel of the host, when its turn comes in the queue.
class recording_kernel final : public kernel {
 public:
  explicit recording_kernel(std::unique_ptr<kernel> of) : of_(std::move(of)) {}
  std::string name() const override { return of_->name(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned n) const override {
    return of_->scratch_bytes(in, out, n);
  }
  bool on_device() const override { return true; }
  bool reports_faults() const override { return reports; }
  std::string fault_text() const override { return "a fault of a kernel"; }
  void run(const launch& l) const override {
    ++given;
    if (given == stops_when_given) cancel = true;
    const auto open = [](auto* at) { return static_cast<decltype(at)>(fake::memory::all().open(at)); };
    const auto opened = [&](std::span<const tensor> of) {
      std::vector<tensor> out(of.begin(), of.end());
      for (tensor& t : out) t.data = open(t.data);
      return out;
    };
    const std::span<std::byte> scratch(open(l.scratch.data()), l.scratch.size());
    static_cast<recording_queue&>(*l.queue).compute([this, in = opened(l.in), out = opened(l.out), scratch,
                                                     symbols = l.symbols ? *l.symbols : bindings(),
                                                     faults = open(l.faults)] {
      of_->run({in, out, scratch, nullptr, &symbols});
      ++done;
      if (reports && done == faulty) *faults = 1;
      if (done == stops_when_done) cancel = true;
    });
  }
  static inline bool reports = false;
  static inline int given = 0, done = 0;  // to the queue, and of them those that are over
  static inline int faulty = 0, stops_when_given = 0, stops_when_done = 0;  // which, counted from 1
  static inline std::atomic<bool> cancel = false;
  static void start_anew() {
    given = done = faulty = stops_when_given = stops_when_done = 0, cancel = false;
    recording_queue::replays = recording_queue::asked = 0;
  }

 private:
  const std::unique_ptr<kernel> of_;
};
class recording_target final : public target {
 public:
  std::string_view name() const override { return gpu_.name(); }
  bool fuses() const override { return gpu_.fuses(); }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    return std::make_unique<recording_kernel>(make_fallback_kernel(r.instruction.op));
  }
  std::unique_ptr<kernel> make_copy(const derived_data*) const override {
    return std::make_unique<recording_kernel>(make_copy_kernel());
  }
  bool has_device() const override { return true; }
  std::shared_ptr<const device> get_device() const override { return device_; }

 private:
  fake::gpu_target gpu_;
  std::shared_ptr<const device> device_ = std::make_shared<recording_device>(gpu_.get_device());
};

}  // namespace kiln::testing
