#include "kiln/interface/serve/service.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <mutex>
#include <random>

#include "kiln/core/error.hpp"
#include "kiln/interface/serve/impl/json.hpp"
#include "kiln/interface/serve/kserve.hpp"
#include "kiln/interface/serve/metrics.hpp"
#include "kiln/interface/serve/openai.hpp"
#include "kiln/interface/serve/tracer.hpp"
#include "kiln/version.hpp"

namespace kiln::serve {

extern const std::string_view chat_text;  // of chat.html

namespace {

using std::chrono::duration;

std::string time_of(std::chrono::system_clock::time_point t) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(t.time_since_epoch()).count();
  const std::time_t s = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  gmtime_r(&s, &parts);
  char text[40];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + n, sizeof text - n, ".%03dZ", static_cast<int>(ms % 1000));
  return text;
}

// Takes as long whatever the texts have in common.
bool is_equal(std::string_view a, std::string_view b) {
  unsigned differ = a.size() != b.size();
  for (std::size_t k = 0; k < a.size(); ++k)
    differ |= static_cast<unsigned char>(a[k]) ^ (k < b.size() ? static_cast<unsigned char>(b[k]) : 1u);
  return differ == 0;
}

std::string new_id() {
  thread_local std::mt19937_64 random{std::random_device()()};
  char text[40];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(random()),
                static_cast<unsigned long long>(random()));
  return text;
}

// Requests that the service knows. A path that ends with * stands for all that begin so.
enum class route {
  page,
  health,
  ready,
  version,
  metrics,
  models,
  model,
  chat,
  completions,
  embeddings,
  tokens,
  text,
  other
};
struct route_row {
  std::string_view path, method;
  route to;
};
constexpr std::array routes{
    route_row{"/", "GET", route::page},
    route_row{"/health", "GET", route::health},
    route_row{"/ready", "GET", route::ready},
    route_row{"/version", "GET", route::version},
    route_row{"/metrics", "GET", route::metrics},
    route_row{"/v1/models", "GET", route::models},
    route_row{"/v1/models/*", "GET", route::model},
    route_row{"/v1/chat/completions", "POST", route::chat},
    route_row{"/v1/completions", "POST", route::completions},
    route_row{"/v1/embeddings", "POST", route::embeddings},
    route_row{"/tokenize", "POST", route::tokens},
    route_row{"/detokenize", "POST", route::text},
};

const route_row* find_route(std::string_view path) {
  for (const route_row& r : routes)
    if (r.path.ends_with('*') ? path.size() >= r.path.size() && path.starts_with(r.path.substr(0, r.path.size() - 1))
                              : path == r.path)
      return &r;
  return nullptr;
}

bool is_kserve(std::string_view path) { return path == "/v2" || path.starts_with("/v2/"); }
// What uses a model.
bool needs_key(std::string_view path) {
  return is_kserve(path) || path.starts_with("/v1/") || path == "/tokenize" || path == "/detokenize";
}

// What a browser asks before a page of another origin may send a request; it has no key yet.
bool is_preflight(const http_request& r) {
  return r.method == "OPTIONS" && !r.header("origin").empty() && !r.header("access-control-request-method").empty();
}

http_reply state(std::string_view is, int status = 200) {
  http_reply r;
  r.status = status;
  r.body = text_of({{"status", is}});
  return r;
}

}  // namespace

struct service::parts {
  service_options options;
  metrics counts{};
  std::mutex mutex{};  // of the set
  std::shared_ptr<const model_set> models{};
  std::vector<std::weak_ptr<const model_set>> former{};  // which requests may still run on
  std::atomic<bool> is_draining = false;
  std::optional<tracer> traces{};

  std::shared_ptr<const model_set> set() {
    const std::lock_guard lock(mutex);
    return models;
  }
  bool takes_key(std::string_view given) const {
    if (options.api_keys.empty()) return true;
    constexpr std::string_view scheme = "Bearer ";
    given.remove_prefix(given.starts_with(scheme) ? scheme.size() : given.size());
    if (given.empty()) return false;
    bool any = false;
    for (const std::string& key : options.api_keys) any = is_equal(key, given) || any;
    return any;
  }
  // Lets pages of the origins that are allowed read an answer.
  void allow_origin(const http_request& r, http_reply& out) const {
    if (options.origins.empty()) return;
    out.headers.emplace_back("Vary", "Origin");
    const std::string_view from = r.header("origin");
    const auto is_it = [&](const std::string& o) { return o == "*" || o == from; };
    if (from.empty() || std::none_of(options.origins.begin(), options.origins.end(), is_it)) return;
    out.headers.emplace_back("Access-Control-Allow-Origin", from);
    out.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id");
    if (!is_preflight(r)) return;
    out.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
    out.headers.emplace_back("Access-Control-Max-Age", "600");
    if (const auto asked = r.header("access-control-request-headers"); !asked.empty())
      out.headers.emplace_back("Access-Control-Allow-Headers", asked);
  }
  void check_key(const http_request& r) const {
    if (!takes_key(r.header("authorization")))
      throw api_error("the request has no valid API key", {}, "invalid_api_key", 401);
  }
  http_reply call(const http_request& r, const std::shared_ptr<request_record>& record) {
    if (is_preflight(r) && !options.origins.empty()) {
      record->route = "preflight";
      http_reply out;
      out.status = 204, out.type = "text/plain";
      return out;
    }
    if (is_kserve(r.path)) {
      record->route = "/v2";
      check_key(r);
      return answer_kserve(r, *set(), *record, !is_draining);
    }
    const route_row* const row = find_route(r.path);
    if (!row) {
      record->route = "other";
      const std::string below = "/v1" + r.path.substr(0, 200);
      throw api_error("there is nothing at " + r.method + " " + r.path.substr(0, 200) +
                          (find_route(below) ? "; did you mean " + below + "?" : ""),
                      {}, "not_found", 404);
    }
    record->route = row->path;
    if (needs_key(r.path)) check_key(r);
    if (r.method != row->method && !(r.method == "HEAD" && row->method == "GET")) {
      http_reply out = reply_of(api_error(
          std::string(row->path) + ": expected " + std::string(row->method) + ", found " + r.method.substr(0, 20), {},
          "method_not_allowed", 405));
      out.headers.emplace_back("Allow", row->method);
      return out;
    }
    openai_call c{r,
                  set(),
                  record,
                  options.longest,
                  {[this](const std::string& m, double s) { counts.first_token(m, s); },
                   [this](const std::string& m, double s) { counts.next_token(m, s); }}};
    switch (row->to) {
      case route::page: {
        http_reply out;
        out.type = "text/html; charset=utf-8";
        out.body = chat_text;
        out.headers.emplace_back("Content-Security-Policy",
                                 "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                                 "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
        return out;
      }
      case route::health: return state("ok");
      case route::ready: return is_draining ? state("draining", 503) : state("ready");
      case route::version: {
        http_reply out;
        out.body = text_of({{"version", version_text}});
        return out;
      }
      case route::metrics: {
        http_reply out;
        out.type = "text/plain; version=0.0.4";
        out.body = counts.text(*c.models);
        return out;
      }
      case route::models: return list_models(c);
      case route::model: return show_model(c, std::string_view(r.path).substr(row->path.size() - 1));
      case route::chat: return complete(c, true);
      case route::completions: return complete(c, false);
      case route::embeddings: return embed(c);
      case route::tokens: return show_tokens(c);
      case route::text: return show_text(c);
      case route::other: break;
    }
    throw api_error("a route without an answer", {}, {}, 500);
  }
  void say(std::string_view level, std::string_view event, std::string_view text) const {
    if (options.log)
      options.log(text_of(
          {{"time", time_of(std::chrono::system_clock::now())}, {"level", level}, {"event", event}, {"text", text}}));
  }
  void end(request_record& r) {
    r.end = request_record::clock::now();
    counts.end_request(r);
    if (traces) traces->add(r);
    if (!options.log) return;
    const auto ms = [&](auto from, auto to) { return duration<double, std::milli>(to - from).count(); };
    json line = {{"time", time_of(r.at)},  {"level", r.status >= 500 ? "error" : "info"},
                 {"event", "request"},     {"id", r.id},
                 {"trace_id", r.trace_id}, {"peer", r.peer},
                 {"method", r.method},     {"route", r.route},
                 {"status", r.status},     {"ms", ms(r.begin, r.end)}};
    if (!r.model.empty()) line["model"] = r.model;
    if (r.prompt_tokens > 0) line["prompt_tokens"] = r.prompt_tokens, line["made_tokens"] = r.made_tokens;
    if (r.first_token != request_record::clock::time_point()) line["first_token_ms"] = ms(r.begin, r.first_token);
    if (r.is_canceled) line["canceled"] = true;
    if (!r.error.empty()) line["error"] = r.error;
    options.log(text_of(line));
  }
};

service::service(service_options options) : parts_(new parts{std::move(options)}) {
  for (const std::string& key : parts_->options.api_keys)
    if (key.empty()) raise(errc::invalid_argument, "kiln serve: expected keys with characters, found an empty one");
  for (const std::string& origin : parts_->options.origins)
    if (origin != "*" && (origin.find("://") == std::string::npos || origin.ends_with('/')))
      raise(errc::invalid_argument,
            "kiln serve: expected * or an origin such as http://localhost:3000, found '" + origin + "'");
  parts_->models = load_models(parts_->options.models);
  if (!parts_->options.collector.empty())
    parts_->traces.emplace(parts_->options.collector,
                           [p = parts_.get()](std::string_view text) { p->say("warning", "trace", text); });
}
service::~service() = default;

http_reply service::answer(const http_request& request) {
  return finish(request, [&](const auto& record) { return parts_->call(request, record); });
}
http_reply service::refuse(const http_request& head, const api_error& why) {
  return finish(head, [&](const auto& record) -> http_reply {
    const route_row* const row = find_route(head.path);
    record->route = row ? row->path : is_kserve(head.path) ? "/v2" : "other";
    throw why;
  });
}
http_reply service::finish(const http_request& request, const maker& make) {
  parts& p = *parts_;
  auto record = std::make_shared<request_record>();
  record->method = request.method.substr(0, 20), record->peer = request.peer;
  begin(*record, request.header("traceparent"));
  http_reply out;
  const auto refuse = [&](const api_error& e) {
    out = is_kserve(request.path) ? kserve_reply_of(e) : reply_of(e);
    record->error = e.what();
  };
  try {
    out = make(record);
  } catch (const api_error& e) {
    refuse(e);
  } catch (const error& e) {
    refuse(api_error(e.what(), {}, {}, 500));
  } catch (const std::bad_alloc&) {
    refuse(api_error("the server is out of memory", {}, {}, 503));
  } catch (const std::exception& e) {
    refuse(api_error(std::string("internal error: ") + e.what(), {}, {}, 500));
  }
  record->status = out.status;
  out.headers.emplace_back("X-Request-Id", record->id);
  p.allow_origin(request, out);
  if (!out.stream) {
    p.end(*record);
    return out;
  }
  // a stream ends when it is written, or given up
  const auto ended = std::shared_ptr<void>(nullptr, [this, record](void*) { parts_->end(*record); });
  out.stream = [ended, write = std::move(out.stream)](const http_writer& to) { write(to); };
  return out;
}

std::optional<http_reply> service::refusal(const http_request& head) {
  if (!needs_key(head.path) || is_preflight(head) || takes_key(head.header("authorization"))) return {};
  return answer(head);
}

void service::reload() {
  auto fresh = load_models(parts_->options.models);
  const std::lock_guard lock(parts_->mutex);
  std::erase_if(parts_->former, [](const auto& set) { return set.expired(); });
  parts_->former.emplace_back(parts_->models);
  parts_->models.swap(fresh);
}
std::shared_ptr<const model_set> service::models() const { return parts_->set(); }
bool service::is_ready() const { return !parts_->is_draining; }
bool service::takes_key(std::string_view authorization) const { return parts_->takes_key(authorization); }
void service::begin(request_record& r, std::string_view traceparent) {
  r.id = new_id();
  place_in_trace(r, traceparent);
  parts_->counts.begin_request();
}
void service::end(request_record& r) { parts_->end(r); }
void service::drain() { parts_->is_draining = true; }
void service::stop() {
  std::vector<std::shared_ptr<const model_set>> all{parts_->set()};
  {
    const std::lock_guard lock(parts_->mutex);
    for (const auto& set : parts_->former)
      if (auto own = set.lock()) all.push_back(std::move(own));
  }
  for (const auto& set : all) {
    for (const auto& [name, entry] : set->embeddings) entry->is_stopped = true;
    for (const auto& [name, entry] : set->language) entry->engine->stop();
  }
}
void service::log(std::string_view level, std::string_view event, std::string_view text) {
  parts_->say(level, event, text);
}

}  // namespace kiln::serve
