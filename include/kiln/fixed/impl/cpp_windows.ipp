#include "kiln/fixed/impl/cpp_exporter.hpp"

namespace kiln::fixed {

void cpp_exporter::write(const draft& d, const op::pooling& op) {
  const std::vector<place> at = places(d);
  const place &in = at[0], &to = at[1];
  const std::size_t dims = in.lens.size() - 2;
  const std::string type = stored_name(in.type), value = value_name(in.type);
  declare("in", in, false);
  declare("out", to, true);
  index_text from, result;
  for (std::size_t b = 0; b < 2; ++b) {
    out_.loop(cat("n", b), in.lens[b]);
    from.add(cat("n", b), in.strides[b]);
    result.add(cat("n", b), to.strides[b]);
  }
  // windows that lie inside need no bounds
  std::vector<bool> clipped(dims);
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t stride = op.stride.empty() ? 1 : op.stride[i],
                       dilation = op.dilation.empty() ? 1 : op.dilation[i], begin = op.pads.empty() ? 0 : op.pads[i];
    clipped[i] = begin > 0 || (to.lens[i + 2] - 1) * stride - begin + (op.lengths[i] - 1) * dilation >= in.lens[i + 2];
    out_.loop(cat("o", i), to.lens[i + 2]);
    result.add(cat("o", i), to.strides[i + 2]);
    if (clipped[i]) {
      out_.line("const std::int64_t start", i, " = ", index_text{}.add(cat("o", i), stride).add(-begin).str(), ";");
      from.add(cat("start", i), in.strides[i + 2]);
    } else {
      from.add(cat("o", i), stride * in.strides[i + 2]);
    }
  }
  const bool greatest = op.mode == op::pooling_mode::max;
  node start;
  start.type = in.type;
  visit_compute(in.type, [&]<class T>(type_tag<T>) {
    T lowest = T(0);
    if constexpr (std::is_floating_point_v<T>) {
      if (greatest) lowest = -std::numeric_limits<T>::infinity();
    } else if (greatest) {
      visit_storage(in.type, [&]<class S>(type_tag<S>) {
        if constexpr (std::is_integral_v<S>) lowest = static_cast<T>(std::numeric_limits<S>::lowest());
      });
    }
    words w;
    put_words(w, lowest);
    start.attributes = w[0];
  });
  out_.line(value, " acc = ", literal_value(start), ";");
  const bool counts = op.mode == op::pooling_mode::average && !op.count_include_pad;
  if (counts) out_.line("std::int64_t inside = 0;");
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t dilation = op.dilation.empty() ? 1 : op.dilation[i];
    out_.loop(cat("k", i), op.lengths[i]);
    from.add(cat("k", i), dilation * in.strides[i + 2]);
    if (clipped[i])
      out_.line("if (const std::int64_t at = start", i, " + ", index_text{}.add(cat("k", i), dilation).str(),
                "; at < 0 || at >= ", in.lens[i + 2], ") continue;");
  }
  out_.line("const ", value, " v = in[", from.str(), "];");
  if (greatest)
    out_.line("acc = v > acc || v != v ? v : acc;");
  else if (op.mode == op::pooling_mode::average)
    out_.line("acc += v;");
  else
    out_.line("acc += math::power(math::abs(v), ", op.lp_order, ");");
  if (counts) out_.line("++inside;");
  out_.close(dims);
  std::string finished = "acc";
  if (op.mode == op::pooling_mode::average && counts) {
    finished = cat("inside ? acc / static_cast<", value, ">(inside) : ", value, "(0)");
  } else if (op.mode == op::pooling_mode::average) {
    // elements of the window within the input and its padding
    finished = "acc";
    for (std::size_t i = 0; i < dims; ++i) {
      const std::int64_t stride = op.stride.empty() ? 1 : op.stride[i],
                         dilation = op.dilation.empty() ? 1 : op.dilation[i], begin = op.pads.empty() ? 0 : op.pads[i],
                         end = op.pads.empty() ? 0 : op.pads[i + dims], last = in.lens[i + 2] + begin + end;
      if ((to.lens[i + 2] - 1) * stride + (op.lengths[i] - 1) * dilation < last) {
        finished += cat(" / ", op.lengths[i]);
      } else {
        out_.line("const std::int64_t room", i, " = (", last - 1, " - o", i, " * ", stride, ") / ", dilation, " + 1;");
        finished +=
            cat(" / static_cast<", value, ">(room", i, " < ", op.lengths[i], " ? room", i, " : ", op.lengths[i], ")");
      }
    }
  } else if (op.mode == op::pooling_mode::lp) {
    finished = op.lp_order == 1   ? "acc"
               : op.lp_order == 2 ? "math::sqrt(acc)"
                                  : cat("math::pow(acc, ", value, "(1) / ", op.lp_order, ")");
  }
  out_.line("out[", result.str(), "] = static_cast<", type, ">(", finished, ");");
  out_.close(dims + 2);
}

void cpp_exporter::write(const draft& d, const op::gather& op) {
  const std::vector<place> at = places(d);
  const place &data = at[0], &indices = at[1], &to = at[2];
  const auto axis = static_cast<std::size_t>(normal_axis(op.axis, data.lens.size()));
  const std::size_t index_rank = indices.lens.size();
  declare("data", data, false);
  declare("index", indices, false);
  declare("out", to, true);
  index_text from, picked, result;
  for (std::size_t i = 0; i < to.lens.size(); ++i) {
    const std::string name = cat("i", i);
    out_.loop(name, to.lens[i]);
    result.add(name, to.strides[i]);
    if (i < axis)
      from.add(name, data.strides[i]);
    else if (i < axis + index_rank)
      picked.add(name, indices.strides[i - axis]);
    else
      from.add(name, data.strides[i - index_rank + 1]);
  }
  // an index outside the extent reads the nearest element inside: a run reports no errors
  out_.line("const std::int64_t at = math::picked(static_cast<std::int64_t>(index[", picked.str(), "]), ",
            data.lens[axis], ");");
  out_.line("out[", result.str(), "] = data[", from.add("at", data.strides[axis]).str(), "];");
  out_.close(to.lens.size());
}

void cpp_exporter::write(const draft& d, const op::attention& op) {
  const std::vector<place> at = places(d);
  const place &q = at[0], &k = at[1], &v = at[2], &to = at.back();
  if (q.type != dtype::f32) raise(errc::unsupported, cat("an exported attention is f32, not ", to_string(q.type)));
  const bool masked = d.inputs.size() == 4;
  const std::int64_t sq = q.lens[2], sk = k.lens[2], depth = q.lens[3], width = v.lens[3];
  declare("query", q, false);
  declare("key", k, false);
  declare("value", v, false);
  if (masked) declare("mask", at[3], false);
  declare("out", to, true);
  out_.line("float* const scores = reinterpret_cast<float*>(arena_ + ", take_scratch((sk + 16) * 4), ");");
  out_.loop("b", q.lens[0]);
  out_.loop("h", q.lens[1]);
  out_.loop("i", sq);
  out_.line("const std::int64_t kv = h / ", q.lens[1] / k.lens[1], ";");
  const auto row = [](const place& p, std::string_view head, std::string_view position) {
    return index_text{}.add("b", p.strides[0]).add(head, p.strides[1]).add(position, p.strides[2]);
  };
  out_.line("const std::int64_t last = ",
            op.causal ? cat("i + ", sk - sq + 1, " < ", sk, " ? i + ", sk - sq + 1, " : ", sk) : std::to_string(sk),
            ";");
  out_.line("float top = -math::infinity;");
  out_.line("for (std::int64_t j = 0; j < last; ++j) {");
  out_.line("float s = ", print_source(expr::constant(static_cast<double>(op.scale), scalar_kind::f32), {}, {}).str(),
            " * dot<", depth, ", ", q.strides[3], ", ", k.strides[3], ">(query + ", row(q, "h", "i").str(), ", key + ",
            row(k, "kv", "j").str(), ");");
  if (masked) {
    const place& mask = at[3];
    index_text t;
    const char* const names[] = {"b", "h", "i", "j"};
    for (std::size_t x = 0; x < 4; ++x)
      if (mask.lens[x] != 1) t.add(names[x], mask.strides[x]);
    if (mask.type == dtype::boolean)
      out_.line("if (!mask[", t.str(), "]) s = -math::infinity;");
    else
      out_.line("s += mask[", t.str(), "];");
  }
  out_.line("scores[j] = s;");
  out_.line("top = s > top || s != s ? s : top;");
  out_.close();
  out_.line("float* const result = out + ", row(to, "h", "i").str(), ";");
  out_.line("for (std::int64_t c = 0; c < ", width, "; ++c) result[", index_text{}.add("c", to.strides[3]).str(),
            "] = 0;");
  out_.line("if (top == -math::infinity) continue;");
  out_.line("float sum = 0;");
  out_.line("for (std::int64_t j = 0; j < last; ++j) sum += scores[j] = math::exp(scores[j] - top);");
  out_.line("for (std::int64_t j = 0; j < last; ++j) {");
  out_.line("const float weight = scores[j] / sum;");
  out_.line("const float* const from = value + ", row(v, "kv", "j").str(), ";");
  out_.line("for (std::int64_t c = 0; c < ", width, "; ++c) result[", index_text{}.add("c", to.strides[3]).str(),
            "] += weight * from[", index_text{}.add("c", v.strides[3]).str(), "];");
  out_.close(4);
}

}  // namespace kiln::fixed
