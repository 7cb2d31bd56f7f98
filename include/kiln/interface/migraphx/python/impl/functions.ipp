#include "kiln/interface/migraphx/autocast.hpp"
#include "kiln/interface/migraphx/onnx.hpp"
#include "kiln/interface/migraphx/python/impl/bind.hpp"
#include "kiln/interface/migraphx/quantize.hpp"
#include "kiln/interface/migraphx/save.hpp"
#include "kiln/interface/migraphx/tensorflow.hpp"

namespace kiln::migraphx::python {
namespace {

using input_lens = std::map<std::string, std::vector<std::size_t>>;
using input_ranges = std::map<std::string, std::vector<dynamic_dimension>>;
using range_map = std::map<std::string, dynamic_dimension>;

program_handle held(program p) { return std::make_shared<held_program>(std::move(p)); }

template <class F> auto without_lock(F&& f) {
  const py::gil_scoped_release released;
  return f();
}

std::string bytes_of(const py::object& data) {
  if (py::isinstance<py::str>(data) || PyBytes_Check(data.ptr())) return py::cast<std::string>(data);
  PyObject* const bytes = PyBytes_FromObject(data.ptr());
  if (!bytes) throw py::error_already_set();
  return py::cast<std::string>(py::reinterpret_steal<py::bytes>(bytes));
}
std::span<const std::byte> span_of(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

template <class Parse>
void bind_onnx(py::module_& m, const char* name, const char* model_name, Parse parse, const char* doc) {
  m.def(
      name,
      [parse](const py::object& model, std::size_t default_dim_value, dynamic_dimension default_dyn_dim_value,
              range_map dim_params, input_lens map_input_dims, input_ranges map_dyn_input_dims,
              bool skip_unknown_operators, bool print_program_on_error, std::int64_t max_loop_iterations,
              std::int64_t limit_max_iterations, bool use_debug_symbols, std::string external_data_path) {
        onnx_options o;
        o.default_dim_value = default_dim_value;
        o.default_dyn_dim_value = std::move(default_dyn_dim_value);
        o.dim_params = std::move(dim_params);
        o.map_input_dims = std::move(map_input_dims);
        o.map_dyn_input_dims = std::move(map_dyn_input_dims);
        o.skip_unknown_operators = skip_unknown_operators;
        o.print_program_on_error = print_program_on_error;
        o.max_loop_iterations = max_loop_iterations;
        o.limit_max_iterations = limit_max_iterations;
        o.use_debug_symbols = use_debug_symbols;
        o.external_data_path = std::move(external_data_path);
        return parse(model, o);
      },
      py::arg(model_name), py::arg("default_dim_value") = 0,
      py::arg("default_dyn_dim_value") = dynamic_dimension{1, 1, {}}, py::arg("dim_params") = range_map(),
      py::arg("map_input_dims") = input_lens(), py::arg("map_dyn_input_dims") = input_ranges(),
      py::arg("skip_unknown_operators") = false, py::arg("print_program_on_error") = false,
      py::arg("max_loop_iterations") = 10, py::arg("limit_max_iterations") = 65535,
      py::arg("use_debug_symbols") = false, py::arg("external_data_path") = "", doc);
}

void bind_parsing(py::module_& m) {
  bind_onnx(
      m, "parse_onnx", "filename",
      [](const py::object& filename, const onnx_options& options) {
        const std::string file = kiln::python::path_of_object(filename);
        return held(without_lock([&] { return parse_onnx(file, options); }));
      },
      "A program from an ONNX file.");
  bind_onnx(
      m, "parse_onnx_buffer", "buffer",
      [](const py::object& buffer, const onnx_options& options) {
        const std::string bytes = bytes_of(buffer);
        return held(without_lock([&] { return parse_onnx_buffer(span_of(bytes), options); }));
      },
      "A program from an ONNX model's bytes.");
  m.def(
      "parse_tf",
      [](const py::object& filename, bool is_nhwc, unsigned batch_size, input_lens map_input_dims,
         std::vector<std::string> output_names) {
        const tf_options options{is_nhwc, batch_size, std::move(map_input_dims), std::move(output_names)};
        const std::string file = kiln::python::path_of_object(filename);
        return held(without_lock([&] { return parse_tf(file, options); }));
      },
      py::arg("filename"), py::arg("is_nhwc") = true, py::arg("batch_size") = 1,
      py::arg("map_input_dims") = input_lens(), py::arg("output_names") = std::vector<std::string>(),
      "A program from a TensorFlow graph.");
  m.def("get_onnx_operators", &onnx_operators, "Names of the operators of ONNX that can be read.");
}

void bind_files(py::module_& m) {
  m.def(
      "load",
      [](const py::object& filename, const std::string& format) {
        const std::string file = kiln::python::path_of_object(filename);
        return held(without_lock([&] { return load(file, {format}); }));
      },
      py::arg("filename"), py::arg("format") = "msgpack", "A program from a file of save().");
  m.def(
      "save",
      [](held_program& p, const py::object& filename, const std::string& format) {
        const std::string file = kiln::python::path_of_object(filename);
        reading(p, [&] { save(p.graph, file, {format}); });
      },
      py::arg("p"), py::arg("filename"), py::arg("format") = "msgpack", "Writes a program, compiled or not.");
  m.def(
      "save_buffer",
      [](held_program& p, const std::string& format) {
        const auto bytes = reading(p, [&] { return save_buffer(p.graph, {format}); });
        return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      },
      py::arg("p"), py::arg("format") = "msgpack", "The bytes that save() writes.");
  m.def(
      "load_buffer",
      [](const py::object& buffer, const std::string& format) {
        const std::string bytes = bytes_of(buffer);
        return held(without_lock([&] { return load_buffer(span_of(bytes), {format}); }));
      },
      py::arg("b"), py::arg("format") = "msgpack", "A program from bytes of save_buffer().");
}

std::vector<parameter_map> calibration_of(const held_program& p, const py::iterable& maps) {
  std::vector<parameter_map> out;
  for (const py::handle each : maps) out.push_back(parameters_of_dict(p, py::cast<py::dict>(each)));
  return out;
}

std::vector<std::string> names_of(const py::iterable& names) {
  if (py::isinstance<py::str>(names))  // whose items are its letters
    raise(errc::invalid_argument,
          "names of operators are a list or set of words: found the word '" + py::cast<std::string>(names) + "' alone");
  std::vector<std::string> out;
  for (const py::handle name : names) out.push_back(py::cast<std::string>(name));
  return out;
}

std::string table_of(const py::object& table) {
  return table.is_none() ? std::string() : kiln::python::path_of_object(table);
}

void bind_quantization(py::module_& m) {
  const auto narrow = [&m](const char* name, auto f, const char* doc) {
    m.def(
        name,
        [f](held_program& p, const py::iterable& ins_names) {
          const std::vector<std::string> names = names_of(ins_names);
          changing(p, [&] { f(p.graph, names); });
        },
        py::arg("prog"), py::arg("ins_names") = std::vector<std::string>{"all"}, doc);
  };
  narrow("quantize_fp16", quantize_fp16, "Computes these instructions in half precision.");
  narrow("quantize_bf16", quantize_bf16, "Computes these instructions in bf16.");
  m.def(
      "quantize_int8",
      [](held_program& p, const target& t, const py::iterable& calibration, const py::iterable& ins_names,
         const py::object& table) {
        const quantize_int8_options options{names_of(ins_names), calibration_of(p, calibration), table_of(table)};
        changing(p, [&] { quantize_int8(p.graph, t, options); });
      },
      py::arg("prog"), py::arg("t"), py::arg("calibration") = py::list(),
      py::arg("ins_names") = std::set<std::string>{"dot", "convolution"}, py::arg("table") = py::none(),
      "Computes these instructions in 8-bit integers, by the ranges of calibration runs or of a table's file.");
  m.def(
      "quantize_fp8",
      [](held_program& p, const target& t, const py::iterable& calibration, const py::object& table) {
        const quantize_fp8_options options{calibration_of(p, calibration), table_of(table)};
        changing(p, [&] { quantize_fp8(p.graph, t, options); });
      },
      py::arg("prog"), py::arg("t"), py::arg("calibration") = py::list(), py::arg("table") = py::none(),
      "Computes in 8-bit floats, by the ranges of calibration runs or of a table's file.");
  m.def(
      "quantize_int4_weights", [](held_program& p) { changing(p, [&] { quantize_int4_weights(p.graph); }); },
      py::arg("prog"), "Keeps the constant matrices of dots in 4-bit integers.");
  m.def(
      "autocast_fp8", [](held_program& p) { changing(p, [&] { autocast_fp8(p.graph); }); }, py::arg("prog"),
      "Parameters and results in 8-bit floats become floats, converted within the program.");
}

}  // namespace

void bind_functions(py::module_& m) {
  bind_parsing(m);
  bind_files(m);
  bind_quantization(m);
  m.def(
      "get_target", [](const std::string& name) { return target(name); }, py::arg("name"),
      "A target by its name: \"ref\", \"cpu\" or \"gpu\".");
}

}  // namespace kiln::migraphx::python
