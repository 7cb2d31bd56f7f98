#pragma once
#include <gmock/gmock.h>

#include "kiln/interface/migraphx/program.hpp"

// What the tests of MIGraphX's words have in common.
namespace kiln::migraphx::test {

using numbers = std::vector<double>;

/// An argument of these numbers in row-major order.
inline argument of(type_t type, const std::vector<std::size_t>& lens, const numbers& values) {
  argument out(shape(type, lens));
  if (!values.empty())
    encode(dtype_of_type(type), values.data(), reinterpret_cast<std::byte*>(out.data()),
           static_cast<std::int64_t>(values.size()));
  return out;
}
inline argument floats(const std::vector<std::size_t>& lens, const numbers& values) {
  return of(type_t::float_type, lens, values);
}
inline argument integers(const std::vector<std::size_t>& lens, const numbers& values) {
  return of(type_t::int64_type, lens, values);
}
inline argument scalar(type_t type, double value) {
  argument out{shape(type)};
  encode(dtype_of_type(type), &value, reinterpret_cast<std::byte*>(out.data()), 1);
  return out;
}
/// Numbers in row-major order.
inline numbers of(const argument& a) {
  const auto all = a.value().to<double>();
  return {all.begin(), all.end()};
}

/// An operand of an operator under test: a parameter, or a constant.
struct operand {
  argument value;
  bool is_constant = false;
  bool is_undefined = false;
};
inline operand constant(argument a) { return {std::move(a), true, false}; }
inline operand undefined() { return {{}, false, true}; }

/// What an operator gives of these operands on the reference; all parts of a tuple.
inline std::vector<argument> results(const std::string& name, const std::string& attributes_text,
                                     const std::vector<operand>& operands) {
  program p;
  module& m = p.main_module();
  std::vector<instruction_ref> in;
  parameter_map given;
  for (const operand& o : operands) {
    const std::string parameter = "x" + std::to_string(in.size());
    if (o.is_undefined) {
      in.push_back(m.add_instruction(operation("undefined"), {}));
    } else if (o.is_constant) {
      in.push_back(m.add_literal(o.value));
    } else {
      in.push_back(m.add_parameter(parameter, o.value.get_shape()));
      given[parameter] = o.value;
    }
  }
  const instruction_ref made = m.add_instruction(operation(name, parse_attributes(attributes_text)), in);
  if (made->type.type() != type_t::tuple_type) {
    m.add_return({made});
    auto out = p.run(given);
    EXPECT_EQ(out.size(), made->values.size()) << name;
    out.resize(1);
    EXPECT_EQ(out[0].get_shape().type(), made->type.type()) << name;
    return out;
  }
  std::vector<instruction_ref> parts;
  for (std::size_t k = 0; k < made->type.parts().size(); ++k)
    parts.push_back(m.add_instruction(operation("get_tuple_elem", {{"index", k}}), {made}));
  m.add_return(parts);
  return p.run(given);
}
inline argument result(const std::string& name, const std::string& attributes_text,
                       const std::vector<operand>& operands) {
  return results(name, attributes_text, operands).at(0);
}

/// The message of the error that a call ends in; empty where it ends in none.
template <class Call> std::string message(Call&& call) {
  try {
    call();
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

}  // namespace kiln::migraphx::test
