#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

#include "kiln/onnx/add_operator.hpp"

namespace kiln::migraphx {

namespace {

constexpr std::string_view undefined_name = "undefined";

std::string count_text(std::size_t least, std::size_t most) {
  if (least == most) return std::to_string(least);
  return most == static_cast<std::size_t>(-1) ? "at least " + std::to_string(least)
                                              : std::to_string(least) + " to " + std::to_string(most);
}

onnx::attribute onnx_attribute(const std::string& name, const attributes& v) {
  onnx::attribute out;
  out.name = name;
  const attributes& first = v.is_array() && !v.empty() ? v[0] : v;
  const bool is_list = v.is_array();
  if (first.is_string()) {
    out.kind = is_list ? onnx::attribute_kind::texts : onnx::attribute_kind::text;
    if (is_list)
      out.texts = v.get<std::vector<std::string>>();
    else
      out.text = v.get<std::string>();
  } else if (first.is_number_float()) {
    out.kind = is_list ? onnx::attribute_kind::reals : onnx::attribute_kind::real;
    if (is_list)
      out.reals = v.get<std::vector<float>>();
    else
      out.real = v.get<float>();
  } else {
    out.kind = is_list ? onnx::attribute_kind::integers : onnx::attribute_kind::integer;
    if (is_list)
      out.integers = v.get<std::vector<std::int64_t>>();
    else
      out.integer = v.is_boolean() ? v.get<bool>() : v.get<std::int64_t>();
  }
  return out;
}

// Whether MIGraphX takes two extents as one: equal numbers, or ranges with equal bounds.
bool same_extent(dimension a, dimension b) {
  return a == b || (!a.is_constant() && !b.is_constant() && a.min() == b.min() && a.max() == b.max());
}
bool same_lens(const dims& a, const dims& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same_extent(a[i], b[i])) return false;
  return true;
}

}  // namespace

bool lowering::has(std::size_t i) const {
  return i < operands.size() && (!makers[i] || makers[i]->name() != undefined_name);
}

value lowering::in(std::size_t i) const {
  if (i >= operands.size()) raise(fault::of(errc::invalid_argument, "number of operands", i + 1, operands.size()));
  if (!has(i)) raise(errc::invalid_argument, "operand " + std::to_string(i) + " is defined");
  if (operands[i].size() != 1)
    raise(errc::invalid_argument, "operand " + std::to_string(i) + " is a tensor: found a tuple");
  return operands[i][0];
}

void lowering::expect(std::size_t least, std::size_t most) const {
  if (size() >= least && size() <= most) return;
  raise(errc::invalid_argument,
        "number of operands: expected " + count_text(least, most) + ", found " + std::to_string(size()));
}

void lowering::expect_same_lens(std::size_t from) const {
  for (std::size_t i = from + 1; i < size(); ++i)
    if (!same_lens(in(i).get_shape().lens, in(from).get_shape().lens))
      raise(fault::of(errc::shape_mismatch, "operands have the same extents (multibroadcast spreads one)",
                      in(from).get_shape().lens, in(i).get_shape().lens));
}

void lowering::expect_same_type(std::size_t from) const {
  for (std::size_t i = from + 1; i < size(); ++i)
    if (in(i).type() != in(from).type())
      raise(fault::of(errc::shape_mismatch, "operands have the same type (convert changes one)", in(from).type(),
                      in(i).type()));
}

const literal* lowering::constant(std::size_t i) const {
  const auto& made = build.module().producer(in(i).id());
  return made.kind == instruction_kind::literal ? &made.constant : nullptr;
}

ints lowering::numbers(std::size_t i) const {
  const literal* const known = constant(i);
  if (!known || known->has_symbols())
    raise(errc::unsupported, "operand " + std::to_string(i) + " is a constant: found one that a run computes");
  const auto values = known->to<std::int64_t>();
  if (values.size() > max_rank) raise(fault::of(errc::limit, "numbers in a list", max_rank, values.size()));
  return ints(std::span<const std::int64_t>(values.data(), values.size()));
}

const attributes& lowering::attribute(const char* name) const { return op.values().at(name); }
std::int64_t lowering::integer(const char* name) const {
  const attributes& v = attribute(name);
  if (!v.is_number_integer())
    raise(errc::invalid_argument, "attribute '" + std::string(name) + "' is a whole number: found " + v.dump());
  return v.get<std::int64_t>();
}
double lowering::real(const char* name) const { return attribute(name).get<double>(); }
bool lowering::flag(const char* name) const {
  const attributes& v = attribute(name);
  return v.is_boolean() ? v.get<bool>() : v.get<std::int64_t>() != 0;
}
std::string lowering::text(const char* name) const {
  const attributes& v = attribute(name);
  return v.is_string() ? v.get<std::string>() : v.dump();
}

std::vector<std::int64_t> lowering::long_integers(const char* name) const {
  std::vector<std::int64_t> out;
  for (const attributes& v : attribute(name)) {
    if (!v.is_number_integer())
      raise(errc::invalid_argument,
            "attribute '" + std::string(name) + "' is a list of whole numbers: found " + v.dump());
    out.push_back(v.get<std::int64_t>());
  }
  return out;
}
ints lowering::integers(const char* name) const {
  const auto all = long_integers(name);
  if (all.size() > max_rank) raise(fault::of(errc::limit, "numbers in a list", max_rank, all.size()));
  return ints(std::span<const std::int64_t>(all));
}

dtype lowering::type(const char* name) const {
  const attributes& v = attribute(name);
  return dtype_of_type(v.is_string() ? type_named(v.get<std::string>()) : checked_type(v.get<std::int64_t>()));
}

std::size_t lowering::word(const char* name, std::initializer_list<std::string_view> words) const {
  const attributes& v = attribute(name);
  std::string all;
  std::size_t i = 0;
  for (const std::string_view w : words) {
    if (v.is_string() ? v.get<std::string>() == w : v.get<std::int64_t>() == static_cast<std::int64_t>(i)) return i;
    all.append(i++ ? ", " : "").append(w);
  }
  raise(errc::invalid_argument, "attribute '" + std::string(name) + "' is one of " + all + ": found " + v.dump());
}

std::int64_t lowering::axis(const char* name, std::size_t rank) const {
  const std::int64_t given = integer(name), a = normal_axis(given, rank);
  if (a < 0) raise(fault::of(errc::invalid_argument, "the axis lies within the rank", rank, given));
  return a;
}

dimension lowering::symbol(std::string_view what, std::int64_t least, std::int64_t most) {
  return dimension::symbol(label + "." + std::string(what) + "." + std::to_string(symbols++), least, most);
}

value_list lowering::onnx(std::string_view op_type, std::int64_t version, const value_list& inputs,
                          const attributes& with, std::string_view domain) {
  onnx::node n;
  n.name = label;
  n.op_type = op_type;
  n.domain = domain;
  for (const auto& [name, v] : with.items())
    if (!v.is_null()) n.attributes.push_back(onnx_attribute(name, v));
  n.outputs.assign(4, "result");
  return onnx::add_operator(build, n, version, inputs);
}

ints axes_of(const lowering& c, const char* name) {
  const std::size_t rank = c.in(0).rank();
  ints out;
  for (const std::int64_t given : c.integers(name)) {
    const std::int64_t a = normal_axis(given, rank);
    if (a < 0) raise(fault::of(errc::invalid_argument, "the axis lies within the rank", rank, given));
    out.push_back(a);
  }
  return out;
}

}  // namespace kiln::migraphx
