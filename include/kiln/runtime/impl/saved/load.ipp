#include <chrono>
#include <cstring>
#include <fstream>

#include "kiln/graph/program_archive.hpp"
#include "kiln/runtime/impl/run/executable_access.hpp"
#include "kiln/runtime/impl/saved/saved_file.hpp"
#include "kiln/runtime/kept_code.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "kiln/version.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;
using detail::compiled_program;
using detail::saved_file;
using detail::section;

archive_reader reader_of(const saved_file& file, section s) {
  return {file.get(s), file.name() + ": section '" + std::string(detail::to_string(s)) + "'"};
}

std::vector<port> take_ports(archive_reader& from) {
  std::vector<port> ports(from.take_count(3));
  for (port& p : ports) {
    p.name = from.take_text();
    p.type.type = static_cast<dtype>(from.take_index(all_dtypes, "dtypes"));
    const std::size_t rank = from.take_index(max_rank + 1, "ranks");
    for (std::size_t d = 0; d < rank; ++d) p.type.lens.push_back(from.take_dimension());
  }
  return ports;
}

std::vector<std::pair<std::string, std::string>> take_texts(archive_reader& from) {
  std::vector<std::pair<std::string, std::string>> by_name(from.take_count(2));
  for (auto& [name, value] : by_name) {
    name = from.take_text();
    value = from.take_text();
  }
  return by_name;
}

saved_program_info about(const saved_file& file) {
  archive_reader from = reader_of(file, section::about);
  saved_program_info info;
  info.version = from.take_text();
  info.target = from.take_text();
  info.format = from.take_text();
  info.inputs = take_ports(from);
  info.outputs = take_ports(from);
  info.remarks.resize(from.take_count());
  for (std::string& r : info.remarks) r = from.take_text();
  info.options = take_texts(from);
  if (!from.at_end()) info.notes = take_texts(from);  // files of before have none
  info.has_source = file.has(section::source);
  info.file_bytes = file.bytes();
  info.constant_bytes = file.get(section::data).size();
  return info;
}

program take_program(const saved_file& file, section s, const load_options& how) {
  archive_reader from = reader_of(file, s);
  return restore_program(
      from, [&](std::uint64_t number, std::size_t bytes) { return file.block(number, bytes); }, how.ops);
}

// Why the compiled program in a file does not run here; empty where it does.
std::string misfit(const saved_program_info& info, const target& t) {
  if (info.target.empty()) return "it holds no compiled program";
  const auto differs = [](std::string_view what, std::string_view here, std::string_view there) {
    return std::string(what) + ": expected " + std::string(here) + ", found " + std::string(there);
  };
  if (info.target != t.name()) return differs("target", t.name(), info.target);
  if (info.version != version_text) return differs("version of kiln", version_text, info.version);
  if (const std::string here = t.binary_format(); info.format != here) return differs("machine", here, info.format);
  return {};
}

// Inputs are checked against what the file says of itself, and read as the program has them.
void check_inputs(const saved_file& file, const std::vector<port>& inputs, const module_graph& m) {
  const small_vector<value_id> parameters = m.parameters();
  if (parameters.size() != inputs.size()) file.damaged("as many inputs as the program has");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const shape &named = inputs[i].type, &read = m.shape_of(parameters[i]);
    bool fits = named.type == read.type && named.rank() == read.rank();
    for (std::size_t d = 0; fits && d < read.rank(); ++d)
      fits = !read.lens[d].is_constant() || read.lens[d] == named.lens[d];
    if (!fits) file.damaged("input '" + inputs[i].name + "' to be " + to_string(read));
  }
}

executable load_compiled(std::shared_ptr<const saved_file> file, saved_program_info info, const target& t,
                         const compile_options& options, const load_options& how) {
  const auto start = clock::now();
  auto p = std::make_unique<compiled_program>();
  p->pool = detail::pool_of(options);
  p->flushes_denormals = t.flushes_denormals();
  p->binary_format = std::move(info.format);
  p->options = std::move(info.options);
  p->optimized = take_program(*file, section::program, how);
  check_inputs(*file, info.inputs, p->optimized.main());
  p->ports.take_inputs(info.inputs);

  archive_reader from = reader_of(*file, section::decisions);
  detail::plan_choices choices;
  choices.near_constants = from.take_index(2, "states") == 1;
  choices.allow_nhwc = from.take_index(2, "states") == 1;
  compile_options planned;
  planned.aliases.resize(from.take_count(2));
  for (output_alias& a : planned.aliases) {
    a.output = from.take_text();
    a.input = from.take_text();
  }
  std::vector<std::int64_t> decisions(from.take_count());
  for (std::int64_t& d : decisions) d = from.take_signed();
  std::vector<buffer> blocks(from.take_count());
  for (buffer& b : blocks) b = file->block(from.take_unsigned(), 0);
  p->derived = derived_data(decisions, blocks);
  if (t.has_device()) {
    for (std::size_t n = from.take_count(2); n != 0; --n) {
      const std::string key(from.take_text());
      const buffer code = file->block(from.take_unsigned(), 0);
      p->derived.code()->keep(key, {reinterpret_cast<const char*>(code.data()), code.size()});
    }
  }
  // what goes to a device is read now
  const bool checks_now = how.check_constants || t.has_device();
  if (checks_now) file->check_data(*p->pool);

  try {
    detail::make_steps(*p, t, planned, choices);
  } catch (const error& e) {  // what compilation never makes
    if (e.code() != errc::internal) throw;
    file->damaged(std::string("a program that fits its kernels: ") + e.what());
  }
  p->report.target = t.name();
  p->report.remarks = std::move(info.remarks);
  if (!checks_now) {
    p->unchecked = std::make_unique<compiled_program::first_run_check>();
    p->unchecked->check = [file, pool = p->pool] { file->check_data(*pool); };
  }
  p->report.plan_ms = std::chrono::duration<double, std::milli>(clock::now() - start).count();
  return detail::executable_access::make(std::move(p));
}

program take_source(const saved_file& file, const load_options& how, thread_pool& pool) {
  file.check_data(pool);
  return take_program(file, section::source, how);
}

executable load_from(std::shared_ptr<const saved_file> file, const target& t, const compile_options& options,
                     const load_options& how) {
  saved_program_info info = about(*file);
  const std::string why = misfit(info, t);
  if (why.empty()) return load_compiled(std::move(file), std::move(info), t, options, how);
  if (!info.has_source)
    raise(errc::unsupported, file->name() + " can't run here: " + why +
                                 "; compile the model anew, or save it with its source (--portable)");
  compile_options anew = options;
  anew.pool = detail::pool_of(options);
  if (!info.target.empty()) anew.remarks.push_back("compiled anew from the source in " + file->name() + ": " + why);
  return compile(take_source(*file, how, *anew.pool), t, anew);
}

program source_in(const saved_file& file, const load_options& how) {
  if (!file.has(section::source))
    raise(errc::unsupported, file.name() + ": expected a saved program with its source, found a compiled one alone");
  return take_source(file, how, *default_pool());
}

// Constants are read where they lie, which has to be aligned for that.
saved_file file_in(const saved_bytes& from) {
  if (reinterpret_cast<std::uintptr_t>(from.bytes.data()) % detail::block_alignment == 0)
    return {from.name, from.bytes};
  buffer own = buffer::allocate(from.bytes.size());
  std::memcpy(own.data(), from.bytes.data(), own.size());
  return {from.name, std::move(own)};
}

}  // namespace

executable load(const std::filesystem::path& path, const target& t, const compile_options& options,
                const load_options& how) {
  return load_from(std::make_shared<const saved_file>(path), t, options, how);
}
executable load(const saved_bytes& from, const target& t, const compile_options& options, const load_options& how) {
  return load_from(std::make_shared<const saved_file>(file_in(from)), t, options, how);
}

program load_program(const std::filesystem::path& path, const load_options& how) {
  return source_in(saved_file(path), how);
}
program load_program(const saved_bytes& from, const load_options& how) { return source_in(file_in(from), how); }

saved_program_info inspect(const std::filesystem::path& path) { return about(saved_file(path)); }
saved_program_info inspect(const saved_bytes& from) { return about(file_in(from)); }

bool is_saved_program(const std::filesystem::path& path) { return detail::begins_as_saved(path); }
bool is_saved_program(std::span<const std::byte> bytes) { return detail::begins_as_saved(bytes); }

}  // namespace kiln
