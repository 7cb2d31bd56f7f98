#include "kiln/interface/serve/tracer.hpp"

#include <httplib.h>

#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "kiln/core/error.hpp"
#include "kiln/interface/serve/impl/json.hpp"
#include "kiln/version.hpp"

namespace kiln::serve {

namespace {

constexpr std::size_t most_waiting = 4096;
constexpr std::chrono::milliseconds most_delay{1000};

bool is_id(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos &&
         text.find_first_not_of('0') != text.npos;
}

std::string new_id(std::size_t digits) {
  thread_local std::mt19937_64 random{std::random_device()()};
  std::string out;
  while (out.size() < digits) {
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(random() | 1));
    out += text;
  }
  return out.substr(0, digits);
}

json attribute(const char* key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}
// OTLP's JSON has whole numbers of 64 bits as text.
json attribute(const char* key, std::size_t value) {
  return {{"key", key}, {"value", {{"intValue", std::to_string(value)}}}};
}

json span_of(const request_record& r) {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  const auto begin = duration_cast<nanoseconds>(r.at.time_since_epoch());
  const auto at = [&](request_record::clock::time_point t) {
    return std::to_string((begin + duration_cast<nanoseconds>(t - r.begin)).count());
  };
  json out = {{"traceId", r.trace_id},
              {"spanId", r.span_id},
              {"name", r.method + " " + r.route},
              {"kind", 2},  // of a server
              {"startTimeUnixNano", std::to_string(begin.count())},
              {"endTimeUnixNano", at(r.end)}};
  if (!r.parent_id.empty()) out["parentSpanId"] = r.parent_id;
  json& all = out["attributes"] =
      json::array({attribute("http.request.method", r.method), attribute("http.route", r.route),
                   attribute("http.response.status_code", static_cast<std::size_t>(r.status)),
                   attribute("client.address", r.peer)});
  if (!r.model.empty()) all.push_back(attribute("gen_ai.request.model", r.model));
  if (r.prompt_tokens > 0) {
    all.push_back(attribute("gen_ai.usage.input_tokens", r.prompt_tokens));
    all.push_back(attribute("gen_ai.usage.output_tokens", r.made_tokens));
  }
  if (r.first_token != request_record::clock::time_point())
    out["events"] = json::array({{{"name", "first token"}, {"timeUnixNano", at(r.first_token)}}});
  if (r.status >= 500) out["status"] = {{"code", 2}, {"message", r.error}};
  return out;
}

std::string request_of(json spans) {
  const json scope = {{"name", "kiln.serve"}, {"version", version_text}};
  const json own = {{"resource", {{"attributes", json::array({attribute("service.name", std::string("kiln"))})}}},
                    {"scopeSpans", json::array({{{"scope", scope}, {"spans", std::move(spans)}}})}};
  return text_of({{"resourceSpans", json::array({own})}});
}

}  // namespace

void place_in_trace(request_record& r, std::string_view traceparent) {
  r.span_id = new_id(16);
  const bool has_form = traceparent.size() == 55 && traceparent.starts_with("00-") && traceparent[35] == '-' &&
                        traceparent[52] == '-' && is_id(traceparent.substr(3, 32), 32) &&
                        is_id(traceparent.substr(36, 16), 16);
  r.trace_id = has_form ? std::string(traceparent.substr(3, 32)) : new_id(32);
  r.parent_id = has_form ? std::string(traceparent.substr(36, 16)) : std::string();
}

struct tracer::parts {
  httplib::Client to;
  std::function<void(std::string_view)> warn;
  std::mutex mutex{};
  std::condition_variable news{};
  json spans = json::array();
  std::size_t dropped = 0;
  bool is_ending = false;
  std::thread thread{};

  void run() {
    for (std::unique_lock lock(mutex);;) {
      news.wait(lock, [&] { return is_ending || !spans.empty(); });
      news.wait_for(lock, most_delay, [&] { return is_ending || spans.size() >= most_waiting / 2; });
      if (spans.empty()) return;
      json now = std::exchange(spans, json::array());
      std::size_t lost = std::exchange(dropped, 0);
      lock.unlock();
      const std::size_t count = now.size();
      const auto answer = to.Post("/v1/traces", request_of(std::move(now)), "application/json");
      const bool is_taken = answer && answer->status >= 200 && answer->status < 300;
      if (!is_taken) lost += count;
      if (lost > 0 && warn)
        warn(std::to_string(lost) + " spans are dropped: the collector " +
             (answer ? "answered " + std::to_string(answer->status) : "did not answer"));
      lock.lock();
    }
  }
};

tracer::tracer(std::string url, std::function<void(std::string_view)> warn) {
  httplib::Client to(url);
  if (!to.is_valid() || !url.starts_with("http"))
    raise(errc::invalid_argument, "a collector's URL: expected http://HOST:PORT, found " + url);
  to.set_connection_timeout(2);
  to.set_read_timeout(5);
  parts_.reset(new parts{std::move(to), std::move(warn)});
  parts_->thread = std::thread([p = parts_.get()] { p->run(); });
}
tracer::~tracer() {
  {
    const std::lock_guard lock(parts_->mutex);
    parts_->is_ending = true;
    parts_->news.notify_one();
  }
  parts_->thread.join();
}
void tracer::add(const request_record& r) {
  json span = span_of(r);
  const std::lock_guard lock(parts_->mutex);
  if (parts_->spans.size() >= most_waiting)
    ++parts_->dropped;
  else
    parts_->spans.push_back(std::move(span));
  parts_->news.notify_one();
}

}  // namespace kiln::serve
