#include "kiln/backend/hip/impl/expect_scratch.hpp"
#include "kiln/backend/hip/impl/rows/row_program.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {
namespace {

class rows_kernel final : public gpu_kernel {
 public:
  rows_kernel(row_program program, const context_pointer& where, std::string name, bool dynamic)
      : gpu_kernel(where, std::move(name)), program_(std::move(program)), dynamic_(dynamic) {}
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::any; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override { built_for(in, out); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return program_.reduces ? built_for(in, out)->plan.partial_bytes : 0;
  }

  void run(const launch& l) const override {
    const auto made = built_for(l.in, l.out);
    if (made->plan.grid.x == 0) return;
    expect_scratch(l, made->plan.partial_bytes, name_);
    std::vector<const std::byte*> pointers;
    for (const tensor& t : l.in) pointers.push_back(t.data);
    for (const tensor& t : l.out) pointers.push_back(t.data);
    if (!made->later.empty()) pointers.push_back(l.scratch.data());
    std::vector<void*> values;
    for (const std::byte*& p : pointers) values.push_back(&p);
    passed_numbers numbers;
    std::copy(made->plan.numbers.begin(), made->plan.numbers.end(), numbers.at);
    if (made->plan.passes_numbers) values.push_back(&numbers);
    made->first->give(*l.queue, made->plan.grid, made->plan.block, 0, values.data());
    for (std::size_t k = 0; k < made->later.size(); ++k)
      made->later[k]->give(*l.queue, made->plan.later[k].grid, made->plan.later[k].block, 0, values.data());
  }

 private:
  struct built {
    row_kernel_plan plan;
    std::shared_ptr<const function> first;
    std::vector<std::shared_ptr<const function>> later;
  };

  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out) const {
    return built_.get(key_of(in, out), [&] {
      built b;
      b.plan = plan(in, out, dynamic_);
      if (b.plan.numbers.size() > most_numbers) b.plan = plan(in, out, false);
      if (b.plan.grid.x == 0) return b;
      b.first = where().build(b.plan.what);
      b.plan.what.text.clear();
      for (row_kernel_plan::stage& stage : b.plan.later) {
        b.later.push_back(where().build(stage.what));
        stage.what.text.clear();
      }
      return b;
    });
  }
  row_kernel_plan plan(std::span<const tensor> in, std::span<const tensor> out, bool dynamic) const {
    return program_.reduces ? plan_reduce(program_, in, out, dynamic, where().arch())
                            : plan_pointwise(program_, in, out, dynamic);
  }

  row_program program_;
  bool dynamic_;
  by_sizes<built> built_;
};

}  // namespace

std::string key_of(std::span<const tensor> in, std::span<const tensor> out) {
  std::string key;
  const auto add = [&](std::int64_t n) { key.append(reinterpret_cast<const char*>(&n), sizeof n); };
  for (std::span<const tensor> some : {in, out})
    for (const tensor& t : some) {
      for (std::int64_t n : t.lens) add(n);
      for (std::int64_t n : t.strides) add(n);
      add(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(t.data) % 16));
    }
  return key;
}

bool is_fixed(const kernel_request& r) {
  bool all = true;
  for (const shape& s : r.inputs) all = all && s.is_constant();
  for (const shape& s : r.instruction.results) all = all && s.is_constant();
  return all;
}

std::unique_ptr<kernel> lower_rows(const kernel_request& r, const context_pointer& where) {
  const operation& op = r.instruction.op;
  const bool dynamic = !is_fixed(r);
  constexpr std::size_t most_operands = 96;
  if (r.inputs.size() + r.instruction.results.size() > most_operands) return nullptr;
  std::optional<row_program> program;
  std::string name;
  if (const auto* fused = op.get_if<op::fused>()) {
    if (fused->kind == fusion::contraction) return nullptr;
    const module_graph& body = r.whole.module(fused->body);
    program = row_program::make(body);
    name = std::string(to_string(fused->kind)) + " " + body.name.str();
  } else if (op.kind() == op_kind::pointwise || op.kind() == op_kind::reduction) {
    module_graph body;
    small_vector<value_id> inputs;
    for (const shape& s : r.inputs) inputs.push_back(body.add_parameter("p", s));
    body.outputs.push_back(body.add_with_shapes(op, inputs, r.instruction.results));
    program = row_program::make(body);
    name = op.name();
  }
  if (!program) return nullptr;
  return std::make_unique<rows_kernel>(std::move(*program), where, std::move(name), dynamic);
}

}  // namespace kiln::hip
