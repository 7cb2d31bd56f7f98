#include "kiln/interface/migraphx/save.hpp"

#include <unistd.h>

#include <fstream>

#include "kiln/core/mapped_file.hpp"
#include "kiln/graph/custom_op.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/runtime/saved_program.hpp"

namespace kiln::migraphx {

namespace {

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
bool is_message_pack(const std::filesystem::path& file) {
  std::ifstream from(file, std::ios::binary);
  const int first = from.get();
  return (first >= 0x80 && first <= 0x8f) || first == 0xde || first == 0xdf;
}

// A file of its own for as long as this lives.
class temporary_file {
 public:
  temporary_file() : path_((std::filesystem::temp_directory_path() / "kiln_program_XXXXXX").string()) {
    const int handle = ::mkstemp(path_.data());
    if (handle < 0) raise(errc::io, "a temporary file is made: " + path_);
    ::close(handle);
  }
  ~temporary_file() { ::unlink(path_.c_str()); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The name by which MIGraphX knows a target, from kiln's own.
std::string name_of_target(const std::string& own) {
  return own.starts_with("hip") ? "gpu" : own == "reference" ? "ref" : own == "eigen" ? "cpu" : own;
}

}  // namespace

void save(const program& p, const std::filesystem::path& file, const file_options& options) {
  check_format(options);
  if (const auto& c = p.get_compiled())
    kiln::save(c->exe, p.graph(), file);
  else
    kiln::save(p.graph(), file);
}

program load(const std::filesystem::path& file, const file_options& options) {
  check_format(options);
  if (!is_saved_program(file) && is_message_pack(file))
    raise(errc::unsupported, file.string() +
                                 " is a program that MIGraphX compiled: kiln compiles the model anew and "
                                 "saves that in its own format");
  const saved_program_info info = inspect(file);
  if (!info.has_source)
    raise(errc::unsupported, file.string() + " holds a compiled program alone: save it with its source");
  program out(load_program(file, knowing_custom_ops()), info.remarks);
  if (info.target.empty()) return out;
  const auto to = named_target(info.target);
  auto made = std::make_shared<program::compiled>(kiln::load(file, *to, {}, knowing_custom_ops()), to->get_device());
  made->target_name = name_of_target(info.target);
  made->options.offload_copy = true;
  out.set_compiled(std::move(made));
  return out;
}

std::vector<std::byte> save_buffer(const program& p, const file_options& options) {
  const temporary_file own;
  save(p, own.path(), options);
  const buffer bytes = map_file(own.path());
  return {bytes.data(), bytes.data() + bytes.size()};
}

program load_buffer(std::span<const std::byte> bytes, const file_options& options) {
  const temporary_file own;
  std::ofstream to(own.path(), std::ios::binary);
  to.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  to.close();
  if (!to) raise(errc::io, "a temporary file is written: " + own.path());
  return load(own.path(), options);
}

}  // namespace kiln::migraphx
