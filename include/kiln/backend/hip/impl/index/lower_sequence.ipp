#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/kernels/sequence/arguments.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/more.hpp"

namespace kiln::hip {
namespace {

// Bytes of a value that a dtype is computed in.
std::size_t computed_bytes(dtype t) { return t == dtype::f64 ? 8 : 4; }

// How columns of a state are divided: neighboring threads that hold one in registers, and depths of each.
struct state_division {
  static constexpr int lanes = 256, most = 32;
  int parts = 8, each = 1;
  explicit state_division(std::int64_t depth) {
    while (parts * most < depth && parts < 32) parts *= 2;
    while (each < most && parts * each < depth) each *= 2;
    holds = parts * each >= depth;
  }
  bool holds = false;
};

std::size_t state_room(const operation&, std::span<const tensor> in, std::span<const tensor>) {
  if (state_division(in[3].lens[2]).holds) return 0;
  return static_cast<std::size_t>(in[3].elements()) * computed_bytes(in[0].type);
}

std::vector<index_call> linear_attention_calls(const operation& op, std::span<const tensor> in,
                                               std::span<const tensor>) {
  const auto& a = *op.get_if<op::linear_attention>();
  const std::string t = name_of(in[0].type), corrects = a.corrects ? "true" : "false";
  std::vector<std::string> types(8, t);
  const ints& state = in[3].lens;
  const gpu::linear_attention_sizes n{in[0].lens[1], in[0].lens[2], state[1], state[2], state[3], a.scale};
  if (const state_division d(state[2]); d.holds) {
    constexpr std::int64_t lanes = state_division::lanes;
    const std::int64_t columns = lanes / d.parts;
    return {{"linear_attention_columns", "sequence/sequence.hpp", types,
             "linear_attention_columns<" + corrects + ", " + std::to_string(d.parts) + ", " + std::to_string(d.each) +
                 ", " + std::to_string(lanes) + ">(p6, p7, p0, p1, p2, p3, p4, p5, n, row, lane)",
             n, state[0] * state[1] * ((state[3] + columns - 1) / columns), state_division::lanes}};
  }
  types.push_back(std::string(value_name(in[0].type)));
  return {{"linear_attention", "sequence/sequence.hpp", types,
           "linear_attention<" + corrects + ">(p6, p7, p8, p0, p1, p2, p3, p4, p5, n, at)", n,
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

// How transforms are made: by a block in shared memory where it holds them, of a length that is no power of two as a
// convolution of one that is; else a sum for each number.
struct fourier_plan {
  gpu::fourier_sizes sizes{};
  std::size_t number = 8;     // bytes
  int bits = 0, lanes = 256;  // of a block's transform; 0: none
  bool by_chirps = false, inverse = false;
  std::int64_t rows = 0;

  fourier_plan(const op::dft& o, const tensor& in, const tensor& out, std::size_t shared) : inverse(o.inverse) {
    const axis_extents from(in.lens, o.axis), to(out.lens, o.axis);
    const std::int64_t parts = in.lens.back(), made = out.lens.back();
    const std::int64_t n = o.one_sided && !o.inverse ? o.length_of(from.extent).value() : to.extent;
    const auto signal = o.signal_of(from.extent, n, parts == 2);
    sizes = {from.extent, to.extent, from.inner / parts, parts, made, n, signal.given, signal.is_half};
    rows = to.extent == 0 ? 0 : out.elements() / (made * to.extent);
    number = 2 * computed_bytes(in.type);
    constexpr std::int64_t least = 64;
    if (n < least) return;
    by_chirps = (n & (n - 1)) != 0;
    while (std::int64_t{1} << bits < (by_chirps ? 2 * n - 1 : n)) ++bits;
    if (shared_bytes() > shared) bits = 0;
    lanes = bits >= 13 ? 1024 : bits == 12 ? 512 : 256;
  }
  std::size_t count() const { return std::size_t{1} << bits; }
  std::size_t shared_bytes() const { return number * (count() + count() / 2); }
  std::size_t entries() const { return count() / 2 + (by_chirps ? static_cast<std::size_t>(sizes.length) : 0); }
  std::size_t table() const { return bits == 0 ? 0 : number * (entries() + (by_chirps ? count() : 0)); }
};

template <std::size_t Shared>
std::vector<index_call> dft_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const fourier_plan p(*op.get_if<op::dft>(), in[0], out[0], Shared);
  const std::string t = name_of(in[0].type), inverse = p.inverse ? "true" : "false", header = "sequence/fourier.hpp";
  if (p.bits == 0)
    return {{"fourier",
             header,
             {t, t},
             "fourier<" + inverse + ">(p1, p0, n, at)",
             p.sizes,
             out[0].elements() / p.sizes.made}};
  const std::vector<std::string> types = {t, t, "fourier_number<" + std::string(value_name(in[0].type)) + ">"};
  const std::string bits = std::to_string(p.bits), lanes = std::to_string(p.lanes);
  std::vector<index_call> calls = {{"fourier_table", header, types,
                                    "fourier_entry<" + inverse + ", " + bits + ">(p2, n, at)", p.sizes,
                                    p.rows == 0 ? 0 : static_cast<std::int64_t>(p.entries())}};
  const auto block = [&](const std::string& name, const std::string& text, std::int64_t work) {
    calls.push_back({name, header, types, text, p.sizes, work, p.lanes});
    calls.back().shared_bytes = static_cast<int>(p.shared_bytes());
  };
  if (p.by_chirps)
    block("fourier_chirp", "fourier_chirp<" + bits + ", " + lanes + ">(p2, n, lane, shared)", p.rows == 0 ? 0 : 1);
  const std::string name = p.by_chirps ? "fourier_by_chirps" : "fourier_block";
  block(name, name + "<" + inverse + ", " + bits + ", " + lanes + ">(p1, p0, p2, n, row, lane, shared)", p.rows);
  return calls;
}
template <std::size_t Shared>
std::size_t dft_room(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  return fourier_plan(*op.get_if<op::dft>(), in[0], out[0], Shared).table();
}
template <std::size_t Kilobytes>
constexpr index_family dft_family = {is_op<op::dft>, dft_calls<Kilobytes * 1024>, false, true,
                                     dft_room<Kilobytes * 1024>};

std::vector<index_call> random_calls(const operation& op, std::span<const tensor>, std::span<const tensor> out) {
  const auto& r = *op.get_if<op::random_uniform>();
  const uniform_range range = r.range();
  return {{"random_uniform",
           "index/random.hpp",
           {name_of(out[0].type)},
           "random_uniform(p0, n, at)",
           gpu::random_sizes{out[0].elements(), std::int64_t{r.seed}, range.low, range.width, range.least, range.most},
           (out[0].elements() + 1) / 2}};
}

// Filters over the bins of a spectrum, from numbers that lie on the device.
class mel_kernel final : public index_kernel {
 public:
  mel_kernel(const context_pointer& where, const op::mel_weights& op)
      : index_kernel(where, "mel_weights"), length_(op.length) {
    checks_ = true;
  }
  std::string fault_text() const override {
    return name_ + ": " + std::string(op::mel_weights::outside(0).rule.view());
  }

 protected:
  // The kernel is the same whatever the length is, which a run may compute.
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings* symbols) const override {
    for (const tensor& t : in)
      if (t.elements() != 1)
        raise(fault::of(errc::shape_mismatch, "the rate and both frequencies are one number each", 1, to_dims(t.lens)));
    const std::int64_t bins = out[0].lens[0], mels = out[0].lens[1],
                       length = length_.is_constant() ? length_.value()
                                : symbols             ? symbols->evaluate(length_)
                                                      : 0;
    return {{"mel_weights",
             "index/mel.hpp",
             {name_of(in[0].type), name_of(in[1].type), name_of(in[2].type), "float"},
             "mel_weights(p3, *p0, *p1, *p2, n, at, faults)",
             gpu::mel_sizes{length, mels},
             (bins + gpu::mel_run - 1) / gpu::mel_run * mels}};
  }

 private:
  dimension length_;
};

constexpr index_family families[] = {
    {is_op<op::linear_attention>, linear_attention_calls, false, true, state_room},
    {is_op<op::det>, det_calls, false, true, det_room},
    {is_op<op::inverse>, inverse_calls, false, true, inverse_room},
    {is_op<op::random_uniform>, random_calls, false, true},
};

}  // namespace

std::unique_ptr<kernel> lower_sequence(const kernel_request& r, const context_pointer& where) {
  if (r.instruction.op.is<op::recurrent>()) return lower_recurrent(r, where);
  if (r.instruction.op.is<op::dft>()) {
    const std::size_t shared = where->arch().shared_bytes;
    return make_index_kernel(where, r,
                             shared >= 192 * 1024  ? dft_family<192>
                             : shared >= 96 * 1024 ? dft_family<96>
                                                   : dft_family<48>);
  }
  if (const auto* const filters = r.instruction.op.get_if<op::mel_weights>())
    return std::make_unique<mel_kernel>(where, *filters);
  for (const index_family& f : families)
    if (f.is(r.instruction.op)) return make_index_kernel(where, r, f);
  return nullptr;
}

}  // namespace kiln::hip
