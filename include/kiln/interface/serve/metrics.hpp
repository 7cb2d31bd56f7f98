#pragma once
#include <memory>
#include <string>

#include "kiln/interface/serve/models.hpp"
#include "kiln/interface/serve/record.hpp"

namespace kiln::serve {

/// Counts in Prometheus' words. Any thread may call it.
class metrics {
 public:
  metrics();
  ~metrics();
  metrics(const metrics&) = delete;
  metrics& operator=(const metrics&) = delete;

  void begin_request();
  void end_request(const request_record& r);
  /// Seconds to the first token of a sequence, and between two.
  void first_token(const std::string& model, double seconds);
  void next_token(const std::string& model, double seconds);
  /// All of them in Prometheus' text format; the engines of a set are asked now.
  std::string text(const model_set& of);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace kiln::serve
