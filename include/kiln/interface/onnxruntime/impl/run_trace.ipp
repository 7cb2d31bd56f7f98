#include "kiln/interface/onnxruntime/run_trace.hpp"

#include <utility>

namespace kiln::onnxruntime {

void run_trace::start(std::int64_t offset_ns) {
  const std::lock_guard lock(guard_);
  began_ = std::chrono::steady_clock::now() - std::chrono::nanoseconds(offset_ns);
  events_.clear();
  is_on_ = true;
}

void run_trace::add(const std::string& kernel, const std::string& instruction, double seconds) {
  using std::chrono::microseconds;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(guard_);
  const std::int64_t end = std::chrono::duration_cast<microseconds>(now - began_).count();
  const auto us = static_cast<std::int64_t>(seconds * 1e6);
  events_.push_back({kernel, instruction, end - us, us});
}

std::vector<run_trace::event> run_trace::take() {
  is_on_ = false;
  const std::lock_guard lock(guard_);
  return std::exchange(events_, {});
}

namespace {

class profiler : public OrtEpProfilerImpl {
 public:
  profiler(const host& ort, std::shared_ptr<run_trace> of) : OrtEpProfilerImpl{}, ort_(ort), of_(std::move(of)) {
    ort_version_supported = ort.version();
    Release = [](OrtEpProfilerImpl* p) { delete static_cast<profiler*>(p); };
    StartProfiling = [](OrtEpProfilerImpl* p, std::int64_t offset_ns) -> OrtStatus* {
      static_cast<profiler*>(p)->of_->start(offset_ns);
      return nullptr;
    };
    // kernels are placed by their times alone
    StartEvent = [](OrtEpProfilerImpl*, std::uint64_t) -> OrtStatus* { return nullptr; };
    StopEvent = [](OrtEpProfilerImpl*, std::uint64_t, const OrtProfilingEvent*) -> OrtStatus* { return nullptr; };
    EndProfiling = [](OrtEpProfilerImpl* p, OrtProfilingEventsContainer* to) -> OrtStatus* {
      auto& me = *static_cast<profiler*>(p);
      return me.ort_.guarded([&] { me.give(to); });
    };
  }

 private:
  void give(OrtProfilingEventsContainer* to) {
    constexpr int of_a_kernel = 2;
    for (const run_trace::event& e : of_->take()) {
      const char *key = "instruction", *value = e.instruction.c_str();
      OrtProfilingEvent* made = nullptr;
      ort_.call_ep(ep_api::create_event, of_a_kernel, -1, -1, e.kernel.c_str(), e.begin_us, e.us, &key, &value, 1,
                   &made);
      const OrtProfilingEvent* const one = made;
      try {
        ort_.call_ep(ep_api::add_events, to, &one, 1);
      } catch (...) {
        ort_.call_ep(ep_api::release_event, made);
        throw;
      }
      ort_.call_ep(ep_api::release_event, made);
    }
  }

  const host& ort_;
  std::shared_ptr<run_trace> of_;
};

}  // namespace

OrtEpProfilerImpl* make_profiler(const host& ort, std::shared_ptr<run_trace> of) {
  return new profiler(ort, std::move(of));
}

}  // namespace kiln::onnxruntime
