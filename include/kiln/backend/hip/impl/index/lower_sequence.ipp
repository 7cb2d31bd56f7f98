#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/kernels/sequence/arguments.hpp"
#include "kiln/op/more.hpp"

namespace kiln::hip {
namespace {

// Bytes of a value that a dtype is computed in.
std::size_t computed_bytes(dtype t) { return t == dtype::f64 ? 8 : 4; }

std::size_t state_room(const operation&, std::span<const tensor> in, std::span<const tensor>) {
  return static_cast<std::size_t>(in[3].elements()) * computed_bytes(in[0].type);
}

std::vector<index_call> linear_attention_calls(const operation& op, std::span<const tensor> in,
                                               std::span<const tensor>) {
  const auto& a = *op.get_if<op::linear_attention>();
  const std::string t = name_of(in[0].type);
  std::vector<std::string> types(8, t);
  types.push_back(std::string(value_name(in[0].type)));
  const ints& state = in[3].lens;
  return {{"linear_attention", "sequence/sequence.hpp", types,
           std::string("linear_attention<") + (a.corrects ? "true" : "false") +
               ">(p6, p7, p8, p0, p1, p2, p3, p4, p5, n, at)",
           gpu::linear_attention_sizes{in[0].lens[1], in[0].lens[2], state[1], state[2], state[3], a.scale},
           state[0] * state[1] * state[3]}};
}

// A block works one matrix.
std::vector<index_call> matrix_calls(std::string_view function, std::span<const tensor> in) {
  const std::string t = name_of(in[0].type);
  const std::int64_t n = in[0].lens.back();
  return {{std::string(function),
           "reduce/determinant.hpp",
           {t, t, t, std::string(value_name(in[0].type))},
           std::string(function) + "<256>(p1, p2, p3, p0, n.extent, row, lane)",
           gpu::axis_sizes{n, 1, 1},
           in[0].elements() == 0 ? 0 : in[0].elements() / (n * n),
           256}};
}
std::vector<index_call> det_calls(const operation&, std::span<const tensor> in, std::span<const tensor> out) {
  auto calls = matrix_calls("determinant", in);
  calls[0].work = out[0].elements();  // those of empty matrices, too
  return calls;
}
std::vector<index_call> inverse_calls(const operation&, std::span<const tensor> in, std::span<const tensor>) {
  return matrix_calls("inverted", in);
}
std::size_t det_room(const operation&, std::span<const tensor> in, std::span<const tensor>) {
  return static_cast<std::size_t>(in[0].elements()) * computed_bytes(in[0].type);
}
std::size_t inverse_room(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  return 2 * det_room(op, in, out);
}

std::vector<index_call> dft_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const auto& o = *op.get_if<op::dft>();
  const axis_extents from(in[0].lens, o.axis), to(out[0].lens, o.axis);
  const std::int64_t parts = in[0].lens.back(), made = out[0].lens.back();
  const std::int64_t n = o.one_sided && !o.inverse ? o.length_of(from.extent).value() : to.extent;
  const auto signal = o.signal_of(from.extent, n, parts == 2);
  const std::string t = name_of(in[0].type);
  const gpu::fourier_sizes sizes{from.extent, to.extent, from.inner / parts, parts,
                                 made,        n,         signal.given,       signal.is_half};
  // a block's memory holds the numbers of a transform and half as many roots
  const std::int64_t least = 64, most = computed_bytes(in[0].type) == 8 ? 2048 : 4096;
  if ((n & (n - 1)) == 0 && n >= least && n <= most) {
    int bits = 0;
    while (std::int64_t{1} << bits < n) ++bits;
    return {{"fourier_block",
             "sequence/fourier.hpp",
             {t, t},
             std::string("fourier_block<") + (o.inverse ? "true, " : "false, ") + std::to_string(bits) +
                 ", 256>(p1, p0, n, row, lane)",
             sizes,
             to.extent == 0 ? 0 : out[0].elements() / (made * to.extent),
             256}};
  }
  return {{"fourier",
           "sequence/fourier.hpp",
           {t, t},
           std::string("fourier<") + (o.inverse ? "true" : "false") + ">(p1, p0, n, at)",
           sizes,
           out[0].elements() / made}};
}

std::vector<index_call> random_calls(const operation& op, std::span<const tensor>, std::span<const tensor> out) {
  const auto& r = *op.get_if<op::random_uniform>();
  return {{"random_uniform",
           "index/random.hpp",
           {name_of(out[0].type)},
           "random_uniform(p0, n, at)",
           gpu::random_sizes{out[0].elements(), std::int64_t{r.seed}, r.low, r.high},
           (out[0].elements() + 1) / 2}};
}

std::vector<index_call> roi_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const auto& r = *op.get_if<op::roi_align>();
  const ints& x = in[0].lens;
  const std::string t = name_of(in[0].type);
  return {{"roi_align",
           "index/roi_align.hpp",
           {t, t, name_of(in[2].type), t},
           std::string("roi_align<") + (r.half_pixel ? "true, " : "false, ") + (r.greatest ? "true" : "false") +
               ">(p3, p0, p1, p2, n, at, faults)",
           gpu::roi_sizes{x[0], x[1], x[2], x[3], r.height, r.width, r.samples, r.scale},
           out[0].elements()}};
}

constexpr index_family families[] = {
    {is_op<op::linear_attention>, linear_attention_calls, false, true, state_room},
    {is_op<op::det>, det_calls, false, true, det_room},
    {is_op<op::inverse>, inverse_calls, false, true, inverse_room},
    {is_op<op::dft>, dft_calls, false, true},
    {is_op<op::random_uniform>, random_calls, false, true},
    {is_op<op::roi_align>, roi_calls, true, true},
};

}  // namespace

std::unique_ptr<kernel> lower_sequence(const kernel_request& r, const context_pointer& where) {
  if (r.instruction.op.is<op::recurrent>()) return lower_recurrent(r, where);
  for (const index_family& f : families)
    if (f.is(r.instruction.op)) return make_index_kernel(where, r, f);
  return nullptr;
}

}  // namespace kiln::hip
