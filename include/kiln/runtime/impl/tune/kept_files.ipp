#include "kiln/runtime/kept_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace kiln {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return in ? std::string(std::istreambuf_iterator<char>(in), {}) : std::string();
}

namespace {

constexpr std::string_view draft_ending = ".part";
constexpr auto old_draft = std::chrono::hours(1);

std::error_code last_error() { return {errno, std::generic_category()}; }

std::error_code synced(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return last_error();
  const std::error_code failed = ::fsync(descriptor) == 0 ? std::error_code() : last_error();
  ::close(descriptor);
  return failed;
}

}  // namespace

draft_file::draft_file(std::filesystem::path to) : to_(std::move(to)) {
  static std::atomic<unsigned> count{0};
  draft_ = to_.string() + "." + std::to_string(::getpid()) + "." + std::to_string(++count) + std::string(draft_ending);
  constexpr int readable = 0666;  // less what the process's mask forbids
  descriptor_ = ::open(draft_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, readable);
  if (descriptor_ < 0) failed_ = last_error();
}

draft_file::~draft_file() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(draft_.c_str());
}

void draft_file::put(const void* bytes, std::size_t n) {
  for (const auto* from = static_cast<const char*>(bytes); n != 0 && !failed_;) {
    const ssize_t now = ::write(descriptor_, from, n);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0)
      failed_ = last_error();
    else
      from += now, n -= static_cast<std::size_t>(now);
  }
}

std::error_code draft_file::finish(bool durable) {
  if (!failed_ && durable && ::fsync(descriptor_) != 0) failed_ = last_error();
  if (!failed_ && ::rename(draft_.c_str(), to_.c_str()) != 0) failed_ = last_error();
  if (failed_) return failed_;
  if (::close(descriptor_) != 0) failed_ = last_error();
  descriptor_ = -1;
  return durable && !failed_ ? synced(to_.parent_path()) : failed_;
}

void remove_old_drafts(const std::filesystem::path& folder) {
  const auto now = std::filesystem::file_time_type::clock::now();
  std::error_code gone;
  for (std::filesystem::directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) {
    std::error_code failed;
    if (at->path().extension() != draft_ending) continue;
    const auto written = at->last_write_time(failed);
    if (!failed && now - written > old_draft) std::filesystem::remove(at->path(), failed);
  }
}

bool keep_file(const std::filesystem::path& path, const std::string& bytes) {
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  draft_file draft(path);
  draft.put(bytes.data(), bytes.size());
  return !draft.finish(false);
}

std::filesystem::path user_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::filesystem::path(cache) / "kiln";
  const char* home = std::getenv("HOME");
  return home && *home ? std::filesystem::path(home) / ".cache" / "kiln" : std::filesystem::path();
}

}  // namespace kiln
