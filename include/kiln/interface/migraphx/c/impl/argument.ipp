#include "kiln/interface/migraphx/c/impl/handles.hpp"

using namespace kiln::migraphx;
using namespace kiln::migraphx::c;

migraphx_status migraphx_argument_destroy(migraphx_argument_t argument) { return destroyed(argument); }
migraphx_status migraphx_argument_assign_to(migraphx_argument_t output, const_migraphx_argument_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_argument_create(migraphx_argument_t* out, const_migraphx_shape_t shape, void* buffer) {
  return made(out, [&] { return argument(object(shape, "shape"), not_null(buffer, "buffer")); });
}
migraphx_status migraphx_argument_create_empty(migraphx_argument_t* out, const_migraphx_shape_t shape) {
  return made(out, [&] { return argument(object(shape, "shape")); });
}
migraphx_status migraphx_argument_shape(const_migraphx_shape_t* out, const_migraphx_argument_t argument) {
  return told(out, [&] { return handle_of<const migraphx_shape>(&object(argument, "argument").get_shape()); });
}
migraphx_status migraphx_argument_buffer(char** out, const_migraphx_argument_t argument) {
  return told(out, [&] { return object(argument, "argument").data(); });
}
migraphx_status migraphx_argument_equal(bool* out, const_migraphx_argument_t argument, const_migraphx_argument_t x) {
  return told(out, [&] { return object(argument, "argument") == object(x, "x"); });
}
migraphx_status migraphx_argument_save(const_migraphx_argument_t a, const char* filename) {
  return guarded([&] { save_argument(object(a, "a"), not_null(filename, "filename")); });
}
migraphx_status migraphx_argument_load(migraphx_argument_t* out, const char* filename) {
  return made(out, [&] { return load_argument(not_null(filename, "filename")); });
}
migraphx_status migraphx_argument_generate(migraphx_argument_t* out, const_migraphx_shape_t s, size_t seed) {
  return made(out, [&] { return generate_argument(object(s, "s"), seed); });
}

migraphx_status migraphx_target_destroy(migraphx_target_t target) { return destroyed(target); }
migraphx_status migraphx_target_assign_to(migraphx_target_t output, const_migraphx_target_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_target_create(migraphx_target_t* out, const char* name) {
  bool asked = false;
  const migraphx_status status = made(out, [&] {
    const std::string wanted = text_from(name, "name");
    asked = true;
    return target(wanted);
  });
  return status == migraphx_status_unknown_error && asked ? migraphx_status_unknown_target : status;
}

migraphx_status migraphx_program_parameter_shapes_destroy(migraphx_program_parameter_shapes_t all) {
  return destroyed(all);
}
migraphx_status migraphx_program_parameter_shapes_assign_to(migraphx_program_parameter_shapes_t output,
                                                            const_migraphx_program_parameter_shapes_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_program_parameter_shapes_size(size_t* out, migraphx_program_parameter_shapes_t all) {
  return told(out, [&] { return object(all, "program_parameter_shapes").size(); });
}
migraphx_status migraphx_program_parameter_shapes_get(const_migraphx_shape_t* out,
                                                      migraphx_program_parameter_shapes_t all, const char* name) {
  return told(out, [&] {
    const auto& shapes = object(all, "program_parameter_shapes");
    const auto found = shapes.find(text_from(name, "name"));
    if (found == shapes.end())
      raise(errc::invalid_argument, "the program has a parameter of that name: found '" + std::string(name) + "'");
    return handle_of<const migraphx_shape>(&found->second);
  });
}
migraphx_status migraphx_program_parameter_shapes_names(const char** out, migraphx_program_parameter_shapes_t all) {
  return guarded([&] {
    const auto& shapes = object(all, "program_parameter_shapes");
    const char** to = shapes.empty() ? out : not_null(out, "the place of the names");
    for (const auto& [name, s] : shapes) *to++ = name.c_str();
  });
}

migraphx_status migraphx_program_parameters_destroy(migraphx_program_parameters_t all) { return destroyed(all); }
migraphx_status migraphx_program_parameters_assign_to(migraphx_program_parameters_t output,
                                                      const_migraphx_program_parameters_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_program_parameters_create(migraphx_program_parameters_t* out) {
  return made(out, [] { return parameter_map(); });
}
migraphx_status migraphx_program_parameters_add(migraphx_program_parameters_t all, const char* name,
                                                const_migraphx_argument_t argument) {
  return guarded([&] { object(all, "program_parameters")[text_from(name, "name")] = object(argument, "argument"); });
}

migraphx_status migraphx_arguments_destroy(migraphx_arguments_t arguments) { return destroyed(arguments); }
migraphx_status migraphx_arguments_assign_to(migraphx_arguments_t output, const_migraphx_arguments_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_arguments_size(size_t* out, migraphx_arguments_t arguments) {
  return told(out, [&] { return object(arguments, "arguments").size(); });
}
migraphx_status migraphx_arguments_get(const_migraphx_argument_t* out, migraphx_arguments_t arguments, size_t idx) {
  return told(out, [&] { return element<migraphx_argument>(object(arguments, "arguments"), idx); });
}

migraphx_status migraphx_shapes_destroy(migraphx_shapes_t shapes) { return destroyed(shapes); }
migraphx_status migraphx_shapes_assign_to(migraphx_shapes_t output, const_migraphx_shapes_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_shapes_size(size_t* out, migraphx_shapes_t shapes) {
  return told(out, [&] { return object(shapes, "shapes").size(); });
}
migraphx_status migraphx_shapes_get(const_migraphx_shape_t* out, migraphx_shapes_t shapes, size_t idx) {
  return told(out, [&] { return element<migraphx_shape>(object(shapes, "shapes"), idx); });
}
