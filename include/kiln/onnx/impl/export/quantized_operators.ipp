#include "kiln/graph/literal_values.hpp"
#include "kiln/onnx/impl/export/exporter.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"

// Ops between dequantize_linear and quantize_linear as the operators that read and write integers: QLinearConv and its
// like. The importer reads each of them as these ops again.
namespace kiln::onnx {

namespace {

constexpr std::string_view microsoft_domain = "com.microsoft";

// A tensor of u8 or i8 with its scale and zero point, which is 0 where it is empty.
struct linear {
  value_id bytes, scale, zero;
  std::int64_t axis = 0;
};

class operator_writer {
 public:
  operator_writer(exporter& x, const exported& e) : x_(x), e_(e), m_(*e.home) {}

  bool write() {
    if (e_.op.is<op::quantize_linear>()) return write_quantized();
    if (e_.op.is<op::dot>()) return write_real_product();
    if (e_.op.is<op::add>()) return write_real_gemm();
    return false;
  }

 private:
  const module_graph::instruction& at(value_id v) const { return m_.producer(v); }
  template <class Op> const Op* op_of(value_id v) const {
    return at(v).kind == instruction_kind::op ? at(v).op.get_if<Op>() : nullptr;
  }
  value_id input(value_id v, std::size_t k) const { return at(v).inputs[k]; }
  const shape& shape_of(value_id v) const { return m_.shape_of(v); }
  const literal* constant(value_id v) const {
    return at(v).kind == instruction_kind::literal ? &at(v).constant : nullptr;
  }
  static bool is_byte(dtype t) { return t == dtype::u8 || t == dtype::i8; }

  std::optional<linear> dequantized(value_id v) const {
    const auto* const o = op_of<op::dequantize_linear>(v);
    if (!o) return std::nullopt;
    const auto& in = at(v).inputs;
    return linear{in[0], in[1], in.size() > 2 ? in[2] : value_id{}, normal_axis(o->axis, shape_of(v).rank())};
  }
  // What is repeated to the dims of another operand repeats by itself.
  value_id unrepeated(value_id v) const { return op_of<op::multibroadcast>(v) ? input(v, 0) : v; }
  // The same of bytes that have one scale.
  std::optional<linear> bytes_of(value_id v) const {
    const auto found = dequantized(v);
    const bool fits = found && is_byte(shape_of(found->bytes).type) && shape_of(found->scale).rank() == 0;
    return fits ? found : std::nullopt;
  }
  // The right operand of a matrix product: a matrix with one scale, or one for each column.
  std::optional<linear> matrix_of(value_id v) const {
    if (op_of<op::multibroadcast>(v)) {
      const dims &lens = shape_of(v).lens, &own = shape_of(input(v, 0)).lens;
      if (own.size() != 2 || !(own[0] == lens[lens.size() - 2]) || !(own[1] == lens[lens.size() - 1]))
        return std::nullopt;
      v = input(v, 0);
    }
    const auto found = dequantized(v);
    if (!found || !is_byte(shape_of(found->bytes).type)) return std::nullopt;
    const bool columns = shape_of(v).rank() == 2 && found->axis == 1;
    return shape_of(found->scale).rank() == 0 || columns ? found : std::nullopt;
  }

  const std::string& name(value_id v) const { return e_.name_of(v); }
  // The zero point of a tensor as operators want it: given, with the scale's dims.
  std::string zero_name(const linear& t) {
    if (t.zero) return name(t.zero);
    const shape& scale = shape_of(t.scale);
    const dtype type = shape_of(t.bytes).type;
    if (scale.rank() == 0) return x_.scalar(type, 0);
    const std::vector<float> none(static_cast<std::size_t>(scale.lens[0].value()), 0.0F);
    return x_.constant(literal::of<float>({type, scale.lens}, none));
  }
  void put(names& in, const linear& t) {
    in.push_back(name(t.bytes));
    in.push_back(name(t.scale));
    in.push_back(zero_name(t));
  }
  void put_result(names& in) {
    in.push_back(e_.in[1]);
    in.push_back(e_.in.size() > 2 ? e_.in[2] : x_.scalar(e_.result().type, 0));
  }
  exporter::node_writer of_microsoft(std::string_view op, const names& in, const names& out) {
    auto n = x_.write(op, in, out);
    n.of_domain(microsoft_domain);
    return n;
  }

  // What a product's sum of i32 gets added, of the scale that the sum has.
  struct addend {
    value_id product, numbers;
  };
  std::optional<addend> biased(value_id v, std::size_t column_from_end) const {
    if (!op_of<op::add>(v)) return std::nullopt;
    for (std::size_t k = 0; k < 2; ++k) {
      const value_id product = input(v, k), spread = input(v, 1 - k);
      const bool convolves = op_of<op::convolution>(product) != nullptr;
      if (!convolves && !op_of<op::dot>(product)) continue;
      const auto* const along = op_of<op::broadcast>(spread);
      if (!along && !op_of<op::multibroadcast>(spread)) continue;
      const value_id real = input(spread, 0);
      const auto bias = dequantized(real);
      if (!bias || bias->zero || shape_of(bias->bytes).type != dtype::i32 || shape_of(real).rank() != 1) continue;
      const auto rank = static_cast<std::int64_t>(shape_of(v).rank());
      const std::int64_t axis = along ? normal_axis(along->axis, shape_of(v).rank()) : rank - 1;
      if (axis != rank - static_cast<std::int64_t>(column_from_end)) continue;
      const auto left = bytes_of(input(product, 0)),
                 right = convolves ? dequantized(input(product, 1)) : matrix_of(input(product, 1));
      if (left && right && is_product(bias->scale, left->scale, right->scale)) return addend{product, bias->bytes};
    }
    return std::nullopt;
  }
  // Whether a scale is the product of two, within the rounding of floats.
  bool is_product(value_id scale, value_id a, value_id b) const {
    const literal *const s = constant(scale), *const x = constant(a), *const y = constant(b);
    if (!s || !x || !y || x->elements() != 1) return false;
    const auto of = s->to<float>(), by = y->to<float>();
    const std::size_t count = std::max(of.size(), by.size());
    if ((of.size() != count && of.size() != 1) || (by.size() != count && by.size() != 1)) return false;
    const float one = x->at<float>(0);
    for (std::size_t k = 0; k < count; ++k) {
      const float wanted = one * by[by.size() == 1 ? 0 : k], apart = of[of.size() == 1 ? 0 : k] - wanted;
      if (!(apart <= 1e-6F * wanted && apart >= -1e-6F * wanted)) return false;
    }
    return true;
  }

  value_id at_quantize(std::size_t k) const { return m_[e_.at].inputs[k]; }

  // An activation before quantization keeps the bytes within bounds; those that all bytes keep are empty.
  struct byte_bounds {
    std::optional<std::int64_t> low, high;
  };
  std::optional<byte_bounds> bounds_of(value_id activation) const {
    const literal *const scale = constant(at_quantize(1)), *const zero =
                                                               e_.in.size() > 2 ? constant(at_quantize(2)) : nullptr;
    if (!scale || (e_.in.size() > 2 && !zero)) return std::nullopt;
    const auto [least, most] = kiln::detail::bounds_of_integer(e_.result().type);
    const float by = scale->at<float>(0), offset = zero ? zero->at<float>(0) : 0;
    const auto byte = [&](double real) {
      const float y = op::round{}(static_cast<float>(real) / by) + offset;
      return y <= static_cast<float>(least)  ? least
             : y >= static_cast<float>(most) ? most
                                             : static_cast<std::int64_t>(y);
    };
    byte_bounds out;
    if (op_of<op::relu>(activation)) {
      out.low = byte(0);
    } else {
      for (std::size_t k = 1; k < 3; ++k) {
        value_id v = input(activation, k);
        while (is_view(at(v))) v = input(v, 0);
        const literal* const l = constant(v);
        const auto bound = l ? uniform_value(*l) : std::nullopt;
        if (!bound) return std::nullopt;
        (k == 1 ? out.low : out.high) = byte(*bound);
      }
    }
    if (out.low == least) out.low.reset();
    if (out.high == most) out.high.reset();
    return out;
  }
  bool write_quantized() {
    const dtype type = e_.result().type;
    if (!is_byte(type) || !e_.types[1].lens.empty()) return false;
    value_id v = at_quantize(0);
    if (!op_of<op::relu>(v) && !op_of<op::clip>(v)) return write_op(v, e_.out[0]);
    const auto bounds = bounds_of(v);
    if (!bounds) return false;
    const bool clips = bounds->low || bounds->high;
    const std::string whole = clips ? x_.fresh("unbounded") : e_.out[0];
    if (!write_op(input(v, 0), whole)) return false;
    if (!clips) return true;
    names in{whole, bounds->low ? x_.scalar(type, *bounds->low) : ""};
    if (bounds->high) in.push_back(x_.scalar(type, *bounds->high));
    x_.write("Clip", in, e_.out);
    return true;
  }

  bool write_op(value_id v, const std::string& out) {
    const std::size_t rank = shape_of(v).rank();
    if (const auto biases = biased(v, rank - 1); biases && op_of<op::convolution>(biases->product))
      return write_convolution(biases->product, biases->numbers, out);
    if (const auto biases = biased(v, 1); biases && op_of<op::dot>(biases->product))
      return write_gemm(biases->product, biases->numbers, out, true);
    if (op_of<op::convolution>(v)) return write_convolution(v, {}, out);
    if (op_of<op::dot>(v)) return write_product(v, out);
    if (op_of<op::add>(v)) return write_all("QLinearAdd", v, 0, out) != nullptr;
    if (op_of<op::mul>(v)) return write_all("QLinearMul", v, 0, out) != nullptr;
    if (op_of<op::sigmoid>(v)) return write_all("QLinearSigmoid", v, 0, out) != nullptr;
    if (op_of<op::where>(v)) return write_all("QLinearWhere", v, 1, out) != nullptr;
    if (const auto* const o = op_of<op::leaky_relu>(v)) {
      auto* const n = write_all("QLinearLeakyRelu", v, 0, out);
      if (n) n->set("alpha", o->alpha);
      return n != nullptr;
    }
    if (op_of<op::concat>(v)) return write_concat(v, out);
    if (op_of<op::pooling>(v)) return write_pooling(v, out);
    if (op_of<op::reduce_mean>(v)) return write_global_pooling(v, out);
    if (op_of<op::div>(v)) return write_softmax(v, out);
    return false;
  }

  // An operator of the op's inputs from `first` on, each of bytes of one scale; those before are as they are.
  exporter::node_writer* write_all(std::string_view op, value_id v, std::size_t first, const std::string& out) {
    names in;
    const auto& inputs = at(v).inputs;
    dims together{};
    for (const value_id u : inputs) {
      const dims& own = shape_of(unrepeated(u)).lens;
      while (together.size() < own.size()) together.insert(0, dimension(1));
      for (std::size_t d = 0; d < own.size(); ++d)
        if (!(own[own.size() - 1 - d] == dimension(1))) together[together.size() - 1 - d] = own[own.size() - 1 - d];
    }
    if (!(together == shape_of(v).lens)) return nullptr;  // a broadcast of all of them
    for (std::size_t k = 0; k < first; ++k) in.push_back(name(unrepeated(inputs[k])));
    for (std::size_t k = first; k < inputs.size(); ++k) {
      const auto real = bytes_of(unrepeated(inputs[k]));
      if (!real) return nullptr;
      put(in, *real);
    }
    put_result(in);
    return &written_.emplace(of_microsoft(op, in, {out}));
  }

  bool write_convolution(value_id v, value_id bias, const std::string& out) {
    const auto image = bytes_of(input(v, 0)), filters = dequantized(input(v, 1));
    if (!image || !filters || !is_byte(shape_of(filters->bytes).type)) return false;
    if (shape_of(filters->scale).rank() != 0 && filters->axis != 0) return false;
    names in;
    put(in, *image);
    put(in, *filters);
    put_result(in);
    if (bias) in.push_back(name(bias));
    auto n = x_.write("QLinearConv", in, {out});
    const auto& o = *op_of<op::convolution>(v);
    put_window(n, o).set("group", o.group);
    return true;
  }
  bool write_product(value_id v, const std::string& out) {
    const auto left = bytes_of(input(v, 0)), right = matrix_of(input(v, 1));
    if (!left || !right) return false;
    names in;
    put(in, *left);
    put(in, *right);
    put_result(in);
    x_.write("QLinearMatMul", in, {out});
    return true;
  }
  // Of matrices: what comes before the last dim becomes rows.
  bool write_gemm(value_id v, value_id bias, const std::string& out, bool quantizes) {
    auto left = bytes_of(input(v, 0)), right = matrix_of(input(v, 1));
    if (!left || !right || shape_of(right->bytes).rank() != 2) return false;
    const dims& lens = shape_of(v).lens;
    names in;
    put(in, *left);
    put(in, *right);
    in.push_back(name(bias));
    if (quantizes) put_result(in);
    const bool is_matrix = lens.size() == 2;
    if (!is_matrix) in[0] = x_.reshaped(in[0], {-1, shape_of(right->bytes).lens[0]});
    const std::string rows = is_matrix ? out : x_.fresh("rows");
    of_microsoft("QGemm", in, {rows});
    if (!is_matrix) x_.write("Reshape", {rows, x_.dimensions(all(lens))}, {out}).set("allowzero", std::int64_t{1});
    return true;
  }
  bool write_real_product() {
    const value_id v{e_.at, 0};
    const auto left = bytes_of(input(v, 0)), right = matrix_of(input(v, 1));
    if (!left || !right) return false;
    of_microsoft("MatMulIntegerToFloat",
                 {name(left->bytes), name(right->bytes), name(left->scale), name(right->scale), zero_name(*left),
                  zero_name(*right)},
                 e_.out);
    return true;
  }
  bool write_real_gemm() {
    const auto biases = biased({e_.at, 0}, 1);
    return biases && op_of<op::dot>(biases->product) && write_gemm(biases->product, biases->numbers, e_.out[0], false);
  }

  bool write_concat(value_id v, const std::string& out) {
    names in;
    put_result(in);
    for (const value_id part : at(v).inputs) {
      const auto real = bytes_of(part);
      if (!real) return false;
      put(in, *real);
    }
    of_microsoft("QLinearConcat", in, {out}).set("axis", normal_axis(op_of<op::concat>(v)->axis, shape_of(v).rank()));
    return true;
  }
  bool write_pooling(value_id v, const std::string& out) {
    const auto& o = *op_of<op::pooling>(v);
    const auto real = bytes_of(input(v, 0));
    for (const std::int64_t gap : o.dilation)
      if (gap != 1) return false;
    if (!real || o.mode != op::pooling_mode::average) return false;
    names in;
    put(in, *real);
    put_result(in);
    auto n = of_microsoft("QLinearAveragePool", in, {out});
    op::pooling plain = o;
    plain.dilation = {};
    put_window(n, plain)
        .set("kernel_shape", all(o.lengths))
        .set("ceil_mode", std::int64_t{o.ceil_mode})
        .set("count_include_pad", std::int64_t{o.count_include_pad});
    return true;
  }
  bool write_global_pooling(value_id v, const std::string& out) {
    const auto real = bytes_of(input(v, 0));
    const ints& axes = at(v).op.axes();
    const std::size_t rank = shape_of(v).rank();
    bool spatial = real && rank > 2 && axes.size() + 2 == rank;
    for (std::size_t d = 0; spatial && d < axes.size(); ++d)
      spatial = normal_axis(axes[d], rank) == static_cast<std::int64_t>(d) + 2;
    if (!spatial) return false;
    names in;
    put(in, *real);
    put_result(in);
    of_microsoft("QLinearGlobalAveragePool", in, {out});
    return true;
  }
  // exp(x - its maximum), divided by its sum, along one axis.
  bool write_softmax(value_id v, const std::string& out) {
    const auto repeated = [&](value_id u) { return op_of<op::multibroadcast>(u) ? input(u, 0) : value_id{}; };
    const value_id exponential = input(v, 0), sum = repeated(input(v, 1));
    if (!sum || !op_of<op::reduce_sum>(sum) || !(input(sum, 0) == exponential) || !op_of<op::exp>(exponential))
      return false;
    const value_id shifted = input(exponential, 0);
    if (!op_of<op::sub>(shifted)) return false;
    const value_id from = input(shifted, 0), greatest = repeated(input(shifted, 1));
    if (!greatest || !op_of<op::reduce_max>(greatest) || !(input(greatest, 0) == from)) return false;
    const ints &axes = at(sum).op.axes(), &others = at(greatest).op.axes();
    const std::size_t rank = shape_of(v).rank();
    if (axes.size() != 1 || others.size() != 1 || normal_axis(axes[0], rank) != normal_axis(others[0], rank))
      return false;
    const auto real = bytes_of(from);
    if (!real) return false;
    names in;
    put(in, *real);
    put_result(in);
    of_microsoft("QLinearSoftmax", in, {out}).set("axis", normal_axis(axes[0], rank)).set("opset", std::int64_t{13});
    return true;
  }

  exporter& x_;
  const exported& e_;
  const module_graph& m_;
  std::optional<exporter::node_writer> written_;
};

}  // namespace

bool write_quantized_operator(exporter& x, const exported& e) { return operator_writer(x, e).write(); }

}  // namespace kiln::onnx
