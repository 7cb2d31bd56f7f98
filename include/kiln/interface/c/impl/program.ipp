#include "kiln/graph/print.hpp"
#include "kiln/interface/c/impl/handles.hpp"
#include "kiln/interface/c/impl/ports.hpp"
#include "kiln/onnx/custom_op_importers.hpp"
#include "kiln/tensorflow/import.hpp"

using namespace kiln;
using namespace kiln::c;

namespace {

kiln_program* program_of(onnx::imported read) { return new_program(std::move(read.graph), std::move(read.remarks)); }

onnx::import_options options_of(const kiln_import_options* options) {
  onnx::import_options out = options ? options->options : onnx::import_options();
  out.op_importers = onnx::custom_op_importers();
  return out;
}

}  // namespace

kiln_program* kiln::c::new_program(program graph, std::vector<std::string> remarks) {
  auto made = std::make_unique<kiln_program>();
  const module_graph& m = graph.main();
  for (const value_id v : m.parameters()) made->inputs.push_back({m[v.instruction].name.str(), m.shape_of(v)});
  for (std::size_t k = 0; k < m.outputs.size(); ++k)
    made->outputs.push_back({m.output_names[k].str(), m.shape_of(m.outputs[k])});
  made->graph = std::move(graph);
  made->remarks = std::move(remarks);
  return made.release();
}

kiln_status kiln_import_options_create(kiln_import_options** options) {
  return guarded([&] {
    kiln_import_options*& out = given(options, "options");
    out = new kiln_import_options;
  });
}

void kiln_import_options_destroy(kiln_import_options* options) { delete options; }

kiln_status kiln_import_options_set_dim(kiln_import_options* options, const char* name, int64_t value) {
  return guarded([&] { given(options, "options").options.dimensions.emplace_back(not_null(name, "name"), value); });
}

kiln_status kiln_import_options_set_shape(kiln_import_options* options, const char* input, size_t rank,
                                          const int64_t* lens) {
  return guarded([&] {
    given(options, "options").options.shapes.emplace_back(not_null(input, "input"), checked_lens(rank, lens));
  });
}

kiln_status kiln_import_options_set_value(kiln_import_options* options, const char* input, const kiln_tensor* value) {
  return guarded([&] {
    const argument own = given(value, "value").value.copy();
    given(options, "options").options.values.emplace_back(not_null(input, "input"), own.to_literal());
  });
}

kiln_status kiln_import_options_keep_input(kiln_import_options* options, const char* input) {
  return guarded([&] { given(options, "options").options.overrides.emplace_back(not_null(input, "input")); });
}

kiln_status kiln_import_options_set_directory(kiln_import_options* options, const char* path) {
  return guarded([&] { given(options, "options").directory = not_null(path, "path"); });
}

kiln_status kiln_program_import(const char* path, const kiln_import_options* options, kiln_program** program) {
  return guarded([&] {
    kiln_program*& out = given(program, "program");
    out = program_of(tensorflow::read_any_model(not_null(path, "path"), {.common = options_of(options)}));
  });
}

kiln_status kiln_program_import_memory(const void* bytes, size_t size, const kiln_import_options* options,
                                       kiln_program** program) {
  return guarded([&] {
    kiln_program*& out = given(program, "program");
    const auto model = given_array(static_cast<const std::byte*>(bytes), size, "bytes");
    out = program_of(
        tensorflow::parse_any_model(model, options ? options->directory : ".", {.common = options_of(options)}));
  });
}

void kiln_program_destroy(kiln_program* program) { delete program; }

kiln_status kiln_program_input_count(const kiln_program* program, size_t* count) {
  return guarded([&] { given(count, "count") = given(program, "program").inputs.size(); });
}

kiln_status kiln_program_output_count(const kiln_program* program, size_t* count) {
  return guarded([&] { given(count, "count") = given(program, "program").outputs.size(); });
}

kiln_status kiln_program_input(const kiln_program* program, size_t index, const char** name, kiln_dtype* type,
                               size_t* rank, kiln_dim* lens) {
  return guarded([&] { put_port(given(program, "program").inputs, index, {name, type, rank, lens}); });
}

kiln_status kiln_program_output(const kiln_program* program, size_t index, const char** name, kiln_dtype* type,
                                size_t* rank, kiln_dim* lens) {
  return guarded([&] { put_port(given(program, "program").outputs, index, {name, type, rank, lens}); });
}

kiln_status kiln_program_text(const kiln_program* program, char** text) {
  return guarded([&] {
    char*& out = given(text, "text");
    out = new_string(print(given(program, "program").graph).view());
  });
}
