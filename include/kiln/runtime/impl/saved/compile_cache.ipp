#include "kiln/runtime/compile_cache.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <optional>

#include "kiln/graph/custom_op.hpp"
#include "kiln/graph/impl/own_ops.hpp"
#include "kiln/graph/program_archive.hpp"
#include "kiln/runtime/impl/run/executable_access.hpp"
#include "kiln/runtime/impl/saved/code_identity.hpp"
#include "kiln/runtime/kept_files.hpp"
#include "kiln/runtime/options.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/version.hpp"

namespace kiln {
namespace {

constexpr std::string_view extension = ".kiln";

// What decides how a program is compiled, as 128 bits of XXH3: its content, the options, the machine.
class cache_key {
 public:
  void add(std::string_view text) {
    const std::uint64_t size = text.size();
    XXH3_128bits_update(&state_, &size, sizeof size);
    XXH3_128bits_update(&state_, text.data(), text.size());
  }
  void add(const program& p, thread_pool& pool) {
    std::vector<buffer> blocks;
    archive_writer to;
    save_program(to, p, [&](const buffer& b) {
      blocks.push_back(b);
      return blocks.size() - 1;
    });
    add(to.bytes());
    for (const buffer& b : blocks) add_data(b, pool);
  }
  std::string str() const {
    XXH128_canonical_t digits;
    XXH128_canonicalFromHash(&digits, XXH3_128bits_digest(&state_));
    constexpr char hex[] = "0123456789abcdef";
    std::string out;
    for (const unsigned char byte : digits.digest) (out += hex[byte >> 4]) += hex[byte & 15];
    return out;
  }

 private:
  // A hash of the hashes of its pieces, which threads take.
  void add_data(const buffer& b, thread_pool& pool) {
    constexpr std::size_t piece = 4 << 20;
    std::vector<XXH128_hash_t> sums((b.size() + piece - 1) / piece);
    pool.parallel_for(static_cast<std::int64_t>(sums.size()), [&](std::int64_t i, unsigned) {
      const std::size_t at = static_cast<std::size_t>(i) * piece;
      sums[static_cast<std::size_t>(i)] = XXH3_128bits(b.data() + at, std::min(piece, b.size() - at));
    });
    add({reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(XXH128_hash_t)});
  }
  alignas(64) XXH3_state_t state_ = [] {
    XXH3_state_t s;
    XXH3_128bits_reset(&s);
    return s;
  }();
};

// Tables of the ops that are not the library's.
struct own_ops {
  std::vector<const op_table*> tables;
  std::string code;       // of all: what tells the code of their functions from any other
  std::string_view open;  // the name of one whose code can't be told

  explicit own_ops(const program& p) {
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

std::string key_of(const program& p, const own_ops& ops, const target& t, const compile_options& options,
                   thread_pool& pool) {
  cache_key key;
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
  key.add(p, pool);
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
  const own_ops ops(p);
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
    detail::save_in_cache(exe, file);
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
