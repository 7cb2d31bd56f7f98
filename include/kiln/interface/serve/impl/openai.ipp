#include "kiln/interface/serve/openai.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/interface/serve/impl/answer.hpp"

namespace kiln::serve {

namespace {

using tool_use = completion_request::tool_use;
using clock = std::chrono::steady_clock;

json shown(const std::string& name, const model_set& of) {
  json out = {{"id", name}, {"object", "model"}, {"created", of.created}, {"owned_by", "kiln"}};
  if (const auto at = of.language.find(name); at != of.language.end())
    out["max_model_len"] = at->second->model->context_length();
  if (const auto at = of.embeddings.find(name); at != of.embeddings.end())
    if (const auto n = at->second->model->settings().max_tokens) out["max_model_len"] = n;
  return out;
}

http_reply reply(const json& j) {
  http_reply r;
  r.body = text_of(j);
  return r;
}

// The errors of the library that a request brings about.
template <class F> auto with_errors(const char* param, F&& f) {
  try {
    return f();
  } catch (const error& e) {
    const bool is_busy = e.code() == errc::limit && !param;
    throw api_error(e.what(), param ? std::optional<std::string>(param) : std::nullopt,
                    is_busy ? std::optional<std::string>("model_busy") : std::nullopt,
                    is_busy                      ? 429
                    : e.code() == errc::internal ? 500
                                                 : 400);
  }
}

// The model of a name, or the only one where there is no name.
std::shared_ptr<language_entry> entry_of(const openai_call& call, const std::string& name) {
  const auto& all = call.models->language;
  const auto at = name.empty() && all.size() == 1 ? all.begin() : all.find(name);
  if (at != all.end()) {
    call.record->model = at->first;
    return at->second;
  }
  std::string names;
  for (const auto& [own, entry] : all) names += (names.empty() ? "" : ", ") + own;
  const std::string expected = ": expected " + (names.empty() ? "none, as none is served" : "one of " + names);
  if (name.empty()) throw api_error("model" + expected, "model");
  call.record->model = name.substr(0, 200);
  throw api_error("there is no language model " + call.record->model + expected, "model", "model_not_found", 404);
}

std::vector<language::tokens> prompts_of(const completion_request& asked, const language_entry& entry) {
  std::vector<language::tokens> out;
  if (asked.is_chat) {
    if (entry.form.empty())
      throw api_error("the model " + entry.name + " has no chat template: /v1/completions continues its texts", "model",
                      "no_chat_template");
    return with_errors("messages", [&] {
      const std::string_view tools = asked.tools == tool_use::none ? std::string_view() : asked.tools_json;
      const std::string text = entry.form.render(
          {.messages_json = asked.messages_json, .tools_json = tools, .variables_json = asked.variables_json});
      return std::vector<language::tokens>{entry.tokens.encode(text)};
    });
  }
  return with_errors("prompt", [&] {
    for (const auto& p : asked.prompts)
      out.push_back(std::holds_alternative<language::tokens>(p)
                        ? std::get<language::tokens>(p)
                        : entry.tokens.encode(std::get<std::string>(p), {asked.adds_special}));
    return out;
  });
}

// The model's own options where the request has none. A request that says how to draw is drawn, but for temperature 0.
language::search_options search_of(const completion_request& asked, const language_entry& entry, std::size_t prompt) {
  language::search_options s = entry.search;
  s.batch_size = s.num_beams = s.num_return_sequences = 1;
  s.min_length = 0;
  if (asked.temperature || asked.top_p || asked.top_k || asked.min_p) s.do_sample = true;
  if (asked.temperature) s.temperature = *asked.temperature;
  if (asked.top_p) s.top_p = *asked.top_p;
  if (asked.top_k) s.top_k = std::max<std::int64_t>(0, *asked.top_k);
  if (s.temperature == 0 || (asked.top_p && *asked.top_p == 0)) s.do_sample = false;
  if (asked.repetition_penalty) s.repetition_penalty = *asked.repetition_penalty;
  s.top_k = std::min(s.top_k, entry.model->vocabulary_size());
  s.stop_strings = asked.stop;
  const auto context = entry.model->context_length(), length = static_cast<std::int64_t>(prompt);
  const auto beyond = [&](const std::string& what) {
    throw api_error("the model's context has " + std::to_string(context) + " tokens: found " + what,
                    asked.is_chat ? "messages" : "prompt", "context_length_exceeded");
  };
  const std::string found = std::to_string(length) + " of the prompt";
  const auto wanted = asked.max_tokens;
  if (length > context || (length == context && wanted != 0)) beyond(found);
  if (wanted && *wanted > context - length) beyond(found + " and " + std::to_string(*wanted) + " to be made");
  // what the folder says holds where the request says nothing
  const auto most = s.max_length > length ? s.max_length : context;
  s.max_length = length + wanted.value_or(asked.is_chat ? most - length : completion_request::tokens_of_text);
  s.max_length = std::min(s.max_length, context);
  s.min_length = asked.ignores_end ? s.max_length : length + std::min(asked.min_tokens, s.max_length - length);
  return s;
}

std::vector<generation> generations_of(const completion_request& asked, const language_entry& entry,
                                       const std::vector<language::tokens>& prompts) {
  std::optional<language::guide> guide;
  if (!asked.guidance_kind.empty())
    guide = with_errors(asked.guidance_field.c_str(), [&] {
      return language::guide::of(asked.guidance_kind, entry.model->text_vocabulary(), asked.guidance);
    });
  std::vector<generation> out;
  for (const language::tokens& p : prompts)
    for (std::size_t k = 0; k < asked.best_of; ++k) {
      generation g{p, search_of(asked, entry, p.size())};
      // sequences of one request differ
      if (asked.seed) g.search.random_seed = (static_cast<std::uint64_t>(*asked.seed) + out.size()) & 0x7fffffff;
      const double temperature = g.search.do_sample ? g.search.temperature : 0;
      g.changes = {asked.bias, asked.presence_penalty, asked.frequency_penalty, asked.min_p.value_or(0), temperature};
      g.guide = guide;
      g.scores = asked.logprobs;
      if (!g.scores && asked.best_of > asked.choices) g.scores = 0;  // the likeliest are chosen by them
      g.scores_prompt = scores_prompt(asked);
      g.makes_none = asked.max_tokens == 0;
      g.end_tokens = asked.end_tokens;
      g.priority = -asked.priority;
      out.push_back(std::move(g));
    }
  return out;
}

// A request that runs: what it was asked, its tokens, and its time.
struct run {
  std::unique_ptr<order> own;
  answer made;
  std::shared_ptr<request_record> record;
  token_watch watch;
  std::string model;
  clock::time_point end;
  std::vector<std::optional<clock::time_point>> last{};  // token of each sequence
  bool ends_with_usage = false;

  void note(const progress& p) {
    if (p.made.empty()) return;
    const auto now = clock::now();
    const auto seconds = [&](clock::time_point since) { return std::chrono::duration<double>(now - since).count(); };
    auto& before = last[p.index];
    if (record->first_token == clock::time_point()) record->first_token = now;
    if (!before && watch.first) watch.first(model, seconds(record->begin));
    if (before && watch.next)
      for (std::size_t k = 0; k < p.made.size(); ++k)
        watch.next(model, seconds(*before) / static_cast<double>(p.made.size()));
    before = now;
  }
  // Takes what comes until all is there; `each` says whether somebody still listens.
  template <class Each> void go(const Each& each) {
    using namespace std::chrono_literals;
    while (!made.is_complete()) {
      const auto news = own->wait(100ms);
      std::vector<json> chunks;
      for (const progress& p : news) {
        note(p);
        for (json& c : made.take(p)) chunks.push_back(std::move(c));
        record->made_tokens = made.made_tokens();
      }
      if (!each(chunks)) {
        record->is_canceled = true;
        own->cancel();
        return;
      }
      if (clock::now() > end && !made.is_complete()) {
        own->cancel();
        throw api_error("the request took longer than this server lets one take", {}, "timeout", 504);
      }
    }
  }
  void stream(const http_writer& write) {
    const auto send = [&](const json& j) { return write("data: " + text_of(j) + "\n\n"); };
    const auto send_all = [&](const std::vector<json>& all) { return std::all_of(all.begin(), all.end(), send); };
    try {
      if (!send_all(made.begin())) {
        record->is_canceled = true;
        return own->cancel();
      }
      go([&](const std::vector<json>& chunks) { return chunks.empty() ? write({}) : send_all(chunks); });
      if (record->is_canceled) return;
      if (ends_with_usage) send(made.usage_chunk());
    } catch (const api_error& e) {
      record->error = e.what();
      write("data: " + to_json(e) + "\n\n");
    } catch (const std::exception& e) {
      // whoever calls this can't answer any more
      record->error = e.what();
      write("data: " + to_json(api_error(std::string("internal error: ") + e.what(), {}, {}, 500)) + "\n\n");
    }
    write("data: [DONE]\n\n");
  }
};

}  // namespace

http_reply list_models(const openai_call& call) {
  json out = {{"object", "list"}, {"data", json::array()}};
  for (const auto& [name, entry] : call.models->language) out["data"].push_back(shown(name, *call.models));
  for (const auto& [name, entry] : call.models->embeddings) out["data"].push_back(shown(name, *call.models));
  return reply(out);
}

http_reply show_model(const openai_call& call, std::string_view name) {
  if (!call.models->language.contains(name) && !call.models->embeddings.contains(name))
    throw api_error("there is no model " + std::string(name), "model", "model_not_found", 404);
  return reply(shown(std::string(name), *call.models));
}

http_reply show_tokens(const openai_call& call) {
  const auto asked = read_token_request(call.request.body);
  const auto entry = entry_of(call, asked.model);
  const auto tokens = prompts_of(asked, *entry).front();
  return reply({{"tokens", tokens}, {"count", tokens.size()}, {"max_model_len", entry->model->context_length()}});
}

http_reply show_text(const openai_call& call) {
  const json all = parse_body(call.request.body);
  fields f(all);
  const auto entry = entry_of(call, f.text("model").value_or(""));
  const std::string form = "a list of tokens of the model, below " + std::to_string(entry->tokens.vocabulary_size());
  const json* const given = f.get("tokens");
  if (!given || !given->is_array()) f.refuse("tokens", form);
  language::tokens tokens;
  for (const json& t : *given) {
    if (!t.is_number_unsigned() || t.get<std::uint64_t>() >= entry->tokens.vocabulary_size()) f.refuse("tokens", form);
    tokens.push_back(t.get<language::token>());
  }
  f.end();
  const std::string text = entry->tokens.decode(tokens, {.skip_special_tokens = false});
  return reply({{"content", text}, {"prompt", text}});
}

http_reply complete(const openai_call& call, bool is_chat) {
  auto asked = is_chat ? read_chat_request(call.request.body) : read_text_request(call.request.body);
  const auto entry = entry_of(call, asked.model);
  asked.model = entry->name;
  auto prompts = prompts_of(asked, *entry);
  auto all = generations_of(asked, *entry, prompts);
  const std::size_t count = all.size();
  const bool streams = asked.stream, usage = asked.include_usage;
  const char* const of_request = asked.end_tokens.empty() ? nullptr : "stop_token_ids";
  with_errors(of_request, [&] { entry->model->check_tokens(asked.end_tokens); });
  auto own = with_errors(nullptr, [&] { return entry->engine->submit(std::move(all)); });
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  answer made(std::move(asked), entry, std::move(prompts), (is_chat ? "chatcmpl-" : "cmpl-") + call.record->id,
              std::chrono::duration_cast<std::chrono::seconds>(now).count());
  call.record->prompt_tokens = made.prompt_tokens();
  auto r = std::make_shared<run>(
      run{std::move(own), std::move(made), call.record, call.watch, entry->name, clock::now() + call.longest});
  r->last.resize(count);
  r->ends_with_usage = usage;
  http_reply out;
  if (streams) {
    out.type = "text/event-stream";
    out.headers.emplace_back("Cache-Control", "no-cache");
    // the set of models lives as long as a stream of it
    out.stream = [r, models = call.models](const http_writer& write) { r->stream(write); };
    return out;
  }
  r->go([&](const std::vector<json>&) { return !call.request.is_gone || !call.request.is_gone(); });
  if (r->record->is_canceled) throw api_error("the client is gone", {}, "canceled", 499);
  return reply(r->made.whole());
}

}  // namespace kiln::serve
