#pragma once
#include <cmath>

#include "kiln/backend/eigen/impl/int8/integer_epilogue.hpp"
#include "kiln/kernel/int8/requantize.hpp"
#include "kiln/pass/fusion_body.hpp"

/// The form of an integer product's epilogue that kernels apply in registers, for one unit.
namespace kiln::eigen::integer_epilogues {

// An epilogue as `kernels::requantization` computes it, bit by bit as the ops would.
struct requantization_form {
  kernels::requantization how;
  std::vector<float> scale, bias, late_bias;  // of the columns and those of a last vector; biases may be empty
  std::size_t scale_input = none;             // which input of the instruction has a run's numbers for the columns
  std::size_t addend = none;                  // likewise the addend

  // What a run applies, save its operands.
  kernels::requantization bound(const float* run_scale) const {
    kernels::requantization out = how;
    out.scale = run_scale ? run_scale : scale.data();
    if (!bias.empty()) out.bias = bias.data();
    if (!late_bias.empty()) out.late_bias = late_bias.data();
    return out;
  }
};

// How floats between two numbers are divided and rounded, then clipped to whole numbers. Division and rounding keep
// order: the floats' own bounds, divided and rounded as the ops do, become bounds of the whole numbers.
inline kernels::byte_rounding byte_rounding_of(double scale, double least, double most, double low, double high) {
  kernels::byte_rounding to;
  to.scale = static_cast<float>(scale);
  to.inverse = 1 / to.scale;
  const auto bounded = [&](double bound) {
    const double whole = static_cast<double>(kiln::round(static_cast<float>(bound) / to.scale));
    return static_cast<float>(std::clamp(whole, low, high));
  };
  to.low = bounded(least), to.high = bounded(most);
  return to;
}

// Finds the form: follows the floats from the converted sums to the result.
class requantization_finder {
 public:
  requantization_finder(const lower::contraction_body<module_graph>& body, const kernel_request& r,
                        std::size_t column_dim, std::int64_t columns)
      : m_(body.epilogue), r_(r), column_dim_(column_dim), columns_(columns), input_(m_.size(), none) {
    std::size_t parameters = 0;
    for (std::uint32_t i = 0; i < m_.size(); ++i)
      if (m_[i].kind == instruction_kind::parameter && parameters++ > 0)
        input_[i] = body.epilogue_inputs[parameters - 2];
  }

  std::optional<requantization_form> find(std::uint32_t converted) {
    at_ = converted;
    form_.scale.assign(static_cast<std::size_t>(columns_) + 64, 1.F);
    read_affine();
    if (!in_bounds()) return std::nullopt;
    bool ended = false;
    if (auto first = read_rounding()) {
      if (first->bytes)
        ended = end_in_bytes(*first);
      else if (form_.how.rounds = reads_floats_again(*first), form_.how.first = first->to; !form_.how.rounds)
        return std::nullopt;
    }
    if (!ended && form_.how.rounds) form_.late_bias = read_bias();
    if (!in_bounds()) return std::nullopt;
    if (!ended && (next<op::add>() || multiplies_bytes())) {
      form_.how.multiplies = !next<op::add>();
      if (!read_addend()) return std::nullopt;
      if (form_.how.multiplies && !in_bounds(511 * std::abs(form_.how.addend_scale))) return std::nullopt;
    }
    if (!ended && form_.how.addend_kind == kind::none) read_activation();
    if (!ended && form_.how.addend_kind != kind::floats) {
      auto last = read_rounding();
      if (last && last->bytes) {
        ended = end_in_bytes(*last);
      } else if (last && reads_floats_again(*last)) {
        form_.how.rounds_floats = true;
        form_.how.last = last->to;
      }
    }
    if (!ended && !form_.how.rounds_floats && next<op::relu>()) step(), form_.how.rectifies = true;
    if (!is_last() || (!ended && m_.shape_of({at_, 0}).type != dtype::f32)) return std::nullopt;
    // nothing is known of the magnitude of a run's scales, so nothing after them may be divided
    if (form_.scale_input != none && (ended || form_.how.rounds || form_.how.rounds_floats)) return std::nullopt;
    return std::move(form_);
  }

 private:
  using kind = kernels::requantization::kind;
  struct rounding {
    kernels::byte_rounding to;
    double zero = 0;
    bool bytes = false;  // it ends as bytes, not as floats
    dtype type = dtype::u8;
  };
  static constexpr float greatest = 0x1p60F, least = 0x1p-60F;

  bool is_last() const { return m_.outputs[0].instruction == at_; }
  // The only reader of the current value, where it is such an op.
  template <class Op> std::optional<std::uint32_t> next() const {
    const auto user = only_user(m_, at_);
    return user && m_[*user].op.is<Op>() ? user : std::nullopt;
  }
  void step() { at_ = *only_user(m_, at_); }
  // The other operand of a binary op over the current value; none where order matters and the current one is second.
  std::optional<value_id> other(std::uint32_t user, bool ordered = false) const {
    const auto& in = m_[user].inputs;
    if (in[0].instruction == at_) return in[1];
    return ordered ? std::nullopt : std::optional(in[0]);
  }
  std::optional<double> number(value_id v) const {
    const auto l = repeated_constant(m_, v);
    return l ? uniform_value(*l) : std::nullopt;
  }
  // The only number by which the current value is divided (multiplied, …).
  template <class Op> std::optional<double> operand(bool ordered = false) const {
    const auto user = next<Op>();
    const auto v = user ? other(*user, ordered) : std::nullopt;
    return v ? number(*v) : std::nullopt;
  }
  static bool is_whole(double x) { return std::floor(x) == x && std::abs(x) <= 511; }

  // Numbers for the columns, from a constant or a number.
  std::vector<float> of_columns(value_id v) const {
    std::vector<float> out(static_cast<std::size_t>(columns_) + 64, 0.F);
    if (const auto x = number(v)) {
      std::fill_n(out.begin(), columns_, static_cast<float>(*x));
      return out;
    }
    const std::size_t input = input_[v.instruction];
    if (input == none || !r_.constants[input] || m_.shape_of(v).type != dtype::f32) return {};
    const layout& at = r_.constant_layouts[input];
    for (std::size_t d = 0; d < at.lens.size(); ++d)
      if (d != column_dim_ && !(at.lens[d] == dimension(1)) && !(at.strides[d] == dimension(0))) return {};
    const bool repeats = at.lens[column_dim_] == dimension(1);
    if (!repeats && !(at.lens[column_dim_] == dimension(columns_))) return {};
    const dimension step = at.strides[column_dim_];
    if (!repeats && !step.is_constant()) return {};
    const std::int64_t each = repeats ? 0 : step.value();
    const argument aligned(*r_.constants[input]);
    const float* const from = aligned.as<float>().data() + at.offset.value();
    for (std::int64_t n = 0; n < columns_; ++n) out[static_cast<std::size_t>(n)] = from[n * each];
    return out;
  }
  void read_affine() {
    if (const auto user = next<op::mul>()) {
      std::vector<float> scale = of_columns(*other(*user));
      if (scale.empty() && !varies(*other(*user))) return;
      if (scale.empty())
        form_.scale_input = input_[other(*user)->instruction];
      else
        form_.scale = std::move(scale);
      step();
    }
    form_.bias = read_bias();
  }
  // A constant for each column that is added next; empty where there is none.
  std::vector<float> read_bias() {
    const auto user = next<op::add>();
    if (!user) return {};
    std::vector<float> bias = of_columns(*other(*user));
    if (!bias.empty()) step();
    return bias;
  }
  void read_activation() {
    const auto user = next<op::gelu>();
    if (!user) return;
    using curve = kernels::requantization::curve;
    form_.how.activation = m_[*user].op.get_if<op::gelu>()->tanh_approximation ? curve::gelu_of_tanh : curve::gelu;
    step();
  }
  // Whether a value is a run's floats, which may be numbers for the columns.
  bool varies(value_id v) const {
    const std::size_t input = input_[v.instruction];
    return input != none && !r_.constants[input] && m_.shape_of(v).type == dtype::f32;
  }
  // Whether no product or quotient leaves the range in which divisions are exact.
  bool in_bounds(float factor = 1) const {
    float most = 0;
    for (const float s : form_.scale) most = std::max(most, std::isfinite(s) ? std::abs(s) : greatest);
    most *= 0x1p31F;
    for (const std::vector<float>& biases : {form_.bias, form_.late_bias})
      for (const float b : biases) most = std::max(most, std::isfinite(b) ? std::abs(b) : greatest);
    return most * factor < greatest;
  }

  // bounds, div, round, add?, clip, then bytes or the whole numbers less their zero point.
  std::optional<rounding> read_rounding() {
    const std::uint32_t begin = at_;
    auto found = rounding_from_here();
    if (!found) at_ = begin;
    return found;
  }
  // Numbers between which the floats are clipped before they are rounded.
  struct float_bounds {
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  };
  float_bounds read_bounds() {
    float_bounds out;
    while (const auto bounds = next_bounds()) {
      out.low = std::clamp(out.low, bounds->low, bounds->high),
      out.high = std::clamp(out.high, bounds->low, bounds->high);
      step();
    }
    return out;
  }
  std::optional<float_bounds> next_bounds() const {
    float_bounds out;
    if (next<op::relu>()) return float_bounds{0, out.high};
    if (const auto low = operand<op::max>(); low && *low == *low) return float_bounds{*low, out.high};
    if (const auto high = operand<op::min>(); high && *high == *high) return float_bounds{out.low, *high};
    const auto clip = next<op::clip>();
    if (!clip || m_[*clip].inputs[0].instruction != at_) return std::nullopt;
    const auto low = number(m_[*clip].inputs[1]), high = number(m_[*clip].inputs[2]);
    return low && high && *low <= *high ? std::optional(float_bounds{*low, *high}) : std::nullopt;
  }
  std::optional<rounding> rounding_from_here() {
    rounding out;
    const float_bounds bounds = read_bounds();
    const double scale = read_divisor();
    if (!(scale > least && scale < greatest)) return std::nullopt;
    if (!next<op::round>()) return std::nullopt;
    step();
    if (const auto zero = operand<op::add>()) out.zero = *zero, step();
    const auto clip = next<op::clip>();
    if (!clip || m_[*clip].inputs[0].instruction != at_) return std::nullopt;
    const auto low = number(m_[*clip].inputs[1]), high = number(m_[*clip].inputs[2]);
    if (!low || !high || !is_whole(*low) || !is_whole(*high) || !is_whole(out.zero) || *low > *high)
      return std::nullopt;
    step();
    out.to = byte_rounding_of(scale, bounds.low, bounds.high, *low - out.zero, *high - out.zero);
    if (out.to.low > out.to.high || !out.to.rounds_as_division()) return std::nullopt;
    if (const auto user = next<op::convert>()) {
      out.type = m_.shape_of({*user, 0}).type;
      const bool is_signed = out.type == dtype::i8;
      if (!is_signed && out.type != dtype::u8) return std::nullopt;
      if (*low < (is_signed ? -128 : 0) || *high > (is_signed ? 127 : 255)) return std::nullopt;
      step();
      out.bytes = is_last();
    }
    return out;
  }
  // The number by which the value is divided; a power of two, as passes write that, multiplies or is gone.
  double read_divisor() {
    if (const auto by = operand<op::div>(true)) return step(), *by;
    const auto factor = operand<op::mul>();
    int exponent = 0;
    if (!factor || std::frexp(*factor, &exponent) != .5) return 1;
    step();
    return 1 / *factor;
  }
  // (stored - zero) * a scale, from whole numbers or from the bytes that they became.
  bool reads_floats_again(rounding& r) {
    double zero = 0;
    const auto read_zero = [&] {
      if (const auto less = operand<op::sub>(true))
        zero += *less, step();
      else if (const auto more = operand<op::add>(); more && r.zero != 0)
        zero -= *more, step();
    };
    for (int k = 0; k < 2 && m_.shape_of({at_, 0}).type != dtype::f32; ++k) {
      if (!next<op::convert>()) return false;
      step();
      const dtype wide = m_.shape_of({at_, 0}).type;
      if (wide != dtype::i32 && wide != dtype::f32) return false;
      if (wide == dtype::i32) read_zero();
    }
    if (m_.shape_of({at_, 0}).type != dtype::f32) return false;
    if (zero == 0) read_zero();
    const auto scale = operand<op::mul>();
    if (zero != r.zero || !scale || !(std::abs(*scale) < 0x1p50)) return false;
    r.to.again = static_cast<float>(*scale);
    step();
    return true;
  }
  bool end_in_bytes(const rounding& r) {
    form_.how.last = r.to;
    form_.how.zero = static_cast<std::int32_t>(r.zero);
    form_.how.result_kind = r.type == dtype::i8 ? kind::signed_bytes : kind::unsigned_bytes;
    return true;
  }

  // Whether floats that come from bytes, no constant, multiply next.
  bool multiplies_bytes() const {
    const auto user = next<op::mul>();
    const auto v = user ? other(*user) : std::nullopt;
    return v && v->instruction != at_ && !number(*v) && m_[v->instruction].op.is<op::mul>() &&
           number(m_[v->instruction].inputs[1]);
  }

  // A tensor beside the sums: floats, or bytes less their zero point times their scale.
  bool read_addend() {
    const std::uint32_t user = form_.how.multiplies ? *next<op::mul>() : *next<op::add>();
    value_id v = *other(user);
    if (v.instruction == at_) return false;
    kernels::requantization& how = form_.how;
    how.addend_kind = kind::floats;
    if (m_[v.instruction].op.is<op::mul>()) {
      const auto& in = m_[v.instruction].inputs;
      const auto scale = number(in[1]);
      if (!scale || std::abs(*scale) > greatest) return false;
      how.addend_scale = static_cast<float>(*scale);
      double zero = 0;
      for (v = in[0]; input_[v.instruction] == none; v = m_[v.instruction].inputs[0]) {
        const auto& i = m_[v.instruction];
        if (i.results[0].type != dtype::i32 && i.results[0].type != dtype::f32) return false;  // bytes would wrap
        if (i.op.is<op::convert>()) continue;
        const bool subtracts = i.op.is<op::sub>();
        const auto x = subtracts || i.op.is<op::add>() ? number(i.inputs[1]) : std::nullopt;
        if (!x) return false;
        zero += subtracts ? *x : -*x;
      }
      if (!is_whole(zero)) return false;
      how.addend_zero = static_cast<std::int32_t>(zero);
      const dtype t = m_.shape_of(v).type;
      if (t != dtype::u8 && t != dtype::i8) return false;
      how.addend_kind = t == dtype::u8 ? kind::unsigned_bytes : kind::signed_bytes;
    } else if (m_.shape_of(v).type != dtype::f32) {
      return false;
    }
    form_.addend = input_[v.instruction];
    if (form_.addend == none) return false;
    step();
    return true;
  }

  const module_graph& m_;
  const kernel_request& r_;
  std::size_t column_dim_;
  std::int64_t columns_;
  std::vector<std::size_t> input_;  // by instruction: the input of the whole that a parameter is
  std::uint32_t at_ = 0;
  requantization_form form_;
};

}  // namespace kiln::eigen::integer_epilogues
