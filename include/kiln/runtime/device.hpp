#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kiln/core/buffer.hpp"

namespace kiln {

/// Work that was recorded once and runs again as a whole, with the same memory.
class device_recording {
 public:
  virtual ~device_recording() = default;
};

/// The end of the work that a queue was given so far.
class device_event {
 public:
  virtual ~device_event() = default;
  /// Returns when that work is done.
  virtual void wait() const = 0;
};

/// Work for a device in the order it was given. One thread at a time.
class device_queue {
 public:
  virtual ~device_queue() = default;
  /// The platform's own handle of the queue: a stream.
  virtual void* stream() const = 0;
  /// Makes the calling thread one that may give this queue work.
  virtual void enter() = 0;
  /// Copies bytes between any two places, the host's memory or the device's. The host's is read before this returns (of
  /// `allocate_on_host` until the work is done) and may be written until `wait` does.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* to, int value, std::size_t bytes) = 0;
  /// Returns when all work is done.
  virtual void wait() = 0;
  /// An event of the work so far.
  virtual std::unique_ptr<device_event> record() = 0;
  /// Work given from now on begins when the event's work is done; it is of the same device.
  virtual void wait_for(const device_event& event) = 0;
  /// Marks a point in time after the work so far.
  virtual void mark() = 0;
  /// Seconds between neighboring marks, which are then forgotten. Waits.
  virtual std::vector<double> seconds_between_marks() = 0;
  /// Until `end_recording`, work is noted instead of done. False where the platform can't.
  virtual bool begin_recording() = 0;
  /// What was noted; null where something in it can't be recorded.
  virtual std::unique_ptr<device_recording> end_recording() = 0;
  virtual void replay(const device_recording& work) = 0;
};

/// A processor whose kernels work in memory of its own. All members may be called from several threads at once.
class device {
 public:
  virtual ~device() = default;
  /// Memory of the device; a `limit` error where there is not so much.
  virtual buffer allocate(std::size_t bytes) const = 0;
  /// Memory of the host that is copied from and to the device without a detour (page-locked); errors as above.
  virtual buffer allocate_on_host(std::size_t bytes) const = 0;
  /// Whether an address is the device's memory.
  virtual bool owns(const void* address) const = 0;
  /// A new queue, or one that gives its work to a stream somebody else owns; the calling thread has entered it.
  virtual std::unique_ptr<device_queue> make_queue(void* stream = nullptr) const = 0;
};

}  // namespace kiln
