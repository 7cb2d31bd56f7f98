#include "files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "kiln/core/error.hpp"

namespace kiln::driver {

namespace fs = std::filesystem;

std::vector<std::byte> read_file(const std::string& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) raise(errc::not_found, fmt::format("no such file: {}", path));
  if (status.type() == fs::file_type::directory) raise(errc::io, fmt::format("{} is a folder", path));
  std::ifstream in(path, std::ios::binary);
  if (!in) raise(errc::io, fmt::format("can't open {}: {}", path, std::strerror(errno)));
  std::vector<std::byte> out;
  char block[1 << 16];
  while (in.read(block, sizeof block), in.gcount() > 0) {
    const auto* b = reinterpret_cast<const std::byte*>(block);
    out.insert(out.end(), b, b + in.gcount());
  }
  if (in.bad()) raise(errc::io, fmt::format("can't read {}", path));
  return out;
}

void make_folder(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code || !fs::is_directory(path, code))
    raise(errc::io, fmt::format("can't make the folder {}: {}", path.string(), code ? code.message() : "it is a file"));
}

file_group::~file_group() {
  std::error_code ignored;
  for (const entry& e : entries_) fs::remove(e.temporary, ignored);
}

void file_group::add(const fs::path& path, const std::function<void(const std::string&)>& write) {
  std::error_code code;
  // a link keeps pointing to what it points to
  const fs::path final = fs::is_symlink(path, code) ? fs::weakly_canonical(path, code) : path;
  if (fs::exists(final, code) && !fs::is_regular_file(final, code))
    raise(errc::io, fmt::format("can't write {}: it exists and is no ordinary file", path.string()));
  fs::path temporary = final;
  temporary += fmt::format(".{}.part", ::getpid());
  entries_.push_back({temporary, final});
  write(temporary.string());
}

void file_group::commit() {
  for (const entry& e : entries_) {
    std::error_code code;
    fs::rename(e.temporary, e.final, code);
    if (code) raise(errc::io, fmt::format("can't write {}: {}", e.final.string(), code.message()));
  }
  entries_.clear();
}

void write_file(const fs::path& path, std::string_view content) {
  file_group group;
  group.add(path, [&](const std::string& name) {
    std::ofstream out(name, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (!out) raise(errc::io, fmt::format("can't write {}: {}", path.string(), std::strerror(errno)));
  });
  group.commit();
}

}  // namespace kiln::driver
