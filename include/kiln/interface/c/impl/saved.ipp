#include "kiln/graph/custom_op.hpp"
#include "kiln/interface/c/impl/handles.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/runtime/saved_program.hpp"

using namespace kiln;
using namespace kiln::c;

namespace {

load_options knowing_custom_ops() {
  load_options out;
  out.ops = custom_op_tables();
  return out;
}

}  // namespace

kiln_status kiln_executable_save(const kiln_executable* executable, const kiln_program* source, const char* path) {
  return guarded([&] {
    const auto& exe = given(executable, "executable").compiled;
    const char* const to = not_null(path, "path");
    if (source)
      save(exe, source->graph, to);
    else
      save(exe, to);
  });
}

kiln_status kiln_executable_load(const char* path, const char* target, const kiln_compile_options* options,
                                 kiln_executable** executable) {
  return guarded([&] {
    kiln_executable*& out = given(executable, "executable");
    const compile_options with = options ? options->options : compile_options();
    const auto to = named_target(not_null(target, "target"), with);
    out = new kiln_executable{load(not_null(path, "path"), *to, with, knowing_custom_ops()), to->has_device()};
  });
}

kiln_status kiln_program_save(const kiln_program* program, const char* path) {
  return guarded([&] { save(given(program, "program").graph, not_null(path, "path")); });
}

kiln_status kiln_program_load(const char* path, kiln_program** program) {
  return guarded([&] {
    kiln_program*& out = given(program, "program");
    out = new_program(load_program(not_null(path, "path"), knowing_custom_ops()), {});
  });
}
