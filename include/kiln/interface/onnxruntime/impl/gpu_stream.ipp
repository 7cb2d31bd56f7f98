#include "kiln/interface/onnxruntime/gpu_stream.hpp"

namespace kiln::onnxruntime {

namespace {

gpu_stream& of(OrtSyncStreamImpl* s) { return *static_cast<gpu_stream*>(s); }

// Marks what a stream was given so far, for others to wait for.
class notification : public OrtSyncNotificationImpl {
 public:
  explicit notification(const gpu_stream& producer)
      : OrtSyncNotificationImpl{}, ort_(producer.where().runtime()), producer_(producer) {
    ort_version_supported = ort_.version();
    Release = [](OrtSyncNotificationImpl* n) { delete static_cast<notification*>(n); };
    Activate = [](OrtSyncNotificationImpl* n) -> OrtStatus* {
      auto& own = *static_cast<notification*>(n);
      return own.ort_.guarded([&] { own.event_ = own.producer_.enter().record(); });
    };
    WaitOnDevice = [](OrtSyncNotificationImpl* n, OrtSyncStream* consumer) -> OrtStatus* {
      auto& own = *static_cast<notification*>(n);
      return own.ort_.guarded([&] {
        if (!own.event_) return;
        if (const gpu_stream* const to = own.producer_.where().stream_of(consumer))
          to->enter().wait_for(*own.event_);
        else
          own.event_->wait();  // another device's stream can't wait for this one's work
      });
    };
    WaitOnHost = [](OrtSyncNotificationImpl* n) -> OrtStatus* {
      auto& own = *static_cast<notification*>(n);
      return own.ort_.guarded([&] {
        if (own.event_) own.event_->wait();
      });
    };
  }

 private:
  const host& ort_;
  const gpu_stream& producer_;
  std::unique_ptr<device_event> event_;
};

}  // namespace

gpu_stream::gpu_stream(const gpu& of_gpu)
    : OrtSyncStreamImpl{}, gpu_(of_gpu.shared_from_this()), queue_(of_gpu.where().make_queue()) {
  ort_version_supported = gpu_->runtime().version();
  Release = [](OrtSyncStreamImpl* s) { delete &of(s); };
  GetHandle = [](OrtSyncStreamImpl* s) { return of(s).queue_->stream(); };
  CreateNotification = [](OrtSyncStreamImpl* s, OrtSyncNotificationImpl** made) -> OrtStatus* {
    return of(s).where().runtime().guarded([&] { *made = new notification(of(s)); });
  };
  Flush = [](OrtSyncStreamImpl* s) -> OrtStatus* {
    return of(s).where().runtime().guarded([&] { of(s).enter().wait(); });
  };
  OnSessionRunEnd = [](OrtSyncStreamImpl*) -> OrtStatus* { return nullptr; };
  const std::lock_guard lock(gpu_->guard_);
  gpu_->streams_.insert(this);
}

gpu_stream::~gpu_stream() {
  const host& ort = gpu_->runtime();
  OrtStatus* const failed = ort.guarded([&] { enter().wait(); });
  if (failed) ort.call(api::release_status, failed);
  gpu_->stream_ends(this);
}

}  // namespace kiln::onnxruntime
