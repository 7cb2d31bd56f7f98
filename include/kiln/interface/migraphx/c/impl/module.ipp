#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "kiln/interface/migraphx/c/impl/handles.hpp"

using namespace kiln::migraphx;
using namespace kiln::migraphx::c;

namespace {

// What printf makes of a format.
std::string formatted(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (size < 0) raise(errc::invalid_argument, "attributes are a format of printf's: " + std::string(format));
  std::string out(static_cast<std::size_t>(size) + 1, '\0');
  std::vsnprintf(out.data(), out.size(), format, arguments);
  out.pop_back();
  return out;
}

const std::vector<instruction_ref>& operands(migraphx_instructions_t args) { return object(args, "args"); }

}  // namespace

migraphx_status migraphx_operation_destroy(migraphx_operation_t operation) { return destroyed(operation); }
migraphx_status migraphx_operation_assign_to(migraphx_operation_t output, const_migraphx_operation_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_operation_create(migraphx_operation_t* out, const char* name, const char* attributes, ...) {
  va_list arguments;
  va_start(arguments, attributes);
  const migraphx_status status = made(out, [&] {
    const std::string of = text_from(name, "name");
    return operation(of, parse_attributes(attributes ? formatted(attributes, arguments) : std::string()));
  });
  va_end(arguments);
  return status;
}
migraphx_status migraphx_operation_name(char* out, size_t out_size, migraphx_operation_t operation) {
  return guarded([&] {
    const std::string& name = object(operation, "operation").name();
    if (out_size == 0) raise(errc::invalid_argument, "the name has room: found none");
    const std::size_t kept = std::min(name.size(), out_size - 1);
    std::memcpy(not_null(out, "out"), name.data(), kept);
    out[kept] = '\0';
  });
}

migraphx_status migraphx_instruction_destroy(migraphx_instruction_t instruction) { return destroyed(instruction); }
migraphx_status migraphx_instruction_assign_to(migraphx_instruction_t output, const_migraphx_instruction_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_instructions_destroy(migraphx_instructions_t instructions) { return destroyed(instructions); }
migraphx_status migraphx_instructions_assign_to(migraphx_instructions_t output, const_migraphx_instructions_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_instructions_create(migraphx_instructions_t* out, const const_migraphx_instruction_t* ptr,
                                             size_t size) {
  return made(out, [&] {
    std::vector<instruction_ref> all;
    for (const const_migraphx_instruction_t i : given_array(ptr, size, "ptr"))
      all.push_back(object(i, "an instruction").at);
    return all;
  });
}
migraphx_status migraphx_modules_destroy(migraphx_modules_t modules) { return destroyed(modules); }
migraphx_status migraphx_modules_assign_to(migraphx_modules_t output, const_migraphx_modules_t input) {
  return assigned(output, input);
}
migraphx_status migraphx_modules_create(migraphx_modules_t* out, migraphx_module_t* ptr, size_t size) {
  return made(out, [&] {
    std::vector<module*> all;
    for (const migraphx_module_t m : given_array(ptr, size, "ptr")) all.push_back(&object(m, "a module"));
    return all;
  });
}

migraphx_status migraphx_module_create(migraphx_module_t* out, char* name) {
  return guarded([&] {
    migraphx_module_t& to = given(out, "the place of the new handle");
    to = handle_of<migraphx_module>(new module(text_from(name, "name")));
  });
}
migraphx_status migraphx_module_print(const_migraphx_module_t module) {
  return guarded([&] {
    std::fputs(object(module, "module").text_of().c_str(), stdout);
    std::fflush(stdout);
  });
}
migraphx_status migraphx_module_add_instruction(migraphx_instruction_t* out, migraphx_module_t module,
                                                migraphx_operation_t op, migraphx_instructions_t args) {
  return made(out, [&] {
    return held_instruction{object(module, "module").add_instruction(object(op, "op"), operands(args))};
  });
}
migraphx_status migraphx_module_add_instruction_with_mod_args(migraphx_instruction_t* out, migraphx_module_t module,
                                                              migraphx_operation_t op, migraphx_instructions_t args,
                                                              migraphx_modules_t module_refs) {
  return made(out, [&] {
    return held_instruction{
        object(module, "module").add_instruction(object(op, "op"), operands(args), object(module_refs, "module_refs"))};
  });
}
migraphx_status migraphx_module_add_literal(migraphx_instruction_t* out, migraphx_module_t module,
                                            const_migraphx_shape_t shape, const char* buffer) {
  return made(out, [&] {
    const argument value(object(shape, "shape"), const_cast<char*>(not_null(buffer, "buffer")));
    return held_instruction{object(module, "module").add_literal(value)};
  });
}
migraphx_status migraphx_module_add_parameter(migraphx_instruction_t* out, migraphx_module_t module, const char* name,
                                              const_migraphx_shape_t shape) {
  return made(out, [&] {
    return held_instruction{object(module, "module").add_parameter(text_from(name, "name"), object(shape, "shape"))};
  });
}
migraphx_status migraphx_module_add_return(migraphx_instruction_t* out, migraphx_module_t module,
                                           migraphx_instructions_t args) {
  return made(out, [&] { return held_instruction{object(module, "module").add_return(operands(args))}; });
}
migraphx_status migraphx_module_add_allocation(migraphx_instruction_t* out, migraphx_module_t module,
                                               const_migraphx_shape_t s) {
  return made(out, [&] { return held_instruction{object(module, "module").add_allocation(object(s, "s"))}; });
}
