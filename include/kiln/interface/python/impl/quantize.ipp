#include "kiln/interface/named_target.hpp"
#include "kiln/interface/python/impl/bind.hpp"
#include "kiln/interface/python_arrays/array.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/quantize/precision.hpp"
#include "kiln/quantize/table.hpp"

namespace kiln::python {
namespace {

using quantize::precision;

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

// The keywords of a call, each read once: what is left is an error.
class keywords {
 public:
  explicit keywords(const py::dict& all) : left_(all.attr("copy")()) {}
  template <class T> void take(const char* name, T& into) {
    if (!left_.contains(name)) return;
    try {
      into = left_[name].cast<T>();
    } catch (const py::cast_error&) {
      raise(errc::invalid_argument, std::string(name) + ": found " + std::string(py::repr(left_[name])));
    }
    left_.attr("pop")(name);
  }
  void end(std::string_view of) const {
    if (py::len(left_) == 0) return;
    const auto first = py::str(py::list(left_.attr("keys")())[0]);
    raise(errc::not_found, std::string(of) + " has no option '" + std::string(first) + "'");
  }

 private:
  py::dict left_;
};

quantize::calibration_options calibration_of(const py::dict& options, bool& results) {
  keywords given(options);
  given.take("results", results);
  quantize::calibration_options out;
  std::string method(to_string(out.method));
  given.take("method", method);
  out.method = quantize::method_named(method);
  given.take("percentile", out.percentile);
  given.take("bins", out.bins);
  given.take("ignore_infinities", out.ignore_infinities);
  given.end("calibrate()");
  return out;
}

quantize::precision_options precision_of(const std::string& name, const py::dict& options) {
  keywords given(options);
  quantize::precision_options out{.to = quantize::precision_named(name)};
  std::vector<std::string> exclude;
  given.take("ops", out.ops);
  const bool halves = out.to == precision::f16 || out.to == precision::bf16;
  if (!halves) given.take("exclude", exclude);
  if (out.to == precision::fp8) {
    std::string type(to_string(out.fp8.type));
    given.take("type", type);
    out.fp8.type = quantize::float8_named(type);
    given.take("per_channel", out.fp8.per_channel);
    out.fp8.exclude = exclude;
    if (!out.ops.empty()) out.fp8.ops = out.ops;
  } else if (quantize::info_of(out.to).blocks) {
    out.float_blocks.exclude = exclude;
    if (!out.ops.empty()) out.float_blocks.ops = out.ops;
  } else if (out.to == precision::int4) {
    std::string method(to_string(out.int4.method));
    given.take("bits", out.int4.format.bits);
    given.take("block_size", out.int4.format.block);
    given.take("symmetric", out.int4.format.symmetric);
    given.take("weight_method", method);
    out.int4.method = quantize::weight_method_named(method);
    std::int64_t level = 0;
    given.take("accuracy_level", level);
    if (level < 0 || level > 4)
      raise(errc::invalid_argument, "accuracy_level is 0 to 4: found " + std::to_string(level));
    out.int4.bytes_suffice = level == 4;
    given.take("damping", out.int4.damping);
    out.int4.exclude = exclude;
    if (!out.ops.empty()) out.int4.ops = out.ops;
  } else if (!halves) {
    if (out.to == precision::int8) {
      given.take("symmetric", out.int8.symmetric);
      given.take("results", out.int8.results);
    } else {
      given.take("convolutions", out.int8.dynamic_convolutions);
    }
    given.take("per_channel", out.int8.weights.per_channel);
    given.take("reduce_range", out.int8.reduced);
    out.int8.exclude = exclude;
    if (!out.ops.empty()) out.int8.ops = out.ops;
  }
  given.end(name);
  return out;
}

held_ranges calibrate_program(const held_program& p, const std::string& to, const py::object& samples,
                              const std::string& where, const py::dict& options, const py::object& progress) {
  quantize::int8_options int8;
  const quantize::calibration_options how = calibration_of(options, int8.results);
  const precision wanted = quantize::precision_named(to);
  if (!quantize::takes_ranges(wanted))
    raise(errc::invalid_argument, "ranges serve int8, fp8 and fp16: " + to + " needs none");
  if (int8.results && wanted != precision::int8)
    raise(errc::invalid_argument, "results are quantized by int8: " + to + " has none");
  const program prepared = quantize::prepared(p.graph);
  const auto watched = quantize::values_with_ranges(prepared, {.to = wanted, .int8 = int8});
  if (watched.empty()) return {{}, how.method};
  const auto target = named_target(where, {});
  const quantize::calibration_data data = samples_of(samples, prepared);
  const auto told = shared_object(progress);
  const py::gil_scoped_release released;
  return {quantize::calibrate(prepared, watched, *target, data, how, {}, 0,
                              [&told](std::size_t n) {
                                const py::gil_scoped_acquire lock;
                                if (!told->is_none()) (*told)(n);
                              }),
          how.method};
}

held_program quantize_program(const held_program& p, const std::string& to, const held_ranges* ranges,
                              const py::object& samples, const std::string& where, const py::dict& options) {
  quantize::precision_options how = precision_of(to, options);
  if (ranges && !quantize::takes_ranges(how.to))
    raise(errc::invalid_argument, "ranges serve int8, fp8 and fp16: " + to + " needs none");
  if (ranges) how.known = ranges->all;
  how.is_prepared = true;
  const program prepared = quantize::prepared(p.graph);
  for (std::vector<std::string>* names :
       {&how.int8.exclude, &how.int4.exclude, &how.fp8.exclude, &how.float_blocks.exclude})
    *names = quantize::prepared_names(p.graph, prepared, *names);
  const bool by_samples = how.to == precision::int4 && how.int4.method == quantize::weight_method::gptq;
  if (!by_samples && !samples.is_none())
    raise(errc::invalid_argument, "samples have no use: int8, fp8, fp16 and gptq of int4 take some");
  const auto target = named_target(where, {});
  const quantize::calibration_data data =
      by_samples && !samples.is_none() ? samples_of(samples, prepared) : quantize::calibration_data{};
  const py::gil_scoped_release released;
  quantize::quantized_program made =
      data ? quantize::to_int4(prepared, how.int4, data, *target) : quantize::with_precision(prepared, how);
  held_program out{std::move(made.graph), p.remarks};
  for (const text& r : made.note.remarks) out.remarks.push_back(r.str());
  return out;
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
  m.def("_calibrate", calibrate_program, "Finds ranges by samples.");
  m.def("_quantize", quantize_program, "A program in another precision.");
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
