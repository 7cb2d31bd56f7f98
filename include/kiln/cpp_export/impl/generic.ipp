#include "kiln/cpp_export/impl/exporter.hpp"

namespace kiln::aot {

namespace {

// The ops of one kind that steps are written for, each with the member function that writes it.
template <class Visit> bool visit_written(const operation& op, Visit visit) {
  const auto any = [&]<class... Ops>(type_list<Ops...>) {
    return ([&] {
      const Ops* const held = op.get_if<Ops>();
      if (held) visit(*held);
      return held != nullptr;
    }() || ...);
  };
  return any(type_list<op::pooling, op::gather, op::attention, op::lrn, op::pad, op::cumsum, op::cumprod, op::arg_max,
                       op::arg_min, op::topk, op::tri, op::one_hot, op::gather_elements, op::scatter_elements,
                       op::gather_nd, op::scatter_nd, op::deconvolution, op::mel_weights, op::recurrent>{});
}

std::string number(double v, dtype t) { return print_source(expr::constant(v, kind_of_values(t)), {}, {}).str(); }

}  // namespace

bool cpp_exporter::has_text(const operation& op) {
  return visit_written(op, [](const auto&) {});
}
void cpp_exporter::write_other(const draft& d, const operation& op) {
  visit_written(op, [&](const auto& held) { write(d, held); });
}

std::string cpp_exporter::open_all(const ints& lens, const place& p, std::string_view prefix) {
  for (std::size_t k = 0; k < lens.size(); ++k) out_.loop(cat(prefix, k), lens[k]);
  return element(p, prefix);
}
std::string cpp_exporter::element(const place& p, std::string_view prefix, std::size_t but, std::string_view instead) {
  index_text t;
  for (std::size_t k = 0; k < p.lens.size(); ++k) t.add(k == but ? std::string(instead) : cat(prefix, k), p.strides[k]);
  return t.str();
}

void cpp_exporter::write(const draft& d, const op::lrn& op) {
  const std::vector<place> at = places(d);
  const place &in = at[0], &to = at[1];
  const std::string value = value_name(in.type);
  const std::int64_t before = (op.size - 1) / 2, after = op.size - 1 - before, channels = in.lens[1];
  declare("in", in, false);
  declare("out", to, true);
  const std::string result = open_all(to.lens, to);
  out_.line(value, " sum = 0;");
  out_.line("for (std::int64_t k = i1 < ", before, " ? 0 : i1 - ", before, "; k <= i1 + ", after, " && k < ", channels,
            "; ++k)");
  const std::string neighbor = element(in, "i", 1, "k");
  out_.line("  sum += in[", neighbor, "] * in[", neighbor, "];");
  out_.line("const ", value, " scale = ", number(static_cast<double>(op.bias), in.type), " + ",
            number(static_cast<double>(op.alpha) / static_cast<double>(op.size), in.type), " * sum;");
  if (op.beta == 0.75f) {
    out_.line("const ", value, " root = math::sqrt(scale);");
    out_.line("out[", result, "] = in[", element(in), "] / (root * math::sqrt(root));");
  } else {
    out_.line("out[", result, "] = in[", element(in), "] / math::pow(scale, ",
              number(static_cast<double>(op.beta), in.type), ");");
  }
  out_.close(to.lens.size());
}

void cpp_exporter::write(const draft& d, const op::pad& op) {
  const std::vector<place> at = places(d);
  const place &in = at[0], &to = at.back();
  const std::size_t rank = in.lens.size();
  declare("in", in, false);
  if (d.inputs.size() == 2) declare("filler", at[1], false);
  declare("out", to, true);
  const std::string result = open_all(to.lens, to);
  std::string inside;
  for (std::size_t k = 0; k < rank; ++k) {
    const std::int64_t begin = op.pads[k].value(), end = op.pads[rank + k].value(), cropped = begin < 0 ? -begin : 0,
                       before = begin > 0 ? begin : 0, kept = in.lens[k] - cropped + (end < 0 ? end : 0);
    // the position within what is kept
    std::string from = before == 0 ? cat("i", k) : cat("i", k, " - ", before);
    if (before != 0 || to.lens[k] != kept) {
      if (op.mode == op::pad_mode::constant)
        inside += cat(inside.empty() ? "" : " && ", "i", k, " >= ", before, " && i", k, " < ", before + kept);
      else
        from = cat(op.mode == op::pad_mode::edge      ? "math::nearest("
                   : op.mode == op::pad_mode::reflect ? "math::reflected("
                                                      : "math::wrapped(",
                   from, ", ", kept, ")");
    }
    out_.line("const std::int64_t from", k, " = ", from, cropped == 0 ? "" : cat(" + ", cropped), ";");
  }
  const std::string read = cat("in[", element(in, "from"), "]"),
                    filler = d.inputs.size() == 2 ? "filler[0]" : cat(stored_name(in.type), "(0)");
  out_.line("out[", result, "] = ", inside.empty() ? read : cat(inside, " ? ", read, " : ", filler), ";");
  out_.close(rank);
}

// A sum or product along an axis; integers wrap.
template <class Op> void cpp_exporter::write_running(const draft& d, const Op& op, int start, std::string_view sign) {
  const std::vector<place> at = places(d);
  const place &in = at[0], &to = at[1];
  const auto axis = static_cast<std::size_t>(normal_axis(op.axis, in.lens.size()));
  const std::string type = is_float(in.type) ? "double" : "std::uint64_t", k = cat("i", axis),
                    next = cat("running ", sign, " static_cast<", type, ">(in[", element(in), "])");
  declare("in", in, false);
  declare("out", to, true);
  for (std::size_t i = 0; i < in.lens.size(); ++i)
    if (i != axis) out_.loop(cat("i", i), in.lens[i]);
  out_.line(type, " running = ", start, ";");
  if (op.reverse)
    out_.line("for (std::int64_t ", k, " = ", in.lens[axis], "; ", k, "-- > 0;) {");
  else
    out_.loop(k, in.lens[axis]);
  out_.line("const ", type, " next = ", next, ";");
  out_.line("out[", element(to), "] = static_cast<", stored_name(to.type), ">(", op.exclusive ? "running" : "next",
            ");");
  out_.line("running = next;");
  out_.close(in.lens.size());
}
void cpp_exporter::write(const draft& d, const op::cumsum& op) { write_running(d, op, 0, "+"); }
void cpp_exporter::write(const draft& d, const op::cumprod& op) { write_running(d, op, 1, "*"); }

void cpp_exporter::write(const draft& d, const op::tri& op) {
  const std::vector<place> at = places(d);
  const std::size_t rank = at[0].lens.size();
  declare("in", at[0], false);
  declare("out", at[1], true);
  const std::string result = open_all(at[0].lens, at[1]);
  out_.line("out[", result, "] = i", rank - 1, " - i", rank - 2, op.upper ? " >= " : " <= ", op.k, " ? in[",
            element(at[0]), "] : ", stored_name(at[0].type), "(0);");
  out_.close(rank);
}

// A filter's corners are doubles, which hold whatever edges outside the spectrum make of them.
void cpp_exporter::write(const draft& d, const op::mel_weights& op) {
  const std::vector<place> at = places(d);
  const place& to = at[3];
  declare("rate", at[0], false);
  declare("lowest", at[1], false);
  declare("highest", at[2], false);
  declare("out", to, true);
  out_.line("const auto mel = [](double hertz) { return std::log(hertz / 700 + 1); };");
  out_.line("const double low = mel(static_cast<double>(lowest[0]));");
  out_.line("const double step = (mel(static_cast<double>(highest[0])) - low) / ", op.mels.value() + 2, ";");
  out_.line("const auto corner = [&](std::int64_t k) {");
  out_.line("  const double hertz = 700 * (std::exp(low + static_cast<double>(k) * step) - 1);");
  out_.line("  return std::floor(hertz * (static_cast<double>(", op.length.value(),
            ") + 1) / static_cast<double>(rate[0]));");
  out_.line("};");
  out_.loop("i1", to.lens[1]);
  out_.line("const double from = corner(i1), top = corner(i1 + 1), to = corner(i1 + 2);");
  out_.loop("i0", to.lens[0]);
  out_.line("const double bin = static_cast<double>(i0), part = bin < top ? (bin - from) / (top - from)");
  out_.line("                                                            : (to - bin) / (to - top);");
  out_.line("out[", element(to), "] = bin == top ? 1.0f : from < bin && bin < to ? static_cast<float>(part) : 0.0f;");
  out_.close(2);
}

void cpp_exporter::write(const draft& d, const op::deconvolution& op) {
  const std::vector<place> at = places(d);
  const place &x = at[0], &w = at[1], &y = at[2];
  const std::size_t dims = x.lens.size() - 2;
  const std::string type = stored_name(x.type);
  const std::int64_t filters = w.lens[1], channels = x.lens[1] / op.group;
  declare("x", x, false);
  declare("w", w, false);
  declare("y", y, true);
  const std::string zero = open_all(y.lens, y);
  out_.line("y[", zero, "] = 0;");
  out_.close(y.lens.size());
  // every element adds its scaled kernel
  index_text from, weight, to;
  out_.loop("n", x.lens[0]);
  out_.loop("c", x.lens[1]);
  out_.loop("m", filters);
  from.add("n", x.strides[0]).add("c", x.strides[1]);
  weight.add("c", w.strides[0]).add("m", w.strides[1]);
  to.add("n", y.strides[0]).add("m", y.strides[1]);
  if (op.group > 1) to.add(cat("(c / ", channels, ")"), filters * y.strides[1]);
  for (std::size_t i = 0; i < dims; ++i) {
    out_.loop(cat("k", i), w.lens[i + 2]);
    weight.add(cat("k", i), w.strides[i + 2]);
  }
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t stride = op.stride.empty() ? 1 : op.stride[i],
                       dilation = op.dilation.empty() ? 1 : op.dilation[i], begin = op.pads.empty() ? 0 : op.pads[i];
    out_.loop(cat("p", i), x.lens[i + 2]);
    from.add(cat("p", i), x.strides[i + 2]);
    to.add(cat("o", i), y.strides[i + 2]);
    out_.line("const std::int64_t o", i, " = ",
              index_text{}.add(cat("p", i), stride).add(cat("k", i), dilation).add(-begin).str(), ";");
    out_.line("if (o", i, " < 0 || o", i, " >= ", y.lens[i + 2], ") continue;");
  }
  out_.line("y[", to.str(), "] += x[", from.str(), "] * w[", weight.str(), "];");
  out_.close(3 + 2 * dims);
}

}  // namespace kiln::aot
