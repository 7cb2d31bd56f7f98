#include "kiln/onnx/import.hpp"

#include <algorithm>
#include <filesystem>

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

// The name of a declared extent that is no number.
std::string dim_name(const value_info& input, std::size_t axis) {
  const declared_dim& d = input.dims[axis];
  return d.name.empty() ? input.name + "." + std::to_string(axis) : d.name;
}

bool declares_dim(const graph& g, const std::string& name) {
  for (const value_info& v : g.inputs)
    for (std::size_t axis = 0; axis < v.dims.size(); ++axis)
      if (name == dim_name(v, axis)) return true;
  return false;
}

bool is_number(const declared_dim& d) { return d.name.empty() && d.value >= 0; }

std::vector<std::string> remarks_on(const model& m) {
  std::vector<std::string> out;
  for (const auto& [domain, version] : m.versions)
    if (domain.empty() && version > newest_opset)
      out.push_back("the model asks for operator set " + std::to_string(version) + " of ai.onnx, the newest known is " +
                    std::to_string(newest_opset) + ": its operators are read as of that one");
  return out;
}

imported import_bytes(std::span<const std::byte> bytes, const std::string& directory, const import_options& options,
                      const std::string& place, const buffer* file = nullptr) {
  std::error_code none;
  const auto real = std::filesystem::canonical(place, none);
  model m = read_messages(bytes, directory, options, real.parent_path().string(), file);
  imported out;
  out.graph = importer(m, options, place).run();
  out.ir_version = m.ir_version;
  out.remarks = remarks_on(m);
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
    // an initializer under an input's name is the input's default: its value unless the options say otherwise
    const bool has_default = found != names.names.end() && found->second.waiting;
    if (has_default && !is_overridden(input, *found->second.waiting)) continue;
    if (has_default)
      names.names.erase(found);
    else if (found != names.names.end())
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
  const dtype holder = holder_of(input);
  const bool held = is_object(holder);
  if (input.kind != value_kind::tensor && !held)
    return refuse("is " + std::string(kinds[static_cast<unsigned>(input.kind)]) + ", not a tensor");
  const auto type = to_dtype(input.type);
  if (held && type) {
    const int rank = input.has_rank ? static_cast<int>(input.dims.size()) : item_type::any;
    const item_type item = input.holds_map ? item_type{dtype::map, 0} : item_type{*type, rank, input.holds_sequence};
    return define(names, input.name, {frame_->build.input(input.name, holder, {}), item});
  }
  if (!type)
    return refuse("has elements of type " + std::string(to_string(input.type)) + ", which kiln's tensors do not hold");
  if (input.dims.size() > max_rank)
    return refuse("has " + std::to_string(input.dims.size()) + " dims; kiln's tensors have at most 8");
  if (!input.has_rank && !find_named(options_.shapes, input.name) && !find_named(options_.values, input.name))
    return refuse("declares no rank: give its shape");
  const dims lens = input_dims(input);
  const value v = frame_->build.input(input.name, *type, lens);
  const literal* given = find_named(options_.values, input.name);
  if (!given) return define(names, input.name, v);
  if (given->get_shape().type != *type)
    raise(errc::shape_mismatch, "the value given for input '" + input.name + "' is " +
                                    kiln::to_string(given->get_shape()) + ", the model declares " +
                                    std::string(kiln::to_string(*type)));
  define(names, input.name, frame_->build.constant(*given));
}

// Named as such, or of other extents than the default has.
bool importer::is_overridden(const value_info& input, const tensor& otherwise) const {
  const auto& named = options_.overrides;
  if (given_dims(input.name) || std::find(named.begin(), named.end(), input.name) != named.end()) return true;
  const dims& lens = otherwise.value.get_shape().lens;
  for (std::size_t axis = 0; axis < std::min(input.dims.size(), lens.size()); ++axis)
    if (const auto given = given_.find(dim_name(input, axis));
        !is_number(input.dims[axis]) && given != given_.end() && lens[axis] != dimension(given->second.value))
      return true;
  return false;
}

const dims* importer::given_dims(const std::string& name) const {
  if (const dims* given = find_named(options_.shapes, name)) return given;
  const literal* value = find_named(options_.values, name);
  return value ? &value->get_shape().lens : nullptr;
}

// A dim is what `dimensions` says of its name, or else what some input's given shape says of it.
void importer::collect_given() {
  for (const auto& [name, value] : options_.dimensions) {
    if (value < 0) raise(errc::invalid_argument, "dim '" + name + "' cannot be " + std::to_string(value));
    given_[name] = {value, "its own size"};
  }
  for (const value_info& input : model_.main.inputs) {
    const dims* wanted = given_dims(input.name);
    if (!wanted || input.kind != value_kind::tensor) continue;
    const auto refuse = [&](const std::string& why) {
      raise(errc::shape_mismatch, "the shape given for input '" + input.name + "' contradicts the model: " + why);
    };
    if (input.has_rank && wanted->size() != input.dims.size())
      refuse("expected rank " + std::to_string(input.dims.size()) + ", found " + std::to_string(wanted->size()));
    for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
      const dimension found = (*wanted)[axis];
      if (!found.is_constant()) continue;
      const declared_dim& declared = input.dims[axis];
      const std::string where = "axis " + std::to_string(axis);
      if (found.value() < 0) refuse(where + " cannot be " + std::to_string(found.value()));
      if (is_number(declared)) {
        if (found != dimension(declared.value))
          refuse(where + ": expected " + std::to_string(declared.value) + ", found " + std::to_string(found.value()));
        continue;
      }
      const std::string name = dim_name(input, axis);
      const auto [known, fresh] = given_.try_emplace(name, given_extent{found.value(), "input '" + input.name + "'"});
      if (!fresh && known->second.value != found.value())
        refuse(where + " is dim '" + name + "': expected " + std::to_string(known->second.value) + " as given by " +
               known->second.by + ", found " + std::to_string(found.value()));
    }
  }
}

dims importer::input_dims(const value_info& input) {
  if (const dims* wanted = given_dims(input.name)) return *wanted;
  dims out;
  for (std::size_t axis = 0; axis < input.dims.size(); ++axis) out.push_back(input_dim(input, axis));
  return out;
}

dimension importer::input_dim(const value_info& input, std::size_t axis) {
  const declared_dim& d = input.dims[axis];
  if (is_number(d)) {
    if (d.value > std::numeric_limits<std::int64_t>::max() >> 16)
      raise(errc::limit, "input '" + input.name + "' declares an extent of " + std::to_string(d.value));
    return d.value;
  }
  const std::string name = dim_name(input, axis);
  if (const auto given = given_.find(name); given != given_.end()) return given->second.value;
  return dimension::symbol(name, 0);
}

void importer::check_options() const {
  const auto check_input = [&](const std::string& name) {
    if (std::none_of(model_.main.inputs.begin(), model_.main.inputs.end(),
                     [&](const value_info& v) { return v.name == name; }))
      raise(errc::not_found, "the model has no input '" + name + "'");
  };
  for (const auto& [name, value] : options_.dimensions)
    if (!declares_dim(model_.main, name)) raise(errc::not_found, "no input has a dim named '" + name + "'");
  for (const auto& [name, value] : options_.shapes) check_input(name);
  for (const auto& [name, value] : options_.values) check_input(name);
  for (const std::string& name : options_.overrides) check_input(name);
}

imported read_model(const std::string& path, const import_options& options) try {
  const buffer file = map_file(path);
  const std::size_t slash = path.rfind('/');
  return import_bytes({file.data(), file.size()}, slash == std::string::npos ? "." : path.substr(0, slash + 1), options,
                      path, &file);
} catch (error& e) {
  throw e.at_source(path);
}

imported parse_model(std::span<const std::byte> bytes, const std::string& directory, const import_options& options) {
  return import_bytes(bytes, directory, options, "");
}

}  // namespace kiln::onnx
