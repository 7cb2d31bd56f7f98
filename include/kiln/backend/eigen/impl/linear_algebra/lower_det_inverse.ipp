#include "kiln/backend/eigen/linear_algebra.hpp"
#include "kiln/op/linear/inverse.hpp"

namespace kiln::eigen {
namespace {

template <class T> using squares_function = void (*)(thread_pool& pool, const square_matrices<T>& in, T* out);

// Determinants or inverses of T. The ops' second result, room for their own elimination, is left alone.
template <class T> class squares_kernel final : public kernel {
 public:
  squares_kernel(std::string_view name, squares_function<T> function) : name_(name), function_(function) {}
  std::string name() const override { return std::string(name_) + " (Eigen)"; }

  void run(const launch& l) const override {
    const tensor& x = l.in[0];
    const std::int64_t n = x.lens.back();
    std::int64_t count = 1;
    for (std::size_t d = 0; d + 2 < x.rank(); ++d) count *= x.lens[d];
    function_(*l.pool, {count, n, x.as<const T>(), n * n, n, 1}, l.out[0].as<T>());
  }

 private:
  std::string_view name_;
  squares_function<T> function_;
};

}  // namespace

std::unique_ptr<kernel> lower_squares(const kernel_request& r) {
  const bool inverts = r.instruction.op.is<op::inverse>();
  if (!inverts && !r.instruction.op.is<op::det>()) return nullptr;
  const std::string_view name = inverts ? "inverse" : "det";
  const linear_algebra_table& isa = *kiln_eigen_linear_algebra();
  if (r.inputs[0].type == dtype::f32)
    return std::make_unique<squares_kernel<float>>(name, inverts ? isa.inverses_f32 : isa.determinants_f32);
  if (r.inputs[0].type == dtype::f64)
    return std::make_unique<squares_kernel<double>>(name, inverts ? isa.inverses_f64 : isa.determinants_f64);
  return nullptr;
}

}  // namespace kiln::eigen
