#include "kiln/interface/serve/impl/connection.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kiln::serve {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_head = 256u << 10;       // bytes of a request before and between its body
constexpr auto first_request = milliseconds(1000);  // from a connection to it, where others wait

void address_of(const sockaddr_storage& from, std::string& ip, int& port) {
  char text[INET6_ADDRSTRLEN] = {};
  if (from.ss_family == AF_INET) {
    const auto& a = reinterpret_cast<const sockaddr_in&>(from);
    inet_ntop(AF_INET, &a.sin_addr, text, sizeof text);
    port = ntohs(a.sin_port);
  } else if (from.ss_family == AF_INET6) {
    const auto& a = reinterpret_cast<const sockaddr_in6&>(from);
    inet_ntop(AF_INET6, &a.sin6_addr, text, sizeof text);
    port = ntohs(a.sin6_port);
  }
  ip = text;
}

}  // namespace

connection*& connection::current() {
  thread_local connection* own = nullptr;
  return own;
}

connection::connection(int socket, SSL_CTX* tls, const host_options& limits) : socket_(socket), limits_(limits) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  if (!tls) return;
  ssl_ = SSL_new(tls);
  SSL_set_fd(ssl_, socket_);
  const auto end = clock::now() + limits_.read;
  for (;;) {
    const int done = SSL_accept(ssl_);
    if (done == 1) return;
    const int why = SSL_get_error(ssl_, done);
    const auto left = std::chrono::duration_cast<milliseconds>(end - clock::now());
    const short events = why == SSL_ERROR_WANT_READ ? POLLIN : why == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
    if (events != 0 && left.count() > 0 && wait(events, left)) continue;
    open_ = false;
    return;
  }
}

connection::~connection() {
  if (ssl_) {
    if (open_) SSL_shutdown(ssl_);
    SSL_free(ssl_);
  }
  shutdown(socket_, SHUT_WR);
  if (is_unread_) {
    // closing with bytes that were not read would take the answer away from the client
    const auto end = clock::now() + milliseconds(1000);
    while (clock::now() < end && wait(POLLIN, milliseconds(100)) && recv(socket_, buffer_, sizeof buffer_, 0) > 0) {
    }
  }
  close(socket_);
}

bool connection::wait(short events, milliseconds longest) const {
  pollfd p{socket_, events, 0};
  for (;;) {
    const int n = poll(&p, 1, static_cast<int>(std::clamp<std::int64_t>(longest.count(), 0, 1'000'000'000)));
    if (n < 0 && errno == EINTR) continue;
    return n > 0;
  }
}

bool connection::wait_request(const std::atomic<bool>& stopping, const std::function<bool()>& gives_way) {
  taken_ = 0, answered_ = {};
  const auto begin = clock::now(), end = begin + limits_.idle;
  // a first request is on its way: it has a moment
  const auto patient = is_used_ ? begin : begin + first_request;
  while (at_ == end_ && !(ssl_ && SSL_pending(ssl_) > 0)) {
    const bool is_ending = stopping;
    if (wait(POLLIN, milliseconds(is_ending ? 0 : 100))) break;
    const auto now = clock::now();
    if (is_ending || now > end || (now > patient && gives_way())) return false;
  }
  is_used_ = true;
  deadline_ = clock::now() + limits_.read;
  return at_ < end_ || is_alive();
}

bool connection::is_alive() const {
  char one;
  if (at_ < end_) return true;
  if (ssl_) {
    if (SSL_pending(ssl_) > 0) return true;
    const int n = SSL_peek(ssl_, &one, 1);
    const int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_, n);
    return why == SSL_ERROR_NONE || why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
  }
  const ssize_t n = recv(socket_, &one, 1, MSG_PEEK | MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

bool connection::is_readable() const { return at_ < end_ || wait(POLLIN, limits_.read); }
bool connection::is_writable() const { return is_alive() && wait(POLLOUT, limits_.write); }

ssize_t connection::fill() {
  for (;;) {
    int why = SSL_ERROR_WANT_READ;
    ssize_t n;
    if (ssl_) {
      n = SSL_read(ssl_, buffer_, sizeof buffer_);
      why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_, static_cast<int>(n));
      if (why == SSL_ERROR_ZERO_RETURN) return 0;
    } else {
      n = recv(socket_, buffer_, sizeof buffer_, 0);
      if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return -1;
      if (n == 0) return 0;
    }
    if (n > 0) return n;
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return -1;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - clock::now());
    if (left.count() <= 0 || !wait(why == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN, left)) return -1;
  }
}

ssize_t connection::read(char* to, size_t size) {
  if (at_ == end_) {
    const ssize_t n = fill();
    if (n <= 0) return n;
    at_ = 0, end_ = static_cast<std::size_t>(n);
  }
  const std::size_t n = std::min(size, end_ - at_);
  // also where no length was told before: pieces, and heads without end
  taken_ += n;
  if (taken_ > limits_.most_body + most_head) return -1;
  std::memcpy(to, buffer_ + at_, n);
  at_ += n;
  return static_cast<ssize_t>(n);
}

ssize_t connection::write(const char* from, size_t size) {
  const auto now = clock::now();
  if (answered_ == clock::time_point()) answered_ = now + limits_.answer;
  const auto end = std::min<clock::time_point>(now + limits_.write, answered_);
  for (;;) {
    int why = SSL_ERROR_WANT_WRITE;
    ssize_t n;
    if (ssl_) {
      n = SSL_write(ssl_, from, static_cast<int>(std::min<std::size_t>(size, 1u << 30)));
      why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_, static_cast<int>(n));
    } else {
      n = send(socket_, from, size, MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return -1;
    }
    if (n > 0) return n;
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return -1;
    const auto left = std::chrono::duration_cast<milliseconds>(end - clock::now());
    if (left.count() <= 0 || !wait(why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, left)) return -1;
  }
}

void connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage a{};
  socklen_t n = sizeof a;
  if (getpeername(socket_, reinterpret_cast<sockaddr*>(&a), &n) == 0) address_of(a, ip, port);
}
void connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage a{};
  socklen_t n = sizeof a;
  if (getsockname(socket_, reinterpret_cast<sockaddr*>(&a), &n) == 0) address_of(a, ip, port);
}

}  // namespace kiln::serve
