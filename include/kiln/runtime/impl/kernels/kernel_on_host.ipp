#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/impl/run/device_mirror.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {
namespace {

using detail::mirror, detail::reach;

class kernel_on_host final : public kernel {
 public:
  explicit kernel_on_host(std::unique_ptr<kernel> of_host) : run_(std::move(of_host)) {}
  std::string name() const override { return run_->name() + " on the host"; }
  bool is_fallback() const override { return true; }
  stride_support input_strides(std::size_t i) const override { return run_->input_strides(i); }
  bool packed_input(std::size_t i) const override { return run_->packed_input(i); }
  std::size_t packed_bytes() const override { return run_->packed_bytes(); }
  void run(const launch& l) const override {
    const mirror in(*l.queue, l.in), out(*l.queue, l.out);
    l.queue->wait();
    const buffer scratch =
        buffer::allocate(std::max<std::size_t>(run_->scratch_bytes(in.tensors(), out.tensors(), l.pool->size()), 64));
    launch here{
        in.tensors(), out.tensors(), {const_cast<std::byte*>(scratch.data()), scratch.size()}, l.pool, l.symbols};
    run_->run(here);
    for (std::size_t k = 0; k < l.out.size(); ++k) {
      const reach r(l.out[k]);
      if (r.bytes(l.out[k]) != 0) l.queue->copy(l.out[k].data, out.tensors()[k].data, r.bytes(l.out[k]));
    }
    l.queue->wait();  // the copies read memory that goes now
  }

 private:
  std::unique_ptr<kernel> run_;
};

}  // namespace

std::unique_ptr<kernel> make_kernel_on_host(std::unique_ptr<kernel> of_host) {
  return std::make_unique<kernel_on_host>(std::move(of_host));
}

}  // namespace kiln
