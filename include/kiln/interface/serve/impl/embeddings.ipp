#include <bit>
#include <cstring>

#include "kiln/core/error.hpp"
#include "kiln/interface/serve/impl/prompts.hpp"
#include "kiln/interface/serve/openai.hpp"

namespace kiln::serve {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::size_t most_texts = 2048;

struct embedding_request {
  std::string model;
  std::vector<completion_request::prompt> texts;
  std::int64_t dimensions = 0;  // 0: all
  bool as_base64 = false;
};

embedding_request read_request(std::string_view body) {
  const json all = parse_body(body);
  fields f(all);
  embedding_request out;
  const auto model = f.text("model");
  if (!model) f.refuse("model", "the name of a model");
  out.model = *model;
  out.texts = read_prompts(f, "input");
  if (out.texts.size() > most_texts) f.refuse("input", "at most " + std::to_string(most_texts) + " texts");
  out.dimensions = f.whole("dimensions", 1).value_or(0);
  const std::string format = f.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") f.refuse("encoding_format", "float or base64");
  out.as_base64 = format == "base64";
  f.ignore({"user"});
  f.end();
  return out;
}

std::string base64_of(const std::vector<float>& numbers) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  std::string out;
  for (std::size_t k = 0; k < bytes.size(); k += 3) {
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i)
      three = three << 8 | (k + i < bytes.size() ? static_cast<unsigned char>(bytes[k + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) out += k + i <= bytes.size() ? digits[three >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

// A request has its place among those that run or wait while this lives.
class place {
 public:
  explicit place(embedding_entry& of) : of_(of) {
    if (of_.running.fetch_add(1) >= of_.most_waiting) {
      --of_.running;
      throw api_error("the model " + of_.name + " has as many requests as it takes", {}, "model_busy", 429);
    }
  }
  ~place() { --of_.running; }
  place(const place&) = delete;
  place& operator=(const place&) = delete;

 private:
  embedding_entry& of_;
};

std::vector<language::tokens> tokens_of(const embedding_request& asked, const embedding_entry& entry) {
  std::vector<language::tokens> out;
  for (std::size_t k = 0; k < asked.texts.size(); ++k) {
    const auto& t = asked.texts[k];
    const auto* const text = std::get_if<std::string>(&t);
    if (text && text->empty())
      throw api_error("input: expected texts that are not empty, found an empty one at place " + std::to_string(k),
                      "input");
    out.push_back(text ? entry.tokens.encode(*text, {.add_special_tokens = true}) : std::get<language::tokens>(t));
    const auto most = entry.model->settings().max_tokens;
    if (most > 0 && static_cast<std::int64_t>(out.back().size()) > most)
      throw api_error("the model embeds texts of at most " + std::to_string(most) + " tokens: found " +
                          std::to_string(out.back().size()) + " at place " + std::to_string(k),
                      "input", "context_length_exceeded");
    for (const language::token id : out.back())
      if (static_cast<std::size_t>(id) >= entry.tokens.vocabulary_size())
        throw api_error("input: token " + std::to_string(id) + " at place " + std::to_string(k) + " is none", "input");
  }
  return out;
}

}  // namespace

http_reply embed(const openai_call& call) {
  const embedding_request asked = read_request(call.request.body);
  call.record->model = asked.model.substr(0, 200);
  const auto at = call.models->embeddings.find(asked.model);
  if (at == call.models->embeddings.end()) {
    const bool is_other = call.models->language.contains(asked.model) || call.models->tensors.contains(asked.model);
    throw api_error(is_other ? "the folder of the model " + call.record->model + " does not say how it embeds texts"
                             : "there is no model " + call.record->model,
                    "model", is_other ? "model_not_supported" : "model_not_found", is_other ? 400 : 404);
  }
  embedding_entry& entry = *at->second;
  if (asked.dimensions > entry.model->width())
    throw api_error("dimensions: expected 1 to " + std::to_string(entry.model->width()) + ", found " +
                        std::to_string(asked.dimensions),
                    "dimensions");
  const place own(entry);
  const auto end = clock::now() + call.longest;
  const auto texts = tokens_of(asked, entry);
  std::size_t count = 0;
  for (const language::tokens& t : texts) count += t.size();
  call.record->prompt_tokens = count;
  json data = json::array();
  for (std::size_t k = 0; k < texts.size(); ++k) {
    if (call.request.is_gone && call.request.is_gone()) {
      call.record->is_canceled = true;
      throw api_error("the client is gone", {}, "canceled", 499);
    }
    if (entry.is_stopped) throw api_error("the server is shutting down", {}, "shutting_down", 503);
    if (clock::now() > end)
      throw api_error("the request took longer than this server lets one take", {}, "timeout", 504);
    const auto made = entry.model->embed(texts[k], asked.dimensions);
    data.push_back({{"object", "embedding"}, {"index", k}});
    if (asked.as_base64)
      data.back()["embedding"] = base64_of(made);
    else
      data.back()["embedding"] = made;
  }
  http_reply r;
  r.body = text_of({{"object", "list"},
                    {"data", std::move(data)},
                    {"model", entry.name},
                    {"usage", {{"prompt_tokens", count}, {"total_tokens", count}}}});
  return r;
}

}  // namespace kiln::serve
