#pragma once
#include "kiln/backend/hip/context.hpp"
#include "kiln/backend/hip/impl/rows/row_program.hpp"
#include "kiln/lower/contraction.hpp"

namespace kiln::hip {

/// The epilogue of a contraction as a kernel of its own, which reads the product from the memory of the result.
class separate_epilogue {
 public:
  separate_epilogue() = default;
  separate_epilogue(const row_program& epilogue, const lower::contraction_body<module_graph>& body,
                    std::span<const tensor> in, std::span<const tensor> out, const context& where) {
    std::vector<tensor> all = {out[0]};
    for (std::size_t i : body.epilogue_inputs) all.push_back(in[i]);
    plan_ = plan_pointwise(epilogue, all, out, false);
    run_ = where.build(plan_.what);
  }
  explicit operator bool() const { return run_ != nullptr; }
  void run(device_queue& queue, const void* result, std::span<const void* const> extra) const {
    std::vector<const void*> addresses = {result};
    addresses.insert(addresses.end(), extra.begin(), extra.end());
    addresses.push_back(result);
    std::vector<void*> values;
    for (const void*& a : addresses) values.push_back(&a);
    run_->give(queue, plan_.grid, plan_.block, 0, values.data());
  }

 private:
  row_kernel_plan plan_;
  std::shared_ptr<const function> run_;
};

}  // namespace kiln::hip
