#include "kiln/cpp_export/impl/exporter.hpp"
#include "kiln/static_program/plan/attention.hpp"

namespace kiln::aot {

namespace {

std::int64_t element_or(const auto& list, std::size_t k, std::int64_t otherwise) {
  return list.empty() ? otherwise : list[k];
}

// What a window's accumulator starts from: the least value of the stored dtype, or 0.
node pooling_start(const op::pooling& op, dtype type) {
  const bool greatest = op.mode == op::pooling_mode::max;
  node start;
  start.type = type;
  visit_compute(type, [&]<class T>(type_tag<T>) {
    T lowest = T(0);
    if constexpr (std::is_floating_point_v<T>) {
      if (greatest) lowest = -std::numeric_limits<T>::infinity();
    } else if (greatest) {
      visit_storage(type, [&]<class S>(type_tag<S>) {
        if constexpr (std::is_integral_v<S>) lowest = static_cast<T>(std::numeric_limits<S>::lowest());
      });
    }
    words w;
    put_words(w, lowest);
    start.attributes = w[0];
  });
  return start;
}

// The result of a window as an expression of its accumulator; extents of padded windows are written as lines first.
std::string pooled_text(source_writer& out, const op::pooling& op, const place& in, const place& to, std::string acc,
                        std::string_view value) {
  const std::size_t dims = in.lens.size() - 2;
  if (op.mode == op::pooling_mode::max) return acc;
  if (op.mode == op::pooling_mode::lp)
    return op.lp_order == 1   ? acc
           : op.lp_order == 2 ? cat("math::sqrt(", acc, ")")
                              : cat("math::pow(", acc, ", ", value, "(1) / ", op.lp_order, ")");
  if (!op.count_include_pad) return cat("inside ? ", acc, " / static_cast<", value, ">(inside) : ", value, "(0)");
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t stride = element_or(op.stride, i, 1), dilation = element_or(op.dilation, i, 1),
                       last = in.lens[i + 2] + element_or(op.pads, i, 0) +
                              (op.pads.empty() ? 0 : op.pads[i + dims]);  // end of the padded extent
    if ((to.lens[i + 2] - 1) * stride + (op.lengths[i] - 1) * dilation < last) {
      acc += cat(" / ", op.lengths[i]);
    } else {
      out.line("const std::int64_t room", i, " = (", last - 1, " - o", i, " * ", stride, ") / ", dilation, " + 1;");
      acc += cat(" / static_cast<", value, ">(room", i, " < ", op.lengths[i], " ? room", i, " : ", op.lengths[i], ")");
    }
  }
  return acc;
}

}  // namespace

void cpp_exporter::write(const draft& d, const op::pooling& op) {
  const std::vector<place> at = places(d);
  const place &in = at[0], &to = at[1];
  const std::size_t dims = in.lens.size() - 2;
  const std::string type = stored_name(in.type), value = value_name(in.type);
  declare("in", in, false);
  declare("out", to, true);
  // NHWC: the channels of a position are pooled together
  const std::int64_t channels = in.lens[1];
  const bool along = channels > 1 && in.strides[1] == 1 && to.strides[1] == 1;
  index_text from, result;
  for (std::size_t b = 0; b < 2; ++b) {
    if (b == 0 || !along) out_.loop(cat("n", b), in.lens[b]);
    from.add(cat("n", b), in.strides[b]);
    result.add(cat("n", b), to.strides[b]);
  }
  // windows inside the input need no bounds
  std::vector<bool> clipped(dims);
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t stride = element_or(op.stride, i, 1), dilation = element_or(op.dilation, i, 1),
                       begin = element_or(op.pads, i, 0);
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
  const node start = pooling_start(op, in.type);
  const std::string acc = along ? "acc[n1]" : "acc";
  if (along) {
    out_.line(value, "* __restrict const acc = reinterpret_cast<", value, "*>(arena_ + ", take_scratch(channels * 8),
              ");");
    out_.loop("n1", channels);
    out_.line(acc, " = ", literal_value(start), ";");
    out_.close();
  } else {
    out_.line(value, " acc = ", literal_value(start), ";");
  }
  const bool counts = op.mode == op::pooling_mode::average && !op.count_include_pad;
  if (counts) out_.line("std::int64_t inside = 0;");
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t dilation = element_or(op.dilation, i, 1);
    out_.loop(cat("k", i), op.lengths[i]);
    from.add(cat("k", i), dilation * in.strides[i + 2]);
    if (clipped[i])
      out_.line("if (const std::int64_t at = start", i, " + ", index_text{}.add(cat("k", i), dilation).str(),
                "; at < 0 || at >= ", in.lens[i + 2], ") continue;");
  }
  if (counts) out_.line("++inside;");
  if (along) out_.loop("n1", channels);
  out_.line("const ", value, " v = in[", from.str(), "];");
  if (op.mode == op::pooling_mode::max)
    out_.line(acc, " = v > ", acc, " || v != v ? v : ", acc, ";");
  else if (op.mode == op::pooling_mode::average)
    out_.line(acc, " += v;");
  else
    out_.line(acc, " += math::power(math::abs(v), ", op.lp_order, ");");
  out_.close(along ? dims + 1 : dims);
  const std::string pooled = pooled_text(out_, op, in, to, acc, value);
  if (along) out_.loop("n1", channels);
  out_.line("out[", result.str(), "] = static_cast<", type, ">(", pooled, ");");
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
  const kernels::attention_extents e = plan_attention(q, k, v, to, op.causal);
  declare("query", q, false);
  declare("key", k, false);
  declare("value", v, false);
  declare("out", to, true);
  const auto steps = [](const kernels::attention_steps& s) {
    return cat("{", s.batch, ", ", s.head, ", ", s.position, ", ", s.element, "}");
  };
  out_.line("constexpr attention_extents extents{.batch = ", e.batch, ", .heads = ", e.heads,
            ", .kv_heads = ", e.kv_heads, ", .queries = ", e.queries, ", .keys = ", e.keys, ", .depth = ", e.depth,
            ", .width = ", e.width, ", .q = ", steps(e.q), ", .k = ", steps(e.k), ", .v = ", steps(e.v),
            ", .out = ", steps(e.out), ", .causal = ", e.causal ? "true" : "false", "};");
  std::string score = "s";
  if (d.inputs.size() == 4) {
    const place& mask = at[3];
    declare("mask", mask, false);
    index_text t;
    const char* const names[] = {"b", "h", "i", "j"};
    for (std::size_t x = 0; x < 4; ++x)
      if (mask.lens[x] != 1) t.add(names[x], mask.strides[x]);
    score =
        mask.type == dtype::boolean ? cat("mask[", t.str(), "] ? s : -math::infinity") : cat("s + mask[", t.str(), "]");
  }
  out_.line(
      "const auto counts = [&]([[maybe_unused]] std::int64_t b, [[maybe_unused]] std::int64_t h, "
      "[[maybe_unused]] std::int64_t i, [[maybe_unused]] std::int64_t j, float s) { return ",
      score, "; };");
  out_.line(
      "static_attention<extents, lanes, registers, math::of_vectors>(query, key, value, out, "
      "reinterpret_cast<float*>(arena_ + ",
      take_scratch(e.memory() * 4), "), ",
      print_source(expr::constant(static_cast<double>(op.scale), scalar_kind::f32), {}, {}).str(), ", counts);");
}

}  // namespace kiln::aot
