#include "kiln/interface/python/impl/value.hpp"
#include "kiln/interface/python_arrays/array.hpp"

namespace kiln::python {
namespace {

using methods = py::class_<held_value>;

literal literal_of_object(py::handle object, std::optional<dtype> wanted, bool copy = true) {
  borrowed_array a;
  a.read(object, wanted);
  return (copy ? a.value.copy() : a.shared()).to_literal();
}

void bind_unary(methods& c) {
  const auto add = [&c](const char* name, auto f) {
    c.def(name, [f](const held_value& x) { return x.with(f(x.get())); });
  };
  add("abs", [](value x) { return x.abs(); });
  add("ceil", [](value x) { return x.ceil(); });
  add("cos", [](value x) { return x.cos(); });
  add("erf", [](value x) { return x.erf(); });
  add("exp", [](value x) { return x.exp(); });
  add("floor", [](value x) { return x.floor(); });
  add("log", [](value x) { return x.log(); });
  add("logical_not", [](value x) { return x.logical_not(); });
  add("neg", [](value x) { return x.neg(); });
  add("recip", [](value x) { return x.recip(); });
  add("relu", [](value x) { return x.relu(); });
  add("rsqrt", [](value x) { return x.rsqrt(); });
  add("sigmoid", [](value x) { return x.sigmoid(); });
  add("sign", [](value x) { return x.sign(); });
  add("silu", [](value x) { return x.silu(); });
  add("sin", [](value x) { return x.sin(); });
  add("softplus", [](value x) { return x.softplus(); });
  add("sqrt", [](value x) { return x.sqrt(); });
  add("tanh", [](value x) { return x.tanh(); });
  add("__neg__", [](value x) { return -x; });
}

void bind_binary(methods& c) {
  const auto add = [&c](const char* name, auto f) {
    c.def(
        name, [f](const held_value& x, const py::object& other) { return x.with(f(x.get(), x.operand(other))); },
        py::arg("other"));
  };
  add("__add__", [](value x, value y) { return x + y; });
  add("__radd__", [](value x, value y) { return y + x; });
  add("__sub__", [](value x, value y) { return x - y; });
  add("__rsub__", [](value x, value y) { return y - x; });
  add("__mul__", [](value x, value y) { return x * y; });
  add("__rmul__", [](value x, value y) { return y * x; });
  add("__truediv__", [](value x, value y) { return x / y; });
  add("__rtruediv__", [](value x, value y) { return y / x; });
  add("__matmul__", [](value x, value y) { return x.dot(y); });
  add("__lt__", [](value x, value y) { return x < y; });
  add("__gt__", [](value x, value y) { return x > y; });
  add("dot", [](value x, value y) { return x.dot(y); });
  add("equal", [](value x, value y) { return x.equal(y); });
  add("max", [](value x, value y) { return x.max(y); });
  add("min", [](value x, value y) { return x.min(y); });
  add("pow", [](value x, value y) { return x.pow(y); });
  add("__pow__", [](value x, value y) { return x.pow(y); });
}

ints ints_of_object(const py::object& object) { return to_ints(dims_of_object(object)); }

void bind_reductions_and_views(methods& c) {
  const auto reduce = [&c](const char* name, auto f) {
    c.def(
        name, [f](const held_value& x, const py::object& axes) { return x.with(f(x.get(), ints_of_object(axes))); },
        py::arg("axes"));
  };
  reduce("reduce_max", [](value x, const ints& axes) { return x.reduce_max(axes); });
  reduce("reduce_mean", [](value x, const ints& axes) { return x.reduce_mean(axes); });
  reduce("reduce_min", [](value x, const ints& axes) { return x.reduce_min(axes); });
  reduce("reduce_prod", [](value x, const ints& axes) { return x.reduce_prod(axes); });
  reduce("reduce_sum", [](value x, const ints& axes) { return x.reduce_sum(axes); });
  reduce("squeeze", [](value x, const ints& axes) { return x.squeeze(axes); });
  reduce("unsqueeze", [](value x, const ints& axes) { return x.unsqueeze(axes); });
  c.def(
      "transpose",
      [](const held_value& x, const py::object& p) { return x.with(x.get().transpose(ints_of_object(p))); },
      py::arg("permutation"));
  const auto view = [&c](const char* name, auto f) {
    c.def(
        name, [f](const held_value& x, const py::object& to) { return x.with(f(x.get(), dims_of_object(to))); },
        py::arg("to"));
  };
  view("broadcast_to", [](value x, const dims& to) { return x.broadcast_to(to); });
  view("reshape", [](value x, const dims& to) { return x.reshape(to); });
  view("expect_dims", [](value x, const dims& to) { return x.expect_dims(to); });
  c.def(
      "flatten", [](const held_value& x, std::int64_t axis) { return x.with(x.get().flatten(axis)); },
      py::arg("axis") = 1);
  c.def(
      "concat",
      [](const held_value& x, const py::object& other, std::int64_t axis) {
        return x.with(x.get().concat(x.operand(other), axis));
      },
      py::arg("other"), py::arg("axis"));
  c.def(
      "gather",
      [](const held_value& x, const held_value& indices, std::int64_t axis) {
        return x.with(x.get().gather(x.operand(py::cast(indices)), axis));
      },
      py::arg("indices"), py::arg("axis") = 0);
}

void bind_layers(methods& c) {
  c.def(
      "convert", [](const held_value& x, const py::object& to) { return x.with(x.get().convert(dtype_of_object(to))); },
      py::arg("to"), "The elements as another dtype.");
  c.def(
      "where",
      [](const held_value& c, const py::object& x, const py::object& y) {
        // a number takes the dtype of the other one
        const auto& as = py::isinstance<held_value>(x)   ? py::cast<const held_value&>(x)
                         : py::isinstance<held_value>(y) ? py::cast<const held_value&>(y)
                                                         : c;
        return c.with(c.get().where(c.operand(py::cast(as.with(as.operand(x)))), as.operand(y)));
      },
      py::arg("x"), py::arg("y"), "x where this value is true, else y.");
  c.def(
      "softmax", [](const held_value& x, std::int64_t axis) { return x.with(x.get().softmax(axis)); },
      py::arg("axis") = -1);
  c.def(
      "log_softmax", [](const held_value& x, std::int64_t axis) { return x.with(x.get().log_softmax(axis)); },
      py::arg("axis") = -1);
  c.def(
      "normalize",
      [](const held_value& x, const py::object& axes, double epsilon) {
        return x.with(x.get().normalize(ints_of_object(axes), epsilon));
      },
      py::arg("axes"), py::arg("epsilon") = 1e-5, "Zero mean and unit variance along the axes.");
  c.def(
      "rms_normalize", [](const held_value& x, double epsilon) { return x.with(x.get().rms_normalize(epsilon)); },
      py::arg("epsilon") = 1e-5, "x / sqrt(mean(x^2) + epsilon) along the last axis.");
  c.def(
      "batch_norm",
      [](const held_value& x, const py::object& scale, const py::object& bias, const py::object& mean,
         const py::object& variance, double epsilon) {
        return x.with(
            x.get().batch_norm(x.operand(scale), x.operand(bias), x.operand(mean), x.operand(variance), epsilon));
      },
      py::arg("scale"), py::arg("bias"), py::arg("mean"), py::arg("variance"), py::arg("epsilon") = 1e-5,
      "(x - mean) / sqrt(variance + epsilon) * scale + bias along axis 1.");
  c.def(
      "add_along",
      [](const held_value& x, std::int64_t axis, const py::object& vector) {
        return x.with(x.get().add_along(axis, x.operand(vector)));
      },
      py::arg("axis"), py::arg("vector"), "The value plus a vector along one axis.");
}

void bind_ops_with_attributes(methods& c) {
  const auto add = [&c](const char* method, const char* op) {
    c.def(
        method,
        [op](const py::args& operands, const py::kwargs& attributes) { return append_op(op, operands, attributes); },
        (std::string("The op ") + op + ": see kiln.ops." + op + ".").c_str());
  };
  add("conv", "convolution");
  add("pool", "pooling");
  add("attention", "attention");
  add("elu", "elu");
  add("gelu", "gelu");
  add("leaky_relu", "leaky_relu");
  add("slice", "slice");
}

}  // namespace

value held_value::get() const {
  if (made != state->finished)
    raise(errc::invalid_argument, "a value belongs to the program that is built: found one of a finished program");
  return is;
}

value held_value::operand(py::handle object) const {
  const value self = get();
  if (!py::isinstance<held_value>(object)) return state->make.constant(literal_of_object(object, self.type()));
  const auto& other = py::cast<const held_value&>(object);
  if (other.state != state)
    raise(errc::invalid_argument, "operands are values of one builder: found one of another builder");
  return other.get();
}

void bind_builder(py::module_& m) {
  methods c(m, "Value", "A value of a program that is built: operators and methods append ops to its builder.");
  c.attr("__array_ufunc__") = py::none();  // numpy leaves `array + value` to Value
  c.def_property_readonly(
      "shape", [](const held_value& x) { return object_of_dims(x.get().get_shape().lens); }, "The extents.");
  c.def_property_readonly(
      "dtype", [](const held_value& x) { return std::string(to_string(x.get().type())); }, "The elements' type.");
  c.def(
      "result",
      [](const held_value& x, std::uint32_t k) {
        const auto& made_by = x.state->make.module().producer(x.get().id());
        if (k >= made_by.results.size())
          raise(fault::of(errc::invalid_argument, "index of an op's result", made_by.results.size(), k));
        return x.with(x.get().result(k));
      },
      py::arg("index"), "Another result of the op that makes this value.");
  c.def("__repr__", [](const held_value& x) { return "kiln.Value(" + to_string(x.get().get_shape()) + ")"; });
  bind_unary(c);
  bind_binary(c);
  bind_reductions_and_views(c);
  bind_layers(c);
  bind_ops_with_attributes(c);

  py::class_<held_builder> b(m, "Builder",
                             "Builds a program op by op, as C++'s builder does: inputs and weights give Values, whose "
                             "operators and methods append ops.");
  b.def(py::init<>());
  const auto parameter = [](held_builder& self, value v) { return held_value(self.state, v); };
  b.def(
      "input",
      [parameter](held_builder& self, const std::string& name, const py::object& type, const py::object& lens) {
        return parameter(self, self.state->make.input(name, dtype_of_object(type), dims_of_object(lens)));
      },
      py::arg("name"), py::arg("dtype"), py::arg("shape"), "An input. Extents are numbers, Dims or names of symbols.");
  b.def(
      "weight",
      [parameter](held_builder& self, const std::string& name, const py::object& type, const py::object& lens) {
        return parameter(self, self.state->make.weight(name, dtype_of_object(type), dims_of_object(lens)));
      },
      py::arg("name"), py::arg("dtype"), py::arg("shape"),
      "A weight: an input that `compile(..., weights={name: array})` binds.");
  b.def(
      "constant",
      [parameter](held_builder& self, const py::object& data, const py::object& type, bool copy) {
        const std::optional<dtype> wanted = type.is_none() ? std::nullopt : std::optional(dtype_of_object(type));
        return parameter(self, self.state->make.constant(literal_of_object(data, wanted, copy)));
      },
      py::arg("data"), py::arg("dtype") = py::none(), py::arg("copy") = true,
      "A constant: a copy of an array or of nested lists; with copy=False a row-major array where it is, which must "
      "not "
      "change as long as its program lives.");
  b.def(
      "output",
      [](held_builder& self, const held_value& v, const std::string& name) {
        if (v.state != self.state)
          raise(errc::invalid_argument, "an output is a value of this builder: found one of another builder");
        self.state->make.output(v.get(), name);
      },
      py::arg("value"), py::arg("name") = "", "Makes a value an output; without a name it is `output_N`.");
  b.def(
      "finish",
      [](held_builder& self) {
        ++self.state->finished;
        return held_program{self.state->make.finish(), {}};
      },
      "The Program; the builder is empty afterwards.");
}

}  // namespace kiln::python
