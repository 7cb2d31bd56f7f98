#pragma once
#include <map>
#include <string>
#include <string_view>

#include "kiln/text/jinja/template.hpp"

namespace kiln::language {

class tokenizer;

/// What turns a conversation into a model's prompt: the Jinja templates that come with its tokenizer, one for each use.
class chat_template {
 public:
  /// The templates by name; `default` and `tool_use` are the usual ones.
  using named_templates = std::map<std::string, jinja::compiled_template, std::less<>>;

  chat_template() = default;
  /// From the text of a template, or the JSON list `[{"name": ..., "template": ...}]` that `tokenizer_config.json` may
  /// have in its place; `special_tokens_json` is an object of variables as `bos_token`, whose values are strings or
  /// objects with `content`. Throws `error` with line and column for a template that does not parse.
  static chat_template from(std::string_view text, std::string_view special_tokens_json = "{}");

  /// Those that come with a tokenizer, none where it has none; or another text of a template in their place. Both with
  /// the tokenizer's special tokens.
  static chat_template of(const tokenizer& t);
  static chat_template of(const tokenizer& t, std::string_view text);

  bool empty() const { return templates_.empty(); }
  const named_templates& templates() const { return templates_; }

  struct request {
    std::string_view messages_json;          ///< a list of objects with `role`, `content` and what else the model knows
    std::string_view tools_json = {};        ///< a list of functions' schemas; empty: `tools` is none
    std::string_view variables_json = "{}";  ///< an object of further variables, which go before all others
    bool add_generation_prompt = true;       ///< ends with the begin of the assistant's turn
    std::string_view name = {};              ///< which template; empty: `tool_use` with tools, else `default`
  };
  /// The prompt. Throws `error`: not_found without a template of that name, what the template itself raises, or a use
  /// of values that Jinja has no meaning for.
  std::string render(const request&, const jinja::limits& bounds = {}) const;

 private:
  const jinja::compiled_template& choose(const request&) const;
  named_templates templates_;
  std::string special_tokens_ = "{}";
};

}  // namespace kiln::language
