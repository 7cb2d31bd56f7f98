#include "kiln/generate/impl/model_plan.hpp"

#include <algorithm>
#include <charconv>

#include "kiln/generate/impl/block_tables.hpp"
#include "kiln/generate/impl/weights/open_weights.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/pass/constants_stay_stored.hpp"
#include "kiln/pass/fuse_attention.hpp"
#include "kiln/pass/keep_rows.hpp"
#include "kiln/runtime/block_reader.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "kiln/runtime/stored_block_reader.hpp"

namespace kiln::language::detail {

namespace {

const dimension now = dimension::symbol("sequence_length", 1), past = dimension::symbol("past_sequence_length");

// Types whose graph is a decoder over tokens, and those of the families that are built; any other needs inputs that
// texts do not give.
void check_type(const config& c, bool has_graph) {
  constexpr std::string_view decoders[] = {"",        "chatglm",          "decoder",      "ernie4_5",       "gemma",
                                           "gemma2",  "gemma3_text",      "gemma4_text",  "gpt2",           "gptoss",
                                           "granite", "granitemoehybrid", "internlm2",    "hunyuandensev1", "lfm2",
                                           "llama",   "mistral",          "mixtral",      "nemotron",       "olmo",
                                           "phi",     "phimoe",           "phi3",         "phi3small",      "qwen2",
                                           "qwen3",   "qwen3_5_moe_text", "qwen3_5_text", "smollm3"};
  const bool is_known = std::find(std::begin(decoders), std::end(decoders), c.type) != std::end(decoders);
  if (!is_known && (has_graph || !find_family(c.type))) throw error(errc::unsupported, "not supported: " + c.type);
  if (!c.other_parts.empty())
    throw error(errc::unsupported, "not supported: a model with a part '" + c.other_parts.front() + "'");
}

struct model_source {
  std::string path;
  std::span<const std::byte> bytes;
  bool in_memory = false;
  bool has_graph() const { return in_memory || format_of(path) == model_format::onnx; }
};
model_source source_of(const config& c) {
  model_source s;
  s.path = (c.folder / c.decoder.filename).string();
  if (const auto at = c.model_data.find(c.decoder.filename); at != c.model_data.end())
    s.bytes = at->second, s.in_memory = true;
  return s;
}

// The inputs of the file by what they are for, with the shapes they get.
class described_inputs {
 public:
  described_inputs(const config& c, const std::vector<onnx::value_info>& inputs) : c_(c) {
    for (const onnx::value_info& v : inputs) describe(v);
  }
  onnx::import_options options;
  struct state {
    std::string input, output;
    bool grows = false;
  };
  std::vector<state> states;
  struct named_role {
    std::string name;
    input_role role;
  };
  std::vector<named_role> roles;

 private:
  void take(const onnx::value_info& v, input_role role, dims lens) {
    roles.push_back({v.name, role});
    options.shapes.emplace_back(v.name, std::move(lens));
  }
  void describe(const onnx::value_info& v) {
    const auto& n = c_.decoder.inputs;
    const bool flat = v.dims.size() == 1;
    const auto tokens = [&](dimension count) { return flat ? dims{count} : dims{1, count}; };
    if (v.name == n.input_ids) return take(v, input_role::tokens, tokens(now));
    if (v.name == n.attention_mask) return take(v, input_role::mask, tokens(past + now));
    if (v.name == n.position_ids) {
      // [batch, tokens], or that several times, for axes that are one in texts
      const bool several = v.dims.size() == 3 && v.dims[0].value > 0;
      return take(v, input_role::positions, several ? dims{v.dims[0].value, 1, now} : tokens(now));
    }
    const dims one(v.dims.size(), dimension(1));
    if (v.name == n.past_sequence_length) return take(v, input_role::past_length, one);
    if (v.name == n.total_sequence_length) return take(v, input_role::total_length, one);
    if (v.name == n.current_sequence_length) return take(v, input_role::current_length, one);
    const auto& out = c_.decoder.outputs;
    const struct {
      std::string_view past, present;
      bool grows;
    } patterns[] = {{n.past_key_names, out.present_key_names, true},
                    {n.past_value_names, out.present_value_names, true},
                    {n.past_names, out.present_names, true},
                    {n.past_conv_names, out.present_conv_names, false},
                    {n.past_recurrent_names, out.present_recurrent_names, false},
                    // where the configuration has no name for them
                    {"past_key_values.%d.conv_state", "present.%d.conv_state", false}};
    for (const auto& p : patterns)
      if (const auto layer = layer_of(p.past, v.name)) return describe_state(v, layer_name(p.present, *layer), p.grows);
    throw error(errc::malformed,
                "the model's input '" + v.name +
                    "' is none that genai_config.json names: tokens, mask, positions, lengths or caches");
  }
  void describe_state(const onnx::value_info& v, std::string output, bool grows) {
    states.push_back({v.name, std::move(output), grows});
    roles.push_back({v.name, input_role::cache});
    // [batch, heads, past, depth], or [2, batch, heads, past, depth]; other states have [batch, …]
    const std::size_t rank = v.dims.size(), batch = rank == 5 ? 1 : 0, along = rank == 5 ? 3 : 2;
    if (grows && rank != 4 && rank != 5)
      throw error(errc::malformed, "the cache '" + v.name + "' has rank 4 or 5, not " + std::to_string(rank));
    dims lens;
    for (std::size_t d = 0; d < rank; ++d) {
      const auto& declared = v.dims[d];
      if (d == batch)
        lens.push_back(1);
      else if (grows && d == along)
        lens.push_back(past);
      else if (declared.value >= 0)
        lens.push_back(declared.value);
      else
        lens.push_back(configured(v, d, along, grows));
      if (grows && d == along && declared.value >= 0)
        throw error(errc::unsupported, "the cache '" + v.name + "' has a fixed length of " +
                                           std::to_string(declared.value) + "; export it with a symbolic one");
    }
    options.shapes.emplace_back(v.name, std::move(lens));
  }
  // An open extent of a cache that the configuration tells.
  std::int64_t configured(const onnx::value_info& v, std::size_t d, std::size_t along, bool grows) {
    const auto& n = c_.decoder;
    const auto heads = n.num_key_value_heads ? n.num_key_value_heads : n.num_attention_heads;
    const auto& found = d + 1 == along ? heads : n.head_size;
    if (!found || !grows)
      throw error(errc::malformed, "the cache '" + v.name + "' has an open extent on axis " + std::to_string(d) +
                                       ", and genai_config.json has neither num_key_value_heads nor head_size for it");
    return *found;
  }
  static std::optional<std::size_t> layer_of(std::string_view pattern, const std::string& name) {
    const auto at = pattern.find("%d");
    if (at == pattern.npos) return pattern == name ? std::optional<std::size_t>(0) : std::nullopt;
    const std::string_view tail = pattern.substr(at + 2), all(name);
    if (all.size() <= pattern.size() - 2 || all.substr(0, at) != pattern.substr(0, at) ||
        all.substr(all.size() - tail.size()) != tail)
      return std::nullopt;
    const std::string digits(all.substr(at, all.size() - tail.size() - at));
    if (digits.size() > 6 || digits.find_first_not_of("0123456789") != digits.npos) return std::nullopt;
    return std::stoul(digits);
  }
  const config& c_;
};

std::size_t index_of(std::span<const port> ports, std::string_view name, std::string_view what) {
  for (std::size_t k = 0; k < ports.size(); ++k)
    if (ports[k].name == name) return k;
  throw error(errc::malformed, "the model has no " + std::string(what) + " '" + std::string(name) + "'");
}

// How many tokens a saved decoder takes, where it says it.
std::optional<std::int64_t> saved_context(const std::string& path) {
  for (const auto& [name, text] : inspect(path).notes) {
    if (name != context_note) continue;
    std::int64_t n = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || n < 1)
      throw error(errc::malformed, path + ": '" + name + "': expected a number above 0, found '" + text + "'");
    return n;
  }
  return std::nullopt;
}

// A decoder that is built of weights alone, or was saved, and its inputs as a file with a graph would declare them. The
// context is bounded by the model's.
onnx::imported built_model(const config& c, const target& t, std::vector<onnx::value_info>& inputs,
                           std::optional<std::int64_t>& context) {
  onnx::imported out;
  std::optional<std::int64_t> most;
  const std::string path = (c.folder / c.decoder.filename).string();
  if (format_of(path) == model_format::kiln) {
    if (c.compute_type || c.weight_type)
      throw error(errc::unsupported, path + ": a saved model has the types that it was saved with");
    out.graph = load_program(path);
    most = saved_context(path);
  } else {
    built_decoder made = decoder_of(c, dynamic_cast<const stored_block_reader*>(&t) != nullptr);
    out.graph = std::move(made.graph);
    out.remarks = std::move(made.remarks);
    most = made.context;
  }
  if (most && context.value_or(0) > *most)
    out.remarks.push_back("context_length " + std::to_string(*context) + " is cut to the " + std::to_string(*most) +
                          " of the weights");
  if (most) context = std::min(context.value_or(*most), *most);
  const module_graph& m = out.graph.main();
  for (const value_id v : m.parameters()) {
    onnx::value_info& info = inputs.emplace_back();
    info.name = m.producer(v).name.view();
    for (const dimension d : m.shape_of(v).lens) info.dims.push_back({d.is_constant() ? d.value() : -1, {}});
  }
  return out;
}

// Logits [1, n, vocabulary] of the tokens that are asked for.
void keep_asked_rows(module_graph& m, const std::string& logits) {
  for (std::size_t k = 0; k < m.outputs.size(); ++k) {
    if (m.output_names[k] != logits) continue;
    const shape& s = m.shape_of(m.outputs[k]);
    if (s.rank() < 2 || s.rank() > 3)
      throw error(errc::malformed, "logits are [batch, tokens, vocabulary], not " + kiln::to_string(s));
    const std::size_t axis = s.rank() - 2;
    if (s.lens[axis] == now) keep_rows(m, k, axis, rows_input, dimension::symbol("rows", 1));
    return;
  }
  throw error(errc::malformed, "the model has no output '" + logits + "'");
}

executable compile_in_place(const onnx::imported& model, const target& t, compile_options options,
                            const std::vector<described_inputs::state>& states, bool& in_place) {
  for (const auto& s : states)
    if (s.grows) options.aliases.push_back({s.output, s.input});
  in_place = !options.aliases.empty();
  if (in_place) try {
      return compile(model.graph, t, options);
    } catch (const error& e) {
      if (e.code() != errc::unsupported) throw;
      // a cache that is no concatenation (keys and values in one tensor) is copied in each run
      options.remarks.push_back("caches are copied in each run: " + e.message());
    }
  in_place = false;
  options.aliases.clear();
  return compile(model.graph, t, options);
}

decoder_ports ports_of(std::optional<std::int64_t> context, const described_inputs& known) {
  decoder_ports ports;
  ports.now = now, ports.past = past;
  ports.context = context.value_or(0);
  for (const auto& r : known.roles) switch (r.role) {
      case input_role::tokens: ports.tokens = r.name; break;
      case input_role::positions: ports.positions = r.name; break;
      case input_role::mask: ports.mask = r.name; break;
      case input_role::past_length: ports.past_length = r.name; break;
      case input_role::total_length: ports.total_length = r.name; break;
      case input_role::current_length: ports.current_length = r.name; break;
      default: break;
    }
  for (const std::string* name : {&ports.mask, &ports.past_length, &ports.total_length, &ports.current_length})
    if (!name->empty()) ports.lengths.push_back(*name);
  for (const auto& s : known.states) ports.caches.push_back({s.input, s.output});
  return ports;
}

// The model with sequences side by side in its runs, or nothing and the reason.
std::optional<program> joined_program(const program& model, const decoder_ports& ports, const target& t,
                                      std::vector<joined_layer>& layers, std::string& why, std::string& unsure) {
  program p = model;
  pass_options simplify;
  simplify.fuse = false;
  const kiln::detail::constants_stay_stored scope(!t.has_device());  // as its compilation
  optimize(p, simplify, {t.passes().forms, {}});
  fuse_attention(p);
  why = join_rows(p, ports, layers, unsure);
  return why.empty() ? std::optional(std::move(p)) : std::nullopt;
}

}  // namespace

bool takes_types(const config& c) {
  const model_source source = source_of(c);
  return !source.has_graph() && format_of(source.path) != model_format::kiln;
}

built_decoder decoder_of(const config& c, bool blocks_stay) {
  const weight_source from = open_weights(c);
  return build_decoder(from, from.about.text_or("model_type", c.type),
                       {.now = now,
                        .past = past,
                        .compute = c.compute_type.value_or(dtype::f32),
                        .weights = c.weight_type,
                        .blocks_stay = blocks_stay});
}

std::unique_ptr<const model_plan> make_plan(const config& c, const target& t, compile_options options,
                                            const program_change& change, std::string refused) {
  const model_source source = source_of(c);
  const bool has_graph = source.has_graph();
  check_type(c, has_graph);
  if (has_graph && c.compute_type)
    throw error(errc::unsupported,
                "compute_type is of a model without a graph: found a graph, which says itself what it computes in");
  if (has_graph && c.weight_type)
    throw error(errc::unsupported,
                "weight_type is of a model without a graph: found a graph, whose weights `kiln quantize` stores in "
                "blocks");
  if (has_graph && c.own_context && c.context_length > c.own_context)
    throw error(errc::invalid_argument, "context_length: expected at most the " + std::to_string(*c.own_context) +
                                            " tokens that the model's folder says its graph has, found " +
                                            std::to_string(*c.context_length));
  onnx::imported model;
  std::vector<onnx::value_info> inputs;
  std::optional<std::int64_t> context = c.context_length;
  if (has_graph)
    inputs = source.in_memory ? onnx::model_inputs(source.bytes) : onnx::model_inputs(source.path);
  else
    model = built_model(c, t, inputs, context);
  described_inputs known(c, inputs);
  if (has_graph) {
    for (const onnx::value_info& v :
         source.in_memory ? onnx::overridable_inputs(source.bytes) : onnx::overridable_inputs(source.path))
      known.options.overrides.push_back(v.name);
    model = source.in_memory ? onnx::parse_model(source.bytes, c.folder.string(), known.options)
                             : onnx::read_model(source.path, known.options);
  }
  if (change) model.graph = change(std::move(model.graph), options.remarks);
  options.remarks.insert(options.remarks.begin(), model.remarks.begin(), model.remarks.end());
  std::vector<joined_layer> layers;
  std::string why = std::move(refused), unsure;
  std::optional<program> joined;
  std::optional<page_plan> pages;
  if (why.empty()) joined = joined_program(model.graph, ports_of(context, known), t, layers, why, unsure);
  if (joined) pages = plan_pages(layers, c.kv_cache_type, t.get_device());
  if (joined && t.has_device()) {
    const auto* reader = dynamic_cast<const block_reader*>(&t);
    why = reader ? use_block_tables(*joined, layers, reader->block_attention_rows(), *pages)
                 : "the target has no attention over blocks of caches";
  }
  if (!why.empty()) joined.reset(), unsure.clear();
  if (!unsure.empty())
    options.remarks.push_back("sequences share runs: " + unsure +
                              ", but some that ran together had the results that each has alone");
  bool in_place = false;
  std::unique_ptr<model_plan> plan;
  if (joined) {
    keep_asked_rows(joined->main(), c.decoder.outputs.logits);
    model.graph = program();  // its weights are packed once
    plan = std::make_unique<model_plan>(compile(std::move(*joined), t, options));
    plan->pages = std::move(pages);
    plan->unsure = std::move(unsure);
  } else {
    keep_asked_rows(model.graph.main(), c.decoder.outputs.logits);
    options.remarks.push_back("sequences are run one by one: " + why);
    if (c.kv_cache_type) options.remarks.push_back("kv_cache_type changes nothing: caches are the program's own");
    plan = std::make_unique<model_plan>(compile_in_place(model, t, std::move(options), known.states, in_place));
  }
  plan->settings = c;
  plan->where = t.get_device();
  plan->settings.context_length = context;
  plan->settings.model_data.clear();  // the program has what it needs
  const auto ins = plan->exe.inputs(), outs = plan->exe.outputs();
  plan->logits = index_of(outs, c.decoder.outputs.logits, "output");
  const dimension vocabulary = outs[plan->logits].type.lens.back();
  if (!vocabulary.is_constant())
    throw error(errc::malformed,
                "the logits' last extent is the vocabulary's size, not " + kiln::to_string(vocabulary));
  plan->vocabulary = vocabulary.value();
  plan->context = context.value_or(std::int64_t{1} << 31);
  plan->inputs.resize(ins.size());
  for (std::size_t k = 0; k < ins.size(); ++k) {
    if (ins[k].name == rows_input) plan->inputs[k].role = input_role::rows, plan->asks_rows = true;
    if (ins[k].name == batch_input) plan->inputs[k].role = input_role::batch;
    if (ins[k].name == table_input) plan->inputs[k].role = input_role::table;
    if (ins[k].name == positions_input) plan->inputs[k].role = input_role::positions;
  }
  for (const auto& r : known.roles)
    if (!plan->pages || r.role == input_role::tokens || r.role == input_role::positions)
      for (std::size_t k = 0; k < ins.size(); ++k)
        if (ins[k].name == r.name) plan->inputs[k].role = r.role;
  for (const auto& [name, value] : model.defaults) {
    const std::size_t k = index_of(ins, name, "input");
    plan->inputs[k] = {input_role::parameter, plan->parameters.size()};
    plan->parameters.push_back(ins[k]);
    plan->defaults.emplace_back(value);
  }
  if (plan->pages) return plan;
  for (const auto& s : known.states) {
    cache_slot slot;
    slot.input = index_of(ins, s.input, "input");
    slot.output = index_of(outs, s.output, "output");
    slot.empty = ins[slot.input].type;
    if (s.grows) {
      slot.axis = slot.empty.rank() - 2;
      slot.empty.lens[*slot.axis] = 0;
    }
    slot.in_place = in_place && s.grows;
    plan->inputs[slot.input].index = plan->caches.size();
    plan->caches.push_back(std::move(slot));
  }
  return plan;
}

}  // namespace kiln::language::detail
