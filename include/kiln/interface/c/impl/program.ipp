#include "kiln/graph/print.hpp"
#include "kiln/interface/c/impl/handles.hpp"
#include "kiln/interface/c/impl/ports.hpp"
#include "kiln/onnx/custom_op_importers.hpp"
#include "kiln/tensorflow/import.hpp"

using namespace kiln;
using namespace kiln::c;

namespace {

kiln_program* program_of(onnx::imported read) { return new_program(std::move(read.graph), std::move(read.remarks)); }

tensorflow::import_options options_of(const kiln_import_options* options) {
  tensorflow::import_options out = options ? options->options : tensorflow::import_options();
  out.common.op_importers = onnx::custom_op_importers();
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
  return guarded(
      [&] { given(options, "options").options.common.dimensions.emplace_back(not_null(name, "name"), value); });
}

kiln_status kiln_import_options_set_shape(kiln_import_options* options, const char* input, size_t rank,
                                          const int64_t* lens) {
  return guarded([&] {
    given(options, "options").options.common.shapes.emplace_back(not_null(input, "input"), checked_lens(rank, lens));
  });
}

kiln_status kiln_import_options_set_value(kiln_import_options* options, const char* input, const kiln_tensor* value) {
  return guarded([&] {
    const argument own = given(value, "value").value.copy();
    given(options, "options").options.common.values.emplace_back(not_null(input, "input"), own.to_literal());
  });
}

kiln_status kiln_import_options_keep_input(kiln_import_options* options, const char* input) {
  return guarded([&] { given(options, "options").options.common.overrides.emplace_back(not_null(input, "input")); });
}

kiln_status kiln_import_options_set_directory(kiln_import_options* options, const char* path) {
  return guarded([&] { given(options, "options").directory = not_null(path, "path"); });
}

kiln_status kiln_import_options_set_layout(kiln_import_options* options, const char* layout) {
  return guarded([&] {
    tensorflow::import_options& to = given(options, "options").options;
    const std::string_view name = not_null(layout, "layout");
    if (name != "NHWC" && name != "NCHW")
      raise(errc::invalid_argument, "layout is '" + std::string(name) + "', not NHWC or NCHW");
    to.layout = name == "NHWC" ? tensorflow::data_format::nhwc : tensorflow::data_format::nchw;
  });
}

kiln_status kiln_import_options_set_batch(kiln_import_options* options, int64_t extent) {
  return guarded([&] {
    if (extent < 0) raise(errc::invalid_argument, "extent is " + std::to_string(extent) + ", and not below 0");
    given(options, "options").options.open_extent = extent;
  });
}

kiln_status kiln_import_options_add_output(kiln_import_options* options, const char* output) {
  return guarded([&] { given(options, "options").options.outputs.emplace_back(not_null(output, "output")); });
}

kiln_status kiln_import_options_set_signature(kiln_import_options* options, const char* signature, const char* tag) {
  return guarded([&] {
    tensorflow::import_options& to = given(options, "options").options;
    to.signature = signature ? signature : "";
    to.tag = tag ? tag : "";
  });
}

kiln_status kiln_program_import(const char* path, const kiln_import_options* options, kiln_program** program) {
  return guarded([&] {
    kiln_program*& out = given(program, "program");
    out = program_of(tensorflow::read_any_model(not_null(path, "path"), options_of(options)));
  });
}

kiln_status kiln_program_import_memory(const void* bytes, size_t size, const kiln_import_options* options,
                                       kiln_program** program) {
  return guarded([&] {
    kiln_program*& out = given(program, "program");
    const auto model = given_array(static_cast<const std::byte*>(bytes), size, "bytes");
    out = program_of(tensorflow::parse_any_model(model, options ? options->directory : ".", options_of(options)));
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
