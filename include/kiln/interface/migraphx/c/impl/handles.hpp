#pragma once
#include <migraphx/migraphx.h>

#include <set>

#include "kiln/interface/caller.hpp"
#include "kiln/interface/migraphx/custom_op.hpp"
#include "kiln/interface/migraphx/onnx.hpp"
#include "kiln/interface/migraphx/quantize.hpp"
#include "kiln/interface/migraphx/save.hpp"
#include "kiln/interface/migraphx/tensorflow.hpp"

namespace kiln::migraphx::c {

using namespace caller;
using kiln::errc;
using kiln::fault;
using kiln::raise;

/// An operator of the caller's own before it is registered.
struct foreign_op {
  std::shared_ptr<void> object;
  std::string name;
  migraphx_experimental_custom_op_compute compute = nullptr;
  migraphx_experimental_custom_op_compute_shape compute_shape = nullptr;
  migraphx_experimental_custom_op_output_alias output_alias = nullptr;
  migraphx_experimental_custom_op_runs_on_offload_target runs_on_offload_target = nullptr;
};
/// A handle of an instruction, which the handle does not own.
struct held_instruction {
  instruction_ref at = nullptr;
};

/// What the handle of an opaque type points to: one of the core's objects.
template <class Opaque> struct object_of;
template <> struct object_of<migraphx_optimals> { using type = std::set<std::size_t>; };
template <> struct object_of<migraphx_dynamic_dimension> { using type = dynamic_dimension; };
template <> struct object_of<migraphx_dynamic_dimensions> { using type = std::vector<dynamic_dimension>; };
template <> struct object_of<migraphx_shape> { using type = shape; };
template <> struct object_of<migraphx_argument> { using type = argument; };
template <> struct object_of<migraphx_target> { using type = target; };
template <> struct object_of<migraphx_program_parameter_shapes> { using type = std::map<std::string, shape>; };
template <> struct object_of<migraphx_program_parameters> { using type = parameter_map; };
template <> struct object_of<migraphx_arguments> { using type = std::vector<argument>; };
template <> struct object_of<migraphx_shapes> { using type = std::vector<shape>; };
template <> struct object_of<migraphx_instruction> { using type = held_instruction; };
template <> struct object_of<migraphx_instructions> { using type = std::vector<instruction_ref>; };
template <> struct object_of<migraphx_modules> { using type = std::vector<module*>; };
template <> struct object_of<migraphx_module> { using type = module; };
template <> struct object_of<migraphx_trace_info> { using type = trace_info; };
template <> struct object_of<migraphx_program> { using type = program; };
template <> struct object_of<migraphx_operation> { using type = operation; };
template <> struct object_of<migraphx_onnx_options> { using type = onnx_options; };
template <> struct object_of<migraphx_file_options> { using type = file_options; };
template <> struct object_of<migraphx_compile_options> { using type = compile_options; };
template <> struct object_of<migraphx_tf_options> { using type = tf_options; };
template <> struct object_of<migraphx_quantize_op_names> { using type = std::vector<std::string>; };
template <> struct object_of<migraphx_quantize_int8_options> { using type = quantize_int8_options; };
template <> struct object_of<migraphx_quantize_fp8_options> { using type = quantize_fp8_options; };
template <> struct object_of<migraphx_context> { using type = context; };
template <> struct object_of<migraphx_experimental_custom_op> { using type = foreign_op; };

/// The object of a handle; null is an `invalid_argument` error that names `what`.
template <class Opaque> auto& object(Opaque* handle, const char* what) {
  using type = typename object_of<std::remove_const_t<Opaque>>::type;
  if constexpr (std::is_const_v<Opaque>)
    return *reinterpret_cast<const type*>(not_null(handle, what));
  else
    return *reinterpret_cast<type*>(not_null(handle, what));
}
/// The handle of an object that another one owns.
template <class Opaque, class Object> Opaque* handle_of(Object* p) {
  static_assert(std::is_same_v<std::remove_const_t<Object>, typename object_of<std::remove_const_t<Opaque>>::type>);
  return reinterpret_cast<Opaque*>(p);
}

constexpr migraphx_status status_of(errc code) {
  return code == errc::invalid_argument ? migraphx_status_bad_param : migraphx_status_unknown_error;
}
/// What every function of the interface is: runs `body`, and turns what it throws into a status. No exception leaves.
template <class Body> migraphx_status guarded(Body&& body) noexcept {
  try {
    body();
    return migraphx_status_success;
  } catch (...) {
    return status_of(keep_last_error());
  }
}

/// Functions that are the same for every handle.
template <class Opaque, class Make> migraphx_status made(Opaque** out, Make&& make) noexcept {
  return guarded([&] {
    Opaque*& to = given(out, "the place of the new handle");
    using type = typename object_of<Opaque>::type;
    to = handle_of<Opaque>(new type(make()));
  });
}
template <class Opaque> migraphx_status destroyed(Opaque* handle) noexcept {
  return guarded([&] { delete &object(handle, "the handle to destroy"); });
}
template <class Opaque> migraphx_status assigned(Opaque* to, const Opaque* from) noexcept {
  return guarded([&] { object(to, "output") = object(from, "input"); });
}
/// Writes a value that is asked for.
template <class T, class Ask> migraphx_status told(T* out, Ask&& ask) noexcept {
  return guarded([&] { given(out, "the place of the result") = static_cast<T>(ask()); });
}
/// Hands out an element by its index.
template <class Opaque, class List> const Opaque* element(const List& all, std::size_t i) {
  if (i >= all.size()) raise(fault::of(errc::invalid_argument, "an index lies within the list", all.size(), i));
  return handle_of<const Opaque>(&all[i]);
}

inline std::vector<std::size_t> list_from(const std::size_t* values, std::size_t count, const char* what) {
  const auto all = given_array(values, count, what);
  return {all.begin(), all.end()};
}
inline std::string text_from(const char* text, const char* what) { return not_null(text, what); }
inline type_t type_from(migraphx_shape_datatype_t type) { return checked_type(static_cast<std::int64_t>(type)); }

}  // namespace kiln::migraphx::c
