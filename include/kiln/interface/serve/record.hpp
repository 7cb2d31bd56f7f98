#pragma once
#include <chrono>
#include <cstddef>
#include <string>

namespace kiln::serve {

/// What is known of a request when it ends: a line of the log and a span of a trace.
struct request_record {
  using clock = std::chrono::steady_clock;
  std::string id, route, model, method, peer, error;
  std::string trace_id, span_id, parent_id;  ///< hexadecimal; of the parent empty where there is none
  int status = 0;
  bool is_canceled = false;  ///< the client left
  std::size_t prompt_tokens = 0, made_tokens = 0;
  clock::time_point begin = clock::now(), first_token{}, end{};
  std::chrono::system_clock::time_point at = std::chrono::system_clock::now();
};

}  // namespace kiln::serve
