#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kiln/interface/serve/http.hpp"

namespace kiln::serve {

struct host_options {
  std::string address = "127.0.0.1";
  int port = 8000;                    ///< 0: any that is free
  std::size_t connections = 256;      ///< that are served at a time; twice as many wait, and more are closed
  std::size_t most_body = 16u << 20;  ///< bytes of a request
  std::chrono::seconds read{30};      ///< for a whole request to come
  std::chrono::seconds write{30};     ///< for a client to take a piece
  std::chrono::seconds answer{660};   ///< for a client to take a whole answer
  std::chrono::seconds idle{60};      ///< between two requests of a connection; less where others wait
  std::string certificate{}, key{};   ///< files in PEM; both: TLS
};

/// Reads HTTP/1.1 from sockets, by cpp-httplib, and hands requests to a function that is called in many threads.
class http_host {
 public:
  using handler = std::function<http_reply(const http_request&)>;
  /// What a request is refused with by its head, before its body is read; nothing where it is not.
  using gate = std::function<std::optional<http_reply>(const http_request&)>;
  /// The answer to what is no request that the host reads; without such a function it is the error's own form.
  using faults = std::function<http_reply(const http_request& head, const api_error& why)>;
  /// Binds the port. Errors: `io` where that, or reading the certificate, fails.
  http_host(host_options options, handler answer, gate refuse = {}, faults fault = {});
  ~http_host();
  http_host(const http_host&) = delete;
  http_host& operator=(const http_host&) = delete;
  int port() const;
  /// Serves until `stop`, then until all requests that came are answered.
  void run();
  /// Any thread may call it, a signal's handler may not.
  void stop();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace kiln::serve
