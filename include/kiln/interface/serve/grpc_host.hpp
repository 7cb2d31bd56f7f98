#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "kiln/interface/serve/service.hpp"

namespace kiln::serve {

struct grpc_options {
  std::string address = "127.0.0.1";
  int port = 8001;                    ///< 0: any that is free
  std::size_t most_body = 16u << 20;  ///< bytes of a request
  std::size_t threads = 64;           ///< at most
  std::string certificate{}, key{};   ///< files in PEM; both: TLS
};

/// The Open Inference Protocol over gRPC, for the models of tensors of a service, with its keys (`authorization` of the
/// metadata), metrics, logs and traces. Builds without gRPC have none: its constructor is an `unsupported` error.
class grpc_host {
 public:
  /// Serves from now on. Errors: `io` where the port is not free, or a file can't be read.
  grpc_host(grpc_options options, service& of);
  /// Ends what runs.
  ~grpc_host();
  grpc_host(const grpc_host&) = delete;
  grpc_host& operator=(const grpc_host&) = delete;
  int port() const;
  /// Takes no more, and waits so long for what runs.
  void stop(std::chrono::milliseconds longest);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace kiln::serve
