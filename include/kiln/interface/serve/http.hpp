#pragma once
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::serve {

/// A request as a host read it.
struct http_request {
  std::string method, path;                                   ///< the path is decoded, without the query
  std::map<std::string, std::string, std::less<>> headers{};  ///< names in lower case
  std::string body{};
  std::string peer{};               ///< the client's address
  std::function<bool()> is_gone{};  ///< whether the client has closed the connection; null: it has not

  /// A header's value; empty where it is not there.
  std::string_view header(std::string_view name) const {
    const auto at = headers.find(name);
    return at == headers.end() ? std::string_view() : at->second;
  }
};

/// Sends a piece of an answer; false where the client is gone.
using http_writer = std::function<bool(std::string_view)>;

/// What a request is answered with: a body, or a stream that writes it piece by piece.
struct http_reply {
  int status = 200;
  std::string type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::function<void(const http_writer&)> stream{};
};

/// Why a request is refused, with the fields of OpenAI's error object.
class api_error : public std::runtime_error {
 public:
  explicit api_error(const std::string& message, std::optional<std::string> param = {},
                     std::optional<std::string> code = {}, int status = 400)
      : std::runtime_error(message), param_(std::move(param)), code_(std::move(code)), status_(status) {}
  const std::optional<std::string>& param() const { return param_; }
  const std::optional<std::string>& code() const { return code_; }
  int status() const { return status_; }
  /// By the status: `invalid_request_error`, `authentication_error`, `rate_limit_error`, `server_error`.
  std::string_view type() const;

 private:
  std::optional<std::string> param_, code_;
  int status_;
};

/// `{"error": {"message", "type", "param", "code"}}`.
std::string to_json(const api_error& e);
http_reply reply_of(const api_error& e);

}  // namespace kiln::serve
