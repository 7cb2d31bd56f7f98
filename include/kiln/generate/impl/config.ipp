#include "kiln/generate/config.hpp"

#include <fstream>
#include <sstream>

#include "kiln/core/error.hpp"
#include "kiln/generate/impl/config_object.hpp"
#include "kiln/generate/weights/model_files.hpp"

namespace kiln::language {

namespace {

using nlohmann::json;

using detail::kind_of;
using detail::object;
using detail::refuse;

void read_token(object& o, const std::string& key, std::optional<token>& to) {
  std::optional<std::int64_t> n;
  o.whole(key, n, -1, 2147483647);
  if (n && *n >= 0) to = static_cast<token>(*n);
}
void read_tokens(object& o, const std::string& key, std::vector<token>& to) {
  const json* j = o.take(key);
  if (!j) return;
  to.clear();
  const auto one = [&](const json& v) {
    to.push_back(static_cast<token>(object::number_of(v, o.where(key), 0, 2147483647)));
  };
  if (j->is_array())
    for (const json& v : *j) one(v);
  else
    one(*j);
}

std::string as_text(const json& j, const std::string& where) {
  if (j.is_string()) return j.get<std::string>();
  if (j.is_boolean()) return j.get<bool>() ? "1" : "0";
  if (j.is_number()) return j.dump();
  refuse(where, std::string("expected a string, found ") + kind_of(j));
}

// {"MIGraphX": {"device_id": "0"}}, or {"name": "MIGraphX", "options": {"device_id": "0"}}.
provider read_provider(const json& j, const std::string& where) {
  if (!j.is_object() || j.empty()) refuse(where, "expected an object with one provider");
  provider p;
  const json* options = nullptr;
  const auto name = j.find("name");
  if (name != j.end() && name->is_string()) {
    for (const auto& [key, value] : j.items())
      if (key != "name" && key != "options") refuse(where + "." + key, "unknown key");
    p.name = name->get<std::string>();
    if (const auto at = j.find("options"); at != j.end()) options = &*at;
  } else {
    if (j.size() != 1) refuse(where, "expected one provider in an object, found " + std::to_string(j.size()));
    p.name = j.begin().key();
    options = &*j.begin();
  }
  if (!options) return p;
  const std::string at = where + "." + p.name;
  if (!options->is_object()) refuse(at, std::string("expected an object of options, found ") + kind_of(*options));
  for (const auto& [key, value] : options->items()) {
    if (key != "device_filtering_options") {
      p.options.emplace_back(key, as_text(value, at + "." + key));
      continue;
    }
    object filter(value, at + "." + key);
    std::string type;
    filter.text("hardware_device_type", type);
    if (!type.empty()) p.hardware_device_type = type;
    filter.whole("hardware_device_id", p.hardware_device_id);
    filter.whole("hardware_vendor_id", p.hardware_vendor_id);
    filter.finish();
  }
  return p;
}

void read_session(object& o, session_options& to) {
  for (const auto& [key, value] : o.all().items()) {
    o.take(key);
    if (key == "provider_options") {
      if (!value.is_array()) refuse(o.where(key), std::string("expected a list, found ") + kind_of(value));
      if (value.size() > 1) refuse(o.where(key), "expected one provider, found " + std::to_string(value.size()));
      to.providers.clear();
      for (std::size_t k = 0; k < value.size(); ++k)
        to.providers.push_back(read_provider(value[k], o.where(key) + "[" + std::to_string(k) + "]"));
    } else if (key == "intra_op_num_threads") {
      o.whole(key, to.intra_op_num_threads, 0, 65536);
    } else if (!value.is_null()) {
      std::erase_if(to.entries, [&](const auto& e) { return e.first == key; });
      to.entries.emplace_back(key, as_text(value, o.where(key)));
    }
  }
}

// Who wrote the configuration: a folder may come from anywhere, and names no files of its reader's.
enum class author { folder, program };

// A file beside the configuration, or, if the program says so, anywhere.
void read_file_name(object& o, const std::string& key, std::string& to, author by = author::folder) {
  o.text(key, to);
  const std::filesystem::path p(to);
  bool leaves = p.is_absolute();
  for (const auto& part : p) leaves = leaves || part == "..";
  if (leaves && by == author::folder)
    refuse(o.where(key), "expected a path inside the model's folder, found '" + to +
                             "'; of a draft model a program's overlay may name another one");
}

void read_decoder(object& o, decoder_config& to, author by) {
  read_file_name(o, "filename", to.filename, by);
  o.part("session_options", [&](object& s) { read_session(s, to.session); });
  for (auto [key, field] : {std::pair("hidden_size", &to.hidden_size),
                            {"num_attention_heads", &to.num_attention_heads},
                            {"num_key_value_heads", &to.num_key_value_heads},
                            {"num_hidden_layers", &to.num_hidden_layers},
                            {"head_size", &to.head_size}})
    o.whole(key, *field, 0, 1 << 24);
  o.part("sliding_window", [&](object& s) {
    s.whole("window_size", to.sliding_window);
    s.ignore({"pad_value", "alignment", "slide_key_value_cache", "slide_inputs", "cache_slack", "layers"});
  });
  o.part("inputs", [&](object& s) {
    auto& n = to.inputs;
    s.text("input_ids", n.input_ids), s.text("attention_mask", n.attention_mask);
    s.text("position_ids", n.position_ids), s.text("past_key_names", n.past_key_names);
    s.text("past_value_names", n.past_value_names), s.text("past_names", n.past_names);
    s.text("past_conv_names", n.past_conv_names), s.text("past_recurrent_names", n.past_recurrent_names);
    s.text("past_sequence_length", n.past_sequence_length);
    s.text("total_sequence_length", n.total_sequence_length);
    s.text("current_sequence_length", n.current_sequence_length);
    s.ignore({"inputs_embeds", "past_key_values_length", "cache_indirection", "encoder_hidden_states",
              "encoder_attention_mask", "cross_past_key_names", "cross_past_value_names", "rnn_states_prev",
              "cumulative_sequence_lengths", "past_sequence_lengths", "block_table", "block_table_windowed",
              "attention_metadata"});
  });
  o.part("outputs", [&](object& s) {
    auto& n = to.outputs;
    s.text("logits", n.logits), s.text("present_key_names", n.present_key_names);
    s.text("present_value_names", n.present_value_names), s.text("present_names", n.present_names);
    s.text("present_conv_names", n.present_conv_names);
    s.text("present_recurrent_names", n.present_recurrent_names), s.text("hidden_states", n.hidden_states);
    s.ignore({"output_cross_qk_names", "rnn_states"});
  });
  o.ignore({"run_options", "layer_types", "conv_cache_size", "state_groups", "pipeline", "shared_initializers"});
}

// One of the first `known_types` names.
void read_type(object& o, const char* key, std::size_t known_types, std::optional<dtype>& to) {
  constexpr std::pair<std::string_view, dtype> types[] = {
      {"f32", dtype::f32},      {"f16", dtype::f16},           {"bf16", dtype::bf16},    {"int8", dtype::i8},
      {"fp8", dtype::f8e4m3fn}, {"f8e4m3fn", dtype::f8e4m3fn}, {"f8e5m2", dtype::f8e5m2}};
  std::string name, all;
  o.text(key, name);
  if (name.empty()) return;
  for (const auto& [known, type] : std::span(types).first(known_types)) {
    if (name == known) {
      to = type;
      return;
    }
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  refuse(o.where(key), "expected one of " + all + ", found '" + name + "'");
}

void read_model(object& o, config& to, author by) {
  o.text("type", to.type);
  o.whole("vocab_size", to.vocab_size, 1, 2147483647);
  if (const json* j = o.take("context_length")) {
    const double n = object::number_of(*j, o.where("context_length"), 0, 9007199254740992.0);
    if (n == 0) refuse(o.where("context_length"), "context_length must be greater than 0");
    to.context_length = static_cast<std::int64_t>(n);
  }
  read_token(o, "pad_token_id", to.pad_token_id), read_token(o, "bos_token_id", to.bos_token_id);
  read_token(o, "sep_token_id", to.sep_token_id), read_token(o, "bot_token_id", to.bot_token_id);
  read_token(o, "eot_token_id", to.eot_token_id), read_token(o, "bor_token_id", to.bor_token_id);
  read_token(o, "eor_token_id", to.eor_token_id);
  read_token(o, "decoder_start_token_id", to.decoder_start_token_id);
  read_tokens(o, "eos_token_id", to.eos_token_id);
  if (to.eos_token_id.empty() && to.pad_token_id) to.eos_token_id = {*to.pad_token_id};
  read_file_name(o, "tokenizer_dir", to.tokenizer_dir);
  o.part("decoder", [&](object& d) { read_decoder(d, to.decoder, author::folder); });
  read_type(o, "kv_cache_type", 7, to.kv_cache_type);
  read_type(o, "compute_type", 3, to.compute_type);
  if (std::string name; o.text("weight_type", name), !name.empty()) try {
      to.weight_type = quantize::weight_type_named(name);
    } catch (const error& e) {
      refuse(o.where("weight_type"), e.message());
    }
  if (const json* j = o.take("share_prefixes")) {
    if (!j->is_boolean())
      refuse(o.where("share_prefixes"), std::string("expected true or false, found ") + kind_of(*j));
    to.share_prefixes = j->get<bool>();
  }
  o.part("draft", [&](object& d) {
    if (!to.draft) to.draft.emplace();
    read_decoder(d, *to.draft, by);
  });
  for (const char* part : {"encoder", "embedding", "vision", "speech", "mtp", "joiner"})
    if (o.take(part)) to.other_parts.emplace_back(part);
  o.ignore({"image_token_id", "audio_token_id", "video_token_id", "vision_start_token_id"});
}

void read_texts(const json& j, const std::string& where, std::vector<std::string>& to) {
  to.clear();
  if (!j.is_array()) return to.push_back(object::text_of(j, where));
  for (std::size_t k = 0; k < j.size(); ++k) to.push_back(object::text_of(j[k], where + "[" + std::to_string(k) + "]"));
}

// Options by name: flags and numbers, and texts.
template <class Options> void read_options(object& o, Options& to) {
  const json& all = o.all();
  for (auto at = all.begin(); at != all.end(); ++at) {
    const std::string& key = at.key();
    const json& value = *at;
    o.take(key);
    if (value.is_null()) continue;
    if constexpr (std::is_same_v<Options, search_options>)
      if (key == "stop_strings") {
        read_texts(value, o.where(key), to.stop_strings);
        continue;
      }
    if (!value.is_boolean() && !value.is_number())
      refuse(o.where(key), std::string("expected a number, true or false, found ") + kind_of(value));
    try {
      value.is_boolean() ? set_flag(to, key, value.get<bool>()) : set_number(to, key, value.get<double>());
    } catch (const error& e) {
      refuse(o.where(key), e.message());
    }
  }
}

void read_engine(object& o, config& to) {
  constexpr double most = 2147483647;
  o.part("dynamic_batching", [&](object& d) {
    if (!to.dynamic_batching) to.dynamic_batching.emplace();
    dynamic_batching& b = *to.dynamic_batching;
    d.whole("block_size", b.block_size, 1, most), d.whole("num_blocks", b.num_blocks, 1, most);
    d.whole("max_batch_size", b.max_batch_size, 1, most);
    d.whole("max_scheduled_tokens", b.max_scheduled_tokens, 1, most);
    if (const json* part = d.take("gpu_utilization_factor"))
      if (!part->is_number() || !(part->get<double>() > 0 && part->get<double>() <= 1))
        refuse(d.where("gpu_utilization_factor"), "expected a number above 0 up to 1, found " + part->dump());
  });
  o.part("static_batching", [&](object& s) {
    if (!to.static_batch_size) to.static_batch_size = 4;
    s.whole("max_batch_size", to.static_batch_size, 1, most);
  });
}

// A file that another program wrote for itself: keys it does not have stay unset, others do not matter.
json foreign_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return json::object();
  try {
    json j = json::parse(in);
    if (j.is_object()) return j;
    refuse(file.string(), std::string("expected an object, found ") + kind_of(j));
  } catch (const json::exception& e) {
    refuse(file.string(), e.what());
  }
}

// Numbers that are still unset, from what Hugging Face's transformers write beside a model.
void take_what_is_unset(const std::filesystem::path& folder, config& c) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    const json j = foreign_file(folder / name);
    object o(j, name);
    const auto token_of = [&](const char* key, std::optional<token>& to) {
      const json* id = o.take(key);
      if (!to && id && id->is_number_integer()) to = id->get<token>();
    };
    token_of("pad_token_id", c.pad_token_id), token_of("bos_token_id", c.bos_token_id);
    if (c.eos_token_id.empty()) read_tokens(o, "eos_token_id", c.eos_token_id);
    const auto number_of = [&](std::initializer_list<const char*> keys, std::optional<std::int64_t>& to) {
      for (const char* key : keys)
        if (!to) o.whole(key, to, 1, 1 << 30);
    };
    number_of({"max_position_embeddings", "n_positions"}, c.context_length);
    number_of({"num_attention_heads", "n_head"}, c.decoder.num_attention_heads);
    number_of({"num_key_value_heads"}, c.decoder.num_key_value_heads);
    number_of({"head_dim"}, c.decoder.head_size);
    number_of({"hidden_size", "n_embd"}, c.decoder.hidden_size);
    // of types only what changes how a model is run: angles that depend on the length
    std::string type;
    o.text("model_type", type);
    if (c.type.empty() && (type == "phi3" || type == "phi3small" || type == "phimoe")) c.type = type;
  }
  if (!c.decoder.head_size && c.decoder.hidden_size && c.decoder.num_attention_heads)
    c.decoder.head_size = *c.decoder.hidden_size / *c.decoder.num_attention_heads;
}

// The one model of a folder.
std::string only_model(const std::filesystem::path& folder) {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& f : std::filesystem::directory_iterator(folder, none))
    if (f.path().extension() == ".onnx") found.push_back(f.path().filename().string());
  if (found.size() == 1) return found[0];
  throw error(errc::not_found, "no genai_config.json in '" + folder.string() +
                                   "', no config.json with *.safetensors, no one file .gguf, and not one file .onnx, "
                                   "which would do without it, but " +
                                   std::to_string(found.size()));
}

}  // namespace

namespace {

void merge(config& to, std::string_view json_text, std::string_view source, author by) {
  try {
    json j;
    try {
      j = json::parse(json_text);
    } catch (const json::exception& e) {
      refuse("JSON", e.what());
    }
    config next = to;  // an error leaves the old one
    object root(j, "");
    root.part("model", [&](object& o) { read_model(o, next, by); });
    root.part("search", [&](object& o) { read_options(o, next.search); });
    root.part("speculative", [&](object& o) { read_options(o, next.speculative); });
    root.part("engine", [&](object& o) { read_engine(o, next); });
    root.finish();
    to = std::move(next);
  } catch (const error& e) {
    throw error(e.code(), "Error encountered while parsing '" + std::string(source) + "' " + e.message());
  }
}

}  // namespace

void overlay(config& to, std::string_view json, std::string_view source) { merge(to, json, source, author::program); }

config read_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "genai_config.json";
  std::ifstream in(file, std::ios::binary);
  config c;
  c.folder = folder;
  if (in) {
    std::stringstream text;
    text << in.rdbuf();
    merge(c, text.str(), file.string(), author::folder);
  } else if (auto weights = find_weights(folder)) {
    c = *std::move(weights);
    if (format_of(c.folder / c.decoder.filename) == model_format::gguf) return c;  // says it all
  } else {
    c.decoder.filename = only_model(folder);
  }
  take_what_is_unset(c.folder, c);
  c.own_context = c.context_length;
  return c;
}

std::string layer_name(std::string_view pattern, std::size_t layer) {
  std::string name(pattern);
  if (const auto at = name.find("%d"); at != name.npos) name.replace(at, 2, std::to_string(layer));
  return name;
}

}  // namespace kiln::language
