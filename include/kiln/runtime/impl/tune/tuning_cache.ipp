#include "kiln/runtime/tuning_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "kiln/runtime/kept_files.hpp"

namespace kiln {
namespace {

constexpr std::string_view title = "kiln tuned kernels", first_line = "kiln tuned kernels 1\n";
constexpr std::uintmax_t most_bytes = 64 << 20;
constexpr std::size_t checksum_digits = 8;

// Separators of the file can't be part of what it holds.
std::string plain(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return out;
}

std::string checksum(std::string_view key, std::string_view choice) {
  digest d;
  d.add(key);
  d.add(choice);
  return d.str().substr(0, checksum_digits);
}

// Holds off other writers while it lives: they would replace the file by one without what this one adds.
class file_guard {
 public:
  explicit file_guard(const std::filesystem::path& file) {
    std::error_code ignored;
    std::filesystem::create_directories(file.parent_path(), ignored);
    handle_ = ::open((file.string() + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (handle_ >= 0) ::flock(handle_, LOCK_EX);
  }
  ~file_guard() {
    if (handle_ >= 0) ::close(handle_);
  }
  file_guard(const file_guard&) = delete;
  file_guard& operator=(const file_guard&) = delete;

 private:
  int handle_ = -1;
};

}  // namespace

std::filesystem::path tuning_cache::default_file() {
  const std::filesystem::path folder = user_cache_folder();
  return folder.empty() ? folder : folder / file_name;
}

tuning_cache::tuning_cache(std::filesystem::path file) : file_(std::move(file)) {}

// What the file holds, false where it is something else.
bool tuning_cache::read(entries& to) {
  // One look at the name: a second one could find a file that another writer has made meanwhile.
  std::error_code unknown;
  const std::filesystem::file_status there = std::filesystem::status(file_, unknown);
  if (!std::filesystem::exists(there)) return true;
  if (!std::filesystem::is_regular_file(there)) {
    remark_ = "tuning: " + file_.string() + " is no file: nothing is read from it or kept in it";
    return false;
  }
  const std::uintmax_t bytes = std::filesystem::file_size(file_, unknown);
  const std::string text = bytes > most_bytes ? std::string() : read_file(file_);  // none where its size is unknown
  if (bytes != 0 && !text.starts_with(title)) {
    remark_ = "tuning: " + file_.string() + " is not a file of tuned kernels (its first line would be '" +
              std::string(first_line.substr(0, first_line.size() - 1)) + "'): it is left as it is";
    return false;
  }
  std::size_t at = text.find('\n'), damaged = 0;
  if (at == text.npos || text.substr(0, at + 1) != first_line) return true;  // another version's entries say nothing
  for (++at; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string_view line = std::string_view(text).substr(at, end == text.npos ? text.npos : end - at);
    at = end == text.npos ? text.size() : end + 1;
    const std::size_t key = line.find('\t'), choice = key == line.npos ? key : line.find('\t', key + 1);
    if (choice == line.npos || end == text.npos) {
      ++damaged;
      continue;
    }
    const std::string_view name = line.substr(key + 1, choice - key - 1), what = line.substr(choice + 1);
    if (line.substr(0, key) == checksum(name, what))
      to.insert_or_assign(std::string(name), std::string(what));
    else
      ++damaged;
  }
  if (damaged != 0)
    remark_ = "tuning: " + std::to_string(damaged) + " damaged lines of " + file_.string() + " are left out";
  return true;
}

void tuning_cache::load() {
  if (loaded_) return;
  loaded_ = true;
  if (!file_.empty()) foreign_ = !read(known_);
}

std::optional<std::string> tuning_cache::find(std::string_view key) {
  const std::lock_guard guard(lock_);
  load();
  const auto at = known_.find(plain(key));
  return at == known_.end() ? std::nullopt : std::optional(at->second);
}

void tuning_cache::keep(std::string_view key, std::string_view choice) {
  const std::lock_guard guard(lock_);
  load();
  const std::string name = plain(key), what = plain(choice);
  known_.insert_or_assign(name, what);
  if (file_.empty() || foreign_) return;
  const file_guard alone(file_);
  entries there;
  foreign_ = !read(there);
  if (foreign_) return;
  there.insert_or_assign(name, what);
  known_.insert(there.begin(), there.end());
  std::string text(first_line);
  for (const auto& [k, c] : there) text += checksum(k, c) + '\t' + k + '\t' + c + '\n';
  if (!keep_file(file_, text) && remark_.empty())
    remark_ = "tuning: " + file_.string() + " can't be written: what was measured is forgotten with this process";
}

std::string tuning_cache::remark() const {
  const std::lock_guard guard(lock_);
  return remark_;
}

}  // namespace kiln
