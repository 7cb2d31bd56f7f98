#include "kiln/interface/serve/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <mutex>

namespace kiln::serve {

namespace {

using namespace prometheus;

const Histogram::BucketBoundaries of_requests{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};
const Histogram::BucketBoundaries of_tokens{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};

}  // namespace

struct metrics::parts {
  Registry all;
  Family<Counter>& counter(const char* name, const char* help) {
    return BuildCounter().Name(name).Help(help).Register(all);
  }
  Family<Gauge>& gauge(const char* name, const char* help) { return BuildGauge().Name(name).Help(help).Register(all); }
  Family<Histogram>& histogram(const char* name, const char* help) {
    return BuildHistogram().Name(name).Help(help).Register(all);
  }
  Family<Counter>& requests = counter("kiln_requests_total", "Requests that ended, by route and status");
  Family<Histogram>& seconds = histogram("kiln_request_seconds", "Time of requests, by route");
  Gauge& in_flight = gauge("kiln_requests_in_flight", "Requests that have not ended").Add({});
  Family<Histogram>& first =
      histogram("kiln_time_to_first_token_seconds", "From a request's arrival to a sequence's first token");
  Family<Histogram>& next = histogram("kiln_time_between_tokens_seconds", "Between two tokens of a sequence");
  Family<Gauge>& sequences =
      gauge("kiln_sequences", "Sequences of a model's engine, by state; of a model of embeddings its requests");
  Family<Gauge>& blocks = gauge("kiln_cache_blocks", "Blocks of key-value caches that are in use");
  Family<Counter>& tokens =
      counter("kiln_tokens_total", "Tokens of prompts, made ones, and those taken from caches of others");
  Family<Counter>& steps = counter("kiln_steps_total", "Runs of a model");
  Family<Counter>& interruptions = counter("kiln_interruptions_total", "Sequences that gave way and run again");
  Family<Counter>& canceled =
      counter("kiln_canceled_sequences_total", "Sequences that were ended before they were complete");
  Family<Counter>& runs = counter("kiln_inferences_total", "Requests for a model of tensors, and the runs they took");
  std::mutex mutex;

  // An engine counts from its own begin: after a reload it is less than what was told.
  static void raise_to(Counter& c, std::size_t now, std::size_t& told) {
    if (now < told) told = 0;
    c.Increment(static_cast<double>(now - told));
    told = now;
  }
  std::map<std::string, scheduler_statistics> told;
  std::map<std::string, runner_statistics> told_runs;

  void ask(const std::string& model, const runner_statistics& s) {
    runner_statistics& t = told_runs[model];
    raise_to(runs.Add({{"model", model}, {"kind", "request"}}), s.requests, t.requests);
    raise_to(runs.Add({{"model", model}, {"kind", "run"}}), s.runs, t.runs);
  }

  void ask(const std::string& model, const scheduler_statistics& s) {
    const auto of = [&](const char* key, const char* value) { return Labels{{"model", model}, {key, value}}; };
    sequences.Add(of("state", "running")).Set(static_cast<double>(s.running));
    sequences.Add(of("state", "waiting")).Set(static_cast<double>(s.waiting));
    blocks.Add({{"model", model}}).Set(static_cast<double>(s.blocks));
    scheduler_statistics& t = told[model];
    raise_to(tokens.Add(of("kind", "prompt")), s.prompt_tokens, t.prompt_tokens);
    raise_to(tokens.Add(of("kind", "made")), s.made_tokens, t.made_tokens);
    raise_to(tokens.Add(of("kind", "shared")), s.shared_tokens, t.shared_tokens);
    raise_to(steps.Add({{"model", model}}), s.steps, t.steps);
    raise_to(interruptions.Add({{"model", model}}), s.interruptions, t.interruptions);
    raise_to(canceled.Add({{"model", model}}), s.canceled, t.canceled);
  }
};

metrics::metrics() : parts_(std::make_unique<parts>()) {}
metrics::~metrics() = default;

void metrics::begin_request() { parts_->in_flight.Increment(); }
void metrics::end_request(const request_record& r) {
  parts_->in_flight.Decrement();
  parts_->requests.Add({{"route", r.route}, {"status", std::to_string(r.status)}}).Increment();
  parts_->seconds.Add({{"route", r.route}}, of_requests)
      .Observe(std::chrono::duration<double>(r.end - r.begin).count());
}
void metrics::first_token(const std::string& model, double seconds) {
  parts_->first.Add({{"model", model}}, of_tokens).Observe(seconds);
}
void metrics::next_token(const std::string& model, double seconds) {
  parts_->next.Add({{"model", model}}, of_tokens).Observe(seconds);
}

std::string metrics::text(const model_set& of) {
  const std::lock_guard lock(parts_->mutex);
  for (const auto& [name, entry] : of.language) parts_->ask(name, entry->engine->statistics());
  for (const auto& [name, entry] : of.embeddings)
    parts_->sequences.Add({{"model", name}, {"state", "running"}}).Set(static_cast<double>(entry->running));
  for (const auto& [name, entry] : of.tensors) parts_->ask(name, entry->runner->statistics());
  return TextSerializer().Serialize(parts_->all.Collect());
}

}  // namespace kiln::serve
