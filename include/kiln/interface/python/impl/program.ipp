#include "kiln/graph/custom_op.hpp"
#include "kiln/graph/picture.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/interface/python/impl/compiling.hpp"
#include "kiln/interface/python_arrays/array.hpp"
#include "kiln/onnx/custom_op_importers.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "kiln/tensorflow/import.hpp"

namespace kiln::python {
namespace {

// `graph` has what is said of TensorFlow's graphs: layout, outputs, batch, signature, tag.
tensorflow::import_options import_options_of(const py::dict& sizes, const py::dict& shapes, const py::dict& values,
                                             const std::vector<std::string>& keep, const py::tuple& graph) {
  tensorflow::import_options all;
  const auto layout = py::cast<std::string>(graph[0]);
  if (layout != "NHWC" && layout != "NCHW")
    raise(errc::invalid_argument, "layout is '" + layout + "', not NHWC or NCHW");
  all.layout = layout == "NHWC" ? tensorflow::data_format::nhwc : tensorflow::data_format::nchw;
  all.outputs = py::cast<std::vector<std::string>>(graph[1]);
  all.open_extent = py::cast<std::int64_t>(graph[2]);
  if (all.open_extent < 0)
    raise(errc::invalid_argument, "batch is " + std::to_string(all.open_extent) + ", and not below 0");
  all.signature = py::cast<std::string>(graph[3]);
  all.tag = py::cast<std::string>(graph[4]);
  onnx::import_options& out = all.common;
  for (const auto& [name, n] : sizes)
    out.dimensions.emplace_back(py::cast<std::string>(name), py::cast<std::int64_t>(n));
  for (const auto& [name, lens] : shapes) out.shapes.emplace_back(py::cast<std::string>(name), dims_of_object(lens));
  for (const auto& [name, data] : values) {
    borrowed_array a;
    a.read(data, std::nullopt);
    out.values.emplace_back(py::cast<std::string>(name), a.value.copy().to_literal());
  }
  out.overrides = keep;
  out.op_importers = onnx::custom_op_importers();
  return all;
}

py::list ports_of(const program& p, bool weights) {
  py::list out;
  const module_graph& m = p.main();
  for (const value_id v : m.parameters())
    if (m.producer(v).is_weight == weights) out.append(port_tuple(m.producer(v).name.view(), m.shape_of(v)));
  return out;
}

}  // namespace

load_options custom_load_options() {
  load_options how;
  how.ops = custom_op_tables();
  return how;
}

py::tuple port_tuple(std::string_view name, const shape& type) {
  return py::make_tuple(std::string(name), std::string(to_string(type.type)), object_of_dims(type.lens));
}

void bind_program(py::module_& m) {
  py::class_<held_program> c(m, "Program", "A model that is not compiled: modules of instructions.");
  c.def_property_readonly("_inputs", [](const held_program& p) { return ports_of(p.graph, false); });
  c.def_property_readonly("_weights", [](const held_program& p) { return ports_of(p.graph, true); });
  c.def_property_readonly("_outputs", [](const held_program& p) {
    py::list out;
    const module_graph& m = p.graph.main();
    for (std::size_t i = 0; i < m.outputs.size(); ++i)
      out.append(port_tuple(m.output_names[i].view(), m.shape_of(m.outputs[i])));
    return out;
  });
  c.def_property_readonly(
      "remarks", [](const held_program& p) { return p.remarks; }, "What the importer took for granted.");
  c.def("__str__", [](const held_program& p) { return print(p.graph).str(); });
  c.def(
      "svg", [](const held_program& p) { return to_svg(p.graph); },
      "A drawing of the graph, as the text of an SVG file.");
  c.def("_repr_svg_", [](const held_program& p) { return to_svg(p.graph); });
  c.def(
      "save",
      [](const held_program& p, const py::object& path) {
        const std::string file = path_of_object(path);
        const py::gil_scoped_release released;
        save(p.graph, file);
      },
      py::arg("path"), "Writes the program to a file, which compile() and read() take in place of a model.");

  m.def(
      "_read",
      [](const py::object& path, const py::dict& sizes, const py::dict& shapes, const py::dict& values,
         const std::vector<std::string>& keep, const py::tuple& graph) {
        const std::string file = path_of_object(path);
        const tensorflow::import_options how = import_options_of(sizes, shapes, values, keep, graph);
        const py::gil_scoped_release released;
        if (is_saved_program(file)) return held_program{load_program(file, custom_load_options()), {}};
        onnx::imported read = tensorflow::read_any_model(file, how);
        return held_program{std::move(read.graph), std::move(read.remarks)};
      },
      "Reads a model or a saved program.");
  m.def(
      "_parse",
      [](const py::object& model, const std::string& directory, const py::dict& sizes, const py::dict& shapes,
         const py::dict& values, const std::vector<std::string>& keep, const py::tuple& graph) {
        borrowed_array bytes;
        bytes.read(model, std::nullopt);
        const tensorflow::import_options how = import_options_of(sizes, shapes, values, keep, graph);
        const std::span<const std::byte> all(bytes.value.data(), static_cast<std::size_t>(bytes.value.elements()));
        const py::gil_scoped_release released;
        onnx::imported read = tensorflow::parse_any_model(all, directory, how);
        return held_program{std::move(read.graph), std::move(read.remarks)};
      },
      "Reads a model from memory.");
  m.def(
      "_is_saved_program", [](const py::object& path) { return is_saved_program(path_of_object(path)); },
      "Whether a file begins as a saved program does.");
  m.def(
      "_inspect",
      [](const py::object& path) {
        const saved_program_info info = inspect(path_of_object(path));
        py::dict out;
        const auto ports = [](const std::vector<port>& all) {
          py::list made;
          for (const port& p : all) made.append(port_tuple(p.name, p.type));
          return made;
        };
        out["version"] = info.version;
        out["target"] = info.target;
        out["format"] = info.format;
        out["has_source"] = info.has_source;
        out["inputs"] = ports(info.inputs);
        out["outputs"] = ports(info.outputs);
        py::dict options;
        for (const auto& [name, value] : info.options) options[name.c_str()] = value;
        out["options"] = options;
        out["remarks"] = info.remarks;
        out["file_bytes"] = info.file_bytes;
        out["constant_bytes"] = info.constant_bytes;
        return out;
      },
      "What a saved program says of itself.");
}

}  // namespace kiln::python
