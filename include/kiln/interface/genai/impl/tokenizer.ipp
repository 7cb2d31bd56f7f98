#include "kiln/interface/genai/impl/handles.hpp"
#include "kiln/interface/language_session.hpp"
#include "kiln/text/chat_template.hpp"
#include "kiln/text/token_stream.hpp"

namespace kiln::genai {

// The tokens with a role, of the configuration before those of the tokenizer's files.
struct roles {
  std::optional<token> bos, pad, bot, eot, bor, eor;
  tokens eos;
};

namespace {

roles roles_of(const language::config& c, const language::tokenizer& t) {
  const language::special_tokens& own = t.special();
  return {c.bos_token_id ? c.bos_token_id : own.bos,
          c.pad_token_id ? c.pad_token_id : own.pad,
          c.bot_token_id,
          c.eot_token_id,
          c.bor_token_id,
          c.eor_token_id,
          c.eos_token_id.empty() ? own.eos : c.eos_token_id};
}

bool flag_from(const std::string& key, std::string_view value) {
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  raise(errc::invalid_argument,
        "tokenizer option '" + key + "': expected true, false, 1 or 0, found '" + std::string(value) + "'");
}

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;
namespace language = kiln::language;

struct OgaTokenizer {
  language::tokenizer value;
  roles special;
  language::encode_options encode;
  language::decode_options decode;
};
struct OgaTokenizerStream {
  language::token_stream value;
};

namespace {

OgaTokenizer* new_tokenizer(const language::config& c, const language::tokenizer& t) {
  return new OgaTokenizer{t, roles_of(c, t), {}, {}};
}
const OgaTokenizer& the(const OgaTokenizer* t) { return given(t, "the tokenizer"); }

OgaResult* tell_role(const OgaTokenizer* t, std::optional<token> roles::*which, const char* name, int32_t* out) {
  return told(out, [&] {
    const std::optional<token> id = the(t).special.*which;
    if (!id) raise(kiln::errc::not_found, std::string("the model has no ") + name + " token");
    return *id;
  });
}

}  // namespace

OgaResult* OgaCreateTokenizer(const OgaModel* model, OgaTokenizer** out) {
  return made(out, [&] {
    const loaded_model& m = *given(model, "the model").value;
    return new_tokenizer(m.settings(), m.decoder()->text_tokenizer());
  });
}
OgaResult* OgaCreateTokenizerFromConfig(const OgaConfig* config, OgaTokenizer** out) {
  return made(out, [&] {
    const language::config& c = given(config, "the configuration").value;
    return new_tokenizer(c, language::load_tokenizer(c));
  });
}
OgaResult* OgaCreateTokenizerFromPath(const char* config_path, OgaTokenizer** out) {
  return made(out, [&] {
    const std::filesystem::path folder = text(config_path, "the folder");
    language::config c;
    c.folder = folder;
    if (exists(folder / "genai_config.json")) c = language::read_config(folder);
    return new_tokenizer(c, language::load_tokenizer(c));
  });
}
void OgaDestroyTokenizer(OgaTokenizer* tokenizer) { delete tokenizer; }

OgaResult* OgaUpdateTokenizerOptions(OgaTokenizer* tokenizer, const char* const* keys, const char* const* values,
                                     size_t num_options) {
  return guarded([&] {
    OgaTokenizer& t = given(tokenizer, "the tokenizer");
    const auto names = given_array(keys, num_options, "the options' names");
    const auto settings = given_array(values, num_options, "the options' values");
    auto encode = t.encode;
    auto decode = t.decode;
    for (std::size_t k = 0; k < num_options; ++k) {
      const std::string key = text(names[k], "an option's name");
      const bool on = flag_from(key, text(settings[k], "an option's value"));
      if (key == "add_special_tokens")
        encode.add_special_tokens = on;
      else if (key == "skip_special_tokens")
        decode.skip_special_tokens = on;
      else
        raise(kiln::errc::not_found,
              "tokenizer option '" + key + "': expected add_special_tokens or skip_special_tokens");
    }
    t.encode = encode;
    t.decode = decode;
  });
}

OgaResult* OgaTokenizerGetBosTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return tell_role(tokenizer, &roles::bos, "bos", token_id);
}
OgaResult* OgaTokenizerGetPadTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return tell_role(tokenizer, &roles::pad, "pad", token_id);
}
OgaResult* OgaTokenizerGetBotTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return tell_role(tokenizer, &roles::bot, "bot (begin of a tool call)", token_id);
}
OgaResult* OgaTokenizerGetEotTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return tell_role(tokenizer, &roles::eot, "eot (end of a tool call)", token_id);
}
OgaResult* OgaTokenizerGetBorTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return tell_role(tokenizer, &roles::bor, "bor (begin of reasoning)", token_id);
}
OgaResult* OgaTokenizerGetEorTokenId(const OgaTokenizer* tokenizer, int32_t* token_id) {
  return tell_role(tokenizer, &roles::eor, "eor (end of reasoning)", token_id);
}
OgaResult* OgaTokenizerGetEosTokenIds(const OgaTokenizer* tokenizer, const int32_t** eos_token_ids,
                                      size_t* token_count) {
  return guarded([&] {
    const tokens& all = the(tokenizer).special.eos;
    size_t& count = given(token_count, "the place of the count");
    given(eos_token_ids, "the place of the tokens") = all.data();
    count = all.size();
  });
}
OgaResult* OgaTokenizerToTokenId(const OgaTokenizer* tokenizer, const char* str, int32_t* token_id) {
  return told(token_id, [&] {
    const auto id = the(tokenizer).value.token_id(text(str, "the token's spelling"));
    if (!id) raise(kiln::errc::not_found, "the vocabulary has no token '" + std::string(str) + "'");
    return *id;
  });
}

OgaResult* OgaTokenizerEncode(const OgaTokenizer* tokenizer, const char* str, OgaSequences* sequences) {
  return guarded([&] {
    auto& to = given(sequences, "the sequences").lists;
    const OgaTokenizer& t = the(tokenizer);
    to.push_back(t.value.encode(text(str, "the text"), t.encode));
  });
}
OgaResult* OgaTokenizerEncodeBatch(const OgaTokenizer* tokenizer, const char** strings, size_t count, OgaTensor** out) {
  return made(out, [&] {
    const OgaTokenizer& t = the(tokenizer);
    std::vector<std::string> texts;
    for (const char* one : given_array(strings, count, "the texts")) texts.emplace_back(text(one, "a text"));
    const std::vector<tokens> lists = t.value.encode_batch(texts, t.encode);
    std::size_t longest = 0;
    for (const tokens& l : lists) longest = std::max(longest, l.size());
    const token padding = t.special.pad.value_or(t.special.eos.empty() ? 0 : t.special.eos.front());
    kiln::argument all(
        kiln::shape(kiln::dtype::i32, {static_cast<std::int64_t>(lists.size()), static_cast<std::int64_t>(longest)}));
    auto to = all.as<token>().begin();
    for (const tokens& l : lists) to = std::fill_n(std::copy(l.begin(), l.end(), to), longest - l.size(), padding);
    return new OgaTensor{std::move(all)};
  });
}
OgaResult* OgaTokenizerDecode(const OgaTokenizer* tokenizer, const int32_t* tokens, size_t token_count,
                              const char** out_string) {
  return told(out_string, [&] {
    const OgaTokenizer& t = the(tokenizer);
    return new_string(t.value.decode(given_array(tokens, token_count, "the tokens"), t.decode));
  });
}
OgaResult* OgaTokenizerDecodeBatch(const OgaTokenizer* tokenizer, const OgaTensor* tensor, OgaStringArray** out) {
  return made(out, [&] {
    const OgaTokenizer& t = the(tokenizer);
    const kiln::argument& rows = given(tensor, "the tensor").value;
    const kiln::shape& s = rows.get_shape();
    if (s.rank() != 2 || (s.type != kiln::dtype::i32 && s.type != kiln::dtype::i64))
      raise(kiln::errc::shape_mismatch,
            "the tokens of texts: expected i32 or i64 [count, length], found " + kiln::to_string(s));
    const tokens all = tokens_of(rows);
    const auto count = static_cast<std::size_t>(s.lens[0].value()),
               length = static_cast<std::size_t>(s.lens[1].value());
    std::vector<tokens> lists;
    for (std::size_t k = 0; k < count; ++k)
      lists.emplace_back(all.begin() + k * length, all.begin() + (k + 1) * length);
    return new OgaStringArray{t.value.decode_batch(lists, t.decode)};
  });
}

OgaResult* OgaTokenizerApplyChatTemplate(const OgaTokenizer* tokenizer, const char* template_str, const char* messages,
                                         const char* tools, bool add_generation_prompt, const char** out_string) {
  return OgaTokenizerApplyChatTemplateWithOptions(tokenizer, template_str, messages, tools, nullptr,
                                                  add_generation_prompt, out_string);
}
OgaResult* OgaTokenizerApplyChatTemplateWithOptions(const OgaTokenizer* tokenizer, const char* template_str,
                                                    const char* messages, const char* tools,
                                                    const char* template_kwargs, bool add_generation_prompt,
                                                    const char** out_string) {
  return told(out_string, [&] {
    const language::tokenizer& t = the(tokenizer).value;
    const auto form =
        template_str && *template_str ? language::chat_template::of(t, template_str) : language::chat_template::of(t);
    language::chat_template::request r;
    r.messages_json = text(messages, "the messages");
    r.tools_json = optional_text(tools);
    if (template_kwargs && *template_kwargs) r.variables_json = template_kwargs;
    r.add_generation_prompt = add_generation_prompt;
    return new_string(form.render(r));
  });
}

OgaResult* OgaCreateTokenizerStream(const OgaTokenizer* tokenizer, OgaTokenizerStream** out) {
  return made(out, [&] {
    const OgaTokenizer& t = the(tokenizer);
    return new OgaTokenizerStream{language::token_stream(t.value, t.decode)};
  });
}
void OgaDestroyTokenizerStream(OgaTokenizerStream* stream) { delete stream; }
OgaResult* OgaTokenizerStreamDecode(OgaTokenizerStream* stream, int32_t token, const char** out) {
  return told(out, [&] { return given(stream, "the tokenizer stream").value.put(token).c_str(); });
}
