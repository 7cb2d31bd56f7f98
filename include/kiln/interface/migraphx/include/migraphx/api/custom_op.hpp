#pragma once
#include <migraphx/api/program.hpp>

#include <algorithm>
#include <cstring>

// Operators of the caller's own.
namespace migraphx {
inline namespace api {

/// An operator of the caller's own: a final class over this one.
struct experimental_custom_op_base {
  experimental_custom_op_base() = default;
  experimental_custom_op_base(const experimental_custom_op_base&) = default;
  experimental_custom_op_base& operator=(const experimental_custom_op_base&) = default;
  virtual ~experimental_custom_op_base() = default;

  virtual std::string name() const = 0;
  virtual argument compute(context, shape, arguments) const {
    throw std::runtime_error("custom op '" + name() + "' has no compute function");
  }
  virtual shape compute_shape(shapes inputs) const = 0;
  /// Which operands the result may be in.
  virtual std::vector<std::size_t> output_alias(shapes) const { return {}; }
  /// Whether it works in the memory of a GPU.
  virtual bool runs_on_offload_target() const { return true; }
};

namespace detail {
/// The functions that the interface for C calls for an operator of type T.
template <class T> struct custom_op_functions {
  template <class F> static migraphx_status tried(char* message, std::size_t size, F f) {
    try {
      f();
      return migraphx_status_success;
    } catch (const std::exception& e) {
      if (message && size) {
        std::strncpy(message, e.what(), size - 1);
        message[size - 1] = 0;
      }
      return migraphx_status_unknown_error;
    } catch (...) {
      return migraphx_status_unknown_error;
    }
  }
  static const T& op(void* obj) { return *static_cast<const T*>(obj); }

  static migraphx_status copy(void** out, void* input) {
    return tried(nullptr, 0, [&] { *out = new T(op(input)); });
  }
  static migraphx_status destroy(void* input) {
    return tried(nullptr, 0, [&] { delete static_cast<T*>(input); });
  }
  static migraphx_status compute(migraphx_argument_t out, void* obj, char* message, std::size_t size,
                                 migraphx_context_t ctx, migraphx_shape_t output, migraphx_arguments_t inputs) {
    return tried(message, size, [&] {
      op(obj)
          .compute(context{ctx, borrow{}}, shape{output, borrow{}}, arguments{inputs, borrow{}})
          .assign_to_handle(out);
    });
  }
  static migraphx_status compute_shape(migraphx_shape_t out, void* obj, char* message, std::size_t size,
                                       migraphx_shapes_t inputs) {
    return tried(message, size, [&] { op(obj).compute_shape(shapes{inputs, borrow{}}).assign_to_handle(out); });
  }
  static migraphx_status output_alias(std::size_t* out, std::size_t* out_size, void* obj, char* message,
                                      std::size_t size, migraphx_shapes_t inputs) {
    return tried(message, size, [&] {
      const std::vector<std::size_t> all = op(obj).output_alias(shapes{inputs, borrow{}});
      *out_size = std::min(*out_size, all.size());
      std::copy_n(all.begin(), *out_size, out);
    });
  }
  static migraphx_status runs_on_offload_target(bool* out, void* obj, char* message, std::size_t size) {
    return tried(message, size, [&] { *out = op(obj).runs_on_offload_target(); });
  }
};
}  // namespace detail

struct experimental_custom_op : MIGRAPHX_HANDLE(experimental_custom_op) {
  template <class T> experimental_custom_op(T& obj) {
    using functions = detail::custom_op_functions<T>;
    make_handle(&migraphx_experimental_custom_op_create, static_cast<void*>(&obj), &functions::copy,
                &functions::destroy, detail::type_name<T>().c_str(), obj.name().c_str());
    call(&migraphx_experimental_custom_op_set_compute_shape, get_handle_ptr(), &functions::compute_shape);
    call(&migraphx_experimental_custom_op_set_compute, get_handle_ptr(), &functions::compute);
    call(&migraphx_experimental_custom_op_set_output_alias, get_handle_ptr(), &functions::output_alias);
    call(&migraphx_experimental_custom_op_set_runs_on_offload_target, get_handle_ptr(),
         &functions::runs_on_offload_target);
  }
  void register_op() { call(&migraphx_experimental_custom_op_register, get_handle_ptr()); }
};

template <class Base, class T>
using require_interface = std::enable_if_t<std::is_base_of<Base, T>::value && !std::is_same<T, Base>::value &&
                                           std::is_copy_constructible<T>::value && std::is_final<T>::value>;

/// Makes the operator known by its name, for the life of the process.
template <class T, class = require_interface<experimental_custom_op_base, T>>
void register_experimental_custom_op(T& obj) {
  experimental_custom_op(obj).register_op();
}

}  // namespace api
}  // namespace migraphx
