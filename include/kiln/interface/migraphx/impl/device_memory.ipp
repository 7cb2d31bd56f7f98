#include "kiln/interface/migraphx/device_memory.hpp"

#include <mutex>
#include <set>

#include "kiln/interface/named_target.hpp"
#include "kiln/runtime/device.hpp"

namespace kiln::migraphx {

namespace {

std::shared_ptr<const device> gpu() {
  auto out = named_target("gpu")->get_device();
  if (!out) raise(errc::unsupported, "target 'gpu' has a device here: found none");
  return out;
}

void check_tensor(const shape& s) {
  if (s.type() == type_t::tuple_type || s.dynamic())
    raise(errc::invalid_argument, "memory is allocated for a tensor of constant extents: found " + to_string(s));
}

std::size_t bytes_of(const shape& s) { return std::max<std::size_t>(s.bytes(), 1); }

argument over(const shape& s, buffer memory) {
  std::byte* const data = memory.data();
  return argument(s, kiln::argument(to_kiln(s, "argument"), std::move(memory), data));
}

struct noted_streams {
  std::mutex mutex;
  std::set<void*> all;
};
noted_streams& streams() {
  static noted_streams s;
  return s;
}

}  // namespace

argument allocate_gpu(const shape& s, bool host) {
  check_tensor(s);
  const auto on = gpu();
  return host ? argument(s) : over(s, on->allocate(bytes_of(s)));
}

argument to_gpu(const argument& a, bool host) {
  const argument out = allocate_gpu(a.get_shape(), host);
  const auto queue = gpu()->make_queue();
  queue->enter();
  queue->copy(out.data(), a.data(), a.get_shape().bytes());
  queue->wait();
  return out;
}

argument from_gpu(const argument& a) {
  check_tensor(a.get_shape());
  const auto queue = gpu()->make_queue();
  const argument out(a.get_shape());
  queue->enter();
  queue->copy(out.data(), a.data(), a.get_shape().bytes());
  queue->wait();
  return out;
}

void note_stream(void* stream) {
  if (!stream) return;
  const std::lock_guard lock(streams().mutex);
  streams().all.insert(stream);
}

void gpu_sync() {
  const auto on = gpu();
  std::set<void*> all;
  {
    const std::lock_guard lock(streams().mutex);
    all.swap(streams().all);
  }
  for (void* const stream : all) {
    const auto queue = on->make_queue(stream);
    queue->enter();
    queue->wait();
  }
}

}  // namespace kiln::migraphx
