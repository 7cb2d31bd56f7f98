#include <algorithm>

#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/linear_algebra.hpp"
#include "kiln/backend/eigen/matrices.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// Calls `f(S{})` with the unsigned integer of as many bytes: products wrap, so that signs don't matter.
template <class F> void visit_narrow(dtype t, F&& f) { size_of(t) == 1 ? f(std::uint8_t{}) : f(std::uint16_t{}); }

// Calls `body(from, count)` for parts of `n` elements, from all threads.
template <class Body> void in_parts(thread_pool& pool, std::int64_t n, Body&& body) {
  constexpr std::int64_t part = 16 * 1024;
  pool.parallel_for((n + part - 1) / part,
                    [&](std::int64_t task, unsigned) { body(task * part, std::min(part, n - task * part)); });
}

std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
std::size_t bytes_of(const tensor& t, std::size_t element) {
  return padded(static_cast<std::size_t>(t.elements()) * element);
}

// Products of type T. Integers below 32 bits are computed in 32 and cut, which gives the same bits as wrapping.
template <class T> class product_kernel final : public kernel {
 public:
  product_kernel(fused_contraction body, dtype type, const product_functions<T>& functions, const kernel_request& r)
      : body_(std::move(body)), type_(type), functions_(functions) {
    if (functions.packed_size && !narrow())
      packed_ = packed_constant<T>(r, body_.operands[1], functions.packed_size, functions.pack);
  }

  std::string name() const override {
    return std::string("dot") + (body_.epilogue ? "+epilogue" : "") + (packed_ ? " (packed)" : "");
  }
  bool packed_input(std::size_t i) const override { return packed_ && i == body_.operands[1]; }
  std::size_t packed_bytes() const override { return packed_.size(); }
  stride_support input_strides(std::size_t i) const override {
    const bool multiplied = i == body_.operands[0] || i == body_.operands[1];
    return multiplied && narrow() ? stride_support::dense : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override {
    return narrow() ? stride_support::dense : stride_support::rows;
  }

  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    const tensor &a = in[body_.operands[0]], &b = in[body_.operands[1]], c = product_in(out[0], nullptr);
    const std::int64_t n = c.lens.back(), rows = c.elements() / std::max<std::int64_t>(1, n);
    const auto own = static_cast<std::size_t>(functions_.scratch_size(rows, n, a.lens.back(), threads)) * sizeof(T);
    return made_bytes(out[0]) + widened_bytes(a, b, c) +
           std::max(own, body_.epilogue ? epilogue_scratch_bytes(body_, in, c, out[0], threads) : 0);
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    const tensor c = product_in(l.out[0], l.scratch.data());
    const tensor &a = l.in[body_.operands[0]], &b = l.in[body_.operands[1]];
    const std::span<std::byte> wide = l.scratch.subspan(made_bytes(l.out[0])),
                               rest = wide.subspan(widened_bytes(a, b, c));
    if (narrow())
      multiply_widened(a, b, c, wide.data(), rest, *l.pool);
    else
      multiply(a, b, c, rest, *l.pool);
    if (body_.epilogue) run_epilogue(body_, l.in, c, l.out[0], rest, *l.pool);
  }

 private:
  bool narrow() const { return size_of(type_) < sizeof(T); }
  // Where the product is made: the result, unless the epilogue changes its type.
  tensor product_in(const tensor& out, std::byte* scratch) const {
    return out.type == type_ ? out : tensor{scratch, type_, out.lens, row_major(out.lens)};
  }
  std::size_t made_bytes(const tensor& out) const { return out.type == type_ ? 0 : bytes_of(out, size_of(type_)); }
  std::size_t widened_bytes(const tensor& a, const tensor& b, const tensor& c) const {
    return narrow() ? bytes_of(a, sizeof(T)) + bytes_of(b, sizeof(T)) + bytes_of(c, sizeof(T)) : 0;
  }

  void multiply(const tensor& a, const tensor& b, const tensor& c, std::span<std::byte> scratch,
                thread_pool& pool) const {
    kernels::gemm_problem<T> p;
    const batched_matrices<T> matrices(a, b, c, bool(packed_), p);
    if (packed_) p.b = reinterpret_cast<const T*>(packed_.data());
    matrices.each(p, [&] { functions_.run(pool, p, bool(packed_), reinterpret_cast<T*>(scratch.data())); });
  }

  void multiply_widened(const tensor& a, const tensor& b, const tensor& c, std::byte* at, std::span<std::byte> scratch,
                        thread_pool& pool) const {
    const auto wide = [&](const tensor& t) {
      const tensor out{at, dtype::u32, t.lens, row_major(t.lens)};
      at += bytes_of(t, sizeof(T));
      return out;
    };
    const tensor wide_a = wide(a), wide_b = wide(b), wide_c = wide(c);
    visit_narrow(type_, [&]<class S>(S) {
      for (const auto& [from, to] : {std::pair(&a, &wide_a), std::pair(&b, &wide_b)})
        in_parts(pool, from->elements(), [from = from, to = to](std::int64_t first, std::int64_t count) {
          std::copy_n(from->template as<const S>() + first, count, to->template as<T>() + first);
        });
      multiply(wide_a, wide_b, wide_c, scratch, pool);
      in_parts(pool, c.elements(), [&](std::int64_t first, std::int64_t count) {
        std::transform(wide_c.as<const T>() + first, wide_c.as<const T>() + first + count, c.as<S>() + first,
                       [](T v) { return static_cast<S>(v); });
      });
    });
  }

  fused_contraction body_;
  dtype type_;
  const product_functions<T>& functions_;
  buffer packed_;
};

}  // namespace

std::unique_ptr<kernel> lower_product(const kernel_request& r) {
  auto body = read_contraction(r);
  if (!body || !body->op.is<op::dot>() || r.instruction.results.size() != 1) return nullptr;
  const dtype type = r.inputs[body->operands[0]].type;
  const linear_algebra_table& isa = *kiln_eigen_linear_algebra();
  if (type == dtype::f64) return std::make_unique<product_kernel<double>>(std::move(*body), type, isa.f64, r);
  if (!is_integer(type)) return nullptr;
  if (size_of(type) == 8) return std::make_unique<product_kernel<std::uint64_t>>(std::move(*body), type, isa.u64, r);
  return std::make_unique<product_kernel<std::uint32_t>>(std::move(*body), type, isa.u32, r);
}

}  // namespace kiln::eigen
