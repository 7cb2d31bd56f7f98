#include <algorithm>
#include <utility>

#include "kiln/interface/genai/impl/handles.hpp"

namespace kiln::genai {

void generate(language::generator& g) {
  g.generate_next_token();
  if (!logs(log_item::generate_next_token) && !logs(log_item::hit_eos) && !logs(log_item::hit_max_length)) return;
  std::string made;
  for (const token t : g.next_tokens()) made += (made.empty() ? "" : " ") + std::to_string(t);
  write_log(log_item::generate_next_token, made);
  if (!g.is_done()) return;
  const bool is_full = g.token_count() >= static_cast<std::size_t>(g.options().max_length);
  write_log(is_full ? log_item::hit_max_length : log_item::hit_eos, std::to_string(g.token_count()) + " tokens");
}

namespace {

// Inputs of the model that the caller gave one by one are taken when all are there: extents that have one name belong
// together. They stay until others of their names come.
void take_inputs(OgaGenerator& g) {
  if (g.next.parameters.empty()) return;
  // forgotten where they are wrong: the next call is not about them
  const language::adapter given = std::exchange(g.next, {});
  language::adapter all = g.inputs;
  for (const auto& [name, value] : given.parameters) {
    std::erase_if(all.parameters, [&](const auto& p) { return p.first == name; });
    all.parameters.emplace_back(name, value);
  }
  g.value.set_parameters(all);
  g.inputs = std::move(all);
}
// A generator whose session goes on.
OgaGenerator& running(OgaGenerator* g) {
  OgaGenerator& out = given(g, "the generator");
  if (out.is_terminated)
    raise(errc::canceled, "the session is terminated; terminate_session 0 lets the generator go on");
  take_inputs(out);
  return out;
}
void give_input(OgaGenerator& g, std::string_view name, const argument& value) {
  const auto known = g.model->decoder()->parameters();
  if (std::none_of(known.begin(), known.end(), [&](const port& p) { return p.name == name; }))
    raise(errc::not_found,
          "input '" + std::string(name) +
              "': the model has none of this name with a default, and kiln gives it the others itself");
  auto& all = g.next.parameters;
  std::erase_if(all, [&](const auto& p) { return p.first == name; });
  all.emplace_back(name, value.copy());
}
void log_appended(std::span<const token> all) {
  if (!logs(log_item::append_next_tokens)) return;
  std::string line;
  for (const token t : all) line += (line.empty() ? "" : " ") + std::to_string(t);
  write_log(log_item::append_next_tokens, line);
}
void append(OgaGenerator& g, std::span<const token> all) {
  log_appended(all);
  g.value.append_tokens(all);
}
void append_input(OgaGenerator& g, const argument& ids) {
  const dtype t = ids.get_shape().type;
  if (t != dtype::i32 && t != dtype::i64)
    raise(errc::shape_mismatch, "input_ids: expected i32 or i64, found " + to_string(ids.get_shape()));
  append(g, tokens_of(ids));
}

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;
namespace language = kiln::language;

namespace {

language::search_options& search_of(OgaGeneratorParams* p) { return given(p, "the generator's params").value.search; }
const language::search_options& search_of(const OgaGeneratorParams* p) {
  return given(p, "the generator's params").value.search;
}

// Null beyond the last sequence.
const tokens* sequence_of(const OgaGenerator* g, std::size_t index) noexcept {
  try {
    return g && index < g->value.sequence_count() ? &g->value.sequence(index) : nullptr;
  } catch (...) {
    return nullptr;  // no memory to choose among beams
  }
}

}  // namespace

OgaResult* OgaCreateGeneratorParams(const OgaModel* model, OgaGeneratorParams** out) {
  return made(out, [&] {
    const model_ref& m = given(model, "the model").value;
    return new OgaGeneratorParams{{{m->settings().search, m->settings().speculative, {}, false}, m}};
  });
}
void OgaDestroyGeneratorParams(OgaGeneratorParams* params) { delete params; }
OgaResult* OgaGeneratorParamsSetSearchNumber(OgaGeneratorParams* params, const char* name, double value) {
  return guarded([&] { language::set_number(search_of(params), text(name, "the option's name"), value); });
}
OgaResult* OgaGeneratorParamsSetSearchBool(OgaGeneratorParams* params, const char* name, bool value) {
  return guarded([&] { language::set_flag(search_of(params), text(name, "the option's name"), value); });
}
OgaResult* OgaGeneratorParamsGetSearchNumber(const OgaGeneratorParams* params, const char* name, double* value) {
  return told(value, [&] { return language::get_number(search_of(params), text(name, "the option's name")); });
}
OgaResult* OgaGeneratorParamsGetSearchBool(const OgaGeneratorParams* params, const char* name, bool* value) {
  return told(value, [&] { return language::get_flag(search_of(params), text(name, "the option's name")); });
}
OgaResult* OgaGeneratorParamsTryGraphCaptureWithMaxBatchSize(OgaGeneratorParams* params, int32_t) {
  return guarded([&] { given(params, "the generator's params"); });
}
OgaResult* OgaGeneratorParamsSetGuidance(OgaGeneratorParams* params, const char* type, const char* data,
                                         bool enable_ff_tokens) {
  return guarded([&] {
    params_value& o = given(params, "the generator's params").value;
    if (optional_text(type).empty() && optional_text(data).empty())
      o.guide.reset();
    else
      o.guide = language::guide::of(text(type, "the type of guidance"), o.model->decoder()->text_vocabulary(),
                                    text(data, "the data of guidance"));
    o.forced_tokens = enable_ff_tokens;
  });
}

OgaResult* OgaCreateGenerator(const OgaModel* model, const OgaGeneratorParams* params, OgaGenerator** out) {
  return made(out, [&] {
    const model_ref& m = given(model, "the model").value;
    const params_value& o = given(params, "the generator's params").value;
    if (o.model != m)
      raise(kiln::errc::invalid_argument, "a generator's params were made from its model: found those of another");
    return new OgaGenerator{m, language::generator_of(m->decoder(), o)};
  });
}
void OgaDestroyGenerator(OgaGenerator* generator) { delete generator; }
bool OgaGenerator_IsDone(OgaGenerator* generator) { return !generator || generator->value.is_done(); }
bool OgaGenerator_IsSessionTerminated(const OgaGenerator* generator) { return generator && generator->is_terminated; }

OgaResult* OgaGenerator_SetModelInput(OgaGenerator* generator, const char* name, OgaTensor* tensor) {
  return guarded([&] {
    give_input(given(generator, "the generator"), text(name, "the input's name"), given(tensor, "the tensor").value);
  });
}
OgaResult* OgaGenerator_SetInputs(OgaGenerator* generator, const OgaNamedTensors* named_tensors) {
  return guarded([&] {
    OgaGenerator& g = given(generator, "the generator");
    const auto& all = given(named_tensors, "the named tensors").all;
    const std::string& ids = g.model->settings().decoder.inputs.input_ids;
    for (const auto& [name, value] : all)
      if (name != ids) give_input(g, name, value);
    if (const auto at = all.find(ids); at != all.end()) append_input(running(generator), at->second);
  });
}
OgaResult* OgaGenerator_AppendTokenSequences(OgaGenerator* generator, const OgaSequences* p_sequences) {
  return guarded([&] {
    OgaGenerator& g = running(generator);
    const auto& lists = given(p_sequences, "the sequences").lists;
    for (const tokens& l : lists) log_appended(l);
    g.value.append_sequences(lists);
  });
}
OgaResult* OgaGenerator_AppendTokens(OgaGenerator* generator, const int32_t* input_ids, size_t input_ids_count) {
  return guarded([&] { append(running(generator), given_array(input_ids, input_ids_count, "the tokens")); });
}
size_t OgaGenerator_TokenCount(const OgaGenerator* generator) { return generator ? generator->value.token_count() : 0; }
OgaResult* OgaGenerator_GenerateNextToken(OgaGenerator* generator) {
  return guarded([&] { generate(running(generator).value); });
}
OgaResult* OgaGenerator_GetNextTokens(const OgaGenerator* generator, const int32_t** out, size_t* out_count) {
  return guarded([&] {
    const auto all = given(generator, "the generator").value.next_tokens();
    size_t& count = given(out_count, "the place of the count");
    given(out, "the place of the tokens") = all.data();
    count = all.size();
  });
}
OgaResult* OgaGenerator_SetRuntimeOption(OgaGenerator* generator, const char* key, const char* value) {
  return guarded([&] {
    OgaGenerator& g = given(generator, "the generator");
    // nothing is allocated where it succeeds: handlers of signals call it
    const std::string_view name = text(key, "the option's name"), to = text(value, "the option's value");
    if (name != "terminate_session")
      raise(kiln::errc::not_found, "runtime option '" + std::string(name) + "': expected terminate_session");
    if (to != "0" && to != "1")
      raise(kiln::errc::invalid_argument,
            "runtime option '" + std::string(name) + "': expected 0 or 1, found '" + std::string(to) + "'");
    g.is_terminated = to == "1";
  });
}
OgaResult* OgaGenerator_RewindTo(OgaGenerator* generator, size_t new_length) {
  return guarded([&] { given(generator, "the generator").value.rewind_to(new_length); });
}
OgaResult* OgaGenerator_SnapshotState(OgaGenerator* generator) {
  return guarded([&] {
    given(generator, "the generator");
    raise(kiln::errc::unsupported, "OgaGenerator_SnapshotState: kiln keeps no snapshots of generators");
  });
}
OgaResult* OgaGenerator_SetHiddenStates(OgaGenerator* generator, OgaTensor*) {
  return guarded([&] {
    given(generator, "the generator");
    raise(kiln::errc::unsupported, "OgaGenerator_SetHiddenStates: kiln supports no models with hidden states as input");
  });
}
OgaResult* OgaGenerator_GetInput(const OgaGenerator* generator, const char* name, OgaTensor** out) {
  return made(out, [&]() -> OgaTensor* {
    given(generator, "the generator");
    raise(kiln::errc::unsupported, "OgaGenerator_GetInput '" + std::string(text(name, "the input's name")) +
                                       "': kiln keeps no inputs of runs; OgaGenerator_GetSequenceData has the tokens");
  });
}
OgaResult* OgaGenerator_GetOutput(const OgaGenerator* generator, const char* name, OgaTensor** out) {
  return made(out, [&] {
    return new OgaTensor{given(generator, "the generator").value.output(text(name, "the output's name"))};
  });
}
OgaResult* OgaGenerator_GetLogits(OgaGenerator* generator, OgaTensor** out) {
  return made(out, [&] { return new OgaTensor{running(generator).value.logits()}; });
}
OgaResult* OgaGenerator_SetLogits(OgaGenerator* generator, OgaTensor* tensor) {
  return guarded([&] { running(generator).value.set_logits(given(tensor, "the tensor").value); });
}
size_t OgaGenerator_GetSequenceCount(const OgaGenerator* generator, size_t index) {
  const tokens* const all = sequence_of(generator, index);
  return all ? all->size() : 0;
}
const int32_t* OgaGenerator_GetSequenceData(const OgaGenerator* generator, size_t index) {
  const tokens* const all = sequence_of(generator, index);
  return all ? all->data() : nullptr;
}
