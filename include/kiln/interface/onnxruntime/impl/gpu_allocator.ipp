#include "kiln/interface/onnxruntime/gpu_allocator.hpp"

#include <algorithm>
#include <bit>

#include "kiln/interface/onnxruntime/gpu_stream.hpp"

namespace kiln::onnxruntime {

namespace {

constexpr std::size_t least_bytes = 256;

gpu_allocator& of(OrtAllocator* a) { return *static_cast<gpu_allocator*>(a); }

// Null is how an allocator says that there is no more.
void* take_or_null(OrtAllocator* a, std::size_t bytes, OrtSyncStream* stream) {
  try {
    return of(a).take(bytes, of(a).where().stream_of(stream));
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

gpu_allocator::gpu_allocator(const gpu& of_gpu, bool on_host, gpu_memory_settings how)
    : OrtAllocator{}, gpu_(of_gpu.shared_from_this()), on_host_(on_host), how_(how) {
  version = gpu_->runtime().version();
  Alloc = [](OrtAllocator* a, std::size_t bytes) { return take_or_null(a, bytes, nullptr); };
  Reserve = Alloc;
  AllocOnStream = take_or_null;
  Free = [](OrtAllocator* a, void* memory) {
    if (memory) of(a).give(memory);
  };
  Info = [](const OrtAllocator* a) {
    const auto& own = *static_cast<const gpu_allocator*>(a);
    return own.on_host_ ? own.gpu_->host_memory() : own.gpu_->memory();
  };
  GetStats = [](const OrtAllocator* a, OrtKeyValuePairs** made) -> OrtStatus* {
    const auto& own = *static_cast<const gpu_allocator*>(a);
    return own.gpu_->runtime().guarded([&] { *made = own.statistics(); });
  };
  Shrink = [](OrtAllocator* a) -> OrtStatus* { return of(a).gpu_->runtime().guarded([&] { of(a).shrink(); }); };
  const std::lock_guard lock(gpu_->guard_);
  gpu_->allocators_.insert(this);
}

gpu_allocator::~gpu_allocator() {
  const std::lock_guard lock(gpu_->guard_);
  gpu_->allocators_.erase(this);
}

buffer gpu_allocator::take_new(std::size_t bytes) {
  if (how_.limit != 0 && taken_ + bytes > how_.limit) shrink_locked();
  if (how_.limit != 0 && taken_ + bytes > how_.limit) return {};
  const auto from_gpu = [&]() -> buffer {
    try {
      return on_host_ ? gpu_->where().allocate_on_host(bytes) : gpu_->where().allocate(bytes);
    } catch (const error&) {
      return {};
    }
  };
  if (buffer made = from_gpu()) return made;
  shrink_locked();
  return from_gpu();
}

void* gpu_allocator::take(std::size_t bytes, const gpu_stream* stream) {
  constexpr std::size_t most_bytes = std::size_t{1} << 62;
  if (bytes == 0 || bytes > most_bytes) return nullptr;
  const std::size_t exact = (bytes + least_bytes - 1) / least_bytes * least_bytes;
  std::size_t rounded = how_.powers_of_two ? std::bit_ceil(exact) : exact;
  const std::lock_guard lock(guard_);
  block found;
  const auto fitting = [&](const gpu_stream* key) {
    const auto list = free_.find(key);
    if (list == free_.end()) return false;
    const auto at = list->second.lower_bound(rounded);
    if (at == list->second.end() || at->first > 2 * rounded) return false;
    found = std::move(at->second);
    list->second.erase(at);
    return true;
  };
  if (!fitting(stream) && !fitting(nullptr)) {
    found.memory = take_new(rounded);
    if (!found.memory && rounded != exact) found.memory = take_new(rounded = exact);
    if (!found.memory) return nullptr;
    taken_ += rounded;
  }
  found.stream = stream;
  void* const at = found.memory.data();
  in_use_ += found.memory.size(), ++count_;
  most_in_use_ = std::max(most_in_use_, in_use_), greatest_ = std::max<std::uint64_t>(greatest_, bytes);
  used_.emplace(at, std::move(found));
  return at;
}

void gpu_allocator::give(void* memory) noexcept {
  const std::lock_guard lock(guard_);
  const auto found = used_.find(memory);
  if (found == used_.end()) return;
  block freed = std::move(found->second);
  used_.erase(found);
  const std::size_t bytes = freed.memory.size();
  in_use_ -= bytes;
  free_[freed.stream].emplace(bytes, std::move(freed));
}

void gpu_allocator::shrink() {
  const std::lock_guard lock(guard_);
  shrink_locked();
}

void gpu_allocator::shrink_locked() {
  for (const auto& [stream, list] : free_)
    for (const auto& [bytes, unused] : list) taken_ -= bytes;
  free_.clear();
}

void gpu_allocator::forget(const gpu_stream* stream) {
  const std::lock_guard lock(guard_);
  for (auto& [at, b] : used_)
    if (b.stream == stream) b.stream = nullptr;
  if (auto list = free_.extract(stream)) free_[nullptr].merge(list.mapped());
}

OrtKeyValuePairs* gpu_allocator::statistics() const {
  const host& ort = gpu_->runtime();
  OrtKeyValuePairs* out = nullptr;
  ort.call(api::create_pairs, &out);
  const std::lock_guard lock(guard_);
  const auto add = [&](const char* name, std::int64_t value) {
    ort.call(api::add_pair, out, name, std::to_string(value).c_str());
  };
  add("Limit", how_.limit == 0 ? -1 : static_cast<std::int64_t>(how_.limit));
  add("InUse", static_cast<std::int64_t>(in_use_));
  add("TotalAllocated", static_cast<std::int64_t>(taken_));
  add("MaxInUse", static_cast<std::int64_t>(most_in_use_));
  add("NumAllocs", static_cast<std::int64_t>(count_));
  add("MaxAllocSize", static_cast<std::int64_t>(greatest_));
  return out;
}

}  // namespace kiln::onnxruntime
