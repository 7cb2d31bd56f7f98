#include <algorithm>

#include "kiln/text/impl/characters.hpp"
#include "kiln/text/impl/decode/decoder.hpp"
#include "kiln/text/impl/normalize/normalizers.hpp"

namespace kiln::language::detail {

namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// What tokenizers' decoders call cleanup.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : rules) replace_all(text, from, to);
}

// A step with a memory: `Rule` has `void put(decoded&, decode_sink&)` and `void finish(decode_sink&)`, and is copied
// for each text. Where all tokens are one text, it sees that text once, at the end.
template <class Rule> class rule_step final : public decode_step {
 public:
  rule_step(Rule rule, bool whole) : rule_(std::move(rule)), whole_(whole) {}
  std::unique_ptr<decode_sink> start(decode_sink& out) const override {
    struct sink final : decode_sink {
      sink(const Rule& rule, bool whole, decode_sink& out) : rule_(rule), whole_(whole), out_(out) {}
      void put(decoded& next) override {
        if (whole_)
          held_.text += next.text;
        else
          rule_.put(next, out_);
      }
      void finish() override {
        if (whole_) rule_.put(held_, out_);
        rule_.finish(out_);
        out_.finish();
      }
      Rule rule_;
      bool whole_;
      decoded held_;
      decode_sink& out_;
    };
    return std::make_unique<sink>(rule_, whole_, out);
  }
  void apply_inside(decoded& token) const override {
    if constexpr (requires(Rule r) { r.first = false; }) {
      struct sink final : decode_sink {
        void put(decoded&) override {}
        void finish() override {}
      } nowhere;
      Rule rule = rule_;
      rule.first = false;
      rule.put(token, nowhere);
    }
  }

 private:
  Rule rule_;
  bool whole_;
};
template <class Rule> std::unique_ptr<decode_step> make_rule_step(Rule rule, bool whole) {
  return std::make_unique<rule_step<Rule>>(std::move(rule), whole);
}

struct word_piece_rule {
  std::string prefix;
  bool cleanup;
  bool first = true;

  void put(decoded& next, decode_sink& out) {
    if (!first) {
      if (next.text.starts_with(prefix))
        next.text.erase(0, prefix.size());
      else
        next.text.insert(0, 1, ' ');
    }
    first = false;
    if (cleanup) clean_up(next.text);
    out.put(next);
  }
  void finish(decode_sink&) {}
};

// A suffix becomes a space, but for the last token's.
struct bpe_rule {
  std::string suffix;
  decoded held;
  bool any = false;

  void put(decoded& next, decode_sink& out) {
    if (any) {
      replace_all(held.text, suffix, " ");
      out.put(held);
    }
    held = next;
    any = true;
  }
  void finish(decode_sink& out) {
    if (!any) return;
    replace_all(held.text, suffix, "");
    out.put(held);
  }
};

struct ctc_rule {
  std::string pad, delimiter;
  bool cleanup;
  std::string last;
  bool any = false;

  void put(decoded& next, decode_sink& out) {
    if (any && next.text == last) return;
    any = true;
    last = next.text;
    replace_all(next.text, pad, "");
    if (cleanup) {
      clean_up(next.text);
      replace_all(next.text, delimiter, " ");
    }
    if (!next.text.empty()) out.put(next);
  }
  void finish(decode_sink&) {}
};

struct join_rule {
  bool first = true;
  void put(decoded& next, decode_sink& out) {
    if (!first) next.text.insert(0, 1, ' ');
    first = false;
    out.put(next);
  }
  void finish(decode_sink&) {}
};

struct metaspace_rule {
  std::string mark;
  bool drops_first;  // the first token's marks are nothing
  bool fused;        // all is the first token
  bool first = true;

  void put(decoded& next, decode_sink& out) {
    replace_all(next.text, mark, drops_first && (first || fused) ? "" : " ");
    first = false;
    out.put(next);
  }
  void finish(decode_sink&) {}
};

struct first_space_rule {
  bool of_each;
  std::string unknown;
  bool done = false;

  void put(decoded& next, decode_sink& out) {
    if (!done && !next.is_byte && next.text.starts_with(' ') && next.text != unknown) {
      next.text.erase(0, 1);
      done = !of_each;
    }
    done = done || !next.text.empty();
    if (!next.text.empty()) out.put(next);
  }
  void finish(decode_sink&) {}
};

// Leaves out up to so many of a character at both ends of the text that all tokens have become.
struct strip_whole_rule {
  std::int32_t character;
  std::size_t left, most_right;
  std::string held;  // characters that may be the last ones
  bool started = false;

  void put(decoded& next, decode_sink& out) {
    std::string_view text = next.text;
    while (!started && !text.empty()) {
      if (left == 0 || character_at(text, 0) != character) {
        started = true;
      } else {
        text.remove_prefix(character_bytes(text[0]));
        --left;
      }
    }
    if (text.empty()) return;
    held += text;
    std::size_t keep = held.size();
    while (keep > 0 && held.size() - keep < most_right * 4 && character_before(held, keep) == character)
      keep -= bytes_before(held, keep);
    decoded made{held.substr(0, keep)};
    held.erase(0, keep);
    if (!made.text.empty()) out.put(made);
  }
  void finish(decode_sink& out) {
    for (std::size_t n = 0; n < most_right && !held.empty(); ++n)
      held.resize(held.size() - bytes_before(held, held.size()));
    decoded made{held};
    if (!made.text.empty()) out.put(made);
  }
};

// Replaces a literal text where its parts may come one by one.
struct replace_whole_rule {
  std::string from, to, held;

  void put(decoded& next, decode_sink& out) {
    held += next.text;
    decoded made;
    std::size_t done = 0;
    for (std::size_t at; (at = held.find(from, done)) != std::string::npos; done = at + from.size()) {
      made.text.append(held, done, at - done);
      made.text += to;
    }
    std::size_t tail = std::min(from.size() - 1, held.size() - done);
    while (tail > 0 && held.compare(held.size() - tail, tail, from, 0, tail) != 0) --tail;
    made.text.append(held, done, held.size() - tail - done);
    held.erase(0, held.size() - tail);
    if (!made.text.empty()) out.put(made);
  }
  void finish(decode_sink& out) {
    decoded made{held};
    if (!made.text.empty()) out.put(made);
  }
};

struct replace_pattern_rule {
  std::shared_ptr<const regex> pattern;
  std::string content;

  void put(decoded& next, decode_sink& out) {
    change(next);
    out.put(next);
  }
  void finish(decode_sink&) {}
  void change(decoded& next) const {
    regex_memory memory;
    std::string spare;
    if (!next.is_byte && is_valid_utf8(next.text)) replace_matches(next.text, spare, *pattern, content, memory);
  }
};

}  // namespace

std::unique_ptr<decode_step> make_replace_step(regex pattern, std::optional<std::string> literal, std::string content,
                                               bool fused) {
  if (literal && literal->empty()) return make_lone_step([](decoded&) {});
  if (literal && fused) return make_rule_step(replace_whole_rule{*literal, content, {}}, false);
  if (literal)
    return make_lone_step([from = *literal, content](decoded& next) {
      if (!next.is_byte) replace_all(next.text, from, content);
    });
  const replace_pattern_rule rule{std::make_shared<const regex>(std::move(pattern)), content};
  if (fused) return make_rule_step(rule, true);
  return make_lone_step([rule](decoded& next) { rule.change(next); });
}

std::unique_ptr<decode_step> make_strip_step(std::int32_t character, std::size_t start, std::size_t stop, bool fused) {
  if (fused) return make_rule_step(strip_whole_rule{character, start, stop, {}, false}, false);
  return make_lone_step([=](decoded& next) {
    std::string_view text = next.text;
    if (next.is_byte || text.empty()) return;
    for (std::size_t n = 0; n < start && !text.empty() && character_at(text, 0) == character; ++n)
      text.remove_prefix(character_bytes(text[0]));
    for (std::size_t n = 0; n < stop && !text.empty() && character_before(text, text.size()) == character; ++n)
      text.remove_suffix(bytes_before(text, text.size()));
    next.text = std::string(text);
  });
}

std::unique_ptr<decode_step> make_metaspace_step(std::string mark, bool drops_first, bool fused) {
  return make_rule_step(metaspace_rule{std::move(mark), drops_first, fused}, false);
}
std::unique_ptr<decode_step> make_word_piece_step(std::string prefix, bool cleanup, bool fused) {
  return make_rule_step(word_piece_rule{std::move(prefix), cleanup}, fused);
}
std::unique_ptr<decode_step> make_bpe_step(std::string suffix, bool fused) {
  return make_rule_step(bpe_rule{std::move(suffix), {}}, fused);
}
std::unique_ptr<decode_step> make_ctc_step(std::string pad, std::string delimiter, bool cleanup, bool fused) {
  return make_rule_step(ctc_rule{std::move(pad), std::move(delimiter), cleanup, {}}, fused);
}
std::unique_ptr<decode_step> make_first_space_step(bool of_each, std::string unknown) {
  return make_rule_step(first_space_rule{of_each, std::move(unknown)}, false);
}
std::unique_ptr<decode_step> make_join_step() { return make_rule_step(join_rule{}, false); }

}  // namespace kiln::language::detail
