#pragma once
#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <chrono>

#include "kiln/interface/serve/host.hpp"

namespace kiln::serve {

/// A client's socket as cpp-httplib reads it, with the limits of a host: bytes and time of a request. One thread.
class connection : public httplib::Stream {
 public:
  /// Owns the socket. With a context it speaks TLS: `is_open` says whether the handshake went well.
  connection(int socket, SSL_CTX* tls, const host_options& limits);
  ~connection() override;
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  bool is_open() const { return open_; }
  /// Waits for a request's first byte; false after the idle time, when the client left, once `stopping`, or where it
  /// `gives_way` to a connection that waits for this thread. What has come is a request all the same.
  bool wait_request(const std::atomic<bool>& stopping, const std::function<bool()>& gives_way);
  /// Whether the client is still there.
  bool is_alive() const;
  /// The rest of the request was not read: no other one can follow.
  void leave_unread() { is_unread_ = true; }
  bool is_unread() const { return is_unread_; }
  /// The one of this thread.
  static connection*& current();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using clock = std::chrono::steady_clock;
  bool wait(short events, std::chrono::milliseconds longest) const;
  ssize_t fill();

  const int socket_;
  const host_options& limits_;
  SSL* ssl_ = nullptr;
  bool open_ = true, is_unread_ = false;
  char buffer_[16384];
  std::size_t at_ = 0, end_ = 0, taken_ = 0;
  bool is_used_ = false;  // a request came
  clock::time_point deadline_{};
  clock::time_point answered_{};  // when the whole answer has to be taken; set by its first byte
};

}  // namespace kiln::serve
