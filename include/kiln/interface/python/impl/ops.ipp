#include "kiln/graph/op_attributes.hpp"
#include "kiln/interface/python/impl/value.hpp"

namespace kiln::python {
namespace {

attribute_value attribute_of_object(py::handle object) {
  if (py::isinstance<py::bool_>(object)) return {py::cast<bool>(object)};
  if (py::isinstance<dimension>(object)) return {py::cast<dimension>(object)};
  if (py::isinstance<py::str>(object)) return {py::cast<std::string>(object)};
  if (PyFloat_Check(object.ptr())) return {py::cast<double>(object)};
  if (PyIndex_Check(object.ptr()))
    return {py::cast<std::int64_t>(py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr())))};
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    std::vector<attribute_value> out;
    for (const py::handle item : object) out.push_back(attribute_of_object(item));
    return {std::move(out)};
  }
  if (PyType_Check(object.ptr()) || py::hasattr(object, "byteorder"))  // a dtype of numpy's
    return {std::string(to_string(dtype_of_object(object)))};
  // numpy's scalars and arrays
  if (py::hasattr(object, "tolist")) return attribute_of_object(object.attr("tolist")());
  raise(errc::invalid_argument, "an attribute is a bool, number, text, Dim or a list of these: found " +
                                    py::cast<std::string>(py::repr(object)));
}

std::vector<named_attribute> attributes_of(const py::kwargs& all) {
  std::vector<named_attribute> out;
  for (const auto& [name, value] : all) out.push_back({py::cast<std::string>(name), attribute_of_object(value)});
  return out;
}

}  // namespace

held_value append_operation(const operation& op, const py::args& operands) {
  for (const py::handle o : operands)
    if (py::isinstance<held_value>(o)) {
      const auto& first = py::cast<const held_value&>(o);
      small_vector<value_id> ids;
      for (const py::handle any : operands) ids.push_back(first.operand(any).id());
      return first.with(first.state->make.add_operation(op, std::move(ids)));
    }
  raise(errc::invalid_argument, "an op has a Value among its operands: found none for " + std::string(op.name()));
}

held_value append_op(const std::string& name, const py::args& operands, const py::kwargs& attributes) {
  return append_operation(make_operation(name, attributes_of(attributes)), operands);
}

void bind_ops(py::module_& m) {
  m.def(
      "_op",
      [](const std::string& name, const py::args& operands, const py::kwargs& attributes) {
        return append_op(name, operands, attributes);
      },
      "Appends the op with that name.");
  m.def(
      "_op_table",
      [] {
        py::list out;
        for (const op_row& row : op_rows()) {
          py::list attributes;
          for (const attribute_info& a : row.attributes())
            attributes.append(py::make_tuple(std::string(a.name), a.kind, a.default_value));
          out.append(py::make_tuple(std::string(row.table->name), std::string(to_string(row.table->kind)),
                                    row.table->inputs, attributes));
        }
        return out;
      },
      "Name, kind, number of operands (-1: any) and attributes (name, kind, default) of each op.");
}

}  // namespace kiln::python
