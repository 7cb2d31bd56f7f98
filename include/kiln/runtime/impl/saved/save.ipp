#include <cstring>

#include "kiln/graph/program_archive.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/impl/run/executable_access.hpp"
#include "kiln/runtime/impl/saved/cache_entry.hpp"
#include "kiln/runtime/impl/saved/saved_file.hpp"
#include "kiln/runtime/kept_code.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "kiln/version.hpp"

namespace kiln {
namespace {

using detail::compiled_program;
using detail::saved_file_writer;
using detail::section;

void put_ports(archive_writer& to, const std::vector<port>& ports) {
  to.put_unsigned(ports.size());
  for (const port& p : ports) {
    to.put_text(p.name);
    to.put_unsigned(static_cast<unsigned>(p.type.type));
    to.put_unsigned(p.type.lens.size());
    for (const dimension d : p.type.lens) to.put_dimension(d);
  }
}

std::vector<port> ports_of(const module_graph& m, bool inputs) {
  std::vector<port> out;
  const small_vector<value_id> values = inputs ? m.parameters() : m.outputs;
  for (std::size_t k = 0; k < values.size(); ++k)
    out.push_back({inputs ? m[values[k].instruction].name.str() : m.output_names[k].str(), m.shape_of(values[k])});
  return out;
}

void put_texts(archive_writer& to, const std::vector<std::pair<std::string, std::string>>& by_name) {
  to.put_unsigned(by_name.size());
  for (const auto& [name, value] : by_name) {
    to.put_text(name);
    to.put_text(value);
  }
}

// What a file says of itself: read by `inspect`, and by a load before anything else.
void add_about(saved_file_writer& file, const saved_parts& parts, std::string_view format) {
  const executable* const exe = parts.compiled;
  archive_writer about;
  about.put_text(version_text);
  about.put_text(exe ? exe->report().target : "");
  about.put_text(format);
  if (exe) {
    const compiled_program& p = detail::executable_access::of(*exe);
    put_ports(about, p.ports.inputs);
    put_ports(about, p.ports.outputs);
  } else {
    put_ports(about, ports_of(parts.source->main(), true));
    put_ports(about, ports_of(parts.source->main(), false));
  }
  const std::vector<std::string> none;
  const std::vector<std::string>& remarks = exe ? exe->report().remarks : none;
  about.put_unsigned(remarks.size());
  for (const std::string& r : remarks) about.put_text(r);
  if (exe)
    put_texts(about, detail::executable_access::of(*exe).options);
  else
    put_texts(about, {});
  put_texts(about, parts.notes);
  file.add_section(section::about, about.bytes());
}

std::string archive_of(const program& p, saved_file_writer& file) {
  archive_writer to;
  save_program(to, p, [&](const buffer& b) { return file.add_block(b); });
  return to.bytes();
}

// Copies from a device what lies there.
class host_copies {
 public:
  explicit host_copies(const compiled_program& p) : where_(p.where.get()) {
    if (where_) queue_ = where_->make_queue(), queue_->enter();
  }
  buffer of(const buffer& b) const {
    if (!where_ || b.size() == 0 || !where_->owns(b.data())) return b;
    buffer copy = buffer::allocate(b.size());
    queue_->copy(copy.data(), b.data(), b.size());
    queue_->wait();
    return copy;
  }

 private:
  const device* where_;
  std::unique_ptr<device_queue> queue_;
};

// The graph with the constants that steps on the device read.
program with_device_constants(const compiled_program& p, const host_copies& copies) {
  program whole = p.optimized;
  for (const auto& c : p.device_constants) {
    auto& ins = whole.module({c.module})[c.instruction];
    ins.constant = literal(ins.results[0], copies.of(c.data));
  }
  return whole;
}

void add_compiled(saved_file_writer& file, const compiled_program& p) {
  const host_copies copies(p);
  file.add_section(section::program, archive_of(with_device_constants(p, copies), file));
  archive_writer to;
  to.put_unsigned(p.near_constants);
  to.put_unsigned(p.allow_nhwc);
  to.put_unsigned(p.aliases.size());
  for (const output_alias& a : p.aliases) {
    to.put_text(a.output);
    to.put_text(a.input);
  }
  to.put_unsigned(p.derived.decisions().size());
  for (const std::int64_t d : p.derived.decisions()) to.put_signed(d);
  to.put_unsigned(p.derived.blocks().size());
  for (const buffer& b : p.derived.blocks()) to.put_unsigned(file.add_block(copies.of(b)));
  if (p.on_device) {
    const auto code = p.derived.code()->entries();
    to.put_unsigned(code.size());
    for (const auto& [key, bytes] : code) {
      buffer block = buffer::allocate(bytes.size());
      std::memcpy(block.data(), bytes.data(), bytes.size());
      to.put_text(key);
      to.put_unsigned(file.add_block(block));
    }
  }
  file.add_section(section::decisions, to.bytes());
}

saved_file_writer file_of(const saved_parts& parts) {
  if (!parts.compiled && !parts.source)
    raise(errc::invalid_argument, "a compiled program or a source is saved: found neither");
  saved_file_writer file;
  const compiled_program* const compiled = parts.compiled ? &detail::executable_access::of(*parts.compiled) : nullptr;
  add_about(file, parts, compiled ? compiled->binary_format : std::string_view());
  if (compiled) {
    // what a first run would check is checked before it is written again
    if (compiled->unchecked) std::call_once(compiled->unchecked->done, compiled->unchecked->check);
    add_compiled(file, *compiled);
  }
  if (parts.source) {
    program whole = *parts.source;
    for (std::uint32_t k = 0; k < whole.modules(); ++k) whole.module({k}).compact();
    file.add_section(section::source, archive_of(whole, file));
  }
  return file;
}

}  // namespace

void detail::save_cache_entry(const saved_parts& parts, const std::filesystem::path& file) {
  file_of(parts).write(file, false);
}

void save(const saved_parts& parts, const std::filesystem::path& file) { file_of(parts).write(file, true); }
void save(const executable& exe, const std::filesystem::path& file) { save(saved_parts{&exe}, file); }
void save(const executable& exe, const program& source, const std::filesystem::path& file) {
  save(saved_parts{&exe, &source}, file);
}
void save(const program& source, const std::filesystem::path& file) { save(saved_parts{nullptr, &source}, file); }
std::vector<std::byte> save_to_bytes(const saved_parts& parts) { return file_of(parts).bytes(); }

}  // namespace kiln
