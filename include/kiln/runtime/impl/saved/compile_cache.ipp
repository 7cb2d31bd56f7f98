#include "kiln/runtime/compile_cache.hpp"

#include <algorithm>
#include <optional>

#include "kiln/graph/custom_op.hpp"
#include "kiln/graph/impl/own_ops.hpp"
#include "kiln/graph/program_archive.hpp"
#include "kiln/runtime/content_hash.hpp"
#include "kiln/runtime/impl/run/executable_access.hpp"
#include "kiln/runtime/impl/saved/cache_entry.hpp"
#include "kiln/runtime/impl/saved/code_identity.hpp"
#include "kiln/runtime/impl/saved/saved_file.hpp"
#include "kiln/runtime/kept_files.hpp"
#include "kiln/runtime/options.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/version.hpp"

namespace kiln {
namespace {

constexpr std::string_view extension = detail::cache_extension;

void add_program(content_hash& to, const program& p, thread_pool& pool) {
  detail::distinct_blocks blocks;
  archive_writer archive;
  save_program(archive, p, [&](const buffer& b) { return blocks.add(b); });
  to.add(archive.bytes());
  for (const buffer& b : blocks.all()) to.add({b.data(), b.size()}, pool);
}

// Tables of the ops that are not the library's.
struct users_ops {
  std::vector<const op_table*> tables;
  std::string code;       // of all: what tells the code of their functions from any other
  std::string_view open;  // the name of one whose code can't be told

  explicit users_ops(const program& p) {
    for (std::uint32_t k = 0; k < p.modules(); ++k)
      for (std::uint32_t i = 0; i < p.module({k}).size(); ++i) {
        const auto& ins = p.module({k})[i];
        if (ins.kind == instruction_kind::op && !detail::find_own_op(ins.op.name())) add(ins.op);
      }
  }

 private:
  void add(const operation& op) {
    const op_table& table = op.table();
    if (std::find(tables.begin(), tables.end(), &table) != tables.end()) return;
    tables.push_back(&table);
    const std::optional<custom_call> made = custom_call_of(op);
    const std::string id = made ? made->op->version : detail::build_id_of(reinterpret_cast<const void*>(table.save));
    if (id.empty()) open = table.name;
    code.append(table.name).append("\0", 1).append(id).append("\0", 1);
  }
};

// What decides how a program is compiled: its content, the options, the machine.
std::string key_of(const program& p, const users_ops& ops, const target& t, const compile_options& options,
                   thread_pool& pool) {
  content_hash key;
  key.add(version_text);
  key.add(t.name());
  key.add(t.binary_format());
  key.add(std::to_string(pool.size()));
  for (const compile_option& o : compile_option_table())
    if (o.name != "cache" && o.name != "cache_limit" && o.name != "threads") {
      key.add(o.name);
      key.add(o.get(options));
    }
  key.add(options.tuning ? "with a tuner" : "without");
  for (const std::string& r : options.remarks) key.add(r);
  key.add(ops.code);
  add_program(key, p, pool);
  return key.str();
}

std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files_by_age(
    const std::filesystem::path& folder) {
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  std::error_code gone;  // another process may remove files meanwhile
  for (std::filesystem::directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) {
    std::error_code failed;
    const auto used = at->last_write_time(failed);
    if (!failed && at->path().extension() == extension) files.emplace_back(used, at->path());
  }
  std::sort(files.rbegin(), files.rend());
  return files;
}

}  // namespace

executable detail::compile_cached(program p, const target& t, const compile_options& options) {
  compile_options own = options;
  own.pool = pool_of(options);
  own.cache.clear();
  own.weights.clear();
  const users_ops ops(p);
  if (!ops.open.empty()) {
    own.remarks.push_back("the cache keeps no program with op '" + std::string(ops.open) +
                          "', which has neither a version nor a build id: this one was compiled");
    return compile_bound(std::move(p), t, own);
  }
  const std::filesystem::path folder = options.cache;
  const std::filesystem::path file = folder / (key_of(p, ops, t, options, *own.pool) + std::string(extension));
  std::error_code failed;
  if (std::filesystem::exists(file, failed)) {
    try {
      executable exe = load(file, t, own, {ops.tables, true});  // an entry that is damaged is made anew, not run
      std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now(), failed);
      return exe;
    } catch (const error& e) {
      own.remarks.push_back(std::string("compiled again: ") + e.what());
    }
  }
  executable exe = compile_bound(std::move(p), t, own);
  std::filesystem::create_directories(folder, failed);
  try {
    detail::save_cache_entry({&exe}, file);
    shrink_cache(folder, std::size_t{options.cache_limit} << 20);
  } catch (const error& e) {
    executable_access::remark(exe, std::string("the cache can't keep it: ") + e.what());
  }
  return exe;
}

std::vector<cached_program> cached_programs(const std::filesystem::path& folder) {
  std::vector<cached_program> out;
  for (const auto& [used, file] : files_by_age(folder)) {
    cached_program one;
    one.file = file, one.used = used;
    std::error_code failed;
    one.bytes = std::filesystem::file_size(file, failed);
    if (failed) continue;
    try {
      const saved_program_info info = inspect(file);
      one.target = info.target;
      for (const port& p : info.outputs) one.outputs.push_back(p.name);
    } catch (const error&) {
      // listed without a target
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::size_t shrink_cache(const std::filesystem::path& folder, std::size_t most_bytes) {
  remove_old_drafts(folder);
  std::size_t kept = 0, removed = 0;
  for (const auto& [used, file] : files_by_age(folder)) {
    std::error_code failed;
    const std::size_t bytes = std::filesystem::file_size(file, failed);
    if (failed) continue;
    if (kept + bytes <= most_bytes)
      kept += bytes;
    else if (std::filesystem::remove(file, failed))
      removed += bytes;
  }
  return removed;
}

}  // namespace kiln
