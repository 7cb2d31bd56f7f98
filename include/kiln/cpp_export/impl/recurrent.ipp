#include "kiln/cpp_export/impl/exporter.hpp"

namespace kiln::aot {

namespace {

// What a gate applies to x, as text.
std::string function_text(op::cell_function f, const std::string& a, const std::string& b, const std::string& type) {
  using op::cell_function;
  switch (f) {
    case cell_function::affine: return cat(a, " * x + ", b);
    case cell_function::elu: return cat("x >= 0 ? x : ", a, " * math::expm1(x)");
    case cell_function::hard_sigmoid:
      return cat("math::min(math::max(", a, " * x + ", b, ", ", type, "(0)), ", type, "(1))");
    case cell_function::leaky_relu: return cat("x >= 0 ? x : ", a, " * x");
    case cell_function::relu: return "x > 0 ? x : 0";
    case cell_function::scaled_tanh: return cat(a, " * math::tanh(", b, " * x)");
    case cell_function::sigmoid: return "math::sigmoid(x)";
    case cell_function::softplus: return "(x > 0 ? x : 0) + math::log1p(math::exp(x > 0 ? -x : x))";
    case cell_function::softsign: return "x / (1 + math::abs(x))";
    case cell_function::thresholded_relu: return cat("x >= ", a, " ? x : 0");
    case cell_function::tanh: break;
  }
  return "math::tanh(x)";
}

}  // namespace

// A recurrent layer as loops over batch and time. Text of elements: h and c are the states, gate the memory of a step's
// gates, t and b the positions of the loops.
struct cpp_exporter::recurrent_writer {
  recurrent_writer(cpp_exporter& exporter, const draft& d, const op::recurrent& op)
      : exporter_(exporter), out_(exporter.out_), op_(op), at_(exporter.places(d)), results_(d.inputs.size()) {}

  void write() {
    declare_operands();
    declare_functions();
    out_.loop("b", x().lens[1]);
    each(cat(h("j"), " = ", item("first", at_[3], "b", "j")));
    if (remembers()) each(cat(c("j"), " = ", item("first_cell", at_[5], "b", "j")));
    out_.line("const std::int64_t length = static_cast<std::int64_t>(", item("lengths", at_[4], "b"),
              "), own = length < 0 ? 0 : length < ", x().lens[0], " ? length : ", x().lens[0], ";");
    out_.line("for (std::int64_t t = own; t < ", x().lens[0], "; ++t)");
    each(cat(item("y", at_[results_], "t", "b", "j"), " = 0"));
    out_.loop("step", x().lens[0]);
    out_.line("if (step >= own) break;");
    out_.line("const std::int64_t t = ", op_.reverse ? "own - 1 - step" : "step", ";");
    if (op_.cell == op::cell_kind::gru)
      write_gru_step();
    else
      write_step();
    each(cat(item("y", at_[results_], "t", "b", "j"), " = ", h("j")));
    out_.close(2);
  }

 private:
  bool remembers() const { return op_.cell == op::cell_kind::lstm; }
  const place& x() const { return at_[0]; }
  const place& last() const { return at_[results_ + 1]; }
  std::int64_t units() const { return last().lens[1]; }
  std::string type() const { return value_name(x().type); }

  std::string real(float v) const {
    return print_source(expr::constant(static_cast<double>(v), kind_of_values(x().type)), {}, {}).str();
  }
  template <class... Index> static std::string item(std::string_view name, const place& p, Index... index) {
    const std::string indices[] = {std::string(index)...};
    index_text t;
    for (std::size_t k = 0; k < sizeof...(index); ++k) t.add(cat("(", indices[k], ")"), p.strides[k]);
    return cat(name, "[", t.str(), "]");
  }
  std::string h(std::string j) const { return item("h", last(), "b", j); }
  std::string c(std::string j) const { return item("c", at_[results_ + 2], "b", j); }
  std::string gate(std::string j) const { return item("gate", at_.back(), j); }
  std::string in(std::string j) const { return item("x", x(), "t", "b", j); }
  std::string bias(std::string j) const { return item("bias", at_[2], j); }
  std::string peephole(int g) const { return item("peepholes", at_[6], cat(g * units(), " + j")); }
  void each(std::string_view text) { out_.line("for (std::int64_t j = 0; j < ", units(), "; ++j) ", text, ";"); }

  void declare_operands() {
    const char* const inputs[] = {"x", "recurrence", "bias", "first", "lengths", "first_cell", "peepholes"};
    for (std::size_t k = 0; k < (remembers() ? 7 : 5); ++k) exporter_.declare(inputs[k], at_[k], false);
    exporter_.declare("y", at_[results_], true);
    exporter_.declare("h", last(), true);
    if (remembers()) exporter_.declare("c", at_[results_ + 2], true);
    exporter_.declare("gate", at_.back(), true);
  }
  void declare_functions() {
    for (std::size_t f = 0; f < op_.functions.size(); ++f) {
      out_.line("const auto f", f, " = [](", type(), " x) -> ", type(), " {");
      if (op_.clip < std::numeric_limits<float>::infinity())
        out_.line("x = x > ", real(op_.clip), " ? ", real(op_.clip), " : x < ", real(-op_.clip), " ? ", real(-op_.clip),
                  " : x;");
      out_.line(
          "return ",
          function_text(op_.functions[f], cat("(", real(op_.alpha[f]), ")"), cat("(", real(op_.beta[f]), ")"), type()),
          ";");
      out_.line("};");
    }
  }
  // gates of [from, to) take the product of a state with their columns of the recurrence
  void multiply(const std::string& state, std::int64_t from, std::int64_t to) {
    out_.line("for (std::int64_t k = 0; k < ", units(), "; ++k)");
    out_.line("  for (std::int64_t j = ", from, "; j < ", to, "; ++j) ", gate("j"), " += ", state, " * ",
              item("recurrence", at_[1], "k", "j"), ";");
  }
  void write_gru_step() {
    const std::int64_t n = units();
    out_.line("for (std::int64_t j = 0; j < ", 2 * n, "; ++j) ", gate("j"), " = ", in("j"), " + ", bias("j"), ";");
    multiply(h("k"), 0, 2 * n);
    out_.line("for (std::int64_t j = 0; j < ", 2 * n, "; ++j) ", gate("j"), " = f0(", gate("j"), ");");
    out_.line("for (std::int64_t j = ", 2 * n, "; j < ", 3 * n, "; ++j) ", gate("j"), " = ", bias("j"), ";");
    if (op_.linear_before_reset) {
      multiply(h("k"), 2 * n, 3 * n);
      each(cat(gate(cat(2 * n, " + j")), " *= ", gate(cat(n, " + j"))));
    } else {
      each(cat(gate(cat(n, " + j")), " *= ", h("j")));
      multiply(gate(cat(n, " + k")), 2 * n, 3 * n);
    }
    out_.loop("j", n);
    out_.line("const ", type(), " fresh = f1(", gate(cat(2 * n, " + j")), " + ", in(cat(2 * n, " + j")),
              "), keep = ", gate("j"), ";");
    out_.line(h("j"), " = (1 - keep) * fresh + keep * ", h("j"), ";");
    out_.close();
  }
  // of a plain cell or an LSTM
  void write_step() {
    const std::int64_t n = units(), all = op_.gates() * n;
    out_.line("for (std::int64_t j = 0; j < ", all, "; ++j) ", gate("j"), " = ", in("j"), " + ", bias("j"), ";");
    multiply(h("k"), 0, all);
    out_.loop("j", n);
    if (remembers()) {
      const std::string state = c("j");
      out_.line("const ", type(), " in = f0(", gate("j"), " + ", peephole(0), " * ", state, "), forget = ",
                op_.coupled ? "1 - in" : cat("f0(", gate(cat(2 * n, " + j")), " + ", peephole(2), " * ", state, ")"),
                ";");
      out_.line(state, " = forget * ", state, " + in * f1(", gate(cat(3 * n, " + j")), ");");
      out_.line(h("j"), " = f0(", gate(cat(n, " + j")), " + ", peephole(1), " * ", state, ") * f2(", state, ");");
    } else {
      out_.line(h("j"), " = f0(", gate("j"), ");");
    }
    out_.close();
  }

  cpp_exporter& exporter_;
  source_writer& out_;
  const op::recurrent& op_;
  const std::vector<place> at_;
  const std::size_t results_;
};

void cpp_exporter::write(const draft& d, const op::recurrent& op) { recurrent_writer(*this, d, op).write(); }

}  // namespace kiln::aot
