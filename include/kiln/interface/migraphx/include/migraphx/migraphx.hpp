#pragma once
#include <migraphx/migraphx.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// MIGraphX's classes for C++14 and later over its interface for C. A call that fails throws std::runtime_error with
// what kiln_last_error() says.
namespace migraphx {
inline namespace api {

/// Calls a function of the interface for C.
template <class F, class... Ts> void call(F f, Ts&&... xs) {
  if (f(std::forward<Ts>(xs)...) == migraphx_status_success) return;
  const char* const why = kiln_last_error();
  throw std::runtime_error(*why ? why : "Failed to call function");
}
/// Calls one whose first argument takes what it makes.
template <class T, class F, class... Ts> T* make(F f, Ts&&... xs) {
  T* out = nullptr;
  call(f, &out, std::forward<Ts>(xs)...);
  return out;
}

/// Whose a handle is: this object's, somebody else's, or a part of what another object owns.
struct own {};
struct borrow {};
template <class T> struct share {
  std::shared_ptr<T> owner;
  template <class U> std::shared_ptr<U> alias(U* p) const { return std::shared_ptr<U>(owner, p); }
};

/// A handle with its lifetime; copies share it.
template <class Raw, class Own, migraphx_status (*Destroy)(Own*), migraphx_status (*Assign)(Own*, const Own*)>
struct handle_base {
  using handle_type = Raw;
  handle_base() = default;
  template <class H, class Lifetime, class = std::enable_if_t<std::is_convertible<H*, Raw*>::value>>
  handle_base(H* p, Lifetime lifetime) {
    set_handle(p, std::move(lifetime));
  }

  const std::shared_ptr<Raw>& get_handle() const { return m_handle; }
  Raw* get_handle_ptr() const { return m_handle.get(); }
  template <class U> void set_handle(U* p, own) {
    m_handle = std::shared_ptr<U>(p, [](U* of) { (void)Destroy(const_cast<Own*>(of)); });
  }
  template <class U> void set_handle(U* p, borrow) {
    m_handle = std::shared_ptr<U>(p, [](U*) {});
  }
  template <class U, class V> void set_handle(U* p, share<V> with) { m_handle = std::shared_ptr<Raw>(with.owner, p); }
  template <class F, class... Ts> void make_handle(F f, Ts&&... xs) {
    set_handle(make<Own>(f, std::forward<Ts>(xs)...), own{});
  }
  share<Raw> share_handle() const { return {m_handle}; }
  void assign_to_handle(Own* to) const { call(Assign, to, get_handle_ptr()); }

 protected:
  std::shared_ptr<Raw> m_handle;
};

#define MIGRAPHX_HANDLE(name) \
  handle_base<migraphx_##name, migraphx_##name, &migraphx_##name##_destroy, &migraphx_##name##_assign_to>
#define MIGRAPHX_CONST_HANDLE(name) \
  handle_base<const migraphx_##name, migraphx_##name, &migraphx_##name##_destroy, &migraphx_##name##_assign_to>

/// What counts and hands out elements by index, as a range.
template <class Derived> struct array_base {
  struct iterator {
    const Derived* self;
    std::size_t index;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    template <class D = Derived> auto operator*() const -> decltype(std::declval<const D&>()[0]) {
      return (*self)[index];
    }
    iterator& operator++() {
      ++index;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++index;
      return old;
    }
    iterator operator+(std::ptrdiff_t n) const { return {self, index + static_cast<std::size_t>(n)}; }
    std::ptrdiff_t operator-(iterator other) const {
      return static_cast<std::ptrdiff_t>(index) - static_cast<std::ptrdiff_t>(other.index);
    }
    friend bool operator==(iterator a, iterator b) { return a.index == b.index; }
    friend bool operator!=(iterator a, iterator b) { return a.index != b.index; }
  };

  bool empty() const { return derived().size() == 0; }
  template <class D = Derived> auto front() const -> decltype(std::declval<const D&>()[0]) { return derived()[0]; }
  template <class D = Derived> auto back() const -> decltype(std::declval<const D&>()[0]) {
    return derived()[derived().size() - 1];
  }
  iterator begin() const { return {&derived(), 0}; }
  iterator end() const { return {&derived(), derived().size()}; }

 private:
  const Derived& derived() const { return static_cast<const Derived&>(*this); }
};

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

/// Where a program is compiled for.
struct target : MIGRAPHX_HANDLE(target) {
  using handle_base::handle_base;
  target() = default;
  target(const char* name) { make_handle(&migraphx_target_create, name); }
};

struct program_parameter_shapes : MIGRAPHX_HANDLE(program_parameter_shapes) {
  using handle_base::handle_base;
  program_parameter_shapes() = default;
  std::size_t size() const {
    std::size_t out = 0;
    call(&migraphx_program_parameter_shapes_size, &out, get_handle_ptr());
    return out;
  }
  shape operator[](const char* name) const {
    const_migraphx_shape_t out = nullptr;
    call(&migraphx_program_parameter_shapes_get, &out, get_handle_ptr(), name);
    return {out, share_handle()};
  }
  std::vector<const char*> names() const {
    std::vector<const char*> out(size());
    if (!out.empty()) call(&migraphx_program_parameter_shapes_names, out.data(), get_handle_ptr());
    return out;
  }
};

/// Arguments by name.
struct program_parameters : MIGRAPHX_HANDLE(program_parameters) {
  using handle_base::handle_base;
  [[deprecated("say whose the handle is")]] program_parameters(migraphx_program_parameters* p) {
    set_handle(p, borrow{});
  }
  program_parameters() { make_handle(&migraphx_program_parameters_create); }
  program_parameters(std::initializer_list<std::pair<std::string, argument>> all) : program_parameters() {
    for (const auto& one : all) add(one.first.c_str(), one.second);
  }
  void add(const char* name, const argument& value) const {
    call(&migraphx_program_parameters_add, get_handle_ptr(), name, value.get_handle_ptr());
  }
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

/// An operator by name; attributes are text in printf's manner: "{axes: [%i, %i]}", 1, 2.
struct operation : MIGRAPHX_HANDLE(operation) {
  using handle_base::handle_base;
  template <class... Ts> operation(const char* name, const char* attributes = nullptr, Ts... xs) {
    make_handle(&migraphx_operation_create, name, attributes, xs...);
  }
  std::string name() const {
    std::array<char, 1024> out{};
    call(&migraphx_operation_name, out.data(), out.size(), get_handle_ptr());
    return out.data();
  }
};

struct instruction : MIGRAPHX_CONST_HANDLE(instruction) {
  using handle_base::handle_base;
};

struct instructions : MIGRAPHX_HANDLE(instructions) {
  using handle_base::handle_base;
  template <class... Ts> instructions(Ts... xs) {
    const std::array<const_migraphx_instruction_t, sizeof...(Ts)> all{{xs.get_handle_ptr()...}};
    make_handle(&migraphx_instructions_create, all.data(), all.size());
  }
};

struct module;

struct modules : MIGRAPHX_HANDLE(modules) {
  using handle_base::handle_base;
  template <class... Ts> modules(Ts... xs) {
    std::array<migraphx_module_t, sizeof...(Ts)> all{{xs.get_handle_ptr()...}};
    make_handle(&migraphx_modules_create, all.data(), all.size());
  }
};

/// Instructions of a program, which owns them.
struct module {
  [[deprecated("say whose the handle is")]] module(migraphx_module* m) : module(m, borrow{}) {}
  module(migraphx_module* m, borrow) :m_handle(m, [](migraphx_module*) {}) {}
  template <class T> module(migraphx_module* m, share<T> with) : m_handle(with.alias(m)) {}

  void print() const { call(&migraphx_module_print, m_handle.get()); }
  instruction add_instruction(const operation& op, const instructions& args) {
    return made(&migraphx_module_add_instruction, op.get_handle_ptr(), args.get_handle_ptr());
  }
  instruction add_instruction(const operation& op, const instructions& args, const modules& module_args) {
    return made(&migraphx_module_add_instruction_with_mod_args, op.get_handle_ptr(), args.get_handle_ptr(),
                module_args.get_handle_ptr());
  }
  template <class T> instruction add_literal(const shape& s, T* buffer) {
    return made(&migraphx_module_add_literal, s.get_handle_ptr(), reinterpret_cast<const char*>(buffer));
  }
  instruction add_parameter(const std::string& name, shape s) {
    return made(&migraphx_module_add_parameter, name.c_str(), s.get_handle_ptr());
  }
  instruction add_return(const instructions& args) { return made(&migraphx_module_add_return, args.get_handle_ptr()); }
  instruction add_allocation(const shape& s) { return made(&migraphx_module_add_allocation, s.get_handle_ptr()); }
  migraphx_module_t get_handle_ptr() const { return m_handle.get(); }

 private:
  template <class F, class... Ts> instruction made(F f, Ts... xs) {
    return {make<migraphx_instruction>(f, m_handle.get(), xs...), own{}};
  }
  std::shared_ptr<migraphx_module> m_handle;
};

/// What a compiled program runs in.
struct context {
  context(migraphx_context* p, borrow) : m_handle(p, [](migraphx_context*) {}) {}
  template <class T> context(migraphx_context* p, share<T> with) : m_handle(with.alias(p)) {}
  void finish() const { call(&migraphx_context_finish, m_handle.get()); }
  template <class T> T get_queue() {
    void* out = nullptr;
    call(&migraphx_context_get_queue, &out, m_handle.get());
    return reinterpret_cast<T>(out);
  }

 private:
  std::shared_ptr<migraphx_context> m_handle;
};

struct compile_options : MIGRAPHX_HANDLE(compile_options) {
  using handle_base::handle_base;
  compile_options() { make_handle(&migraphx_compile_options_create); }
  /// Whether parameters and results are in the host's memory, for a target with memory of its own.
  void set_offload_copy(bool value = true) {
    call(&migraphx_compile_options_set_offload_copy, get_handle_ptr(), value);
  }
  void set_fast_math(bool value = true) { call(&migraphx_compile_options_set_fast_math, get_handle_ptr(), value); }
  /// Chooses kernels by timing them.
  void set_exhaustive_tune_flag(bool value = true) {
    call(&migraphx_compile_options_set_exhaustive_tune_flag, get_handle_ptr(), value);
  }
};

namespace detail {
/// A type's name, as the compiler says it.
template <class T> const std::string& type_name() {
  static const std::string name = [] {
    const std::string all = __PRETTY_FUNCTION__;
    const std::size_t from = all.find("T = ") + 4;
    return all.substr(from, all.find_first_of(";]", from) - from);
  }();
  return name;
}
}  // namespace detail

/// Modules, the first of which runs, and what was compiled from them.
struct program : MIGRAPHX_HANDLE(program) {
  using handle_base::handle_base;
  program() { make_handle(&migraphx_program_create); }

  void compile(const target& to, const compile_options& options) const {
    call(&migraphx_program_compile, get_handle_ptr(), to.get_handle_ptr(), options.get_handle_ptr());
  }
  void compile(const target& to) const { compile(to, compile_options{}); }
  program_parameter_shapes get_parameter_shapes() const {
    return {make<migraphx_program_parameter_shapes>(&migraphx_program_get_parameter_shapes, get_handle_ptr()), own{}};
  }
  shapes get_output_shapes() const {
    return {make<migraphx_shapes>(&migraphx_program_get_output_shapes, get_handle_ptr()), own{}};
  }
  arguments eval(const program_parameters& parameters) const {
    return {make<migraphx_arguments>(&migraphx_program_run, get_handle_ptr(), parameters.get_handle_ptr()), own{}};
  }
  /// Runs on a stream of the caller's.
  template <class Stream> arguments run_async(const program_parameters& parameters, Stream* stream) const {
    return {make<migraphx_arguments>(&migraphx_program_run_async, get_handle_ptr(), parameters.get_handle_ptr(), stream,
                                     detail::type_name<Stream>().c_str()),
            own{}};
  }
  void print() const { call(&migraphx_program_print, get_handle_ptr()); }
  program sort() {
    call(&migraphx_program_sort, get_handle_ptr());
    return *this;
  }
  module get_main_module() {
    return {make<migraphx_module>(&migraphx_program_get_main_module, get_handle_ptr()), share_handle()};
  }
  module create_module(const std::string& name) {
    return {make<migraphx_module>(&migraphx_program_create_module, get_handle_ptr(), name.c_str()), share_handle()};
  }
  context experimental_get_context() {
    return {make<migraphx_context>(&migraphx_program_experimental_get_context, get_handle_ptr()), share_handle()};
  }
  friend bool operator==(const program& a, const program& b) {
    bool out = false;
    call(&migraphx_program_equal, &out, a.get_handle_ptr(), b.get_handle_ptr());
    return out;
  }
  friend bool operator!=(const program& a, const program& b) { return !(a == b); }
};

struct file_options : MIGRAPHX_HANDLE(file_options) {
  using handle_base::handle_base;
  file_options() { make_handle(&migraphx_file_options_create); }
  void set_file_format(const char* format) { call(&migraphx_file_options_set_file_format, get_handle_ptr(), format); }
};

inline program load(const char* filename, const file_options& options) {
  return {make<migraphx_program>(&migraphx_load, filename, options.get_handle_ptr()), own{}};
}
inline program load(const char* filename) { return load(filename, file_options{}); }
inline void save(const program& p, const char* filename, const file_options& options) {
  call(&migraphx_save, p.get_handle_ptr(), filename, options.get_handle_ptr());
}
inline void save(const program& p, const char* filename) { save(p, filename, file_options{}); }

struct onnx_options : MIGRAPHX_HANDLE(onnx_options) {
  using handle_base::handle_base;
  onnx_options() { make_handle(&migraphx_onnx_options_create); }
  void set_input_parameter_shape(const std::string& name, std::vector<std::size_t> lengths) {
    call(&migraphx_onnx_options_set_input_parameter_shape, get_handle_ptr(), name.c_str(), lengths.data(),
         lengths.size());
  }
  void set_dyn_input_parameter_shape(const std::string& name, const dynamic_dimensions& dims) {
    call(&migraphx_onnx_options_set_dyn_input_parameter_shape, get_handle_ptr(), name.c_str(), dims.get_handle_ptr());
  }
  void set_default_dim_value(unsigned value) {
    call(&migraphx_onnx_options_set_default_dim_value, get_handle_ptr(), value);
  }
  void set_default_dyn_dim_value(const dynamic_dimension& d) {
    call(&migraphx_onnx_options_set_default_dyn_dim_value, get_handle_ptr(), d.get_handle_ptr());
  }
  void set_default_loop_iterations(std::int64_t value) {
    call(&migraphx_onnx_options_set_default_loop_iterations, get_handle_ptr(), value);
  }
  void set_limit_loop_iterations(std::int64_t value) {
    call(&migraphx_onnx_options_set_limit_loop_iterations, get_handle_ptr(), value);
  }
  void set_external_data_path(const std::string& path) {
    call(&migraphx_onnx_options_set_external_data_path, get_handle_ptr(), path.c_str());
  }
  void set_use_debug_symbols(bool value = true) {
    call(&migraphx_onnx_options_set_use_debug_symbols, get_handle_ptr(), value);
  }
};

inline program parse_onnx(const char* filename, const onnx_options& options) {
  return {make<migraphx_program>(&migraphx_parse_onnx, filename, options.get_handle_ptr()), own{}};
}
inline program parse_onnx(const char* filename) { return parse_onnx(filename, onnx_options{}); }
inline program parse_onnx_buffer(const void* data, std::size_t size, const onnx_options& options) {
  return {make<migraphx_program>(&migraphx_parse_onnx_buffer, data, size, options.get_handle_ptr()), own{}};
}
inline program parse_onnx_buffer(const void* data, std::size_t size) {
  return parse_onnx_buffer(data, size, onnx_options{});
}
inline program parse_onnx_buffer(const std::string& buffer, const onnx_options& options) {
  return parse_onnx_buffer(buffer.data(), buffer.size(), options);
}
inline program parse_onnx_buffer(const std::string& buffer) { return parse_onnx_buffer(buffer, onnx_options{}); }

/// Names of the ONNX operators that are known.
inline std::vector<std::string> get_onnx_operators() {
  std::size_t count = 0;
  call(&migraphx_get_onnx_operators_size, &count);
  std::vector<std::string> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    call(&migraphx_get_onnx_operator_name_at_index, &name, i);
    out[i] = name;
  }
  return out;
}

struct tf_options : MIGRAPHX_HANDLE(tf_options) {
  using handle_base::handle_base;
  tf_options() { make_handle(&migraphx_tf_options_create); }
  void set_input_parameter_shape(const std::string& name, std::vector<std::size_t> lengths) {
    call(&migraphx_tf_options_set_input_parameter_shape, get_handle_ptr(), name.c_str(), lengths.data(),
         lengths.size());
  }
  void set_nhwc(bool is_nhwc = true) { call(&migraphx_tf_options_set_nhwc, get_handle_ptr(), is_nhwc); }
  void set_default_dim_value(unsigned value) {
    call(&migraphx_tf_options_set_default_dim_value, get_handle_ptr(), value);
  }
  void set_output_names(std::vector<const char*> names) {
    call(&migraphx_tf_options_set_output_names, get_handle_ptr(), names.data(), names.size());
  }
};
inline program parse_tf(const char* filename, const tf_options& options) {
  return {make<migraphx_program>(&migraphx_parse_tf, filename, options.get_handle_ptr()), own{}};
}
inline program parse_tf(const char* filename) { return parse_tf(filename, tf_options{}); }

struct quantize_op_names : MIGRAPHX_HANDLE(quantize_op_names) {
  using handle_base::handle_base;
  quantize_op_names() { make_handle(&migraphx_quantize_op_names_create); }
  void add(const std::string& name) { call(&migraphx_quantize_op_names_add, get_handle_ptr(), name.c_str()); }
};
inline void quantize_fp16(const program& p, const quantize_op_names& names) {
  call(&migraphx_quantize_fp16_with_op_names, p.get_handle_ptr(), names.get_handle_ptr());
}
inline void quantize_fp16(const program& p) { call(&migraphx_quantize_fp16, p.get_handle_ptr()); }
inline void quantize_bf16(const program& p, const quantize_op_names& names) {
  call(&migraphx_quantize_bf16_with_op_names, p.get_handle_ptr(), names.get_handle_ptr());
}
inline void quantize_bf16(const program& p) { call(&migraphx_quantize_bf16, p.get_handle_ptr()); }

struct quantize_int8_options : MIGRAPHX_HANDLE(quantize_int8_options) {
  using handle_base::handle_base;
  quantize_int8_options() { make_handle(&migraphx_quantize_int8_options_create); }
  void add_op_name(const std::string& name) {
    call(&migraphx_quantize_int8_options_add_op_name, get_handle_ptr(), name.c_str());
  }
  void add_calibration_data(const program_parameters& data) {
    call(&migraphx_quantize_int8_options_add_calibration_data, get_handle_ptr(), data.get_handle_ptr());
  }
};
inline void quantize_int8(const program& p, const target& to, const quantize_int8_options& options) {
  call(&migraphx_quantize_int8, p.get_handle_ptr(), to.get_handle_ptr(), options.get_handle_ptr());
}
struct quantize_fp8_options : MIGRAPHX_HANDLE(quantize_fp8_options) {
  using handle_base::handle_base;
  quantize_fp8_options() { make_handle(&migraphx_quantize_fp8_options_create); }
  void add_calibration_data(const program_parameters& data) {
    call(&migraphx_quantize_fp8_options_add_calibration_data, get_handle_ptr(), data.get_handle_ptr());
  }
};
inline void quantize_fp8(const program& p, const target& to, const quantize_fp8_options& options) {
  call(&migraphx_quantize_fp8, p.get_handle_ptr(), to.get_handle_ptr(), options.get_handle_ptr());
}

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
