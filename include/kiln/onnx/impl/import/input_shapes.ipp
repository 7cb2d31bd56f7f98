#include "kiln/onnx/impl/import/input_shapes.hpp"

#include <algorithm>
#include <limits>

namespace kiln::onnx {

namespace {

template <class List> auto* find_named(const List& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
  return found == list.end() ? nullptr : &found->second;
}

// The name of a declared extent that is not a number.
std::string dim_name(const value_info& input, std::size_t axis) {
  const declared_dim& d = input.dims[axis];
  return d.name.empty() ? input.name + "." + std::to_string(axis) : d.name;
}

std::string names_of(const std::vector<value_info>& inputs) {
  std::string out;
  for (const value_info& v : inputs) out += (out.empty() ? "'" : ", '") + v.name + "'";
  return out.empty() ? "none" : out;
}

bool is_number(const declared_dim& d) { return d.name.empty() && d.value >= 0; }

}  // namespace

input_shapes::input_shapes(const graph& main, const import_options& options) : options_(options) {
  check_names(main);
  for (const auto& [name, value] : options.dimensions) {
    if (value < 0) raise(errc::invalid_argument, "dim '" + name + "' cannot be " + std::to_string(value));
    extents_[name] = {value, "its own size"};
  }
  for (const value_info& input : main.inputs)
    if (const dims* shape = given(input.name); shape && input.kind == value_kind::tensor) collect(input, *shape);
}

void input_shapes::check_names(const graph& main) const {
  const auto check_input = [&](const std::string& name) {
    if (std::none_of(main.inputs.begin(), main.inputs.end(), [&](const value_info& v) { return v.name == name; }))
      raise(errc::not_found, "the model has no input '" + name + "': its inputs are " + names_of(main.inputs));
  };
  const auto is_declared = [&](const std::string& name) {
    for (const value_info& v : main.inputs)
      for (std::size_t axis = 0; axis < v.dims.size(); ++axis)
        if (name == dim_name(v, axis)) return true;
    return false;
  };
  for (const auto& [name, value] : options_.dimensions)
    if (!is_declared(name)) raise(errc::not_found, "no input has a dim named '" + name + "'");
  for (const auto& [name, value] : options_.shapes) check_input(name);
  for (const auto& [name, value] : options_.values) check_input(name);
  for (const std::string& name : options_.overrides) check_input(name);
}

// An extent given for one input fixes the dims of the same name; `dimensions` comes first.
void input_shapes::collect(const value_info& input, const dims& shape) {
  const auto refuse = [&](const std::string& why) {
    raise(errc::shape_mismatch, "the shape given for input '" + input.name + "' contradicts the model: " + why);
  };
  if (input.has_rank && shape.size() != input.dims.size())
    refuse("expected rank " + std::to_string(input.dims.size()) + ", found " + std::to_string(shape.size()));
  for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
    if (!shape[axis].is_constant()) continue;
    const std::int64_t found = shape[axis].value();
    const declared_dim& declared = input.dims[axis];
    const std::string where = "axis " + std::to_string(axis);
    if (found < 0) refuse(where + " cannot be " + std::to_string(found));
    if (is_number(declared)) {
      if (found != declared.value)
        refuse(where + ": expected " + std::to_string(declared.value) + ", found " + std::to_string(found));
      continue;
    }
    const std::string name = dim_name(input, axis);
    const auto [known, fresh] = extents_.try_emplace(name, given_extent{found, "input '" + input.name + "'"});
    if (!fresh && known->second.value != found)
      refuse(where + " is dim '" + name + "': expected " + std::to_string(known->second.value) + " as given by " +
             known->second.by + ", found " + std::to_string(found));
  }
}

dims input_shapes::extents(const value_info& input) const {
  if (const dims* shape = given(input.name)) return *shape;
  dims out;
  for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
    const declared_dim& d = input.dims[axis];
    if (is_number(d)) {
      if (d.value > std::numeric_limits<std::int64_t>::max() >> 16)
        raise(errc::limit, "input '" + input.name + "' declares an extent of " + std::to_string(d.value));
      out.push_back(d.value);
      continue;
    }
    const std::string name = dim_name(input, axis);
    const auto known = extents_.find(name);
    out.push_back(known == extents_.end() ? dimension::symbol(name, 0) : dimension(known->second.value));
  }
  return out;
}

const dims* input_shapes::given(const std::string& input) const {
  if (const dims* shape = find_named(options_.shapes, input)) return shape;
  const literal* value = given_value(input);
  return value ? &value->get_shape().lens : nullptr;
}

const literal* input_shapes::given_value(const std::string& input) const { return find_named(options_.values, input); }

bool input_shapes::is_overridden(const value_info& input, const tensor& initializer) const {
  const auto& named = options_.overrides;
  if (given(input.name) || std::find(named.begin(), named.end(), input.name) != named.end()) return true;
  const dims& lens = initializer.value.get_shape().lens;
  for (std::size_t axis = 0; axis < std::min(input.dims.size(), lens.size()); ++axis)
    if (const auto known = extents_.find(dim_name(input, axis));
        !is_number(input.dims[axis]) && known != extents_.end() && lens[axis] != dimension(known->second.value))
      return true;
  return false;
}

}  // namespace kiln::onnx
