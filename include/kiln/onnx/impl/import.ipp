#include "kiln/onnx/import.hpp"

#include <algorithm>

#include "kiln/onnx/impl/importer.hpp"
#include "kiln/onnx/impl/mapped_file.hpp"
#include "kiln/onnx/impl/read_model.hpp"

namespace kiln::onnx {

namespace {

template <class List>
auto* find_named(const List& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
  return found == list.end() ? nullptr : &found->second;
}

// Also where no symbol is left of the dim, because its input got a shape.
bool declares_dim(const graph& g, const std::string& name) {
  for (const value_info& v : g.inputs)
    for (std::size_t axis = 0; axis < v.dims.size(); ++axis)
      if (name == (v.dims[axis].name.empty() ? v.name + "." + std::to_string(axis) : v.dims[axis].name)) return true;
  return false;
}

imported import_bytes(std::span<const std::byte> bytes, const std::string& directory, const import_options& options,
                      const std::string& place) {
  model m = read_messages(bytes, directory, options);
  imported out;
  out.graph = importer(m, options, place).run();
  out.ir_version = m.ir_version;
  out.versions = std::move(m.versions);
  out.producer = std::move(m.producer);
  out.metadata = std::move(m.metadata);
  return out;
}

}  // namespace

void importer::add_inputs(scope& names) {
  for (const value_info& input : model_.main.inputs) {
    if (input.name.empty()) raise(errc::malformed, "an input has no name");
    const auto found = names.names.find(input.name);
    // an initializer under an input's name is the input's default; kiln takes it as the value
    if (found != names.names.end() && found->second.waiting) continue;
    if (found != names.names.end())
      raise(errc::malformed, "the name '" + input.name + "' is defined twice, the second time by an input");
    add_input(names, input);
  }
}

void importer::add_input(scope& names, const value_info& input) {
  const auto refuse = [&](const std::string& why) {
    give_up("input '" + input.name + "'", {}, why);
    names.names[input.name].lost = true;
  };
  constexpr std::string_view kinds[] = {"a tensor", "a sequence", "an optional", "a map", "a sparse tensor", "untyped"};
  if (input.kind != value_kind::tensor)
    return refuse("is " + std::string(kinds[static_cast<unsigned>(input.kind)]) + ", not a tensor");
  const auto type = to_dtype(input.type);
  if (!type)
    return refuse("has elements of type " + std::string(to_string(input.type)) + ", which kiln's tensors do not hold");
  if (input.dims.size() > max_rank)
    return refuse("has " + std::to_string(input.dims.size()) + " dims; kiln's tensors have at most 8");
  if (!input.has_rank && !find_named(options_.shapes, input.name) && !find_named(options_.values, input.name))
    return refuse("declares no rank: give its shape");
  const dims lens = input_dims(input);
  const value v = build_.input(input.name, *type, lens);
  const literal* given = find_named(options_.values, input.name);
  if (!given) return define(names, input.name, v);
  if (given->get_shape().type != *type)
    raise(errc::shape_mismatch, "the value given for input '" + input.name + "' is " +
                                    kiln::to_string(given->get_shape()) + ", the model declares " +
                                    std::string(kiln::to_string(*type)));
  define(names, input.name, build_.constant(*given));
}

dims importer::input_dims(const value_info& input) {
  const dims* wanted = find_named(options_.shapes, input.name);
  if (!wanted)
    if (const literal* given = find_named(options_.values, input.name)) wanted = &given->get_shape().lens;
  if (wanted) {
    if (input.has_rank && wanted->size() != input.dims.size())
      raise(errc::shape_mismatch, "input '" + input.name + "' has rank " + std::to_string(input.dims.size()) +
                                      ", the shape given for it has " + std::to_string(wanted->size()));
    return *wanted;
  }
  dims out;
  for (std::size_t axis = 0; axis < input.dims.size(); ++axis) out.push_back(input_dim(input, axis));
  return out;
}

dimension importer::input_dim(const value_info& input, std::size_t axis) {
  const declared_dim& d = input.dims[axis];
  if (d.name.empty() && d.value >= 0) {
    if (d.value > std::numeric_limits<std::int64_t>::max() >> 16)
      raise(errc::limit, "input '" + input.name + "' declares an extent of " + std::to_string(d.value));
    return d.value;
  }
  const std::string name = d.name.empty() ? input.name + "." + std::to_string(axis) : d.name;
  symbols_.push_back(name);
  if (const std::int64_t* given = find_named(options_.dimensions, name)) {
    if (*given < 0) raise(errc::invalid_argument, "dim '" + name + "' cannot be " + std::to_string(*given));
    return *given;
  }
  return dimension::symbol(name, 0);
}

void importer::check_options() const {
  const auto is_input = [&](const std::string& name) {
    return std::any_of(model_.main.inputs.begin(), model_.main.inputs.end(),
                       [&](const value_info& v) { return v.name == name; });
  };
  for (const auto& [name, value] : options_.dimensions) {
    if (std::find(symbols_.begin(), symbols_.end(), name) != symbols_.end() || declares_dim(model_.main, name))
      continue;
    raise(errc::not_found, "no input has a dim named '" + name + "'");
  }
  for (const auto& [name, value] : options_.shapes)
    if (!is_input(name)) raise(errc::not_found, "the model has no input '" + name + "'");
  for (const auto& [name, value] : options_.values)
    if (!is_input(name)) raise(errc::not_found, "the model has no input '" + name + "'");
}

imported read_model(const std::string& path, const import_options& options) try {
  const buffer file = map_file(path);
  const std::size_t slash = path.rfind('/');
  return import_bytes({file.data(), file.size()}, slash == std::string::npos ? "." : path.substr(0, slash + 1), options,
                      path);
} catch (error& e) {
  throw e.at_source(path);
}

imported parse_model(std::span<const std::byte> bytes, const std::string& directory, const import_options& options) {
  return import_bytes(bytes, directory, options, "");
}

}  // namespace kiln::onnx
