#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/interface/serve/http.hpp"
#include "kiln/interface/serve/models.hpp"
#include "kiln/interface/serve/record.hpp"

namespace kiln::serve {

struct service_options {
  model_options models;
  std::vector<std::string> api_keys;           ///< one of them is asked for by what uses a model; none: nobody is asked
  std::vector<std::string> origins{};          ///< whose pages may ask (`Access-Control-Allow-Origin`); "*": all
  std::chrono::milliseconds longest{600'000};  ///< of a request
  std::string collector{};                     ///< of OpenTelemetry, as `tracer` has it; empty: none
  std::function<void(std::string_view)> log{};  ///< takes lines of JSON, in any thread
};

/// What a server answers: OpenAI's interface, and what those who run it ask. Any thread may call it.
class service {
 public:
  /// Loads the models; the errors of `load_models`, and `invalid_argument` for an empty key.
  explicit service(service_options options);
  ~service();
  service(const service&) = delete;
  service& operator=(const service&) = delete;

  /// Never throws: errors are answers.
  http_reply answer(const http_request& request);
  /// The answer to a request without the key that its path asks for, which is known before its body is read; nothing
  /// where it may go on.
  std::optional<http_reply> refusal(const http_request& head);
  /// The answer to a request that its host refuses for this reason; counted and logged as any other.
  http_reply refuse(const http_request& head, const api_error& why);
  /// Loads the models again; requests that run keep theirs. Where that fails, all stays as it was, and the error is
  /// thrown.
  void reload();
  /// From now on `/ready` says no.
  void drain();
  /// Ends all requests that run, those of models before a reload too.
  void stop();
  // Of hosts that speak another protocol:
  std::shared_ptr<const model_set> models() const;
  bool is_ready() const;
  /// Whether an `Authorization` header has one of the keys, or none is asked for.
  bool takes_key(std::string_view authorization) const;
  /// A request came, with its `traceparent`; it ended, with its status.
  void begin(request_record& r, std::string_view traceparent);
  void end(request_record& r);

  /// Writes a line of the log: an event with a text.
  void log(std::string_view level, std::string_view event, std::string_view text);

 private:
  using maker = std::function<http_reply(const std::shared_ptr<request_record>&)>;
  http_reply finish(const http_request& request, const maker& make);
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace kiln::serve
