#include "kiln/text/tokenizer.hpp"

#include <array>
#include <limits>

#include "kiln/core/error.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/text/impl/byte_alphabet.hpp"
#include "kiln/text/impl/tokenizer_parts.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language {

namespace {

// A scratch of a tokenizer while a call lasts.
struct lease {
  explicit lease(detail::scratch_pool& pool) : pool(pool), memory(pool.take()) {}
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;
  ~lease() { pool.give_back(std::move(memory)); }
  detail::scratch_pool& pool;
  std::unique_ptr<detail::scratch> memory;
};

void encode_normal(const detail::tokenizer_parts& p, std::string_view text, bool at_start, tokens& out,
                   detail::scratch& memory) {
  detail::split_text& pieces = memory.pieces;
  pieces.begin(text, at_start);
  for (const auto& step : p.splitters) step->apply(pieces, memory.regex);
  if (!p.unmaps_bytes) {
    for (const detail::piece one : pieces.pieces) p.model->encode(pieces[one], out, memory);
    return;
  }
  for (const detail::piece one : pieces.pieces)
    p.model->encode(detail::bytes_of_characters(pieces[one]).value(), out, memory);
}

// A part of a text without tokens that are found in it as it comes.
void encode_part(const detail::tokenizer_parts& p, std::string_view text, bool at_start, tokens& out,
                 detail::scratch& memory) {
  if (!p.normalizers.empty()) {
    memory.normal = text;
    for (const auto& step : p.normalizers) step->apply(memory.normal, memory.spare, memory.regex);
    text = memory.normal;
  }
  if (p.added.normalized.empty()) return encode_normal(p, text, at_start, out, memory);
  p.added.normalized.split(text, [&](detail::text_part part) {
    if (part.id >= 0)
      out.push_back(part.id);
    else
      encode_normal(p, text.substr(part.begin, part.end - part.begin), at_start && part.begin == 0, out, memory);
  });
}

void encode_text(const detail::tokenizer_parts& p, std::string_view text, encode_options options, tokens& out,
                 detail::scratch& memory) {
  if (text.size() > std::numeric_limits<std::int32_t>::max() / 8)
    raise(errc::limit, "a text of " + std::to_string(text.size()) + " bytes; at most 256 MiB are encoded at once");
  if (!detail::is_valid_utf8(text)) {
    memory.valid.clear();
    detail::append_valid(memory.valid, text);
    text = memory.valid;
  }
  if (options.add_special_tokens) out.insert(out.end(), p.prefix.begin(), p.prefix.end());
  p.added.verbatim.split(text, [&](detail::text_part part) {
    if (part.id >= 0)
      out.push_back(part.id);
    else
      encode_part(p, text.substr(part.begin, part.end - part.begin), part.begin == 0, out, memory);
  });
  if (options.add_special_tokens) out.insert(out.end(), p.suffix.begin(), p.suffix.end());
}

// Calls `one(index)` for each of a list, on the threads of a pool.
template <class F> void each_of(std::size_t n, thread_pool* pool, F&& one) {
  const std::shared_ptr<thread_pool> shared = pool == nullptr ? default_pool() : nullptr;
  (pool == nullptr ? *shared : *pool).parallel_for(static_cast<std::int64_t>(n), [&](std::int64_t i, unsigned) {
    one(static_cast<std::size_t>(i));
  });
}

}  // namespace

tokenizer tokenizer::load(const files& contents) { return tokenizer(detail::read_tokenizer(contents)); }

tokens tokenizer::encode(std::string_view text, encode_options options) const {
  const lease l(parts_->scratches);
  tokens out;
  out.reserve(text.size() / 3 + 8);
  encode_text(*parts_, text, options, out, *l.memory);
  return out;
}

std::vector<tokens> tokenizer::encode_batch(std::span<const std::string> texts, encode_options options,
                                            thread_pool* pool) const {
  std::vector<tokens> out(texts.size());
  each_of(texts.size(), pool, [&](std::size_t i) { out[i] = encode(texts[i], options); });
  return out;
}

std::string tokenizer::decode(std::span<const token> ids, decode_options options) const {
  std::string out;
  detail::decode_state state(*parts_);
  for (const token id : ids) state.put(id, options.skip_special_tokens, out);
  state.finish(out);
  return out;
}

std::vector<std::string> tokenizer::decode_batch(std::span<const tokens> lists, decode_options options,
                                                 thread_pool* pool) const {
  std::vector<std::string> out(lists.size());
  each_of(lists.size(), pool, [&](std::size_t i) { out[i] = decode(lists[i], options); });
  return out;
}

std::optional<token> tokenizer::token_id(std::string_view spelling) const {
  const token id = parts_->find(spelling);
  return id < 0 ? std::nullopt : std::optional(id);
}
std::string_view tokenizer::token_text(token id) const { return parts_->spelling(id); }

std::string_view tokenizer::token_bytes(token id) const {
  if (is_special(id)) return parts_->spelling(id);
  const auto& all = parts_->inside.empty() ? parts_->pieces : parts_->inside;
  return id < 0 || static_cast<std::size_t>(id) >= all.size()
             ? std::string_view()
             : std::string_view(all[static_cast<std::size_t>(id)].text);
}

std::size_t tokenizer::vocabulary_size() const { return parts_->size(); }
bool tokenizer::is_special(token id) const {
  return id >= 0 && static_cast<std::size_t>(id) < parts_->special_ids.size() &&
         parts_->special_ids[static_cast<std::size_t>(id)];
}
const special_tokens& tokenizer::special() const { return parts_->special; }

std::string_view tokenizer::chat_template(std::string_view name) const {
  const auto found = parts_->chat_templates.find(name);
  return found == parts_->chat_templates.end() ? std::string_view() : std::string_view(found->second);
}
const std::map<std::string, std::string, std::less<>>& tokenizer::template_variables() const {
  return parts_->template_variables;
}

}  // namespace kiln::language
