#include <functional>

#include "kiln/fixed/impl/cpp_exporter.hpp"
#include "kiln/fixed/impl/cpp_names.hpp"
#include "kiln/fixed/impl/cpp_prelude.hpp"
#include "kiln/pass/pipeline.hpp"

namespace kiln {

namespace fixed {

namespace {

// A kiln header as part of an exported one: without its preprocessor lines, its namespace and its macros.
std::string own_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string line(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if ((line.starts_with('#') && !line.starts_with("#pragma GCC")) || line.starts_with("namespace ") ||
        line.starts_with("}  // namespace") || line.starts_with("// Static programs"))
      continue;
    if (const std::size_t at = line.find("KILN_FN"); at != line.npos)
      line.replace(at, 7, "inline __attribute__((always_inline))");
    out += line + "\n";
  }
  return out;
}

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
  if (d.from != plan_type::none) {
    const operation& op = graph_[d.from].op;
    what = std::string(op.name());
    if (const auto* group = op.get_if<op::fused>()) what = std::string(program_.module(group->body).name.view());
  }
  std::string shapes_text;
  for (const auto& o : d.outputs) shapes_text += " " + to_string(shape{o.type, o.where.at.lens});
  out_.line("");
  out_.line("// ", what, ":", shapes_text);
  out_.line("void step_", k, "() {");
  switch (d.record.kind) {
    case step_kind::copy:
      write_copy(d);
      break;
    case step_kind::pointwise:
      write_pointwise(d);
      break;
    case step_kind::reduce:
      write_reduce(d);
      break;
    case step_kind::product:
      write_product(d);
      break;
    case step_kind::filtering:
      write_filtering(d);
      break;
    case step_kind::other:
      write_other(d, plan_.operation(d.record.attributes));
      break;
    case step_kind::windows:
    case step_kind::image_filtering:
    case step_kind::depthwise:
      write_image(d);
      break;
  }
  out_.line("}");
}

std::string cpp_exporter::header_text() {
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

  for (std::size_t k = 0; k < plan_.drafts().size(); ++k) write_step(plan_.drafts()[k], k);
  const cpp_writer steps = std::move(out_);

  cpp_writer w;
  w.line("// Written by kiln", options_.origin.empty() ? "" : " from ", one_line(options_.origin),
         ": a network with all of its sizes as constants.");
  w.line("#pragma once");
  for (const char* header : {"array", "bit", "cmath", "cstddef", "cstdint", "limits", "type_traits", "utility"})
    w.line("#include <", header, ">");
  w.line("");
  w.line("extern \"C\" const unsigned char ", options_.name, "_weights[];");
  w.line("");
  w.line("namespace ", options_.name, " {");
  std::string text = w.text();
  text += "\n// ---- vectors: the widest registers of the instruction set that this is compiled for\n";
  const auto widest = [&](std::string_view condition, int lanes, int registers) {
    text += cat(condition, "\ninline constexpr int lanes = ", lanes, ", registers = ", registers, ";\n");
  };
  widest("#if defined(__AVX512F__)", 16, 24);
  widest("#elif defined(__AVX__)", 8, 12);
  widest("#else", 4, 8);
  text += "#endif\n";
  text += cpp_vectors;
  text += own_text(fixed_product_text);
  const auto any = [&](step_kind kind) {
    for (const draft& d : plan_.drafts())
      if (d.record.kind == kind) return true;
    return false;
  };
  bool attends = false;
  for (const draft& d : plan_.drafts())
    attends =
        attends || (d.record.kind == step_kind::other && plan_.operation(d.record.attributes).is<op::attention>());
  if (any(step_kind::filtering) || attends) text += own_text(turn_square_text);
  if (any(step_kind::filtering)) text += own_text(fixed_filtering_text);
  if (attends) text += own_text(fixed_attention_text);
  if (any(step_kind::windows) || any(step_kind::image_filtering) || any(step_kind::depthwise))
    text += own_text(fixed_windows_text);
  if (any(step_kind::image_filtering)) text += own_text(winograd_transform_text) + own_text(fixed_image_filtering_text);
  if (any(step_kind::depthwise)) text += own_text(fixed_depthwise_text);
  text += cpp_products;
  text += cpp_math;

  cpp_writer c;
  c.line("");
  c.line("/// The network. An object holds the memory of its values (", plan_.arena_bytes() + most_scratch_,
         " bytes); one thread at a time runs it.");
  c.line("class network {");
  c.line("public:");
  const auto list = [&](const std::vector<port_text>& ports, std::string_view kind) {
    for (const port_text& p : ports)
      c.line("static constexpr std::size_t ", p.name, "_size = ", p.elements, ";  ///< ", kind, " '",
             one_line(p.source), "': ", to_string(shape{p.where.type, to_dims(p.where.lens)}));
  };
  list(inputs_, "elements of input");
  list(outputs_, "elements of output");
  c.line("");
  c.line("/// Runs the network once. Arrays are row-major.");
  std::string arguments;
  for (const port_text& p : inputs_)
    arguments += cat(arguments.empty() ? "" : ", ", "const ", stored_name(p.where.type), "* ", p.name);
  for (const port_text& p : outputs_)
    arguments += cat(arguments.empty() ? "" : ", ", stored_name(p.where.type), "* ", p.name);
  c.line("void run(", arguments, ") {");
  for (const port_text& p : inputs_) c.line(p.name, "_ = ", p.name, ";");
  for (std::size_t k = 0; k < plan_.drafts().size(); ++k) c.line("step_", k, "();");
  for (const port_text& p : outputs_)
    c.line("__builtin_memcpy(", p.name, ", arena_ + ",
           p.where.at.base + p.where.offset * static_cast<std::int64_t>(size_of(p.where.type)), ", ",
           p.elements * static_cast<std::int64_t>(size_of(p.where.type)), ");");
  c.line("}");
  c.line("");
  c.line("private:");
  c.line("static constexpr const unsigned char* weights = ", options_.name, "_weights;");
  std::string steps_text = steps.text();
  std::string indented;
  for (std::string_view rest = steps_text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    if (end != 0) indented += "  ";
    indented += rest.substr(0, end + 1);
    rest.remove_prefix(end + 1);
  }
  text += c.text() + indented;
  text += "\n";
  for (const port_text& p : inputs_) text += cat("  const ", stored_name(p.where.type), "* ", p.name, "_ = nullptr;\n");
  text += cat("  alignas(64) unsigned char arena_[", std::max<std::int64_t>(64, plan_.arena_bytes() + most_scratch_),
              "];\n");
  text += cat("};\n\n}  // namespace ", options_.name, "\n");
  return text;
}

std::string cpp_exporter::main_text() const {
  cpp_writer w;
  w.line(
      "// Runs the network once over raw little-endian files: the inputs in order, then a file to write for each "
      "output.");
  w.line("#include <cstdio>");
  w.line("");
  w.line("#include \"", options_.name, ".hpp\"");
  w.line("");
  w.line("namespace {");
  w.line("");
  w.line("bool transfer(const char* path, const char* mode, void* data, std::size_t bytes) {");
  w.line("std::FILE* const file = std::fopen(path, mode);");
  w.line(
      "bool whole = file && (mode[0] == 'r' ? std::fread(data, 1, bytes, file) : std::fwrite(data, 1, bytes, file)) == "
      "bytes;");
  w.line("if (whole && mode[0] == 'r') whole = std::fgetc(file) == EOF;");
  w.line("if (file && std::fclose(file) != 0) whole = false;");
  w.line("if (!whole) std::fprintf(stderr, \"", options_.name, ": cannot ", "%s %zu bytes: %s\\n\", ",
         "mode[0] == 'r' ? \"read exactly\" : \"write\", bytes, path);");
  w.line("return whole;");
  w.line("}");
  w.line("");
  w.line(options_.name, "::network network;");
  w.line("");
  w.line("// members, so that a function of the C library may have the name of one");
  w.line("struct {");
  for (const auto* ports : {&inputs_, &outputs_})
    for (const port_text& p : *ports)
      w.line(stored_name(p.where.type), " ", p.name, "[", std::max<std::int64_t>(1, p.elements), "];");
  w.line("} ports;");
  w.line("");
  w.line("}  // namespace");
  w.line("");
  w.line("int main(int argc, char** argv) {");
  w.line("if (argc != ", inputs_.size() + outputs_.size() + 1, ") {");
  std::string usage;
  for (const port_text& p : inputs_) usage += " " + p.name;
  for (const port_text& p : outputs_) usage += " " + p.name;
  w.line("std::fprintf(stderr, \"usage: %s", usage, "\\n\", argv[0]);");
  w.line("return 2;");
  w.line("}");
  std::size_t at = 1;
  std::string arguments;
  for (const port_text& p : inputs_) {
    w.line("if (!transfer(argv[", at++, "], \"rb\", ports.", p.name, ", ", p.elements, " * sizeof(ports.", p.name,
           "[0]))) return 2;");
    arguments += cat(arguments.empty() ? "" : ", ", "ports.", p.name);
  }
  for (const port_text& p : outputs_) arguments += cat(arguments.empty() ? "" : ", ", "ports.", p.name);
  w.line("network.run(", arguments, ");");
  for (const port_text& p : outputs_)
    w.line("if (!transfer(argv[", at++, "], \"wb\", ports.", p.name, ", ", p.elements, " * sizeof(ports.", p.name,
           "[0]))) return 2;");
  w.line("return 0;");
  w.line("}");
  return w.text();
}

std::string cpp_exporter::cmake_text() const {
  cpp_writer w;
  const std::string& n = options_.name;
  w.line("cmake_minimum_required(VERSION 3.18)");
  w.line("project(", n, " LANGUAGES CXX ASM)");
  w.line("");
  w.line("set(KILN_EXPORT_ARCH \"native\" CACHE STRING \"The instruction set, as -march takes it\")");
  w.line("if(NOT CMAKE_BUILD_TYPE)");
  w.line("  set(CMAKE_BUILD_TYPE Release)");
  w.line("endif()");
  w.line("");
  w.line("# The network as a library (header and weights), and a program over raw files.");
  w.line("add_library(", n, "_network STATIC ", n, "_weights.S)");
  w.line("target_include_directories(", n, "_network PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})");
  w.line("target_compile_features(", n, "_network PUBLIC cxx_std_20)");
  w.line("target_compile_options(", n, "_network PUBLIC");
  w.line(
      "  $<$<COMPILE_LANGUAGE:CXX>:-O3 -march=${KILN_EXPORT_ARCH} -fno-math-errno -fno-trapping-math "
      "-ffp-contract=fast>");
  w.line("  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-psabi>)");
  w.line("set_source_files_properties(", n, "_weights.S PROPERTIES");
  w.line("  COMPILE_OPTIONS \"-I${CMAKE_CURRENT_SOURCE_DIR}\" OBJECT_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/", n,
         "_weights.bin)");
  w.line("add_executable(", n, "_program main.cpp)");
  w.line("set_target_properties(", n, "_program PROPERTIES OUTPUT_NAME ", n, ")");
  w.line("target_link_libraries(", n, "_program PRIVATE ", n, "_network)");
  return w.text();
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

}  // namespace fixed

bool is_program_name(std::string_view name) {
  return fixed::is_identifier(name) && !fixed::cpp_words().contains(name) && !fixed::c_names().contains(name) &&
         name != "std" && name != "main" && name != "network" && name != "transfer";
}

cpp_project to_cpp(const program& optimised, const cpp_options& options) {
  return fixed::cpp_exporter(optimised, options).write();
}

}  // namespace kiln
