#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kiln/interface/serve/record.hpp"

namespace kiln::serve {

/// Gives a request's record its place in a trace: that of a `traceparent` header (W3C Trace Context, version 00), else
/// one of its own. A header of another form counts as none.
void place_in_trace(request_record& r, std::string_view traceparent);

/// Sends a span for each request that ended to an OpenTelemetry collector, as OTLP's JSON over HTTP, in a thread of its
/// own. What the collector does not take is dropped, and said once in a while.
class tracer {
 public:
  /// Of the collector the URL without a path, such as `http://localhost:4318`. Error: `invalid_argument` for another
  /// form.
  tracer(std::string url, std::function<void(std::string_view)> warn);
  /// Sends what is left.
  ~tracer();
  tracer(const tracer&) = delete;
  tracer& operator=(const tracer&) = delete;
  void add(const request_record& r);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace kiln::serve
