#include "kiln/interface/serve/host.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "kiln/core/error.hpp"
#include "support/temporary_folder.hpp"

// What a host does with connections, by sockets.
namespace kiln::serve {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class client {
 public:
  explicit client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~client() { ::close(socket_); }
  int socket() const { return socket_; }
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  void send(std::string_view text) {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // What comes until it ends with `last`, the connection is closed, or nothing comes for a while.
  std::string read(std::string_view last) {
    std::string out;
    char piece[4096];
    pollfd p{socket_, POLLIN, 0};
    while (!out.ends_with(last) && poll(&p, 1, 60000) > 0) {
      const ssize_t n = recv(socket_, piece, sizeof piece, 0);
      if (n <= 0) break;
      out.append(piece, static_cast<std::size_t>(n));
    }
    return out;
  }

 private:
  int socket_;
};

struct running {
  http_host host;
  std::thread thread{[this] { host.run(); }};
  ~running() {
    host.stop();
    thread.join();
  }
};

http_reply digits(const http_request&) {
  http_reply r;
  r.body = "0123456789";
  return r;
}

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(serve_host, a_refused_head_needs_no_body) {
  running r{http_host({.port = 0}, digits, [](const http_request& head) -> std::optional<http_reply> {
    if (head.header("authorization") == "Bearer k") return {};
    return reply_of(api_error("no key", {}, {}, 401));
  })};
  client c(r.host.port());
  c.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_THAT(c.read("}"), AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("no key")));
  client taken(r.host.port());
  taken.send("POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Length: 1\r\n\r\na");
  EXPECT_THAT(taken.read("9"), StartsWith("HTTP/1.1 200 "));
}

TEST(serve_host, a_body_has_one_length_and_an_answer_is_whole) {
  running r{http_host({.port = 0}, digits)};
  for (const char* bad :
       {"Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"}) {
    client c(r.host.port());
    c.send("POST / HTTP/1.1\r\nHost: x\r\n" + std::string(bad) + "\r\n0\r\n\r\n");
    EXPECT_THAT(c.read("}"), StartsWith("HTTP/1.1 400 ")) << bad;
  }
  client pieces(r.host.port());
  pieces.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
  EXPECT_THAT(pieces.read("9"), StartsWith("HTTP/1.1 200 "));
  client part(r.host.port());
  part.send("GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=2-3\r\n\r\n");
  EXPECT_THAT(part.read("9"), AllOf(StartsWith("HTTP/1.1 200 "), testing::EndsWith("0123456789")));
}

// Writes a certificate that signs itself, and its key.
void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key) {
  EVP_PKEY* const pair = EVP_RSA_gen(2048);
  X509* const own = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(own), -60);
  X509_gmtime_adj(X509_getm_notAfter(own), 3600);
  X509_set_pubkey(own, pair);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(own), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("kiln"), -1, -1, 0);
  X509_set_issuer_name(own, X509_get_subject_name(own));
  EXPECT_GT(X509_sign(own, pair, EVP_sha256()), 0);
  BIO* const a = BIO_new_file(certificate.c_str(), "w");
  BIO* const b = BIO_new_file(key.c_str(), "w");
  PEM_write_bio_X509(a, own);
  PEM_write_bio_PrivateKey(b, pair, nullptr, nullptr, 0, nullptr, nullptr);
  BIO_free(a), BIO_free(b), X509_free(own), EVP_PKEY_free(pair);
}

// What a client of at most this version of TLS is answered, with the name in the certificate before it; empty where
// they do not agree.
std::string over_tls(int port, int version) {
  client c(port);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_security_level(context, 0);  // that the server alone refuses
  SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context, version);
  SSL* const s = SSL_new(context);
  SSL_set_fd(s, c.socket());
  std::string out;
  if (SSL_connect(s) == 1) {
    X509* const of = SSL_get1_peer_certificate(s);
    char name[64] = {};
    X509_NAME_get_text_by_NID(X509_get_subject_name(of), NID_commonName, name, sizeof name);
    X509_free(of);
    out = std::string(name) + ": ";
    SSL_write(s, get.data(), static_cast<int>(get.size()));
    char piece[4096];
    while (!out.ends_with("9")) {
      const int n = SSL_read(s, piece, sizeof piece);
      if (n <= 0) break;
      out.append(piece, static_cast<std::size_t>(n));
    }
  }
  SSL_free(s), SSL_CTX_free(context);
  return out;
}

TEST(serve_host, speaks_tls_from_1_2_on) {
  const test::temporary_folder folder;
  const auto certificate = folder / "own.pem", key = folder / "key.pem";
  write_certificate(certificate, key);
  running r{http_host({.port = 0, .certificate = certificate, .key = key}, digits)};
  for (const int version : {TLS1_3_VERSION, TLS1_2_VERSION})
    EXPECT_THAT(over_tls(r.host.port(), version),
                AllOf(StartsWith("kiln: HTTP/1.1 200 "), testing::EndsWith("0123456789")));
  EXPECT_EQ(over_tls(r.host.port(), TLS1_1_VERSION), "");
  client plain(r.host.port());
  plain.send(get);
  EXPECT_THAT(plain.read("9"), Not(HasSubstr("0123")));
  EXPECT_THROW(http_host({.port = 0, .certificate = key, .key = key}, digits), error);
  EXPECT_THROW(http_host({.port = 0, .certificate = certificate, .key = certificate}, digits), error);
}

TEST(serve_host, an_idle_connection_gives_way) {
  running r{http_host({.port = 0, .connections = 1}, digits)};
  client first(r.host.port());
  first.send(get);
  EXPECT_THAT(first.read("9"), StartsWith("HTTP/1.1 200 "));
  first.send(get);  // it stays where nobody waits
  EXPECT_THAT(first.read("9"), StartsWith("HTTP/1.1 200 "));
  client silent(r.host.port());  // which takes the place, and sends nothing
  client second(r.host.port());
  second.send(get);
  EXPECT_THAT(second.read("9"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(first.read("9"), "");
}

TEST(serve_host, what_has_come_when_it_stops_is_answered) {
  std::atomic<int> came = 0;
  std::atomic<bool> goes_on = false;
  running r{http_host({.port = 0}, [&](const http_request& q) {
    for (++came; !goes_on;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return digits(q);
  })};
  client c(r.host.port());
  c.send(get);
  while (came == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  c.send(get);
  r.host.stop();
  goes_on = true;
  EXPECT_THAT(c.read("9"), StartsWith("HTTP/1.1 200 "));
  c.read("9");
  EXPECT_EQ(came, 2);
}

TEST(serve_host, a_client_takes_an_answer_in_time) {
  std::atomic<bool> ended = false;
  running r{http_host({.port = 0, .write = std::chrono::seconds(30), .answer = std::chrono::seconds(1)},
                      [&](const http_request&) {
                        http_reply out;
                        out.stream = [&](const http_writer& write) {
                          const std::string piece(1 << 20, 'a');
                          for (int k = 0; k < 256 && write(piece);) ++k;
                          ended = true;
                        };
                        return out;
                      })};
  client c(r.host.port());
  c.send(get);
  for (int k = 0; k < 2500 && !ended; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace kiln::serve
