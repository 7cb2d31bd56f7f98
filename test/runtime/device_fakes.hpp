#pragma once
#include <gtest/gtest.h>

#include "kiln/op/dynamic/selection.hpp"
#include "kiln/runtime/counting_kernel.hpp"
#include "kiln/runtime/executable.hpp"
#include "peer/gpu/alone/fake_gpu.hpp"

/// Targets with the fake GPU whose kernels are its own.
namespace kiln::testing {

inline argument on_device(const device& where, const argument& a) {
  buffer memory = where.allocate(static_cast<std::size_t>(a.get_shape().bytes().value()));
  std::byte* const data = memory.data();
  argument to(a.get_shape(), std::move(memory), data);
  const auto queue = where.make_queue();
  queue->copy(to.data(), a.data(), static_cast<std::size_t>(a.get_shape().bytes().value()));
  queue->wait();
  return to;
}
inline std::vector<float> floats_of(const device& where, const argument& a) {
  std::vector<float> out(static_cast<std::size_t>(a.elements()));
  const auto queue = where.make_queue();
  queue->copy(out.data(), a.data(), out.size() * sizeof(float));
  queue->wait();
  return out;
}

/// Kernels of a fake GPU that expect operands at addresses that 16 divides.
class aligned_kernel final : public kernel {
 public:
  explicit aligned_kernel(std::unique_ptr<kernel> of, bool anywhere = false)
      : of_(std::move(of)), anywhere_(anywhere) {}
  std::string name() const override { return of_->name(); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned n) const override {
    return of_->scratch_bytes(in, out, n);
  }
  void run(const launch& l) const override {
    for (const std::span<const tensor> some : {l.in, l.out})
      for (const tensor& t : some) EXPECT_TRUE(anywhere_ || reinterpret_cast<std::uintptr_t>(t.data) % 16 == 0);
    of_->run(l);
    const std::int32_t fault = 1;
    if (reports_faults() && runs++ == faulty) l.queue->copy(l.faults, &fault, sizeof fault);
  }
  bool on_device() const override { return true; }
  bool reports_faults() const override { return reports && !anywhere_; }
  std::string fault_text() const override { return "a fault of a kernel"; }
  static inline bool reports = false;
  static inline int runs = 0, faulty = -1;  // the run that meets data it can't compute

 private:
  std::unique_ptr<kernel> of_;
  bool anywhere_;
};
class aligned_target final : public target {
 public:
  std::string_view name() const override { return gpu_.name(); }
  bool fuses() const override { return gpu_.fuses(); }
  std::string binary_format() const override { return gpu_.binary_format(); }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    return std::make_unique<aligned_kernel>(make_kernel_on_host(make_fallback_kernel(r.instruction.op)));
  }
  std::unique_ptr<kernel> make_copy(const derived_data* derived) const override {
    return std::make_unique<aligned_kernel>(gpu_.make_copy(derived), true);
  }
  bool has_device() const override { return true; }
  std::shared_ptr<const device> get_device() const override { return gpu_.get_device(); }

 private:
  fake::gpu_target gpu_;
};

/// Finds what is not zero between copies from and to the device, as a GPU's kernel does without them.
class counting_nonzero final : public kernel, public counting_kernel {
 public:
  std::string name() const override { return "counted"; }
  bool on_device() const override { return true; }
  std::size_t scratch_bytes(std::span<const tensor>, std::span<const tensor>, unsigned) const override { return 16384; }
  void count(const launch& l) const override {
    ++counted;
    const auto n = static_cast<std::int64_t>(found(l).size());
    l.queue->copy(l.scratch.data(), &n, sizeof n);
  }
  shape made(std::span<const tensor>, std::int64_t count) const override { return {dtype::i64, {1, count}}; }
  void run(const launch& l) const override {
    const std::vector<std::int64_t> at = found(l);
    ASSERT_EQ(l.out[0].lens[1], static_cast<std::int64_t>(at.size()));
    l.queue->copy(l.out[0].data, at.data(), at.size() * sizeof(std::int64_t));
  }
  static inline int counted = 0;

 private:
  static std::vector<std::int64_t> found(const launch& l) {
    EXPECT_TRUE(l.in[0].elements() == 0 || fake::memory::all().owns(l.in[0].data));
    std::vector<float> x(static_cast<std::size_t>(l.in[0].elements()));
    if (!x.empty()) l.queue->copy(x.data(), l.in[0].data, x.size() * sizeof(float));
    l.queue->wait();
    std::vector<std::int64_t> out;
    for (std::size_t k = 0; k < x.size(); ++k)
      if (x[k] != 0) out.push_back(static_cast<std::int64_t>(k));
    return out;
  }
};
class counting_target final : public target {
 public:
  std::string_view name() const override { return gpu_.name(); }
  bool fuses() const override { return gpu_.fuses(); }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    if (r.instruction.op.is<op::nonzero>()) return std::make_unique<counting_nonzero>();
    return gpu_.make_kernel(r);
  }
  std::unique_ptr<kernel> make_copy(const derived_data* derived) const override { return gpu_.make_copy(derived); }
  bool has_device() const override { return true; }
  std::shared_ptr<const device> get_device() const override { return gpu_.get_device(); }

 private:
  fake::gpu_target gpu_;
};

}  // namespace kiln::testing
