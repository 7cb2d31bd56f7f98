#include "kiln/interface/migraphx/save.hpp"

#include <cstring>

#include "kiln/core/mapped_file.hpp"
#include "kiln/graph/custom_op.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/runtime/saved_program.hpp"

namespace kiln::migraphx {

namespace {

constexpr const char* note_name = "migraphx";

void check_format(const file_options& options) {
  if (options.format == "msgpack") return;
  raise(options.format == "json" ? errc::unsupported : errc::invalid_argument,
        "programs are saved in kiln's own format, as which 'msgpack' is taken: found '" + options.format + "'");
}

load_options knowing_custom_ops() {
  load_options out;
  out.ops = custom_op_tables();
  return out;
}

// MessagePack's maps, arrays and strings begin with these bytes, and MIGraphX's files with a map.
bool is_message_pack(std::span<const std::byte> bytes) {
  const int first = bytes.empty() ? 0 : std::to_integer<int>(bytes[0]);
  return (first >= 0x80 && first <= 0x8f) || first == 0xde || first == 0xdf;
}

// What kiln's graphs and executables do not say of a program, as text.
std::string note_of(const program& p) {
  nlohmann::json note{{"remarks", p.remarks()}};
  for (const std::string& name : p.main_module().parameter_names()) {
    const shape& s = p.main_module().parameter_shape(name);
    if (!s.dynamic()) continue;
    nlohmann::json all = nlohmann::json::array();
    for (const dynamic_dimension& d : s.dyn_dims()) all.push_back(d.optimals);
    note["optimals"][name] = std::move(all);
  }
  if (const auto& c = p.get_compiled())
    note["compiled"] = {{"target", c->target_name},
                        {"offload_copy", c->options.offload_copy},
                        {"fast_math", c->options.fast_math},
                        {"exhaustive_tune", c->options.exhaustive_tune}};
  return note.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The note of a file; an object without members where a file has none, as those of kiln's other interfaces.
nlohmann::json read_note(const saved_program_info& info, const std::string& name) {
  for (const auto& [of, text] : info.notes) {
    if (of != note_name) continue;
    nlohmann::json note = nlohmann::json::parse(text, nullptr, false);
    if (!note.is_object()) raise(errc::malformed, name + " is damaged: expected a note of what its options were");
    return note;
  }
  return nlohmann::json::object();
}

void take_optimals(module& m, const nlohmann::json& note) {
  const nlohmann::json all = note.value("optimals", nlohmann::json::object());
  for (const auto& [name, axes] : all.items()) {
    if (!m.build().module().find_parameter(name)) continue;
    std::vector<dynamic_dimension> ranges = m.parameter_shape(name).dyn_dims();
    for (std::size_t d = 0; d < std::min(ranges.size(), axes.size()); ++d)
      ranges[d].optimals = axes[d].get<std::set<std::size_t>>();
    m.set_optimals(name, ranges);
  }
}

void take_compiled(program& out, const saved_bytes& from, const saved_program_info& info, const nlohmann::json& note) {
  const nlohmann::json about = note.value("compiled", nlohmann::json::object());
  const std::string name = about.value("target", std::string(migraphx_target_name(info.target)));
  const auto to = named_target(name);
  auto made = std::make_shared<program::compiled>(kiln::load(from, *to, {}, knowing_custom_ops()), to->get_device());
  // a file of another interface's says nothing: its arguments are in the host's memory
  made->settle(
      name, {about.value("offload_copy", true), about.value("fast_math", true), about.value("exhaustive_tune", false)});
  out.set_compiled(std::move(made));
}

program load_from(const saved_bytes& from, const file_options& options) {
  check_format(options);
  const std::span<const std::byte> bytes(from.bytes.data(), from.bytes.size());
  if (!is_saved_program(bytes) && is_message_pack(bytes))
    raise(errc::unsupported, from.name +
                                 " is a program that MIGraphX compiled: kiln compiles the model anew and "
                                 "saves that in its own format");
  const saved_program_info info = inspect(from);
  if (!info.has_source)
    raise(errc::unsupported, from.name + " holds a compiled program alone: save it with its source");
  const nlohmann::json note = read_note(info, from.name);
  try {
    program out(load_program(from, knowing_custom_ops()), note.value("remarks", info.remarks));
    take_optimals(out.main_module(), note);
    if (!info.target.empty()) take_compiled(out, from, info, note);
    return out;
  } catch (const nlohmann::json::exception& e) {
    raise(errc::malformed, from.name + " is damaged: expected a note of what its options were: " + e.what());
  }
}

// Calls `write` with the parts of a saved program.
template <class Write> auto with_parts(const program& p, const file_options& options, Write&& write) {
  check_format(options);
  p.check_unchanged();
  const kiln::program graph = p.graph();
  const auto& c = p.get_compiled();
  return write(saved_parts{c ? &c->exe : nullptr, &graph, {{note_name, note_of(p)}}});
}

}  // namespace

void save(const program& p, const std::filesystem::path& file, const file_options& options) {
  with_parts(p, options, [&](const saved_parts& parts) { kiln::save(parts, file); });
}

program load(const std::filesystem::path& file, const file_options& options) {
  return load_from({map_file(file.string()), file.string()}, options);
}

std::vector<std::byte> save_buffer(const program& p, const file_options& options) {
  return with_parts(p, options, [](const saved_parts& parts) { return save_to_bytes(parts); });
}

program load_buffer(std::span<const std::byte> bytes, const file_options& options) {
  buffer own = buffer::allocate(bytes.size());  // the program shares it
  if (!bytes.empty()) std::memcpy(own.data(), bytes.data(), bytes.size());
  return load_from({std::move(own), "the buffer"}, options);
}

}  // namespace kiln::migraphx
