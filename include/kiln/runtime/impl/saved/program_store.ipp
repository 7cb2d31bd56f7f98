#include "kiln/runtime/program_store.hpp"

#include <algorithm>
#include <optional>

#include "kiln/core/mapped_file.hpp"
#include "kiln/core/stopwatch.hpp"
#include "kiln/runtime/compile_cache.hpp"
#include "kiln/runtime/content_hash.hpp"
#include "kiln/runtime/impl/run/executable_access.hpp"
#include "kiln/runtime/impl/saved/cache_entry.hpp"
#include "kiln/runtime/saved_collection.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/version.hpp"

namespace kiln {

namespace fs = std::filesystem;

struct program_store::entry {
  saved_bytes bytes;
  program_identity identity;
};

struct program_store::asked {
  const std::string& name;
  const program_identity& identity;
  std::size_t number;  // in the order of the session
};

namespace {

// How two identities differ, in the words of a sentence's end.
std::string difference(const program_identity& here, const program_identity& there) {
  for (const auto& [name, value] : here) {
    const auto found = std::find_if(there.begin(), there.end(), [&](const auto& t) { return t.first == name; });
    const std::string other = found == there.end() ? "none" : found->second;
    if (other != value) return name + ": expected " + value + ", found " + other;
  }
  return "it has more than the program";
}

}  // namespace

std::string cache_file_name(const program_identity& identity) {
  content_hash hash;
  for (const auto& [name, value] : identity) hash.add(name), hash.add(value);
  return hash.str() + std::string(detail::cache_extension);
}

program_store::program_store(store_settings how, const target& t, const compile_options& options, listener told)
    : how_(std::move(how)), target_(t), options_(options), told_(std::move(told)) {
  if (how_.load.empty() || how_.recompiles) return;
  std::error_code ignored;
  if (!fs::exists(how_.load, ignored)) {
    told_(false, how_.load.string() + " is not there yet: programs are compiled");
    return;
  }
  try {
    for (saved_bytes& bytes : open_collection(how_.load)) {
      program_identity identity = inspect(bytes).notes;
      entries_.push_back({std::move(bytes), std::move(identity)});
    }
  } catch (const error& e) {
    entries_.clear();
    told_(true, std::string(e.what()) + ": programs are compiled");
  }
}

program_store::~program_store() = default;

executable program_store::get(const std::string& name, program_identity identity,
                              const std::function<executable()>& compile) {
  identity.emplace_back("target", std::string(target_.name()) + " of " + target_.binary_format());
  identity.emplace_back("threads", std::to_string(detail::pool_of(options_)->size()));
  identity.emplace_back("version of kiln", version_text);
  const std::lock_guard lock(guard_);
  const asked of{name, identity, asked_++};
  const fs::path file = how_.folder.empty() ? fs::path() : how_.folder / cache_file_name(identity);
  if (std::optional<executable> made = load_from_file(of)) {
    keep(*made, of, {});
    return std::move(*made);
  }
  if (std::optional<executable> made = load_from_folder(of, file)) {
    keep(*made, of, {});
    return std::move(*made);
  }
  const stopwatch since;
  executable exe = compile();
  told_(false, name + ": compiled in " + since.str());
  keep(exe, of, file);
  return exe;
}

std::optional<executable> program_store::load_from_file(const asked& of) {
  if (entries_.empty()) return {};
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const entry& e) { return e.identity == of.identity; });
  if (found == entries_.end()) {
    const std::string why = of.number < entries_.size()
                                ? difference(of.identity, entries_[of.number].identity)
                                : "it holds " + std::to_string(entries_.size()) + " programs only";
    told_(true, of.name + ": " + how_.load.string() + " has no program that fits (" + why + "): compiled anew");
    return {};
  }
  try {
    const stopwatch since;
    executable exe = load(found->bytes, target_, options_, {{}, true});
    told_(false, of.name + ": loaded from " + how_.load.string() + " in " + since.str());
    return exe;
  } catch (const error& e) {
    told_(true, of.name + ": " + e.what() + ": compiled anew");
    return {};
  }
}

std::optional<executable> program_store::load_from_folder(const asked& of, const fs::path& file) const {
  std::error_code failed;
  if (file.empty() || how_.recompiles || !fs::exists(file, failed)) return {};
  try {
    const stopwatch since;
    const saved_bytes bytes{map_file(file.string()), file.string()};
    if (const program_identity found = inspect(bytes).notes; found != of.identity) {
      told_(true, of.name + ": " + file.string() + " has another program (" + difference(of.identity, found) +
                      "): compiled anew");
      return {};
    }
    executable exe = load(bytes, target_, options_, {{}, true});
    fs::last_write_time(file, fs::file_time_type::clock::now(), failed);
    told_(false, of.name + ": loaded from " + file.string() + " in " + since.str());
    return exe;
  } catch (const error& e) {
    told_(true, of.name + ": " + e.what() + ": compiled anew");
    return {};
  }
}

void program_store::keep(const executable& exe, const asked& of, const fs::path& file) {
  const saved_parts parts{&exe, nullptr, of.identity};
  if (!how_.save.empty()) saved_.push_back(save_to_bytes(parts));
  if (file.empty()) return;
  std::error_code failed;
  fs::create_directories(how_.folder, failed);
  try {
    detail::save_cache_entry(parts, file);
    shrink_cache(how_.folder, std::size_t{how_.folder_limit} << 20);
  } catch (const error& e) {
    told_(true, of.name + ": the cache can't keep it: " + e.what());
  }
}

void program_store::write() const {
  const std::lock_guard lock(guard_);
  if (!how_.save.empty()) save_collection(saved_, how_.save);
}

}  // namespace kiln
