#include "kiln/interface/python_genai/bind.hpp"
#include "kiln/text/chat_template.hpp"
#include "kiln/text/token_stream.hpp"

namespace kiln::python {
namespace {

// What Python calls a Tokenizer.
struct held_tokenizer {
  std::shared_ptr<const held_model> model;
  language::tokenizer own;
  language::encode_options encoding;
  language::decode_options decoding;
  std::optional<language::chat_template> form;  // the tokenizer's, when it is first asked for
};

held_tokenizer tokenizer_of(std::shared_ptr<const held_model> model) {
  const py::gil_scoped_release released;
  language::tokenizer own = model->compiled->text_tokenizer();
  return {std::move(model), std::move(own), {}, {}, {}};
}

std::string json_of(const py::object& o) {
  if (py::isinstance<py::str>(o)) return py::cast<std::string>(o);
  return py::cast<std::string>(py::module_::import("json").attr("dumps")(o));
}

std::string apply_chat_template(held_tokenizer& t, const py::object& messages,
                                const std::optional<std::string>& template_str, const py::object& tools,
                                bool add_generation_prompt, const py::kwargs& variables) {
  if (!t.form) t.form = language::chat_template::of(t.own);
  const bool is_own = !template_str || template_str->empty();
  const language::chat_template form = is_own ? *t.form : language::chat_template::of(t.own, *template_str);
  if (form.empty()) raise(errc::not_found, "the tokenizer has no chat template: give one as template_str");
  const std::string said = json_of(messages), given = tools.is_none() ? "" : json_of(tools), more = json_of(variables);
  const py::gil_scoped_release released;
  return form.render({.messages_json = said,
                      .tools_json = given == "[]" ? "" : given,
                      .variables_json = more,
                      .add_generation_prompt = add_generation_prompt});
}

bool flag_of(const std::string& name, const py::object& value) {
  const auto text = py::cast<std::string>(py::str(value));
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0") return false;
  raise(fault::of(errc::invalid_argument, "option '" + name + "' of a tokenizer", "true or false", text));
}

void update_options(held_tokenizer& t, const py::kwargs& options) {
  for (const auto& [key, value] : options) {
    const auto name = py::cast<std::string>(key);
    const bool is_on = flag_of(name, py::reinterpret_borrow<py::object>(value));
    if (name == "add_special_tokens")
      t.encoding.add_special_tokens = is_on;
    else if (name == "skip_special_tokens")
      t.decoding.skip_special_tokens = is_on;
    else
      raise(fault::of(errc::not_found, "option of a tokenizer", "add_special_tokens or skip_special_tokens", name));
  }
}

language::token padding_of(const language::config& c) {
  return c.pad_token_id.value_or(c.eos_token_id.empty() ? 0 : c.eos_token_id.front());
}

// Rows of one length: what is missing is filled with the padding token.
held_tensor padded(const std::vector<language::tokens>& rows, language::token padding) {
  std::size_t longest = 0;
  for (const language::tokens& r : rows) longest = std::max(longest, r.size());
  argument all(shape(dtype::i32, {rows.size(), longest}));
  auto* to = all.as<language::token>().data();
  for (const language::tokens& r : rows)
    to = std::fill_n(std::copy(r.begin(), r.end(), to), longest - r.size(), padding);
  return {std::move(all), {}, false};
}

held_tensor encode_batch(const held_tokenizer& t, const std::vector<std::string>& texts) {
  const py::gil_scoped_release released;
  return padded(t.own.encode_batch(texts, t.encoding), padding_of(t.model->settings()));
}

std::vector<std::string> decode_batch(const held_tokenizer& t, const py::object& rows) {
  std::optional<std::vector<language::tokens>> all = token_rows_of_object(rows);
  if (!all) all.emplace(1, tokens_of_object(rows));
  const py::gil_scoped_release released;
  return t.own.decode_batch(*all, t.decoding);
}

language::token id_of(const held_tokenizer& t, const std::string& spelling) {
  if (const auto id = t.own.token_id(spelling)) return *id;
  raise(fault::of(errc::not_found, "a token of the vocabulary", "its spelling", spelling));
}

language::tokens ends_of(const held_tokenizer& t) {
  const language::config& c = t.model->settings();
  return c.eos_token_id.empty() ? t.own.special().eos : c.eos_token_id;
}

void bind_roles(py::class_<held_tokenizer>& c) {
  using language::config;
  const auto role = [&](const char* name, std::optional<language::token> config::*field,
                        std::optional<language::token> language::special_tokens::*own, const char* doc) {
    c.def_property_readonly(
        name,
        [name, field, own](const held_tokenizer& t) {
          if (const auto id = t.model->settings().*field) return *id;
          if (own)
            if (const auto id = t.own.special().*own) return *id;
          raise(errc::not_found, std::string(name) + ": neither genai_config.json nor the tokenizer has one");
        },
        doc);
  };
  role("bos_token_id", &config::bos_token_id, &language::special_tokens::bos, "The token that begins a text.");
  role("pad_token_id", &config::pad_token_id, &language::special_tokens::pad, "The token that fills up a row.");
  role("bot_token_id", &config::bot_token_id, nullptr, "The token that begins a tool call.");
  role("eot_token_id", &config::eot_token_id, nullptr, "The token that ends a tool call.");
  role("bor_token_id", &config::bor_token_id, nullptr, "The token that begins reasoning.");
  role("eor_token_id", &config::eor_token_id, nullptr, "The token that ends reasoning.");
  c.def_property_readonly(
      "eos_token_ids", [](const held_tokenizer& t) { return numpy_of(ends_of(t)); },
      "The tokens that end a text, as a numpy array of int32.");
}

void bind_stream(py::module_& m) {
  py::class_<language::token_stream> c(
      m, "TokenizerStream",
      "Decodes tokens as they come: the pieces, with that of finish(), are together what Tokenizer.decode() gives.");
  c.def(
      "decode", [](language::token_stream& s, language::token id) { return s.put(id); }, py::arg("token"),
      "The text that a further token makes certain; often empty.");
  c.def(
      "finish", [](language::token_stream& s) { return s.finish(); },
      "The text that was held back, such as an incomplete character; the stream then begins anew.");
  c.def("is_stopped", &language::token_stream::is_stopped, "Whether a stop string was met.");
}

}  // namespace

void bind_tokenizer(py::module_& m) {
  bind_stream(m);
  py::class_<held_tokenizer> c(m, "Tokenizer", "Turns text into tokens and back, with the files of a Model's folder.");
  c.def(py::init(&tokenizer_of), py::arg("model"));
  bind_roles(c);
  c.def("update_options", update_options,
        "Sets `add_special_tokens` (of encoding, off at first) and `skip_special_tokens` (of decoding, on at first).");
  c.def(
      "encode",
      [](const held_tokenizer& t, const std::string& text) {
        language::tokens all;
        {
          const py::gil_scoped_release released;
          all = t.own.encode(text, t.encoding);
        }
        return numpy_of(all);
      },
      py::arg("text"), "A text's tokens, as a numpy array of int32.");
  c.def("encode_batch", encode_batch, py::arg("texts"),
        "The tokens of texts as a Tensor of int32, a row each, filled up with the padding token.");
  c.def(
      "decode",
      [](const held_tokenizer& t, const py::object& all) {
        const language::tokens ids = tokens_of_object(all);
        const py::gil_scoped_release released;
        return t.own.decode(ids, t.decoding);
      },
      py::arg("tokens"), "The text of an array or a list of tokens.");
  c.def("decode_batch", decode_batch, py::arg("tokens"), "The text of each row of an array, or of each list.");
  c.def("to_token_id", id_of, py::arg("text"), "The token with this spelling in the vocabulary.");
  c.def("apply_chat_template", apply_chat_template, py::arg("messages"), py::kw_only(),
        py::arg("template_str") = py::none(), py::arg("tools") = py::none(), py::arg("add_generation_prompt") = true,
        "The prompt of a conversation: messages with `role` and `content`, as JSON text or as a list of dicts, in the "
        "form of the tokenizer's chat template or of another one. Further keywords are variables of the template.");
  c.def(
      "create_stream",
      [](const held_tokenizer& t, std::vector<std::string> stop_strings) {
        return language::token_stream(t.own, t.decoding, std::move(stop_strings));
      },
      py::arg("stop_strings") = std::vector<std::string>(),
      "A TokenizerStream. With `stop_strings` its text ends before the first of them; what may begin one is held "
      "back.");
}

}  // namespace kiln::python
