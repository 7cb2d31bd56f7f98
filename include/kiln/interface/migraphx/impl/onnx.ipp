#include "kiln/interface/migraphx/onnx.hpp"

#include <algorithm>

#include "kiln/core/mapped_file.hpp"
#include "kiln/onnx/coverage.hpp"
#include "kiln/onnx/custom_op_importers.hpp"
#include "kiln/onnx/import.hpp"

namespace kiln::migraphx {

namespace {

void check_defaults(const onnx_options& options) {
  if (options.default_dim_value != 0 && options.default_dyn_dim_value != dynamic_dimension{1, 1, {}})
    raise(errc::invalid_argument, "open extents are default_dim_value or default_dyn_dim_value: found both");
}

// Extents of a model's inputs as MIGraphX settles them.
class input_dims {
 public:
  input_dims(const std::vector<onnx::value_info>& inputs, const onnx_options& options) : options_(options) {
    for (const onnx::value_info& input : inputs) {
      if (options.map_input_dims.contains(input.name) && options.map_dyn_input_dims.contains(input.name))
        raise(errc::invalid_argument, "input '" + input.name + "' has extents or ranges, not both");
      learn(input);
    }
  }

  bool concerns(const onnx::value_info& input) const {
    return input.kind == onnx::value_kind::tensor && (input.has_rank || options_.map_input_dims.contains(input.name) ||
                                                      options_.map_dyn_input_dims.contains(input.name));
  }
  dims of(const onnx::value_info& input) const {
    dims out;
    if (const auto own = options_.map_input_dims.find(input.name); own != options_.map_input_dims.end()) {
      for (const std::size_t n : own->second) out.push_back(static_cast<std::int64_t>(n));
      return out;
    }
    const auto own = options_.map_dyn_input_dims.find(input.name);
    const std::size_t rank = own != options_.map_dyn_input_dims.end() ? own->second.size() : input.dims.size();
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (own != options_.map_dyn_input_dims.end())
        out.push_back(extent(own->second[axis], input, axis));
      else if (input.dims[axis].name.empty() && input.dims[axis].value >= 0)
        out.push_back(input.dims[axis].value);
      else
        out.push_back(open_extent(input, axis));
    }
    return out;
  }

 private:
  static dimension extent(const dynamic_dimension& d, const onnx::value_info& input, std::size_t axis) {
    if (checked_range(d).is_fixed()) return static_cast<std::int64_t>(d.min);
    const std::string own = input.name + "." + std::to_string(axis);
    const bool named = axis < input.dims.size() && !input.dims[axis].name.empty();
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max() >> 16);
    return dimension::symbol(named ? input.dims[axis].name : own, static_cast<std::int64_t>(d.min),
                             static_cast<std::int64_t>(std::min(d.max, most)));
  }
  dimension open_extent(const onnx::value_info& input, std::size_t axis) const {
    const std::string& name = input.dims[axis].name;
    if (const auto given = options_.dim_params.find(name); given != options_.dim_params.end())
      return extent(given->second, input, axis);
    if (const auto given = known_.find(name); given != known_.end()) return given->second;
    if (options_.default_dim_value != 0) return static_cast<std::int64_t>(options_.default_dim_value);
    return extent(options_.default_dyn_dim_value, input, axis);
  }
  // A name means one extent: what one input is given holds for the others.
  void learn(const onnx::value_info& input) {
    const bool given = options_.map_input_dims.contains(input.name) || options_.map_dyn_input_dims.contains(input.name);
    if (!given) return;
    const dims own = of(input);
    for (std::size_t axis = 0; axis < std::min(own.size(), input.dims.size()); ++axis)
      if (!input.dims[axis].name.empty()) known_.emplace(input.dims[axis].name, own[axis]);
  }

  const onnx_options& options_;
  std::map<std::string, dimension> known_;
};

onnx::import_options import_options_of(const std::vector<onnx::value_info>& inputs, const onnx_options& options) {
  check_defaults(options);
  onnx::import_options out;
  out.op_importers = onnx::custom_op_importers();
  const input_dims known(inputs, options);
  for (const onnx::value_info& input : inputs)
    if (known.concerns(input)) out.shapes.emplace_back(input.name, known.of(input));
  // an input with a default is one where its extents are given; the importer refuses a name that is no input
  const auto add_other = [&](const std::string& name) {
    if (std::any_of(inputs.begin(), inputs.end(), [&](const onnx::value_info& i) { return i.name == name; })) return;
    onnx::value_info other;
    other.name = name;
    out.shapes.emplace_back(name, known.of(other));
  };
  for (const auto& [name, lens] : options.map_input_dims) add_other(name);
  for (const auto& [name, ranges] : options.map_dyn_input_dims) add_other(name);
  return out;
}

program finished(onnx::imported read) { return program(std::move(read.graph), std::move(read.remarks)); }

}  // namespace

program parse_onnx(const std::string& file, const onnx_options& options) {
  const onnx::import_options how = import_options_of(onnx::model_inputs(file), options);
  if (options.external_data_path.empty()) return finished(onnx::read_model(file, how));
  const buffer bytes = map_file(file);
  return finished(onnx::parse_model({bytes.data(), bytes.size()}, options.external_data_path, how));
}

program parse_onnx_buffer(std::span<const std::byte> model, const onnx_options& options) {
  const onnx::import_options how = import_options_of(onnx::model_inputs(model), options);
  const std::string folder = options.external_data_path.empty() ? "." : options.external_data_path;
  return finished(onnx::parse_model(model, folder, how));
}

const std::vector<std::string>& onnx_operators() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const onnx::importable_operator& o : onnx::importable_operators())
      if (o.domain == "ai.onnx" || o.domain == "com.microsoft") out.emplace_back(o.op_type);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }();
  return names;
}

}  // namespace kiln::migraphx
