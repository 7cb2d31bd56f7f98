#include "kiln/text/guidance/guide.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/expression.hpp"
#include "kiln/text/impl/guidance/json_schema.hpp"
#include "kiln/text/impl/guidance/lark.hpp"
#include "kiln/text/impl/guidance/machine.hpp"
#include "kiln/text/impl/regex.hpp"

namespace kiln::language {

guide::guide(const guide_vocabulary& v, guidance::automaton language) {
  language.finish();
  machine_ = std::make_shared<guidance::machine>(std::move(language), v.trie());
  reset();
}

guide guide::regex(const guide_vocabulary& v, std::string_view pattern) {
  const auto e = guidance::parse_expression(pattern, guidance::extent::whole);
  guidance::automaton a;
  const guidance::automaton::rule language = a.rules[a.add_rule()];
  a.add_free(guidance::add_expression(a, language.begin, e, guidance::spelling::plain), language.end);
  return guide(v, std::move(a));
}

std::string guide::expression_of(std::span<const std::string> texts) {
  if (texts.empty()) raise(errc::invalid_argument, "guide: expected a text at least, found none");
  std::string any;
  for (const std::string& one : texts) any += (any.empty() ? "(?:" : "|(?:") + detail::escape_regex(one) + ")";
  return any;
}

guide guide::json_schema(const guide_vocabulary& v, std::string_view schema) {
  return guide(v, guidance::automaton_of_schema(schema));
}

guide guide::lark(const guide_vocabulary& v, std::string_view grammar) {
  return guide(v, guidance::automaton_of_lark(grammar, *v.trie()));
}

guide guide::of(std::string_view kind, const guide_vocabulary& v, std::string_view text) {
  if (kind == "json_schema") return json_schema(v, text);
  if (kind == "regex") return regex(v, text);
  if (kind == "lark_grammar") return lark(v, text);
  raise(fault::of(errc::not_found, "type of guidance '" + std::string(kind) + "'", "json_schema, regex or lark_grammar",
                  kind));
}

tokens guide::forced() const {
  tokens out;
  if (finished_) return out;
  const std::string bytes = machine_->forced({states_, state_});
  const auto& trie = machine_->trie();
  for (std::size_t at = 0; at < bytes.size();) {
    const auto [longest, has_longer] = trie.longest(std::string_view(bytes).substr(at));
    if (longest < 0 || has_longer) break;
    out.push_back(longest);
    at += trie.texts[static_cast<std::size_t>(longest)].size();
  }
  return out;
}

void guide::reset() {
  auto [states, state] = machine_->begin();
  states_ = std::move(states);
  state_ = state;
  finished_ = false;
}

void guide::mask(std::span<std::uint32_t> bits) const {
  const auto& trie = machine_->trie();
  const std::size_t words = (trie.texts.size() + 31) / 32;
  if (bits.size() < words)
    raise(errc::invalid_argument,
          "mask: expected " + std::to_string(words) + " words of 32 bits, found " + std::to_string(bits.size()));
  if (!finished_) return machine_->mask({states_, state_}, bits);
  std::fill(bits.begin(), bits.end(), 0u);
  for (const token id : trie.end_tokens) bits[static_cast<std::size_t>(id) / 32] |= 1u << (id % 32);
}

std::string_view guide::append(token id) {
  const auto& trie = machine_->trie();
  if (id < 0 || static_cast<std::size_t>(id) >= trie.texts.size()) return "outside the vocabulary";
  const auto at = static_cast<std::size_t>(id);
  if (trie.ends[at] != 0) {
    if (!finished_ && !is_accepting()) return "an end token where the text is not whole";
    finished_ = true;
    return {};
  }
  if (finished_) return "after an end token";
  if (trie.texts[at].empty()) return "without bytes";
  auto [states, state] = machine_->after({states_, state_}, trie.texts[at]);
  if (state == guidance::lazy_states::dead) return "no text continues with it";
  states_ = std::move(states);
  state_ = state;
  return {};
}

void guide::advance(token id) {
  if (const std::string_view why = append(id); !why.empty())
    raise(errc::invalid_argument, "guide: token " + std::to_string(id) + ": " + std::string(why));
}

std::size_t guide::vocabulary_size() const { return machine_->trie().texts.size(); }

bool guide::is_accepting() const { return machine_->accepts({states_, state_}); }

}  // namespace kiln::language
