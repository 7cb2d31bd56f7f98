#include "kiln/graph/custom_op.hpp"

#include "kiln/interface/python/impl/value.hpp"
#include "kiln/interface/python_arrays/array.hpp"
#include "kiln/runtime/source_op.hpp"

namespace kiln::python {
namespace {

// A function of Python's that kiln calls in any thread, for the life of the process.
class kept_function {
 public:
  explicit kept_function(const py::function& f) : f_(f.inc_ref()) {}
  /// Calls it; what it raises is an error of the op.
  template <class Body> auto call(const std::string& op, Body&& body) const {
    const py::gil_scoped_acquire held;
    try {
      return body(py::reinterpret_borrow<py::function>(f_));
    } catch (const py::error_already_set& e) {
      throw error(errc::invalid_argument, std::string("Python code raised ") + e.what()).at_op(op);
    } catch (const py::builtin_exception& e) {
      throw error(errc::invalid_argument, e.what()).at_op(op);
    }
  }

 private:
  py::handle f_;
};

py::dict dict_of(const custom_attributes& attributes) {
  py::dict out;
  for (const custom_attribute& a : attributes)
    std::visit([&](const auto& list) { out[a.name.c_str()] = list.size() == 1 ? py::cast(list[0]) : py::cast(list); },
               a.values);
  return out;
}

custom_attribute custom_attribute_of(const std::string& name, const py::object& value) {
  py::object given = py::hasattr(value, "tolist") ? py::object(value.attr("tolist")()) : value;
  const bool listed = PyList_Check(given.ptr()) || PyTuple_Check(given.ptr());
  const py::list all = listed ? py::list(given) : py::list(py::make_tuple(given));
  bool texts = !all.empty(), whole = true;
  for (const py::handle x : all) {
    texts = texts && py::isinstance<py::str>(x);
    whole = whole && PyIndex_Check(x.ptr());
    if (!py::isinstance<py::str>(x) && !PyNumber_Check(x.ptr()))
      raise(errc::invalid_argument, "attribute " + name + " is a number, text or a list of one of these: found " +
                                        py::cast<std::string>(py::repr(value)));
  }
  if (texts) return {name, py::cast<std::vector<std::string>>(all)};
  if (whole) return {name, py::cast<std::vector<std::int64_t>>(all)};
  return {name, py::cast<std::vector<float>>(all)};
}

py::tuple tuple_of(const shape& s) { return py::make_tuple(std::string(to_string(s.type)), object_of_dims(s.lens)); }

shapes shapes_of_object(const py::object& all) {
  shapes out;
  for (const py::handle one : all) {
    const py::tuple pair = py::cast<py::tuple>(one);
    if (pair.size() != 2)
      raise(fault::of(errc::invalid_argument, "a result of a shape rule is a dtype and a shape", 2, pair.size()));
    out.push_back(shape(dtype_of_object(pair[0]), dims_of_object(pair[1])));
  }
  return out;
}

void copy_result(const py::handle& from, argument& to, const std::string& op) {
  const shape& wanted = to.get_shape();
  borrowed_array a;
  a.read(from, wanted.type);
  const shape& found = a.value.get_shape();
  if (found.type != wanted.type || found.lens != wanted.lens)
    throw error(
        fault::of(errc::shape_mismatch, "what the op's function returns is what its shape rule says", wanted, found))
        .at_op(op);
  if (wanted.elements() == dimension(0)) return;
  std::memcpy(to.data(), a.value.contiguous().data(), static_cast<std::size_t>(wanted.bytes().value()));
}

void define(const std::string& domain, const std::string& type, const py::function& shape_rule,
            const py::function& compute, bool pure, const std::string& version) {
  custom_op op;
  op.domain = domain;
  op.type = type;
  op.pure = pure;
  op.version = version;
  const std::string name = op.name();
  op.shape_rule = [name, f = kept_function(shape_rule)](const custom_attributes& attributes,
                                                        std::span<const shape> in) {
    return f.call(name, [&](const py::function& rule) {
      py::list operands;
      for (const shape& s : in) operands.append(tuple_of(s));
      return shapes_of_object(rule(operands, dict_of(attributes)));
    });
  };
  op.compute = [name, f = kept_function(compute)](const custom_attributes& attributes, std::span<const argument> in,
                                                  std::span<argument> out) {
    f.call(name, [&](const py::function& body) {
      py::list operands;  // copies: Python may keep them longer than the run keeps its memory
      for (const argument& a : in) operands.append(held_tensor{a.copy(), {}, false});
      const py::list results = body(operands, dict_of(attributes));
      if (results.size() != out.size())
        raise(fault::of(errc::shape_mismatch, "results of the op's function", out.size(), results.size()));
      for (std::size_t i = 0; i < out.size(); ++i) copy_result(results[i], out[i], name);
    });
  };
  define_custom_op(std::move(op));
}

custom_attributes attributes_of(const py::dict& all) {
  custom_attributes out;
  for (const auto& [key, value] : all)
    out.push_back(custom_attribute_of(py::cast<std::string>(key), py::reinterpret_borrow<py::object>(value)));
  return out;
}

void define_source(const std::string& domain, const std::string& type, const std::string& source,
                   std::vector<std::string> operands, const py::dict& attributes, const py::list& types,
                   const std::string& compiler, const std::string& version) {
  source_op op{domain, type, source, std::move(operands), attributes_of(attributes), {}, version};
  for (const py::handle t : types) op.types.mask |= 1u << static_cast<unsigned>(dtype_of_object(t));
  const py::gil_scoped_release released;
  define_source_op(op, {compiler, {}});
}

// What a defined op computes of arrays.
py::list compute_on(const std::string& name, const py::list& arrays, const py::dict& given) {
  const custom_op* const op = find_custom_op(name);
  if (!op) raise(errc::not_found, "a custom op is defined before it is used: found '" + name + "'");
  const custom_attributes attributes = attributes_of(given);
  std::vector<argument> in, out;
  std::vector<shape> types;
  std::vector<borrowed_array> held(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    held[i].read(arrays[i], i && PyNumber_Check(arrays[i].ptr()) && !py::hasattr(arrays[i], "shape")
                                ? std::optional(types[0].type)
                                : std::nullopt);
    in.push_back(held[i].value.contiguous());
    types.push_back(in.back().get_shape());
  }
  {
    const py::gil_scoped_release released;
    try {
      for (const shape& s : op->shape_rule(attributes, types)) out.emplace_back(s);
      op->compute(attributes, in, out);
    } catch (error& e) {
      throw e.at_op(name);
    }
  }
  py::list results;
  for (argument& a : out) results.append(held_tensor{std::move(a), {}, false});
  return results;
}

}  // namespace

void bind_custom_op(py::module_& m) {
  m.def("_define_op", define, "Defines a custom op by two functions of lists and a dict.");
  m.def("_define_source_op", define_source, "Defines a custom op by C++ text.");
  m.def("_compute_custom_op", compute_on, "What a custom op computes of arrays.");
  m.def(
      "_custom_op",
      [](const std::string& name, const py::args& operands, const py::kwargs& attributes) {
        return append_operation(make_custom_operation(name, attributes_of(attributes)), operands);
      },
      "Appends a custom op.");
}

}  // namespace kiln::python
