#include "kiln/fixed/impl/cpp_exporter.hpp"

namespace kiln::fixed {

namespace {

// What a gate applies to x, as text.
std::string function_text(op::cell_function f, const std::string& a, const std::string& b, const std::string& type) {
  using op::cell_function;
  switch (f) {
    case cell_function::affine:
      return cat(a, " * x + ", b);
    case cell_function::elu:
      return cat("x >= 0 ? x : ", a, " * math::expm1(x)");
    case cell_function::hard_sigmoid:
      return cat("math::min(math::max(", a, " * x + ", b, ", ", type, "(0)), ", type, "(1))");
    case cell_function::leaky_relu:
      return cat("x >= 0 ? x : ", a, " * x");
    case cell_function::relu:
      return "x > 0 ? x : 0";
    case cell_function::scaled_tanh:
      return cat(a, " * math::tanh(", b, " * x)");
    case cell_function::sigmoid:
      return "math::sigmoid(x)";
    case cell_function::softplus:
      return "(x > 0 ? x : 0) + math::log1p(math::exp(x > 0 ? -x : x))";
    case cell_function::softsign:
      return "x / (1 + math::abs(x))";
    case cell_function::thresholded_relu:
      return cat("x >= ", a, " ? x : 0");
    case cell_function::tanh:
      break;
  }
  return "math::tanh(x)";
}

}  // namespace

void cpp_exporter::write(const draft& d, const op::recurrent& op) {
  const std::vector<place> at = places(d);
  const bool remembers = op.cell == op::cell_kind::lstm;
  const std::size_t results = d.inputs.size();
  const place &x = at[0], &last = at[results + 1];
  const std::int64_t n = last.lens[1], all = op.gates() * n;
  const std::string type = value_name(x.type);
  const auto real = [&](float v) {
    return print_source(expr::constant(static_cast<double>(v), kind_of_values(x.type)), {}, {}).str();
  };
  const auto item = [](std::string_view name, const place& p, auto... index) {
    const std::string parts[] = {std::string(index)...};
    index_text t;
    for (std::size_t k = 0; k < sizeof...(index); ++k) t.add(cat("(", parts[k], ")"), p.strides[k]);
    return cat(name, "[", t.str(), "]");
  };
  const auto h = [&](std::string j) { return item("h", last, "b", j); };
  const auto c = [&](std::string j) { return item("c", at[results + 2], "b", j); };
  const auto gate = [&](std::string j) { return item("gate", at.back(), j); };
  const auto in = [&](std::string j) { return item("x", x, "t", "b", j); };
  const auto bias = [&](std::string j) { return item("bias", at[2], j); };
  const auto peephole = [&](int g) { return item("peepholes", at[6], cat(g * n, " + j")); };
  const auto each = [&](std::string_view text) { out_.line("for (std::int64_t j = 0; j < ", n, "; ++j) ", text, ";"); };

  declare("x", x, false);
  declare("recurrence", at[1], false);
  declare("bias", at[2], false);
  declare("first", at[3], false);
  declare("lengths", at[4], false);
  if (remembers) declare("first_cell", at[5], false), declare("peepholes", at[6], false);
  declare("y", at[results], true);
  declare("h", last, true);
  if (remembers) declare("c", at[results + 2], true);
  declare("gate", at.back(), true);
  for (std::size_t f = 0; f < op.functions.size(); ++f) {
    out_.line("const auto f", f, " = [](", type, " x) -> ", type, " {");
    if (op.clip < std::numeric_limits<float>::infinity())
      out_.line("x = x > ", real(op.clip), " ? ", real(op.clip), " : x < ", real(-op.clip), " ? ", real(-op.clip),
                " : x;");
    out_.line("return ",
              function_text(op.functions[f], cat("(", real(op.alpha[f]), ")"), cat("(", real(op.beta[f]), ")"), type),
              ";");
    out_.line("};");
  }
  // gates of [from, to) take the product of a state with their columns of the recurrence
  const auto multiply = [&](const std::string& state, std::int64_t from, std::int64_t to) {
    out_.line("for (std::int64_t k = 0; k < ", n, "; ++k)");
    out_.line("  for (std::int64_t j = ", from, "; j < ", to, "; ++j) ", gate("j"), " += ", state, " * ",
              item("recurrence", at[1], "k", "j"), ";");
  };
  out_.loop("b", x.lens[1]);
  each(cat(h("j"), " = ", item("first", at[3], "b", "j")));
  if (remembers) each(cat(c("j"), " = ", item("first_cell", at[5], "b", "j")));
  out_.line("const std::int64_t length = static_cast<std::int64_t>(", item("lengths", at[4], "b"),
            "), own = length < 0 ? 0 : length < ", x.lens[0], " ? length : ", x.lens[0], ";");
  out_.line("for (std::int64_t t = own; t < ", x.lens[0], "; ++t)");
  each(cat(item("y", at[results], "t", "b", "j"), " = 0"));
  out_.loop("step", x.lens[0]);
  out_.line("if (step >= own) break;");
  out_.line("const std::int64_t t = ", op.reverse ? "own - 1 - step" : "step", ";");
  if (op.cell == op::cell_kind::gru) {
    out_.line("for (std::int64_t j = 0; j < ", 2 * n, "; ++j) ", gate("j"), " = ", in("j"), " + ", bias("j"), ";");
    multiply(h("k"), 0, 2 * n);
    out_.line("for (std::int64_t j = 0; j < ", 2 * n, "; ++j) ", gate("j"), " = f0(", gate("j"), ");");
    out_.line("for (std::int64_t j = ", 2 * n, "; j < ", 3 * n, "; ++j) ", gate("j"), " = ", bias("j"), ";");
    if (op.linear_before_reset) {
      multiply(h("k"), 2 * n, 3 * n);
      each(cat(gate(cat(2 * n, " + j")), " *= ", gate(cat(n, " + j"))));
    } else {
      each(cat(gate(cat(n, " + j")), " *= ", h("j")));
      multiply(gate(cat(n, " + k")), 2 * n, 3 * n);
    }
    out_.loop("j", n);
    out_.line("const ", type, " fresh = f1(", gate(cat(2 * n, " + j")), " + ", in(cat(2 * n, " + j")),
              "), keep = ", gate("j"), ";");
    out_.line(h("j"), " = (1 - keep) * fresh + keep * ", h("j"), ";");
    out_.close();
  } else {
    out_.line("for (std::int64_t j = 0; j < ", all, "; ++j) ", gate("j"), " = ", in("j"), " + ", bias("j"), ";");
    multiply(h("k"), 0, all);
    out_.loop("j", n);
    if (remembers) {
      const std::string state = c("j");
      out_.line("const ", type, " in = f0(", gate("j"), " + ", peephole(0), " * ", state, "), forget = ",
                op.coupled ? "1 - in" : cat("f0(", gate(cat(2 * n, " + j")), " + ", peephole(2), " * ", state, ")"),
                ";");
      out_.line(state, " = forget * ", state, " + in * f1(", gate(cat(3 * n, " + j")), ");");
      out_.line(h("j"), " = f0(", gate(cat(n, " + j")), " + ", peephole(1), " * ", state, ") * f2(", state, ");");
    } else {
      out_.line(h("j"), " = f0(", gate("j"), ");");
    }
    out_.close();
  }
  each(cat(item("y", at[results], "t", "b", "j"), " = ", h("j")));
  out_.close(2);
}

}  // namespace kiln::fixed
