#include "kiln/interface/named_target.hpp"
#include "kiln/interface/python/impl/bind.hpp"
#include "kiln/interface/python_arrays/array.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/quantize/options.hpp"
#include "kiln/quantize/table.hpp"

namespace kiln::python {
namespace {

/// What Python calls Ranges, and what chose them.
struct held_ranges {
  quantize::ranges all;
  quantize::calibration_method by = quantize::calibration_method::min_max;
};

// An object that is let go of with the interpreter's lock, in whatever thread.
std::shared_ptr<py::object> shared_object(py::object o) {
  return {new py::object(std::move(o)), [](py::object* held) {
            const py::gil_scoped_acquire lock;
            delete held;
          }};
}

std::string type_name(py::handle object) { return py::str(py::type::handle_of(object).attr("__name__")); }

// Samples of an iterator: dicts of arrays by input, whose types lists of numbers take.
quantize::calibration_data samples_of(const py::object& samples, const program& p) {
  return [next = shared_object(py::iter(samples)), &p]() -> std::optional<quantize::sample> {
    const py::gil_scoped_acquire lock;
    const auto item = py::reinterpret_steal<py::object>(PyIter_Next(next->ptr()));
    if (!item) {
      if (PyErr_Occurred()) throw py::error_already_set();
      return std::nullopt;
    }
    if (!py::isinstance<py::dict>(item))
      raise(errc::invalid_argument, "a sample is a dict of arrays by input: found " + type_name(item));
    quantize::sample out;
    for (const auto& [key, data] : item.cast<py::dict>()) {
      if (!py::isinstance<py::str>(key))
        raise(errc::invalid_argument, "inputs of a sample have names: found " + type_name(key));
      const auto name = py::cast<std::string>(key);
      const value_id at = p.main().find_parameter(name);
      borrowed_array a;
      a.read(data, at ? std::optional(p.main().shape_of(at).type) : std::nullopt);
      out[name] = a.value.copy();
    }
    return out;
  };
}

using texts = std::vector<std::pair<std::string, std::string>>;

quantize::quantizer_options options_of(const std::string& precision, const texts& options) {
  quantize::quantizer_options out;
  out.how.to = quantize::precision_named(precision);
  for (const auto& [name, value] : options) quantize::set_option(out, name, value);
  return out;
}

// Calls a function of Python's, if it is one, with the number of samples so far.
quantize::calibration_progress progress_of(const py::object& told) {
  if (told.is_none()) return {};
  return [call = shared_object(told)](std::size_t samples) {
    const py::gil_scoped_acquire lock;
    (*call)(samples);
  };
}

quantize::quantizer_progress steps_of(const py::object& told) {
  return [call = progress_of(told)](std::string_view, std::size_t samples) {
    if (call) call(samples);
  };
}

held_ranges calibrate_program(const held_program& p, const std::string& to, const py::object& samples,
                              const std::string& where, const texts& options, const py::object& progress) {
  const quantize::quantizer_options how = options_of(to, options);
  const auto target = named_target(where, {});
  const quantize::quantizer made(p.graph, how, *target);
  const quantize::calibration_data data = samples_of(samples, made.prepared());
  const quantize::quantizer_progress told = steps_of(progress);
  const py::gil_scoped_release released;
  return {made.calibrate(data, told), how.calibration.method};
}

held_program quantize_program(const held_program& p, const std::string& to, const held_ranges* ranges,
                              const py::object& samples, const std::string& where, const texts& options,
                              const py::object& progress) {
  const quantize::quantizer_options how = options_of(to, options);
  const auto target = named_target(where, {});
  const quantize::quantizer maker(p.graph, how, *target);
  quantize::repeated_data data;
  if (!samples.is_none())
    data = [again = shared_object(samples), &maker] {
      const py::gil_scoped_acquire lock;
      return samples_of(*again, maker.prepared());
    };
  const quantize::quantizer_progress told = steps_of(progress);
  const py::gil_scoped_release released;
  quantize::quantized_program made = maker.quantize(ranges ? ranges->all : quantize::ranges(), data, told).made;
  held_program out{std::move(made.graph), p.remarks};
  for (std::string& r : quantize::remarks_on(how.how.to, made.note)) out.remarks.push_back(std::move(r));
  return out;
}

/// What Python calls Accuracy.
struct held_accuracy {
  program reference;
  quantize::accuracy_report report;
};

held_accuracy compare_programs(const held_program& reference, const held_program& quantized, const py::object& samples,
                               const std::string& where, const py::object& progress) {
  held_accuracy out{quantize::prepared(reference.graph), {}};
  const auto target = named_target(where, {});
  const quantize::calibration_data data = samples_of(samples, out.reference);
  const quantize::calibration_progress told = progress_of(progress);
  const py::gil_scoped_release released;
  out.report =
      quantize::compare_accuracy(quantize::question_of(out.reference, quantized.graph), *target, data, {}, told);
  return out;
}

template <class F> auto of_quantization(F read) {
  return [read](const quantize::tensor_accuracy& t) -> py::object {
    return t.quantization ? py::cast(read(*t.quantization)) : py::none();
  };
}

void bind_accuracy(py::module_& m) {
  using quantize::tensor_accuracy;
  py::class_<tensor_accuracy> t(m, "TensorAccuracy", "What became of a tensor's values.");
  t.def_readonly("name", &tensor_accuracy::name, "The tensor's name.");
  t.def_readonly("sqnr", &tensor_accuracy::sqnr, "Signal to quantization noise in decibels.");
  t.def_readonly("cosine", &tensor_accuracy::cosine, "The cosine of the angle between both.");
  t.def_readonly("added_noise", &tensor_accuracy::added_noise, "The share of noise that its layer adds.");
  t.def_readonly("saturation", &tensor_accuracy::saturation, "The share of values that saturate.");
  t.def_readonly("top1", &tensor_accuracy::top1, "Of scores of classes: how often the greatest is the same.");
  t.def_property_readonly(
      "range", [](const tensor_accuracy& of) { return py::make_tuple(of.seen.low, of.seen.high); },
      "The least and greatest of the reference's values.");
  t.def_property_readonly("dtype", of_quantization([](const auto& q) { return std::string(to_string(q.as.type)); }),
                          "The type that it is quantized to.");
  t.def_property_readonly("scale", of_quantization([](const auto& q) { return q.with.scale; }), "Its scale.");
  t.def_property_readonly("zero_point", of_quantization([](const auto& q) { return q.with.zero_point; }),
                          "Its zero point.");
  t.def("__repr__", [](const tensor_accuracy& of) { return "<" + of.name + ": " + figures_text(of) + ">"; });
  py::class_<held_accuracy> c(m, "Accuracy", "Where a quantized program loses accuracy.");
  c.def_property_readonly(
      "samples", [](const held_accuracy& a) { return a.report.samples; }, "The number of samples.");
  c.def_property_readonly(
      "outputs", [](const held_accuracy& a) { return a.report.outputs; }, "The outputs, in order.");
  c.def_property_readonly(
      "tensors", [](const held_accuracy& a) { return a.report.tensors; },
      "The other tensors, the one whose layer adds most noise first.");
  c.def("__str__", [](const held_accuracy& a) { return report_text(a.report); });
  c.def(
      "json", [](const held_accuracy& a) { return report_json(a.report); }, "All of it as a JSON object.");
  const auto svg = [](const held_accuracy& a) { return report_svg(a.reference, a.report); };
  c.def("svg", svg, "A drawing of the reference, colored by signal to quantization noise.");
  c.def("_repr_svg_", svg);
}

}  // namespace

void bind_quantize(py::module_& m) {
  py::class_<held_ranges> c(m, "Ranges", "The ranges of a program's values, by name: `ranges[name]` is (low, high).");
  c.def("__len__", [](const held_ranges& r) { return r.all.size(); });
  c.def("__contains__", [](const held_ranges& r, const std::string& name) { return r.all.contains(name); });
  c.def("__getitem__", [](const held_ranges& r, const std::string& name) {
    const auto at = r.all.find(name);
    if (at == r.all.end()) throw py::key_error("no range of '" + name + "'");
    return py::make_tuple(at->second.whole.low, at->second.whole.high);
  });
  c.def(
      "keys",
      [](const held_ranges& r) {
        std::vector<std::string> names;
        for (const auto& [name, range] : r.all) names.push_back(name);
        return names;
      },
      "The names.");
  c.def("__iter__", [](const py::object& r) { return py::iter(r.attr("keys")()); });
  c.def(
      "save",
      [](const held_ranges& r, const py::object& path, const std::string& form) {
        quantize::write_table(path_of_object(path), r.all, quantize::table_form_named(form), r.by);
      },
      py::arg("path"), py::arg("form") = "json",
      "Writes a calibration table: 'json', 'native', 'plain_json', 'flatbuffers' or 'cache'.");
  c.def_static(
      "read",
      [](const py::object& path) {
        return held_ranges{quantize::read_table(path_of_object(path)), {}};
      },
      py::arg("path"), "Reads a calibration table of any form.");
  bind_accuracy(m);
  m.def("_calibrate", calibrate_program, "Finds ranges by samples.");
  m.def("_quantize", quantize_program, "A program in another precision.");
  m.def("_compare_accuracy", compare_programs, "Compares two programs.");
  m.def(
      "_quantize_options",
      [] {
        std::vector<std::tuple<std::string, std::string, std::string, std::string>> out;
        for (const auto& row : quantize::quantizer_option_table())
          out.emplace_back(row.name, to_string(row.kind), row.default_text(), row.help);
        return out;
      },
      "The options of a quantization.");
  m.def(
      "_write_onnx",
      [](const held_program& p, const py::object& path, const std::string& form) {
        const std::string file = path_of_object(path);
        const onnx::export_options options{.form = onnx::quantized_form_named(form)};
        const py::gil_scoped_release released;
        onnx::write_model(file, p.graph, options);
      },
      "Writes a program as an ONNX model.");
}

}  // namespace kiln::python
