#pragma once
#include <migraphx/api/handle.hpp>

#include <array>
#include <initializer_list>
#include <vector>

// Shapes and arguments.
namespace migraphx {
inline namespace api {

/// Extents that a dynamic dimension will mostly have.
struct optimals : MIGRAPHX_HANDLE(optimals) {
  using handle_base::handle_base;
  optimals(std::initializer_list<std::size_t> values) {
    make_handle(&migraphx_optimals_create, values.begin(), values.size());
  }
};

/// A range of extents.
struct dynamic_dimension : MIGRAPHX_CONST_HANDLE(dynamic_dimension) {
  using handle_base::handle_base;
  dynamic_dimension(std::size_t min, std::size_t max) {
    make_handle(&migraphx_dynamic_dimension_create_min_max, min, max);
  }
  dynamic_dimension(std::size_t min, std::size_t max, const optimals& mostly) {
    make_handle(&migraphx_dynamic_dimension_create_min_max_optimals, min, max, mostly.get_handle_ptr());
  }
  bool is_fixed() const {
    bool out = false;
    call(&migraphx_dynamic_dimension_is_fixed, &out, get_handle_ptr());
    return out;
  }
  friend bool operator==(const dynamic_dimension& a, const dynamic_dimension& b) {
    bool out = false;
    call(&migraphx_dynamic_dimension_equal, &out, a.get_handle_ptr(), b.get_handle_ptr());
    return out;
  }
  friend bool operator!=(const dynamic_dimension& a, const dynamic_dimension& b) { return !(a == b); }
};

struct dynamic_dimensions : MIGRAPHX_HANDLE(dynamic_dimensions) {
  using handle_base::handle_base;
  template <class... Ts> dynamic_dimensions(Ts... xs) {
    const std::array<const_migraphx_dynamic_dimension_t, sizeof...(Ts)> all{{xs.get_handle_ptr()...}};
    make_handle(&migraphx_dynamic_dimensions_create, all.data(), all.size());
  }
  std::size_t size() const {
    std::size_t out = 0;
    call(&migraphx_dynamic_dimensions_size, &out, get_handle_ptr());
    return out;
  }
  dynamic_dimension operator[](std::size_t i) const {
    const_migraphx_dynamic_dimension_t out = nullptr;
    call(&migraphx_dynamic_dimensions_get, &out, get_handle_ptr(), i);
    return {out, share_handle()};
  }
};

/// Element type, extents, and strides in elements.
struct shape : MIGRAPHX_CONST_HANDLE(shape) {
  using handle_base::handle_base;
  shape() = default;
  [[deprecated("say whose the handle is")]] shape(const migraphx_shape* p) { set_handle(p, borrow{}); }
  shape(migraphx_shape_datatype_t type) { make_handle(&migraphx_shape_create_scalar, type); }
  shape(migraphx_shape_datatype_t type, std::vector<std::size_t> lengths) {
    make_handle(&migraphx_shape_create, type, lengths.data(), lengths.size());
  }
  shape(migraphx_shape_datatype_t type, std::initializer_list<std::size_t> lengths)
      : shape(type, std::vector<std::size_t>(lengths)) {}
  shape(migraphx_shape_datatype_t type, std::vector<std::size_t> lengths, std::vector<std::size_t> strides) {
    make_handle(&migraphx_shape_create_with_strides, type, lengths.data(), lengths.size(), strides.data(),
                strides.size());
  }
  shape(migraphx_shape_datatype_t type, const dynamic_dimensions& dims) {
    make_handle(&migraphx_shape_create_dynamic, type, dims.get_handle_ptr());
  }

  std::vector<std::size_t> lengths() const { return list(&migraphx_shape_lengths); }
  std::vector<std::size_t> strides() const { return list(&migraphx_shape_strides); }
  dynamic_dimensions dyn_dims() const {
    return {make<migraphx_dynamic_dimensions>(&migraphx_shape_dyn_dims, get_handle_ptr()), own{}};
  }
  migraphx_shape_datatype_t type() const {
    migraphx_shape_datatype_t out = migraphx_shape_tuple_type;
    call(&migraphx_shape_type, &out, get_handle_ptr());
    return out;
  }
  std::size_t elements() const { return number(&migraphx_shape_elements); }
  std::size_t bytes() const { return number(&migraphx_shape_bytes); }
  std::size_t ndim() const { return number(&migraphx_shape_ndim); }
  bool standard() const { return truth(&migraphx_shape_standard); }
  bool dynamic() const { return truth(&migraphx_shape_dynamic); }
  /// Where element i, counted in row-major order, is.
  std::size_t index(std::size_t i) const {
    std::size_t out = 0;
    call(&migraphx_shape_index, &out, get_handle_ptr(), i);
    return out;
  }
  friend bool operator==(const shape& a, const shape& b) {
    bool out = false;
    call(&migraphx_shape_equal, &out, a.get_handle_ptr(), b.get_handle_ptr());
    return out;
  }
  friend bool operator!=(const shape& a, const shape& b) { return !(a == b); }

 private:
  template <class F> std::vector<std::size_t> list(F f) const {
    const std::size_t* values = nullptr;
    std::size_t count = 0;
    call(f, &values, &count, get_handle_ptr());
    return {values, values + count};
  }
  template <class F> std::size_t number(F f) const {
    std::size_t out = 0;
    call(f, &out, get_handle_ptr());
    return out;
  }
  template <class F> bool truth(F f) const {
    bool out = false;
    call(f, &out, get_handle_ptr());
    return out;
  }
};

/// Elements with a shape; of a buffer it borrows them.
struct argument : MIGRAPHX_CONST_HANDLE(argument) {
  using handle_base::handle_base;
  argument() = default;
  [[deprecated("say whose the handle is")]] argument(const migraphx_argument* p) { set_handle(p, borrow{}); }
  argument(shape s) { make_handle(&migraphx_argument_create_empty, s.get_handle_ptr()); }
  argument(shape s, void* buffer) { make_handle(&migraphx_argument_create, s.get_handle_ptr(), buffer); }

  shape get_shape() const {
    const_migraphx_shape_t out = nullptr;
    call(&migraphx_argument_shape, &out, get_handle_ptr());
    return {out, share_handle()};
  }
  char* data() const {
    char* out = nullptr;
    call(&migraphx_argument_buffer, &out, get_handle_ptr());
    return out;
  }
  /// The elements in row-major order.
  template <class T> std::vector<T> as_vector() const {
    const shape s = get_shape();
    std::vector<T> out(s.elements());
    const T* const from = reinterpret_cast<const T*>(data());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = from[s.index(i)];
    return out;
  }
  static argument generate(shape s, std::size_t seed = 0) {
    return {make<migraphx_argument>(&migraphx_argument_generate, s.get_handle_ptr(), seed), own{}};
  }
  static argument load(const char* filename) {
    return {make<migraphx_argument>(&migraphx_argument_load, filename), own{}};
  }
  void save(const char* filename) const { call(&migraphx_argument_save, get_handle_ptr(), filename); }
  friend bool operator==(const argument& a, const argument& b) {
    bool out = false;
    call(&migraphx_argument_equal, &out, a.get_handle_ptr(), b.get_handle_ptr());
    return out;
  }
  friend bool operator!=(const argument& a, const argument& b) { return !(a == b); }
};

struct arguments : MIGRAPHX_HANDLE(arguments), array_base<arguments> {
  using handle_base::handle_base;
  std::size_t size() const {
    std::size_t out = 0;
    call(&migraphx_arguments_size, &out, get_handle_ptr());
    return out;
  }
  argument operator[](std::size_t i) const {
    const_migraphx_argument_t out = nullptr;
    call(&migraphx_arguments_get, &out, get_handle_ptr(), i);
    return {out, share_handle()};
  }
};

struct shapes : MIGRAPHX_HANDLE(shapes), array_base<shapes> {
  using handle_base::handle_base;
  std::size_t size() const {
    std::size_t out = 0;
    call(&migraphx_shapes_size, &out, get_handle_ptr());
    return out;
  }
  shape operator[](std::size_t i) const {
    const_migraphx_shape_t out = nullptr;
    call(&migraphx_shapes_get, &out, get_handle_ptr(), i);
    return {out, share_handle()};
  }
};

}  // namespace api
}  // namespace migraphx
