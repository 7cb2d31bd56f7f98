#include <functional>

#include "kiln/cpp_export/impl/exporter.hpp"
#include "kiln/cpp_export/impl/names.hpp"
#include "kiln/pass/expand_block_dequantize.hpp"
#include "kiln/pass/expand_sampling.hpp"
#include "kiln/pass/pipeline.hpp"

namespace kiln {

namespace aot {

namespace {

void require_fixed(const module_graph& graph) {
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (graph[i].is_weight)
      raise(errc::unsupported, cat("the weight '", graph[i].name.view(), "' has no value: bind it before the export"));
    for (const shape& s : graph[i].results)
      for (const dimension d : s.lens)
        if (!d.is_constant())
          raise(errc::unsupported, cat("an exported program has fixed dims: '", graph[i].name.view(), "' has ",
                                       to_string(s), "; give a value for each of its names"));
  }
}

const program& checked(const program& p, const cpp_options& options) {
  if (!is_program_name(options.name))
    raise(errc::invalid_argument,
          cat("the name of an exported program is a free C++ identifier, not '", options.name, "'"));
  require_fixed(p.main());
  return p;
}

}  // namespace

cpp_exporter::cpp_exporter(const program& p, const cpp_options& options)
    : program_(checked(p, options)), graph_(p.main()), options_(options), plan_(p) {
  plan_.lay_out();
  names_.insert(cpp_words().begin(), cpp_words().end());
  names_.insert(c_names().begin(), c_names().end());
  names_.insert(options.name);
  names_.insert(options.name + "_weights");
  // what the written files name themselves
  for (const char* own : {"in", "run", "lanes", "math", "arena", "weights", "network", "transfer", "argc", "argv",
                          "main", "std", "ports", "registers"})
    names_.insert(own);
  for (std::size_t k = 0; k < plan_.drafts().size(); ++k) names_.insert(cat("step_", k));
}

std::string cpp_exporter::unique(std::string_view wanted) {
  const std::string name = identifier_of(wanted);
  std::string made = name;
  for (int n = 2; !names_.insert(made).second; ++n) made = cat(name, "_", n);
  return made;
}

std::vector<place> cpp_exporter::places(const draft& d) const {
  std::vector<place> all;
  for (const auto& o : d.inputs) all.push_back(plan_.final_place(o));
  for (const auto& o : d.outputs) all.push_back(plan_.final_place(o));
  return all;
}

std::int64_t cpp_exporter::add_weights(const std::byte* from, std::size_t bytes) {
  const std::size_t hash = std::hash<std::string_view>{}({reinterpret_cast<const char*>(from), bytes});
  for (auto [at, end] = weight_hashes_.equal_range(hash); at != end; ++at)
    if (at->second.second == bytes && std::equal(from, from + bytes, weights_.begin() + at->second.first))
      return at->second.first;
  weights_.resize((weights_.size() + 63) / 64 * 64);
  const auto position = static_cast<std::int64_t>(weights_.size());
  weights_.insert(weights_.end(), from, from + bytes);
  weight_hashes_.emplace(hash, std::pair(position, bytes));
  return position;
}

std::int64_t cpp_exporter::constant_at(std::int64_t index) {
  const auto [known, fresh] = constant_positions_.emplace(index, 0);
  if (fresh) {
    const literal& l = graph_[plan_.constants()[static_cast<std::size_t>(index)]].constant;
    known->second = add_weights(l.bytes(), static_cast<std::size_t>(l.get_shape().bytes().value()));
  }
  return known->second;
}

std::int64_t cpp_exporter::take_scratch(std::int64_t bytes) {
  const std::int64_t at = plan_.arena_bytes() + scratch_;
  scratch_ += (bytes + 63) / 64 * 64;
  most_scratch_ = std::max(most_scratch_, scratch_);
  return at;
}

std::string cpp_exporter::base_of(const place& p) {
  const std::string type = stored_name(p.type);
  if (p.at.where == memory::arena) return cat("reinterpret_cast<", type, "*>(arena_ + ", p.at.base, ")");
  if (p.at.where == memory::input) return cat(inputs_[static_cast<std::size_t>(p.at.index)].name, "_");
  return cat("reinterpret_cast<const ", type, "*>(weights + ", constant_at(p.at.index), ")");
}

void cpp_exporter::declare(std::string_view name, const place& p, bool writes) {
  const std::string offset = p.offset == 0 ? "" : cat(" + ", p.offset);
  out_.line(writes ? "" : "const ", stored_name(p.type), writes ? "* __restrict const " : "* const ", name, " = ",
            base_of(p), offset, ";");
}

void cpp_exporter::write_step(const draft& d, std::size_t k) {
  scratch_ = 0;
  std::string what = "copy";
  if (d.from != lower::none) {
    const operation& op = graph_[d.from].op;
    what = std::string(op.name());
    if (const auto* group = op.get_if<op::fused>()) what = std::string(program_.module(group->body).name.view());
  }
  std::string shapes_text;
  for (const auto& o : d.outputs) shapes_text += " " + to_string(shape{o.type, o.at.where.lens});
  out_.line("");
  out_.line("// ", what, ":", shapes_text);
  out_.line("void step_", k, "() {");
  switch (d.record.kind) {
    case step_kind::copy: write_copy(d); break;
    case step_kind::pointwise: write_pointwise(d); break;
    case step_kind::reduce: write_reduce(d); break;
    case step_kind::product: write_product(d); break;
    case step_kind::winograd_nchw: write_winograd_nchw(d); break;
    case step_kind::other: write_other(d, plan_.operation(d.record.attributes)); break;
    case step_kind::windows:
    case step_kind::winograd_nhwc:
    case step_kind::depthwise: write_image(d); break;
  }
  out_.line("}");
}

void cpp_exporter::check_ops() const {
  std::set<std::string> unknown;
  for (const draft& d : plan_.drafts())
    if (d.record.kind == step_kind::other) {
      const operation& op = plan_.operation(d.record.attributes);
      if (!has_text(op)) unknown.insert(std::string(op.name()));
    }
  if (!unknown.empty()) {
    std::string list;
    for (const std::string& name : unknown) list += (list.empty() ? "" : ", ") + name;
    raise(errc::unsupported, "the export to C++ has no text for these ops: " + list);
  }
}

void cpp_exporter::name_ports() {
  for (value_id v : graph_.parameters()) {
    const instruction_kind kind = graph_.producer(v).kind;
    if (kind != instruction_kind::parameter) continue;
    const shape& s = graph_.shape_of(v);
    place p;
    p.type = s.type;
    p.lens = to_ints(s.lens);
    inputs_.push_back({unique(graph_.producer(v).name.view()), graph_.producer(v).name.str(), p, product(p.lens)});
  }
  for (std::size_t k = 0; k < plan_.results().size(); ++k) {
    const place p = plan_.final_place(plan_.results()[k]);
    outputs_.push_back({unique(graph_.output_names[k].view()), graph_.output_names[k].str(), p, product(p.lens)});
  }
}

cpp_project cpp_exporter::write() {
  cpp_project out;
  const std::string& n = options_.name;
  out.files.push_back({n + ".hpp", header_text()});
  out.files.push_back({"main.cpp", main_text()});
  out.files.push_back({n + "_weights.S", cat("    .section .rodata\n    .balign 64\n    .globl ", n, "_weights\n", n,
                                             "_weights:\n    .incbin \"", n,
                                             "_weights.bin\"\n    .section .note.GNU-stack,\"\",%progbits\n")});
  out.files.push_back({"CMakeLists.txt", cmake_text()});
  out.weights_name = n + "_weights.bin";
  if (weights_.empty()) weights_.resize(64);
  out.weights = std::move(weights_);
  out.arena_bytes = static_cast<std::size_t>(plan_.arena_bytes() + most_scratch_);
  out.steps = plan_.drafts().size();
  return out;
}

}  // namespace aot

bool is_program_name(std::string_view name) {
  return aot::is_identifier(name) && !aot::cpp_words().contains(name) && !aot::c_names().contains(name) &&
         name != "std" && name != "main" && name != "network" && name != "transfer";
}

cpp_project to_cpp(const program& optimized, const cpp_options& options) {
  const std::optional<program> gathered = without_sampling(optimized);
  std::optional<program> plain = without_block_dequantize(gathered ? *gathered : optimized);
  if (gathered && !plain) plain = *gathered;
  if (plain) optimize(*plain, {.fuse = false});
  return aot::cpp_exporter(plain ? *plain : optimized, options).write();
}

}  // namespace kiln
