#include "kiln/interface/serve/grpc_host.hpp"

#include "kiln/core/error.hpp"
#if KILN_WITH_GRPC
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <iterator>

#include "inference.grpc.pb.h"
#include "kiln/interface/serve/impl/named_inputs.hpp"
#include "kiln/interface/serve/impl/tensor_json.hpp"
#include "kiln/version.hpp"

namespace kiln::serve {

namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 28;

grpc::Status status_of(int http, const std::string& what) {
  const auto code = http == 404                  ? grpc::StatusCode::NOT_FOUND
                    : http == 401                ? grpc::StatusCode::UNAUTHENTICATED
                    : http == 429 || http == 503 ? grpc::StatusCode::RESOURCE_EXHAUSTED
                    : http >= 500                ? grpc::StatusCode::INTERNAL
                                                 : grpc::StatusCode::INVALID_ARGUMENT;
  return {code, what};
}

template <class To, class List> argument converted(const List& from, const shape& type, const std::string& where) {
  const std::int64_t count = type.elements().value();
  if (from.size() != count)
    throw api_error(where + ".contents: expected " + std::to_string(count) + " elements of " +
                    std::string(kserve_name(type.type)) + ", found " + std::to_string(from.size()));
  small_vector<To> values;
  values.reserve(static_cast<std::size_t>(count));
  for (const auto v : from) {
    if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
      const auto [least, most] = range_of(type.type);
      if (v < 0 ? static_cast<std::int64_t>(v) < least : static_cast<std::uint64_t>(v) > most)
        throw api_error(where + ".contents: expected elements of " + std::string(kserve_name(type.type)) + ", found " +
                        std::to_string(v));
    }
    values.push_back(static_cast<To>(v));
  }
  argument a(type);
  encode(type.type, values.data(), a.data(), count);
  return a;
}

// The list of the contents that a type has; FP16 and BF16 have bytes alone.
argument contents_of(const inference::InferTensorContents& c, const shape& type, const std::string& where) {
  switch (type.type) {
    case dtype::boolean: return converted<bool>(c.bool_contents(), type, where);
    case dtype::i8:
    case dtype::i16:
    case dtype::i32: return converted<std::int64_t>(c.int_contents(), type, where);
    case dtype::i64: return converted<std::int64_t>(c.int64_contents(), type, where);
    case dtype::u8:
    case dtype::u16:
    case dtype::u32: return converted<std::uint64_t>(c.uint_contents(), type, where);
    case dtype::u64: return converted<std::uint64_t>(c.uint64_contents(), type, where);
    case dtype::f32: return converted<float>(c.fp32_contents(), type, where);
    case dtype::f64: return converted<double>(c.fp64_contents(), type, where);
    default:
      throw api_error(where + ": expected " + std::string(kserve_name(type.type)) +
                      " in raw_input_contents, found none");
  }
}

template <class To> void describe(std::span<const port> ports, To* to) {
  for (const port& p : ports) {
    auto* const t = to->Add();
    t->set_name(p.name);
    t->set_datatype(std::string(kserve_name(p.type.type)));
    for (const dimension d : p.type.lens) t->add_shape(d.is_constant() ? d.value() : -1);
  }
}

std::string text_of_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) raise(errc::io, "TLS: " + file + " can't be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

class calls final : public inference::GRPCInferenceService::Service {
 public:
  explicit calls(service& of) : service_(of) {}

 private:
  using context = grpc::ServerContext;

  // One request: its key, its errors, and what is told of it.
  template <class F> grpc::Status handle(context* c, const char* route, const std::string& model, const F& f) {
    request_record r;
    r.method = "GRPC", r.route = route, r.model = model.substr(0, 200), r.peer = c->peer();
    const auto& sent = c->client_metadata();
    const auto value = [&](const char* name) {
      const auto at = sent.find(name);
      return at == sent.end() ? std::string_view() : std::string_view(at->second.data(), at->second.size());
    };
    service_.begin(r, value("traceparent"));
    grpc::Status out;
    try {
      if (!service_.takes_key(value("authorization"))) throw api_error("the request has no valid API key", {}, {}, 401);
      f();
    } catch (const api_error& e) {
      r.error = e.what(), r.status = e.status();
    } catch (const error& e) {
      r.error = e.what(), r.status = e.code() == errc::internal ? 500 : 400;
    } catch (const std::exception& e) {
      r.error = e.what(), r.status = 500;
    }
    if (r.error.empty())
      r.status = 200;
    else
      out = status_of(r.status, r.error);
    service_.end(r);
    return out;
  }

  grpc::Status ServerLive(context*, const inference::ServerLiveRequest*, inference::ServerLiveResponse* to) override {
    to->set_live(true);
    return {};
  }
  grpc::Status ServerReady(context*, const inference::ServerReadyRequest*,
                           inference::ServerReadyResponse* to) override {
    to->set_ready(service_.is_ready());
    return {};
  }
  grpc::Status ModelReady(context* c, const inference::ModelReadyRequest* from,
                          inference::ModelReadyResponse* to) override {
    return handle(c, "ModelReady", from->name(), [&] {
      find_model(*service_.models(), from->name(), from->version());
      to->set_ready(service_.is_ready());
    });
  }
  grpc::Status ServerMetadata(context* c, const inference::ServerMetadataRequest*,
                              inference::ServerMetadataResponse* to) override {
    return handle(c, "ServerMetadata", {}, [&] {
      to->set_name("kiln");
      to->set_version(version_text);
    });
  }
  grpc::Status ModelMetadata(context* c, const inference::ModelMetadataRequest* from,
                             inference::ModelMetadataResponse* to) override {
    return handle(c, "ModelMetadata", from->name(), [&] {
      const auto models = service_.models();
      const executable& exe = find_model(*models, from->name(), from->version()).runner->program();
      to->set_name(from->name());
      to->add_versions("1");
      to->set_platform("kiln");
      describe(exe.inputs(), to->mutable_inputs());
      describe(exe.outputs(), to->mutable_outputs());
    });
  }
  grpc::Status ModelInfer(context* c, const inference::ModelInferRequest* from,
                          inference::ModelInferResponse* to) override {
    return handle(c, "ModelInfer", from->model_name(), [&] { infer(*from, *to); });
  }

  void infer(const inference::ModelInferRequest& from, inference::ModelInferResponse& to) {
    const auto models = service_.models();
    const tensor_entry& model = find_model(*models, from.model_name(), from.model_version());
    const executable& exe = model.runner->program();
    const bool is_raw = from.raw_input_contents_size() > 0;
    if (is_raw && from.raw_input_contents_size() != from.inputs_size())
      throw api_error("raw_input_contents: expected one for each of " + std::to_string(from.inputs_size()) +
                      " inputs, found " + std::to_string(from.raw_input_contents_size()));
    named_inputs inputs(exe.inputs());
    for (int k = 0; k < from.inputs_size(); ++k) {
      const auto& t = from.inputs(k);
      const std::string where = "inputs[" + std::to_string(k) + "]";
      const port& p = inputs.find(t.name(), t.datatype(), where);
      const std::vector<std::int64_t> lens(t.shape().begin(), t.shape().end());
      const shape s{p.type.type, extents_of(std::span<const std::int64_t>(lens), where + ".shape", most_elements)};
      if (is_raw && t.has_contents()) throw api_error(where + ": expected no contents beside raw_input_contents");
      inputs.put(p, is_raw ? argument_of(std::string_view(from.raw_input_contents(k)), s, where)
                           : contents_of(t.contents(), s, where));
    }
    std::vector<std::size_t> wanted;
    for (std::size_t k = 0; k < exe.outputs().size() && from.outputs_size() == 0; ++k) wanted.push_back(k);
    for (const auto& o : from.outputs()) {
      const auto at =
          std::find_if(exe.outputs().begin(), exe.outputs().end(), [&](const port& p) { return p.name == o.name(); });
      if (at == exe.outputs().end() || wanted.size() == exe.outputs().size())
        throw api_error("outputs: expected names of outputs of the model, each once, found " + o.name().substr(0, 60));
      wanted.push_back(static_cast<std::size_t>(at - exe.outputs().begin()));
    }
    const auto made = model.runner->run(inputs.finish());
    to.set_model_name(model.name);
    to.set_model_version("1");
    to.set_id(from.id());
    for (const std::size_t k : wanted) {
      const argument a = made[k].contiguous();
      auto* const t = to.add_outputs();
      t->set_name(exe.outputs()[k].name);
      t->set_datatype(std::string(kserve_name(a.get_shape().type)));
      for (const dimension d : a.get_shape().lens) t->add_shape(d.value());
      to.add_raw_output_contents(a.data(), static_cast<std::size_t>(a.get_shape().bytes().value()));
    }
  }

  service& service_;
};

}  // namespace

struct grpc_host::parts {
  std::unique_ptr<grpc::Service> own;
  std::unique_ptr<grpc::Server> server{};
  int port = 0;
};

grpc_host::grpc_host(grpc_options options, service& of) : parts_(new parts{std::make_unique<calls>(of)}) {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (!options.certificate.empty()) {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({text_of_file(options.key), text_of_file(options.certificate)});
    credentials = grpc::SslServerCredentials(tls);
  }
  grpc::ServerBuilder b;
  const std::string where = options.address + ":" + std::to_string(options.port);
  b.AddListeningPort(where, credentials, &parts_->port);
  b.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  b.SetMaxReceiveMessageSize(static_cast<int>(std::min<std::size_t>(options.most_body, 1u << 30)));
  b.SetMaxSendMessageSize(-1);
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(static_cast<int>(std::max<std::size_t>(4, options.threads)));
  b.SetResourceQuota(quota);
  b.RegisterService(parts_->own.get());
  parts_->server = b.BuildAndStart();
  if (!parts_->server || parts_->port == 0) raise(errc::io, "expected a free port: can't listen at " + where);
}
grpc_host::~grpc_host() {
  if (parts_ && parts_->server) stop(std::chrono::milliseconds(0));
}
int grpc_host::port() const { return parts_->port; }
void grpc_host::stop(std::chrono::milliseconds longest) {
  parts_->server->Shutdown(std::chrono::system_clock::now() + longest);
}

}  // namespace kiln::serve
#else

namespace kiln::serve {

struct grpc_host::parts {};
grpc_host::grpc_host(grpc_options, service&) { raise(errc::unsupported, "this build of kiln serve has no gRPC"); }
grpc_host::~grpc_host() = default;
int grpc_host::port() const { return 0; }
void grpc_host::stop(std::chrono::milliseconds) {}

}  // namespace kiln::serve
#endif
