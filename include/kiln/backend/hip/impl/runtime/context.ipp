#include "kiln/backend/hip/context.hpp"

#include "kiln/core/error.hpp"

namespace kiln::hip {

namespace {
device_facts facts_of(const runtime_calls& calls, int index) {
  device_facts out;
  calls.describe(index, out);
  return out;
}
}  // namespace

function::function(const context& owner, std::string entry, std::string code)
    : calls_(owner.calls()),
      index_(owner.index()),
      chained_(owner.arch().chains && calls_ && calls_->launch_chained),
      few_blocks_(static_cast<std::uint64_t>(owner.arch().multiprocessors)),
      entry_(std::move(entry)),
      code_(std::move(code)) {}

function::~function() {
  if (module_ && calls_->hipSetDevice(index_) == 0) calls_->hipModuleUnload(module_);
}

void function::load() const {
  if (!calls_)
    raise(errc::unsupported, "a kernel runs where its device is: " + entry_ + " was compiled for an absent one");
  check(*calls_, calls_->hipSetDevice(index_), "hipSetDevice");
  check(*calls_, calls_->hipModuleLoadData(&module_, code_.data()), "hipModuleLoadData");
  check(*calls_, calls_->hipModuleGetFunction(&handle_, module_, entry_.c_str()), "hipModuleGetFunction");
  // clusters of more than eight blocks are a device's own affair, and asked for by name
  constexpr int clusters_of_any_size = 14;
  if (chained_) check(*calls_, calls_->hipFuncSetAttribute(handle_, clusters_of_any_size, 1), "hipFuncSetAttribute");
}

namespace {
constexpr int most_dynamic_shared_bytes = 8;  // the attribute
constexpr std::size_t always_there = 48 * 1024;
}  // namespace

bool function::has_room_for_cluster(int blocks, int threads, std::size_t shared_bytes) const {
  std::call_once(once_, [&] { load(); });
  check(*calls_, calls_->hipSetDevice(index_), "hipSetDevice");
  int count = 0;
  if (shared_bytes > always_there &&
      calls_->hipFuncSetAttribute(handle_, most_dynamic_shared_bytes, static_cast<int>(shared_bytes)) != 0)
    return false;
  return calls_->count_clusters &&
         calls_->count_clusters(&count, handle_, static_cast<unsigned>(blocks), static_cast<unsigned>(threads),
                                static_cast<unsigned>(shared_bytes)) == 0 &&
         count > 0;
}

void function::give(device_queue& queue, extent3 grid, extent3 block, std::size_t shared_bytes, void** values) const {
  constexpr unsigned most_x = 0x7fffffff, most_others = 65535;
  if (grid.x > most_x || grid.y > most_others || grid.z > most_others)
    raise(errc::limit, "blocks of " + entry_ + ": expected at most 2147483647 x 65535 x 65535, found " +
                           std::to_string(grid.x) + " x " + std::to_string(grid.y) + " x " + std::to_string(grid.z));
  std::call_once(once_, [&] { load(); });
  if (shared_bytes > always_there)
    check(*calls_, calls_->hipFuncSetAttribute(handle_, most_dynamic_shared_bytes, static_cast<int>(shared_bytes)),
          "hipFuncSetAttribute");
  // kernels that are to overlap need one division of a multiprocessor's memory into cache and shared memory, since it
  // is changed only where nothing runs; what streams through many blocks wants the cache
  constexpr int preferred_shared_percent = 9;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  if (chained_ && (shared_bytes != 0 || blocks <= few_blocks_) && !divided_.exchange(true))
    check(*calls_, calls_->hipFuncSetAttribute(handle_, preferred_shared_percent, 100), "hipFuncSetAttribute");
  const unsigned bytes = static_cast<unsigned>(shared_bytes);
  const int code = chained_ ? calls_->launch_chained(handle_, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z},
                                                     bytes, queue.stream(), values)
                            : calls_->hipModuleLaunchKernel(handle_, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                            bytes, queue.stream(), values, nullptr);
  if (code != 0) check(*calls_, code, ("hipModuleLaunchKernel of " + entry_).c_str());
}

gpu::tensor_map function::map(const tensor_boxes& how) const {
  if (!calls_ || !calls_->map_tensor)
    raise(errc::unsupported, "a kernel that uses the copy unit of sm_90 (" + entry_ + ") needs a driver of CUDA 12");
  gpu::tensor_map to;
  check(*calls_, calls_->map_tensor(&to, how), "cuTensorMapEncode");
  return to;
}

context::context(const runtime_calls& calls, int index, std::string cache)
    : arch_(architecture::of(calls.on, facts_of(calls, index))),
      calls_(&calls),
      index_(index),
      cache_(std::move(cache)) {}

context::context(architecture where, std::string cache) : arch_(std::move(where)), cache_(std::move(cache)) {}

context::context(std::shared_ptr<const context> whole, std::shared_ptr<kept_code> kept,
                 std::shared_ptr<tuning_cache> tuned)
    : arch_(whole->arch_),
      calls_(whole->calls_),
      index_(whole->index_),
      cache_(whole->cache_),
      tuned_(std::move(tuned)),
      kept_(std::move(kept)),
      whole_(std::move(whole)) {}

std::shared_ptr<const context> context::for_program(std::shared_ptr<kept_code> kept,
                                                    std::shared_ptr<tuning_cache> tuned) const {
  return std::shared_ptr<const context>(new context(shared_from_this(), std::move(kept), std::move(tuned)));
}

std::optional<std::string> context::choice(std::string_view problem) const {
  if (kept_)
    if (auto kept = kept_->find(problem)) return kept;
  std::optional<std::string> known = tunes() ? tuned_->find(problem) : std::nullopt;
  if (known && kept_) kept_->keep(problem, *known);
  return known;
}

void context::keep_choice(std::string_view problem, std::string_view candidate) const {
  tuned_->keep(problem, candidate);
  if (kept_) kept_->keep(problem, candidate);
}

std::shared_ptr<const function> context::build(const source& what) const {
  const std::string key = code_key(what, arch_);
  if (!whole_) return shared(what, key, [&] { return compile(what, arch_, cache_); });
  const std::optional<std::string> kept = kept_->find(key);
  auto made = whole_->shared(what, key, [&] { return kept ? *kept : compile(what, arch_, cache_); });
  if (!kept) kept_->keep(key, made->code());
  return made;
}

std::shared_ptr<const function> context::shared(const source& what, const std::string& key,
                                                const std::function<std::string()>& code) const {
  {
    const std::lock_guard guard(lock_);
    if (auto known = made_.find(key); known != made_.end())
      if (auto there = known->second.lock()) return there;
  }
  auto made = std::make_shared<const function>(*this, what.entry, code());
  const std::lock_guard guard(lock_);
  std::weak_ptr<const function>& place = made_[key];
  if (auto there = place.lock()) return there;
  place = made;
  return made;
}

}  // namespace kiln::hip
