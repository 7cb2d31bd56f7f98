#include "kiln/cpp_export/impl/exporter.hpp"
#include "kiln/cpp_export/impl/names.hpp"
#include "kiln/cpp_export/impl/prelude.hpp"

// The text of an exported project's files around its steps.
namespace kiln::aot {

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

}  // namespace

// The kernels that the steps call, as the text of kiln's own headers.
std::string cpp_exporter::kernel_text() const {
  std::string text = "\n// ---- vectors: the widest registers of the instruction set that this is compiled for\n";
  const auto widest = [&](std::string_view condition, int lanes, int registers) {
    text += cat(condition, "\ninline constexpr int lanes = ", lanes, ", registers = ", registers, ";\n");
  };
  widest("#if defined(__AVX512F__)", 16, 24);
  widest("#elif defined(__AVX__)", 8, 12);
  widest("#else", 4, 8);
  text += "#endif\n";
  text += cpp_vectors;
  text += own_text(product_text);
  const auto any = [&](step_kind kind) {
    for (const draft& d : plan_.drafts())
      if (d.record.kind == kind) return true;
    return false;
  };
  bool attends = false;
  for (const draft& d : plan_.drafts())
    attends =
        attends || (d.record.kind == step_kind::other && plan_.operation(d.record.attributes).is<op::attention>());
  if (any(step_kind::winograd_nchw) || attends) text += own_text(transpose_square_text);
  if (any(step_kind::winograd_nchw)) text += own_text(winograd_nchw_text);
  if (attends) text += own_text(attention_text);
  if (any(step_kind::windows) || any(step_kind::winograd_nhwc) || any(step_kind::depthwise))
    text += own_text(conv_nhwc_text);
  if (any(step_kind::winograd_nhwc)) text += own_text(transform_text) + own_text(winograd_nhwc_text);
  if (any(step_kind::depthwise)) text += own_text(depthwise_nhwc_text);
  text += cpp_products;
  text += cpp_math;

  return text;
}

// The class up to its steps.
std::string cpp_exporter::class_text() const {
  source_writer c;
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
  return c.str();
}

std::string cpp_exporter::header_text() {
  check_ops();
  name_ports();
  for (std::size_t k = 0; k < plan_.drafts().size(); ++k) write_step(plan_.drafts()[k], k);
  const source_writer steps = std::move(out_);

  source_writer w;
  w.line("// Written by kiln", options_.origin.empty() ? "" : " from ", one_line(options_.origin),
         ": a network with all of its sizes as constants.");
  w.line("#pragma once");
  for (const char* header : {"array", "bit", "cmath", "cstddef", "cstdint", "limits", "type_traits", "utility"})
    w.line("#include <", header, ">");
  w.line("");
  w.line("extern \"C\" const unsigned char ", options_.name, "_weights[];");
  w.line("");
  w.line("namespace ", options_.name, " {");
  std::string text = w.str() + kernel_text() + class_text();
  text += steps.str();
  text += "\n";
  for (const port_text& p : inputs_) text += cat("  const ", stored_name(p.where.type), "* ", p.name, "_ = nullptr;\n");
  text += cat("  alignas(64) unsigned char arena_[", std::max<std::int64_t>(64, plan_.arena_bytes() + most_scratch_),
              "];\n");
  text += cat("};\n\n}  // namespace ", options_.name, "\n");
  return text;
}

std::string cpp_exporter::main_text() const {
  source_writer w;
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
  return w.str();
}

std::string cpp_exporter::cmake_text() const {
  source_writer w;
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
  return w.str();
}

}  // namespace kiln::aot
