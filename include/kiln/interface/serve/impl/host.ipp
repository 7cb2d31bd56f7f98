#include "kiln/interface/serve/host.hpp"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

#include "kiln/core/error.hpp"
#include "kiln/interface/serve/impl/connection.hpp"

namespace kiln::serve {

namespace {

// Threads that are begun when connections come, up to a number; further connections wait.
class connection_threads : public httplib::TaskQueue {
 public:
  // `wanted`: how many connections wait for a thread that only waits for a request
  connection_threads(std::size_t most, std::atomic<std::size_t>& wanted) : most_(most), wanted_(wanted) {}
  void enqueue(std::function<void()> job) override {
    std::unique_lock lock(mutex_);
    if (jobs_.size() >= std::max<std::size_t>(64, 2 * most_)) {
      lock.unlock();
      is_beyond() = true;
      job();  // closes it
      is_beyond() = false;
      return;
    }
    jobs_.push_back(std::move(job));
    if (idle_ < jobs_.size() && !begin_thread()) ++wanted_;
    news_.notify_one();
  }
  // Whether this thread's connection is one more than wait here.
  static bool& is_beyond() {
    thread_local bool is = false;
    return is;
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      news_.notify_all();
    }
    for (std::thread& t : threads_) t.join();
  }

 private:
  bool begin_thread() {
    if (threads_.size() >= most_) return false;
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
      return false;  // one of the others takes the job
    }
    return true;
  }
  void work() {
    for (std::unique_lock lock(mutex_);;) {
      ++idle_;
      news_.wait(lock, [&] { return is_ending_ || !jobs_.empty(); });
      --idle_;
      if (jobs_.empty()) return;
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      if (wanted_ > jobs_.size()) wanted_ = jobs_.size();
      lock.unlock();
      try {
        job();
      } catch (...) {
        // its connection is closed; the others go on
      }
      job = nullptr;
      lock.lock();
    }
  }
  const std::size_t most_;
  std::atomic<std::size_t>& wanted_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::list<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool is_ending_ = false;
};

SSL_CTX* context_of(const host_options& o) {
  if (o.certificate.empty() && o.key.empty()) return nullptr;
  SSL_CTX* const c = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const char* failed = nullptr;
  if (SSL_CTX_use_certificate_chain_file(c, o.certificate.c_str()) != 1)
    failed = o.certificate.c_str();
  else if (SSL_CTX_use_PrivateKey_file(c, o.key.c_str(), SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(c) != 1)
    failed = o.key.c_str();
  if (!failed) return c;
  const std::string file = failed;
  SSL_CTX_free(c);
  raise(errc::io, "TLS: expected a certificate and its key in PEM, found none that serves in " +
                      (file.empty() ? "an unnamed file" : file));
}

// A head that readers may divide from its body in different ways.
bool has_clear_length(const httplib::Request& r) {
  const auto codings = r.get_header_value_count("Transfer-Encoding"),
             lengths = r.get_header_value_count("Content-Length");
  if (codings == 0) return lengths <= 1;
  return codings == 1 && lengths == 0 && strcasecmp(r.get_header_value("Transfer-Encoding").c_str(), "chunked") == 0;
}

// The library would cut answers to the ranges of a file that are asked for, and take at most 8192 bytes of what is said
// to be a form, as curl says of all that it sends.
void take_as_it_is(httplib::Request& r) {
  r.ranges.clear();
  const std::string type = r.get_header_value("Content-Type");
  for (const std::string_view form : {"application/x-www-form-urlencoded", "multipart/form-data"})
    if (strncasecmp(type.c_str(), form.data(), form.size()) == 0) r.headers.erase("Content-Type");
}

http_request request_of(const httplib::Request& from) {
  http_request r{from.method, from.path};
  for (const auto& [name, value] : from.headers) {
    std::string low = name;
    for (char& c : low)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    r.headers.emplace(std::move(low), value);
  }
  r.body = from.body;
  r.peer = from.remote_addr;
  r.is_gone = [c = connection::current()] { return c && !c->is_alive(); };
  return r;
}

void send(http_reply from, httplib::Response& to) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  if (!from.stream) return to.set_content(std::move(from.body), from.type);
  to.set_chunked_content_provider(from.type, [stream = std::move(from.stream)](std::size_t, httplib::DataSink& sink) {
    bool is_there = true;
    stream([&](std::string_view piece) {
      is_there = is_there && (piece.empty() ? sink.is_writable() : sink.write(piece.data(), piece.size()));
      return is_there;
    });
    if (is_there) sink.done();
    return is_there;
  });
}

}  // namespace

namespace detail {

class server : public httplib::Server {
 public:
  server(const host_options& o, SSL_CTX* tls) : limits_(o), tls_(tls) {}
  std::atomic<bool> stopping = false;
  std::atomic<std::size_t> wanted = 0;  // threads, by connections that wait
  // the library's own queue has 5 places: of more clients at once, those beyond it would try again a second later
  void widen_queue() { ::listen(svr_sock_, 1024); }

 private:
  bool process_and_close_socket(socket_t socket) override {
    if (connection_threads::is_beyond()) return ::close(static_cast<int>(socket)) == 0;
    connection c(static_cast<int>(socket), tls_, limits_);
    connection::current() = &c;
    bool closed = !c.is_open();
    while (!closed && !c.is_unread() && c.wait_request(stopping, [this] { return is_wanted(); }))
      if (!process_request(c, stopping, closed, take_as_it_is)) break;
    connection::current() = nullptr;
    return true;
  }
  bool is_wanted() {
    for (std::size_t n = wanted; n > 0;)
      if (wanted.compare_exchange_weak(n, n - 1)) return true;
    return false;
  }
  const host_options& limits_;
  SSL_CTX* const tls_;
};

}  // namespace detail

struct http_host::parts {
  host_options options;
  handler answer;
  gate refuse;
  faults fault;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls;
  std::unique_ptr<detail::server> own{};
  int port = 0;

  http_reply fault_of(const httplib::Request& r, const api_error& why) const {
    return fault ? fault(request_of(r), why) : reply_of(why);
  }
};

http_host::http_host(host_options options, handler answer, gate refuse, faults fault)
    : parts_(new parts{
          std::move(options), std::move(answer), std::move(refuse), std::move(fault), {nullptr, SSL_CTX_free}}) {
  parts& p = *parts_;
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets that clients have closed
  p.tls.reset(context_of(p.options));
  p.own = std::make_unique<detail::server>(p.options, p.tls.get());
  detail::server& s = *p.own;
  s.new_task_queue = [&p] {
    return new connection_threads(std::max<std::size_t>(1, p.options.connections), p.own->wanted);
  };
  s.set_payload_max_length(p.options.most_body);
  s.set_tcp_nodelay(true);
  // its own loop closes connections, and compressed bodies may be of any size
  s.set_keep_alive_max_count(1'000'000);
  s.set_keep_alive_timeout(p.options.idle.count());
  s.set_pre_routing_handler([&p](const httplib::Request& r, httplib::Response& to) {
    std::optional<http_reply> refused;
    const auto fault = [&](const std::string& why, const char* code, int status) {
      refused = p.fault_of(r, api_error(why, {}, code, status));
    };
    const std::string coding = r.get_header_value("Content-Encoding");
    if (!has_clear_length(r))
      fault("expected one Content-Length, or Transfer-Encoding chunked alone", "bad_request", 400);
    else if (!coding.empty() && coding != "identity")
      fault("expected a body as it is, found Content-Encoding " + coding.substr(0, 40), "unsupported_encoding", 415);
    else if (p.refuse)
      refused = p.refuse(request_of(r));
    // the library does not read the body of a request that needs none; it is no further request
    const bool is_read = r.method == "POST" || r.method == "PUT" || r.method == "PATCH" || r.method == "DELETE";
    const bool has_body = r.has_header("Transfer-Encoding") ||
                          (r.has_header("Content-Length") && r.get_header_value("Content-Length") != "0");
    if (has_body && (refused || !is_read)) connection::current()->leave_unread();
    if (!refused) return httplib::Server::HandlerResponse::Unhandled;
    send(std::move(*refused), to);
    return httplib::Server::HandlerResponse::Handled;
  });
  const auto handle = [&p](const httplib::Request& r, httplib::Response& to) { send(p.answer(request_of(r)), to); };
  s.Get("/.*", handle).Post("/.*", handle).Put("/.*", handle).Patch("/.*", handle).Delete("/.*", handle);
  s.Options("/.*", handle);
  s.set_error_handler([&p](const httplib::Request& r, httplib::Response& to) {
    if (!to.body.empty() || to.content_length_ > 0) return;
    if (connection* const c = connection::current()) c->leave_unread();
    const std::string why = to.status == 413 ? "a body has at most " + std::to_string(p.options.most_body) + " bytes"
                                             : "the request is no HTTP that this server reads";
    const int status = to.status;
    send(p.fault_of(r, api_error(why, {}, status == 413 ? "body_too_large" : "bad_request", status)), to);
  });
  const bool any = p.options.port == 0;
  p.port = any                                                 ? s.bind_to_any_port(p.options.address)
           : s.bind_to_port(p.options.address, p.options.port) ? p.options.port
                                                               : -1;
  if (p.port <= 0)
    raise(errc::io,
          "expected a free port: can't listen at " + p.options.address + ":" + std::to_string(p.options.port));
  s.widen_queue();
}
http_host::~http_host() = default;
int http_host::port() const { return parts_->port; }
void http_host::run() {
  if (!parts_->own->stopping) parts_->own->listen_after_bind();
}
void http_host::stop() {
  // the library's own asserts that it is called once
  if (!parts_->own->stopping.exchange(true)) parts_->own->stop();
}

}  // namespace kiln::serve
