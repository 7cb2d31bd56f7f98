#include "kiln/interface/serve/impl/answer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kiln::serve {

namespace {

using tool_use = completion_request::tool_use;

// JSON has no infinity.
double finite(float logprob) { return std::isfinite(logprob) ? logprob : -9999.0; }

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

json bytes_of(std::string_view text) {
  json out = json::array();
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

// The lists of `/v1/completions`, of which each piece appends to its like.
void append(json& to, const json& more) {
  if (to.is_array()) {
    for (const json& one : more) to.push_back(one);
    return;
  }
  for (const auto& [name, list] : more.items()) append(to[name], list);
}

std::string finish_of(const progress& p) { return p.end == language::text_end::max_length ? "length" : "stop"; }

}  // namespace

answer::answer(completion_request asked, std::shared_ptr<const language_entry> entry,
               std::vector<language::tokens> prompts, std::string id, std::int64_t created)
    : asked_(std::move(asked)),
      entry_(std::move(entry)),
      prompts_(std::move(prompts)),
      id_(std::move(id)),
      created_(created),
      open_(prompts_.size() * asked_.best_of) {
  std::string whole;  // of the prompt at hand
  for (std::size_t k = 0; k < open_; ++k) {
    choice& c = choices_.emplace_back(choice{language::token_stream(entry_->tokens, {}, asked_.stop)});
    if (asked_.tools == tool_use::automatic) c.reader.emplace(entry_->tools);
    if (asked_.tools == tool_use::required || asked_.tools == tool_use::named) c.reader.emplace(tool_form::object);
    if (!asked_.is_chat) {
      c.scores = {{"tokens", json::array()},
                  {"token_logprobs", json::array()},
                  {"top_logprobs", json::array()},
                  {"text_offset", json::array()}};
      if (asked_.logprobs) c.shown.emplace(entry_->tokens);
      // what is made is spelled as the prompt goes on: its first word keeps its space
      const language::tokens& prompt = prompts_[k / asked_.best_of];
      if (k % asked_.best_of == 0) whole = entry_->tokens.decode(prompt);
      const std::string before = c.stream.follow(prompt);
      if (asked_.echo) c.text = asked_.max_tokens == 0 ? whole : before;
      if (!asked_.echo && before != whole)  // some of the prompt would come with the text
        c.stream = language::token_stream(entry_->tokens, {}, asked_.stop);
      else if (c.shown)
        c.shown->follow(prompt);
    }
    c.offset = characters(c.text);
  }
}

std::size_t answer::prompt_tokens() const {
  std::size_t n = 0;
  for (const auto& p : prompts_) n += p.size();
  return n;
}

json answer::head(bool is_chunk) const {
  const char* const object = !asked_.is_chat ? "text_completion"
                             : is_chunk      ? "chat.completion.chunk"
                                             : "chat.completion";
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", asked_.model}};
}

json answer::usage() const {
  return {{"prompt_tokens", prompt_tokens()}, {"completion_tokens", made_}, {"total_tokens", prompt_tokens() + made_}};
}

json answer::chunk(std::size_t index, json delta, json scores, const std::string& finish) const {
  json c = {{"index", index}};
  if (asked_.is_chat)
    c["delta"] = std::move(delta);
  else
    c["text"] = delta.value("content", "");
  c["logprobs"] = std::move(scores);
  c["finish_reason"] = finish.empty() ? json(nullptr) : json(finish);
  json out = head(true);
  out["choices"] = json::array({std::move(c)});
  if (asked_.include_usage) out["usage"] = nullptr;
  return out;
}

std::string answer::spelling(language::token t) const { return std::string(entry_->tokens.token_bytes(t)); }

json answer::scores_of(choice& c, const progress& p) const {
  if (!asked_.logprobs) return nullptr;
  if (asked_.is_chat) {
    json list = json::array();
    const auto one = [&](language::token id, float logprob) {
      const std::string text = spelling(id);
      return json{{"token", text}, {"logprob", finite(logprob)}, {"bytes", bytes_of(text)}};
    };
    for (const language::scored_token& s : p.scores) {
      json entry = one(s.id, s.logprob);
      entry["top_logprobs"] = json::array();
      for (const auto& [id, logprob] : s.top) entry["top_logprobs"].push_back(one(id, logprob));
      list.push_back(std::move(entry));
    }
    append(c.scores, list);
    return {{"content", std::move(list)}};
  }
  json out = lists_of(p.scores, *c.shown, c.offset);
  append(c.scores, out);
  return out;
}

// In the form of `/v1/completions`. A token begins where the text of those before it ends: what the text leaves out,
// such as a special token, has no length.
json answer::lists_of(const std::vector<language::scored_token>& all, language::token_stream& shown,
                      std::size_t& offset) const {
  json out = {{"tokens", json::array()},
              {"token_logprobs", json::array()},
              {"top_logprobs", json::array()},
              {"text_offset", json::array()}};
  for (const language::scored_token& s : all) {
    json top = json::object();
    for (const auto& [id, logprob] : s.top)
      if (const std::string text = spelling(id); !top.contains(text)) top[text] = finite(logprob);
    out["tokens"].push_back(spelling(s.id));
    out["token_logprobs"].push_back(finite(s.logprob));
    out["top_logprobs"].push_back(std::move(top));
    out["text_offset"].push_back(offset);
    offset += characters(shown.put(s.id));
  }
  return out;
}

// Nothing comes before the first token, and its probability is not the model's.
json answer::scores_of_prompt(choice& c, const progress& p) const {
  std::vector<language::scored_token> all{{prompts_[p.index / asked_.best_of].front()}};
  all.insert(all.end(), p.prompt.begin(), p.prompt.end());
  language::token_stream shown(entry_->tokens);
  std::size_t offset = 0;
  json out = lists_of(all, shown, offset);
  out["token_logprobs"][0] = out["top_logprobs"][0] = nullptr;
  append(c.scores, out);
  return out;
}

// The likeliest by the mean of their tokens' log-probabilities, prompt by prompt.
std::vector<const answer::choice*> answer::chosen() const {
  std::vector<const choice*> out;
  for (std::size_t at = 0; at < choices_.size(); at += asked_.best_of) {
    std::vector<const choice*> all;
    for (std::size_t k = 0; k < asked_.best_of; ++k) all.push_back(&choices_[at + k]);
    const auto mean = [](const choice* c) {
      return c->logprob / static_cast<double>(std::max<std::size_t>(1, c->made));
    };
    if (asked_.best_of > asked_.choices)
      std::stable_sort(all.begin(), all.end(), [&](const choice* a, const choice* b) { return mean(a) > mean(b); });
    out.insert(out.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(asked_.choices));
  }
  return out;
}

json answer::calls_of(const choice& c, bool has_index) const {
  json out = json::array();
  for (std::size_t k = 0; k < c.calls.size(); ++k) {
    json one;
    if (has_index) one["index"] = k;
    one["id"] =
        "call_" + id_.substr(id_.rfind('-') + 1) + "_" + std::to_string(&c - choices_.data()) + "_" + std::to_string(k);
    one["type"] = "function";
    one["function"] = {{"name", c.calls[k].name}, {"arguments", c.calls[k].arguments}};
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<json> answer::begin() {
  std::vector<json> out;
  for (std::size_t k = 0; k < choices_.size(); ++k)
    if (asked_.is_chat)
      out.push_back(chunk(k, {{"role", "assistant"}, {"content", ""}}, nullptr, ""));
    else if (asked_.echo && !asked_.logprobs)  // else it comes with them
      out.push_back(chunk(k, {{"content", choices_[k].text}}, nullptr, ""));
  return out;
}

std::vector<json> answer::take(const progress& p) {
  if (p.end == language::text_end::failure) {
    if (p.is_cut) throw api_error(p.failure, {}, "shutting_down", 503);
    throw api_error(p.failure, {}, p.is_refused ? "refused" : "generation_failed", p.is_refused ? 400 : 500);
  }
  choice& c = choices_[p.index];
  std::vector<json> out;
  const bool is_open = p.end == language::text_end::open;
  if (scores_prompt(asked_) && !c.is_begun && (!p.made.empty() || !is_open)) {
    c.is_begun = true;
    json chunk_of_prompt = scores_of_prompt(c, p);
    out.push_back(chunk(p.index, {{"content", c.text}}, std::move(chunk_of_prompt), ""));
  }
  if (asked_.max_tokens == 0) {
    if (is_open) return out;
    --open_;
    c.finish = "length";
    out.push_back(chunk(p.index, json::object(), nullptr, c.finish));
    return out;
  }
  made_ += p.made.size();
  for (const language::scored_token& s : p.scores) c.logprob += s.logprob, ++c.made;
  std::string text;
  for (const language::token t : p.made) text += c.stream.put(t);
  const bool is_stopped = c.stream.is_stopped();
  if (!is_open) text += c.stream.finish();
  json scores = scores_of(c, p);
  if (c.reader) text = c.reader->put(text);
  if (!is_open) {
    --open_;
    c.finish = is_stopped ? "stop" : finish_of(p);
    if (c.reader) {
      std::string rest;
      c.calls = c.reader->finish(rest);
      text += rest;
      if (!asked_.parallel_tools && c.calls.size() > 1) c.calls.resize(1);
      if (!c.calls.empty() && asked_.tools != tool_use::named) c.finish = "tool_calls";
    }
  }
  c.text += text;
  if (!text.empty() || !p.scores.empty()) out.push_back(chunk(p.index, {{"content", text}}, std::move(scores), ""));
  if (!c.calls.empty()) out.push_back(chunk(p.index, {{"tool_calls", calls_of(c, true)}}, nullptr, ""));
  if (!c.finish.empty()) out.push_back(chunk(p.index, json::object(), nullptr, c.finish));
  return out;
}

json answer::whole() const {
  json out = head(false);
  out["choices"] = json::array();
  const std::vector<const choice*> all = chosen();
  for (std::size_t k = 0; k < all.size(); ++k) {
    const choice& c = *all[k];
    json one = {{"index", k}};
    if (asked_.is_chat) {
      json message = {{"role", "assistant"}, {"content", c.text}, {"refusal", nullptr}};
      if (!c.calls.empty()) {
        if (c.text.empty()) message["content"] = nullptr;
        message["tool_calls"] = calls_of(c, false);
      }
      one["message"] = std::move(message);
      one["logprobs"] = asked_.logprobs ? json{{"content", c.scores}} : json(nullptr);
    } else {
      one["text"] = c.text;
      one["logprobs"] = asked_.logprobs ? c.scores : json(nullptr);
    }
    one["finish_reason"] = c.finish;
    out["choices"].push_back(std::move(one));
  }
  out["usage"] = usage();
  return out;
}

json answer::usage_chunk() const {
  json out = head(true);
  out["choices"] = json::array();
  out["usage"] = usage();
  return out;
}

}  // namespace kiln::serve
