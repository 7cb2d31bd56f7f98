#pragma once
#include <chrono>
#include <cstddef>
#include <string>

namespace kiln::serve {

class metrics;

/// What is known of a request when it ends: a line of the log and a span of a trace.
struct request_record {
  using clock = std::chrono::steady_clock;
  std::string id, route, model, method, peer, error;
  std::string traceparent;  ///< W3C's, as it came
  int status = 0;
  bool is_canceled = false;  ///< the client left
  std::size_t prompt_tokens = 0, made_tokens = 0;
  clock::time_point begin = clock::now(), first_token{}, end{};
  std::chrono::system_clock::time_point at = std::chrono::system_clock::now();
};

}  // namespace kiln::serve
