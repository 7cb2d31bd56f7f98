// A user's own target: it turns the instructions it knows into kernels and leaves the others to the reference.
// Planning, memory and threads are kiln's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace {

// [kernel]
// One elementwise op over dense f32 tensors, in blocks that the pool's threads share. The loop over a block comes from
// the op's own text: its table holds one for every op that computes element by element.
class block_kernel final : public kiln::kernel {
 public:
  explicit block_kernel(const kiln::operation& op) : op_(op) {}
  std::string name() const override { return "block:" + std::string(op_.name()); }

  void run(const kiln::launch& l) const override {
    constexpr std::int64_t block = 4096;
    const std::int64_t n = l.out[0].elements();
    l.pool->parallel_for((n + block - 1) / block, [&](std::int64_t task, unsigned) {
      const std::int64_t start = task * block;
      kiln::inline_vector<const void*, 8> in;
      for (const kiln::tensor& t : l.in) in.push_back(t.as<float>() + start);
      op_.table().tile(op_.data(), kiln::dtype::f32, in.data(), l.out[0].as<float>() + start,
                       std::min(block, n - start));
    });
  }

 private:
  kiln::operation op_;
};
// [/kernel]

// [target]
class block_target final : public kiln::target {
 public:
  std::string_view name() const override { return "block"; }
  bool fuses() const override { return false; }  // it has no kernel for several ops at once

  std::unique_ptr<kiln::kernel> make_kernel(const kiln::kernel_request& request) const override {
    const auto& ins = request.instruction;
    const auto is_f32 = [](const kiln::shape& s) { return s.type == kiln::dtype::f32; };
    if (ins.op.kind() != kiln::op_kind::pointwise || !is_f32(ins.results[0]) ||
        !std::all_of(request.inputs.begin(), request.inputs.end(), is_f32))
      return nullptr;  // the op's reference computation runs, and the report says so
    return std::make_unique<block_kernel>(ins.op);
  }
};
// [/target]

kiln::program make_network() {
  kiln::builder b;
  const auto x = b.input("x", kiln::dtype::f32, {kiln::dimension::symbol("rows", 1), 1000});
  b.output((x * 0.5f).tanh().softmax(), "y");
  return b.finish();
}

}  // namespace

int main() {
  const kiln::executable own = kiln::compile(make_network(), block_target());
  const kiln::executable reference = kiln::compile(make_network(), kiln::reference_target());
  std::size_t blocks = 0;
  for (const kiln::step_info& step : own.report().steps) {
    fmt::print("{}\n", step.kernel);
    blocks += step.kernel.starts_with("block:");
  }

  std::vector<float> x(7 * 1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  const std::map<std::string, kiln::argument> inputs = {{"x", kiln::argument::of<float>({7, 1000}, x)}};
  const kiln::argument y = own.run(inputs)[0], expected = reference.run(inputs)[0];
  const bool equal = std::equal(y.as<float>().begin(), y.as<float>().end(), expected.as<float>().begin());
  fmt::print("{} kernels of this target; results {}\n", blocks, equal ? "equal the reference's" : "DIFFER");
  return equal && blocks >= 4 ? 0 : 1;
}
