#include "kiln/interface/c/impl/handles.hpp"
#include "kiln/interface/c/impl/ports.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/runtime/named_inputs.hpp"
#include "kiln/runtime/options.hpp"
#include "kiln/runtime/report.hpp"

using namespace kiln;
using namespace kiln::c;

kiln_status kiln_compile_options_create(kiln_compile_options** options) {
  return guarded([&] {
    kiln_compile_options*& out = given(options, "options");
    out = new kiln_compile_options;
  });
}

void kiln_compile_options_destroy(kiln_compile_options* options) { delete options; }

kiln_status kiln_compile_options_set(kiln_compile_options* options, const char* name, const char* value) {
  return guarded(
      [&] { set_option(given(options, "options").options, not_null(name, "name"), not_null(value, "value")); });
}

kiln_status kiln_compile_options_get(const kiln_compile_options* options, const char* name, char** value) {
  return guarded([&] {
    char*& out = given(value, "value");
    out = new_string(get_option(given(options, "options").options, not_null(name, "name")));
  });
}

kiln_status kiln_compile(const kiln_program* program, const char* target, const kiln_compile_options* options,
                         kiln_executable** executable) {
  return guarded([&] {
    kiln_executable*& out = given(executable, "executable");
    const kiln_program& p = given(program, "program");
    compile_options with = options ? options->options : compile_options();
    with.remarks = p.remarks;
    const auto to = named_target(not_null(target, "target"), with);
    out = new kiln_executable{compile(p.graph, *to, with), to->has_device()};
  });
}

void kiln_executable_destroy(kiln_executable* executable) { delete executable; }

kiln_status kiln_executable_input_count(const kiln_executable* executable, size_t* count) {
  return guarded([&] { given(count, "count") = given(executable, "executable").compiled.inputs().size(); });
}

kiln_status kiln_executable_output_count(const kiln_executable* executable, size_t* count) {
  return guarded([&] { given(count, "count") = given(executable, "executable").compiled.outputs().size(); });
}

kiln_status kiln_executable_input(const kiln_executable* executable, size_t index, const char** name, kiln_dtype* type,
                                  size_t* rank, kiln_dim* lens) {
  return guarded([&] { put_port(given(executable, "executable").compiled.inputs(), index, {name, type, rank, lens}); });
}

kiln_status kiln_executable_output(const kiln_executable* executable, size_t index, const char** name, kiln_dtype* type,
                                   size_t* rank, kiln_dim* lens) {
  return guarded([&] {
    put_port(given(executable, "executable").compiled.outputs(), index, {name, type, rank, lens});
  });
}

kiln_status kiln_executable_input_index(const kiln_executable* executable, const char* name, size_t* index) {
  return guarded(
      [&] { given(index, "index") = given(executable, "executable").compiled.input_index(not_null(name, "name")); });
}

kiln_status kiln_executable_output_index(const kiln_executable* executable, const char* name, size_t* index) {
  return guarded(
      [&] { given(index, "index") = output_index(given(executable, "executable").compiled, not_null(name, "name")); });
}

kiln_status kiln_executable_report(const kiln_executable* executable, kiln_format format, char** report) {
  return guarded([&] {
    char*& out = given(report, "report");
    const compile_report& r = given(executable, "executable").compiled.report();
    switch (format) {
      case KILN_TEXT: out = new_string(plan_text(r) + report_text(r)); return;
      case KILN_JSON: out = new_string(report_json(r)); return;
    }
    raise(fault::of(errc::invalid_argument, "a format is one of kiln_format", "0 or 1", static_cast<int>(format)));
  });
}
