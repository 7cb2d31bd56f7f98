#include "kiln/runtime/custom_kernel.hpp"

#include "kiln/graph/custom_op.hpp"

namespace kiln {
namespace {

class custom_kernel final : public kernel {
 public:
  explicit custom_kernel(const custom_call& of) : of_(of) {}
  std::string name() const override { return of_.op->name() + " (custom)"; }
  void run(const launch& l) const override {
    small_vector<argument> in = arguments_of(l.in), out = arguments_of(l.out);
    try {
      of_.op->compute(*of_.attributes, {in.data(), in.size()}, {out.data(), out.size()});
    } catch (error& e) {
      throw e.at_op(of_.op->name());
    }
  }

 private:
  static small_vector<argument> arguments_of(std::span<const tensor> tensors) {
    small_vector<argument> out;
    out.reserve(tensors.size());
    for (const tensor& t : tensors) out.push_back(argument({t.type, to_dims(t.lens)}, t.data));
    return out;
  }
  custom_call of_;
};

}  // namespace

std::unique_ptr<kernel> make_custom_kernel(const operation& op) {
  const auto call = custom_call_of(op);
  return call ? std::make_unique<custom_kernel>(*call) : nullptr;
}

}  // namespace kiln
