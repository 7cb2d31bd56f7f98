#pragma once
#include <migraphx/api/data.hpp>

// Operators, modules, programs and their files.
namespace migraphx {
inline namespace api {

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

}  // namespace api
}  // namespace migraphx
