#include "serve.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

#include "command_line.hpp"
#include "compile_flags.hpp"
#include "files.hpp"
#include "genai_model.hpp"
#include "kiln/interface/serve/grpc_host.hpp"
#include "kiln/interface/serve/host.hpp"
#include "kiln/interface/serve/service.hpp"

namespace kiln::driver {

namespace {

struct serve_flags {
  serve::service_options service;
  serve::host_options host;
  decoder_flags decoder;
  std::optional<int> grpc_port;
  std::string key_file, log_file, template_file, served_name;
  std::int64_t longest = 600, read = 30, write = 30, idle = 60, drain = 30;  // seconds
  double batch_wait = 2;
};

// Lines of a file, without empty ones and those that begin with #.
std::vector<std::string> keys_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw usage_error("serve --api-key-file: " + file + " can't be read");
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (!line.empty() && line.front() != '#') out.push_back(line);
  }
  if (out.empty()) throw usage_error("serve --api-key-file: " + file + " has no key");
  return out;
}

// One text behind each mention of the option: what follows is a model.
void add_each(CLI::App& verb, const std::string& option, std::vector<std::string>& into, const std::string& help) {
  verb.add_option(option, into, help)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

// A line at a time, from any thread.
std::function<void(std::string_view)> log_of(const std::string& file) {
  auto out = std::make_shared<std::ofstream>();
  if (!file.empty()) out->open(file, std::ios::app);
  if (!file.empty() && !*out) throw usage_error("serve --log: " + file + " can't be written");
  return [out, is_file = !file.empty(), mutex = std::make_shared<std::mutex>()](std::string_view line) {
    const std::lock_guard lock(*mutex);
    (is_file ? static_cast<std::ostream&>(*out) : std::cerr) << line << std::endl;
  };
}

// The signals that a thread waits for, in place of handlers.
sigset_t block_signals() {
  sigset_t all;
  sigemptyset(&all);
  for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&all, s);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  return all;
}

// Gives memory that nothing has any more back now and then: one arena keeps what its greatest moment took.
constexpr timespec between_trims{10, 0};

// A hangup loads the models again; others end the server, a second one at once.
void obey(const sigset_t& signals, serve::service& service, serve::http_host& host, serve::grpc_host* grpc,
          std::int64_t drain) {
  int last = 0;
  for (;;) {
    last = sigtimedwait(&signals, nullptr, &between_trims);
    if (last == SIGHUP) try {
        service.reload();
        service.log("info", "reload", "the models are loaded again");
      } catch (const std::exception& e) {
        service.log("error", "reload", e.what());
      }
    else if (last > 0)
      break;
    malloc_trim(0);
  }
  if (last == SIGUSR1) return;  // nothing runs any more
  service.drain();
  host.stop();
  std::thread grpc_ends([&] {
    if (grpc) grpc->stop(std::chrono::seconds(drain));
  });
  service.log("info", "drain", fmt::format("no further requests; those that run have {} s", drain));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(drain);
  do {
    const auto left = std::max<std::int64_t>(0, (end - std::chrono::steady_clock::now()) / std::chrono::nanoseconds(1));
    const timespec longest{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
    last = sigtimedwait(&signals, nullptr, &longest);
  } while (last == SIGHUP);  // nothing is loaded any more
  service.stop();
  grpc_ends.join();
}

// The thread that obeys signals; it ends with what it is for, whatever ends that.
class obeying {
 public:
  template <class F> explicit obeying(F f) : own_(std::move(f)) {}
  ~obeying() {
    pthread_kill(own_.native_handle(), SIGUSR1);
    own_.join();
  }

 private:
  std::thread own_;
};

int serve_models(serve_flags flags) {
  // arenas of many threads keep what others could use: with them memory grows for hours, with one it stays
  mallopt(M_ARENA_MAX, 1);
  const sigset_t signals = block_signals();  // before any thread begins
  using std::chrono::seconds;
  flags.host.read = seconds(flags.read), flags.host.write = seconds(flags.write), flags.host.idle = seconds(flags.idle);
  flags.host.answer = seconds(flags.longest + flags.write);
  flags.service.models.batching.wait = std::chrono::microseconds(static_cast<std::int64_t>(1e3 * flags.batch_wait));
  flags.service.longest = seconds(flags.longest);
  flags.service.models.overlay = overlay_of(flags.decoder);
  if (flags.host.certificate.empty() != flags.host.key.empty())
    throw usage_error("serve: --tls-cert and --tls-key are given together");
  if (!flags.key_file.empty())
    for (std::string& key : keys_of(flags.key_file)) flags.service.api_keys.push_back(std::move(key));
  if (!flags.template_file.empty()) {
    const auto bytes = read_file(flags.template_file);
    if (bytes.empty()) throw usage_error("serve --chat-template: " + flags.template_file + " is empty");
    flags.service.models.chat_template.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  if (auto& models = flags.service.models.models; !flags.served_name.empty()) {
    if (models.size() != 1)
      throw usage_error(fmt::format("serve --served-model-name: expected one model, found {}: name each as NAME=PATH",
                                    models.size()));
    models[0] = flags.served_name + "=" + models[0];
  }
  flags.service.log = log_of(flags.log_file);
  serve::service service(flags.service);
  serve::http_host host(
      flags.host, [&](const serve::http_request& r) { return service.answer(r); },
      [&](const serve::http_request& head) { return service.refusal(head); },
      [&](const serve::http_request& head, const serve::api_error& why) { return service.refuse(head, why); });
  service.log("info", "listen",
              fmt::format("{}://{}:{}", flags.host.key.empty() ? "http" : "https", flags.host.address, host.port()));
  std::optional<serve::grpc_host> grpc;
  if (flags.grpc_port) {
    grpc.emplace(serve::grpc_options{flags.host.address, *flags.grpc_port, flags.host.most_body, flags.host.connections,
                                     flags.host.certificate, flags.host.key},
                 service);
    service.log("info", "listen", fmt::format("grpc://{}:{}", flags.host.address, grpc->port()));
  }
  {
    const obeying signaled([&] { obey(signals, service, host, grpc ? &*grpc : nullptr, flags.drain); });
    host.run();
  }
  service.log("info", "end", "all requests are answered");
  return 0;
}

}  // namespace

void add_serve(CLI::App& line, std::function<int()>& run) {
  auto flags = std::make_shared<serve_flags>();
  CLI::App* verb = line.add_subcommand(
      "serve", "Answer requests for models over HTTP, as OpenAI's interface and KServe's protocol have them");
  auto& s = flags->service;
  auto& h = flags->host;
  verb->add_option(
          "models,-m,--model", s.models.models,
          "Models as PATH or NAME=PATH: folders and files of language models, as those of genai run, and files "
          ".onnx and of kiln compile")
      ->required();
  verb->add_option("-a,--served-model-name", flags->served_name, "The name of the model, where there is one");
  verb->add_option("--host", h.address, "the address to listen at")->capture_default_str();
  verb->add_option("--port", h.port, "the port; 0: any that is free, which the log tells")->capture_default_str();
  verb->add_option("--grpc-port", flags->grpc_port, "a port for KServe's protocol over gRPC; 0: any that is free");
  add_each(*verb, "--api-key", s.api_keys, "A key that requests must have; may be repeated");
  verb->add_option("--api-key-file", flags->key_file, "A file with a key in each line");
  add_each(*verb, "--allow-origin", s.origins,
           "An origin such as http://localhost:3000 whose pages may ask from a browser, or *; may be repeated");
  verb->add_option("--tls-cert", h.certificate, "A chain of certificates in PEM, for HTTPS");
  verb->add_option("--tls-key", h.key, "Its key in PEM");
  verb->add_option("--connections", h.connections, "connections that are served at a time")->capture_default_str();
  verb->add_option("--max-body", h.most_body, "bytes of a request at most")->capture_default_str();
  verb->add_option("--timeout", flags->longest, "seconds that a request for a language model may take")
      ->capture_default_str();
  verb->add_option("--read-timeout", flags->read, "seconds for a request to come")->capture_default_str();
  verb->add_option("--write-timeout", flags->write, "seconds for a client to take a piece")->capture_default_str();
  verb->add_option("--idle-timeout", flags->idle, "seconds between requests of a connection")->capture_default_str();
  verb->add_option("--drain", flags->drain, "seconds that requests have to end after SIGTERM")->capture_default_str();
  verb->add_option("--log", flags->log_file, "A file for lines of JSON about each request; else standard error");
  verb->add_option("--otlp", s.collector, "An OpenTelemetry collector for a span of each request: http://HOST:PORT");
  verb->add_option("--target", s.models.target, "where models run; else what their folders say");
  verb->add_option("--max-waiting", s.models.most_waiting,
                   "sequences of a model, or requests for one of tensors, that run or wait")
      ->capture_default_str();
  auto& e = s.models.engine;
  const auto given = [flags](const std::string&) { flags->service.models.engine_is_given = true; };
  verb->add_option("--max-requests,--max-num-seqs,--parallel", e.max_requests,
                   "sequences of a model that run at a time")
      ->capture_default_str()
      ->each(given);
  verb->add_option("--max-scheduled-tokens,--max-num-batched-tokens", e.max_scheduled_tokens, "tokens of a step")
      ->capture_default_str()
      ->each(given);
  verb->add_option("--cache-bytes", e.cache_bytes, "bytes of a model's key-value caches; 0: no limit")
      ->capture_default_str()
      ->each(given);
  verb->add_option(
          "--batch-rows", s.models.batching.rows,
          "rows that requests for a model of tensors may share a run of; its rows must not depend on each other")
      ->capture_default_str();
  verb->add_option("--batch-wait-ms", flags->batch_wait, "milliseconds that the first of them waits for others")
      ->capture_default_str();
  add_decoder_flags(*verb, flags->decoder);
  verb->add_option("--chat-template", flags->template_file,
                   "A file with the template of chats (Jinja), in place of what the models have");
  verb->add_flag("--accuracy-level-4", s.models.bytes_suffice,
                 "Products with weights of few bits may round their other operand to 8 bits, as llama.cpp does");
  add_compile_flags(*verb, s.models.compile);
  verb->callback([flags, &run] { run = [flags] { return serve_models(*flags); }; });
}

}  // namespace kiln::driver
