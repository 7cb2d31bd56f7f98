#include <cstdio>

#include "kiln/interface/migraphx/c/impl/handles.hpp"

using namespace kiln::migraphx;
using namespace kiln::migraphx::c;

namespace {

[[gnu::init_priority(101)]] expression_owner expressions;

}  // namespace

const char* kiln_last_error(void) {
  const last_error* const known = find_last_error();
  return known ? known->whole.c_str() : "";
}

migraphx_status migraphx_program_destroy(migraphx_program_t program) { return destroyed(program); }
migraphx_status migraphx_program_assign_to(migraphx_program_t output, const_migraphx_program_t input) {
  return guarded([&] { object(output, "output") = object(input, "input").clone(); });
}
migraphx_status migraphx_program_create(migraphx_program_t* out) {
  return made(out, [] { return program(); });
}
migraphx_status migraphx_program_get_main_module(migraphx_module_t* out, migraphx_program_t program) {
  return told(out, [&] { return handle_of<migraphx_module>(&object(program, "program").main_module()); });
}
migraphx_status migraphx_program_create_module(migraphx_module_t* out, migraphx_program_t program, const char* name) {
  return told(out, [&] {
    return handle_of<migraphx_module>(&object(program, "program").create_module(text_from(name, "name")));
  });
}
migraphx_status migraphx_program_compile(migraphx_program_t program, migraphx_target_t target,
                                         migraphx_compile_options_t options) {
  return guarded([&] { object(program, "program").compile(object(target, "target"), object(options, "options")); });
}
migraphx_status migraphx_program_get_parameter_shapes(migraphx_program_parameter_shapes_t* out,
                                                      migraphx_program_t program) {
  return made(out, [&] { return object(program, "program").parameter_shapes(); });
}
migraphx_status migraphx_program_get_output_shapes(migraphx_shapes_t* out, migraphx_program_t program) {
  return made(out, [&] { return object(program, "program").output_shapes(); });
}
migraphx_status migraphx_program_print(const_migraphx_program_t program) {
  return guarded([&] {
    std::fputs(object(program, "program").text_of().c_str(), stdout);
    std::fflush(stdout);
  });
}
migraphx_status migraphx_program_sort(migraphx_program_t program) {
  return guarded([&] { object(program, "program").sort(); });
}
migraphx_status migraphx_program_run(migraphx_arguments_t* out, migraphx_program_t program,
                                     migraphx_program_parameters_t params) {
  return made(out, [&] { return object(program, "program").run(object(params, "params")); });
}
migraphx_status migraphx_program_run_async(migraphx_arguments_t* out, migraphx_program_t program,
                                           migraphx_program_parameters_t params, void* s, const char* name) {
  return made(
      out, [&] { return object(program, "program").run_async(object(params, "params"), s, text_from(name, "name")); });
}
migraphx_status migraphx_program_run_trace(migraphx_arguments_t* out, migraphx_program_t program,
                                           migraphx_program_parameters_t params, migraphx_trace_callback_t callback,
                                           void* data) {
  return made(out, [&] {
    not_null(reinterpret_cast<const void*>(callback), "callback");
    return object(program, "program").run_trace(object(params, "params"), [&](const trace_info& info) {
      trace_info own = info;
      if (callback(handle_of<migraphx_trace_info>(&own), data) != migraphx_status_success)
        raise(errc::canceled, "the traced run goes on: its callback failed");
    });
  });
}
migraphx_status migraphx_program_equal(bool* out, const_migraphx_program_t program, const_migraphx_program_t x) {
  return told(out, [&] { return object(program, "program") == object(x, "x"); });
}
migraphx_status migraphx_program_experimental_get_context(migraphx_context_t* out, const_migraphx_program_t program) {
  return told(out, [&] { return handle_of<migraphx_context>(&object(program, "program").get_context()); });
}

migraphx_status migraphx_trace_info_destroy(migraphx_trace_info_t trace_info) { return destroyed(trace_info); }
migraphx_status migraphx_trace_info_assign_to(migraphx_trace_info_t output, const_migraphx_trace_info_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_trace_info_create(migraphx_trace_info_t* out) {
  return made(out, [] { return trace_info(); });
}
migraphx_status migraphx_trace_info_get_index(size_t* out, const_migraphx_trace_info_t trace_info) {
  return told(out, [&] { return object(trace_info, "trace_info").index; });
}
migraphx_status migraphx_trace_info_get_name(const char** out, const_migraphx_trace_info_t trace_info) {
  return told(out, [&] { return object(trace_info, "trace_info").name.c_str(); });
}
migraphx_status migraphx_trace_info_get_result(const_migraphx_argument_t* out, const_migraphx_trace_info_t trace_info) {
  return told(out, [&] { return handle_of<const migraphx_argument>(&object(trace_info, "trace_info").result); });
}

migraphx_status migraphx_context_finish(const_migraphx_context_t context) {
  return guarded([&] { object(context, "context").finish(); });
}
migraphx_status migraphx_context_get_queue(void** out, migraphx_context_t context) {
  return told(out, [&] { return object(context, "context").queue(); });
}

migraphx_status migraphx_load(migraphx_program_t* out, const char* name, migraphx_file_options_t options) {
  return made(out, [&] { return load(not_null(name, "name"), object(options, "options")); });
}
migraphx_status migraphx_save(migraphx_program_t p, const char* name, migraphx_file_options_t options) {
  return guarded([&] { save(object(p, "p"), not_null(name, "name"), object(options, "options")); });
}
