#include "kiln/cpp_export/impl/exporter.hpp"
#include "kiln/static_program/plan/row_records.hpp"

namespace kiln::aot {

using lower::row_op;

/// Writes a step with reductions: a loop over rows, in which each level is a loop over the row's elements.
class cpp_exporter::reduce_writer {
 public:
  reduce_writer(cpp_exporter& to, const draft& d)
      : to_(to), out_(to.out_), d_(d), at_(to.places(d)), rows_(lower::find_row_body(d.nodes, d.results).value()) {
    kept_dims_ = make_nest(rows_.full, at_, [&](std::size_t k) { return !rows_.folded[k]; });
    std::vector<place> inner = at_;
    for (std::size_t k = 0; k < inner.size(); ++k)
      if (!(k < d.inputs.size() ? rows_.values[k].full : rows_.results[k - d.inputs.size()].full))
        for (std::int64_t& s : inner[k].strides) s = 0;
    folded_dims_ = make_nest(rows_.full, inner, [&](std::size_t k) { return rows_.folded[k]; });
    outer_ = folded_dims_.extent.empty() ? 0 : folded_dims_.extent.size() - 1;
  }

  void write() {
    declare_memory();
    to_.open(kept_dims_, "r");
    for (std::size_t k = 0; k < d_.inputs.size(); ++k)
      if (!rows_.values[k].full)
        out_.line("const ", value_name(type(k)), " v", k, " = in", k, "[", kept_dims_.offset(k, "r"), "];");
    write_row_values(0);
    for (int level = 0; level < rows_.levels; ++level) {
      write_level(level);
      write_row_values(level + 1);
    }
    for (std::size_t k = 0; k < d_.outputs.size(); ++k)
      if (!rows_.results[k].full)
        out_.line("out", k, "[", kept_dims_.offset(d_.inputs.size() + k, "r"), "] = static_cast<",
                  stored_name(d_.outputs[k].type), ">(v", d_.results[k], ");");
    out_.close(kept_dims_.extent.size());
  }

 private:
  dtype type(std::size_t k) const { return d_.nodes[k].type; }
  const operation& op(std::size_t k) const { return to_.plan_.operation(d_.nodes[k].attributes); }
  std::vector<std::uint32_t> folds_in(int level) const {
    std::vector<std::uint32_t> folds;
    for (std::uint32_t k = 0; k < rows_.values.size(); ++k)
      if (rows_.folds_in(k, level)) folds.push_back(k);
    return folds;
  }

  void declare_memory() {
    for (std::size_t k = 0; k < at_.size(); ++k)
      to_.declare(k < d_.inputs.size() ? cat("in", k) : cat("out", k - d_.inputs.size()), at_[k],
                  k >= d_.inputs.size());
    for (std::size_t k = 0; k < rows_.values.size(); ++k)
      if (rows_.values[k].kept)
        out_.line(stored_name(type(k)), "* const kept", k, " = reinterpret_cast<", stored_name(type(k)), "*>(arena_ + ",
                  to_.take_scratch(row_buffer_bytes(rows_.row_elements())), ");");
  }
  // Values of one element per row that are known before a level.
  void write_row_values(int level) {
    for (std::size_t k = 0; k < rows_.values.size(); ++k) {
      const auto& v = rows_.values[k];
      if (!v.full && v.level == level && v.op != row_op::reduction && v.op != row_op::parameter) to_.write_node(d_, k);
    }
  }
  // The index of an operand's element, x counting along the last folded dim.
  std::string element(std::size_t k) const {
    index_text t;
    for (std::size_t i = 0; i < kept_dims_.extent.size(); ++i) t.add(cat("r", i), kept_dims_.step[k][i]);
    for (std::size_t i = 0; i < outer_; ++i) t.add(cat("p", i), folded_dims_.step[k][i]);
    if (!folded_dims_.extent.empty()) t.add("x", folded_dims_.step[k].back());
    return t.str();
  }
  // The element's position in a row buffer.
  std::string flat() const {
    index_text t;
    std::vector<std::int64_t> steps(outer_);
    for (std::int64_t i = static_cast<std::int64_t>(outer_), step = last(); i-- > 0;) {
      steps[static_cast<std::size_t>(i)] = step;
      step *= folded_dims_.extent[static_cast<std::size_t>(i)];
    }
    for (std::size_t i = 0; i < outer_; ++i) t.add(cat("p", i), steps[i]);
    return t.add("x", 1).str();
  }
  std::int64_t last() const { return folded_dims_.extent.empty() ? 1 : folded_dims_.extent.back(); }

  // One loop over the row; sums are kept for each lane, so that compilers vectorize them.
  void write_level(int level) {
    const auto folds = folds_in(level);
    bool any = !folds.empty();
    for (std::size_t r = 0; r < rows_.results.size(); ++r) any = any || rows_.writes_in(r, level);
    if (!any) return;
    for (std::uint32_t k : folds) declare_sum(k);
    write_visit(level, folds);
    write_loop(level);
    for (std::uint32_t k : folds) join_lanes(k);
    out_.line("");
  }
  void declare_sum(std::uint32_t k) {
    const std::string name = value_name(type(k));
    out_.line(name, " sum", k, "[lanes];");
    out_.line("for (", name, "& each : sum", k,
              ") each = ", print_source(start_of(op(k), type(k)), {}, {.prefix = "math::"}).str(), ";");
  }
  // The function that a level calls for element x of the row.
  void write_visit(int level, const std::vector<std::uint32_t>& folds) {
    std::string positions;
    for (std::size_t i = 0; i < outer_; ++i) positions += cat("std::int64_t p", i, ", ");
    out_.line("const auto visit", level, " = [&](", positions,
              "[[maybe_unused]] std::int64_t x, [[maybe_unused]] int lane) {");
    const auto needed = rows_.needed(level, true);
    for (std::size_t k = 0; k < rows_.values.size(); ++k)
      if (rows_.values[k].full && needed[rows_.values[k].source]) write_full_value(k, level);
    for (std::uint32_t k : folds) {
      const std::string x =
          to_.write_part(op(k), trace_part::prepare, type(k), {cat("v", d_.nodes[k].inputs[0])}, cat("x", k, "_"));
      const std::string y =
          to_.write_part(op(k), trace_part::combine, type(k), {cat("sum", k, "[lane]"), x}, cat("y", k, "_"));
      out_.line("sum", k, "[lane] = ", y, ";");
    }
    for (std::size_t r = 0; r < rows_.results.size(); ++r)
      if (rows_.writes_in(r, level))
        out_.line("out", r, "[", element(d_.inputs.size() + r), "] = static_cast<", stored_name(d_.outputs[r].type),
                  ">(v", d_.results[r], ");");
    out_.line("};");
  }
  // [value]
  void write_full_value(std::size_t k, int level) {
    const auto& v = rows_.values[k];
    if (v.op == row_op::parameter)
      out_.line("const ", value_name(type(k)), " v", k, " = in", k, "[", element(k), "];");
    else if (v.kept && v.level < level)
      out_.line("const ", value_name(type(k)), " v", k, " = kept", k, "[", flat(), "];");
    else
      to_.write_node(d_, k);
    if (v.kept && v.level == level)
      out_.line("kept", k, "[", flat(), "] = static_cast<", stored_name(type(k)), ">(v", k, ");");
  }
  // [/value]
  void write_loop(int level) {
    std::string parts;
    for (std::size_t i = 0; i < outer_; ++i) {
      out_.loop(cat("p", i), folded_dims_.extent[i]);
      parts += cat("p", i, ", ");
    }
    out_.line("constexpr std::int64_t whole", level, " = ", last(), " / lanes * lanes;");
    out_.line("for (std::int64_t x = 0; x < whole", level, "; x += lanes) {");
    out_.line("for (int lane = 0; lane < lanes; ++lane) visit", level, "(", parts, "x + lane, lane);");
    out_.line("}");
    out_.line("for (std::int64_t x = whole", level, "; x < ", last(), "; ++x) visit", level, "(", parts,
              "x, static_cast<int>(x - whole", level, "));");
    out_.close(outer_);
  }
  // What a reduction gives: the sum of its lanes, finished.
  void join_lanes(std::uint32_t k) {
    const std::string name = value_name(type(k));
    out_.line(name, " all", k, " = sum", k, "[0];");
    out_.line("for (int lane = 1; lane < lanes; ++lane) {");
    const std::string y =
        to_.write_part(op(k), trace_part::combine, type(k), {cat("all", k), cat("sum", k, "[lane]")}, cat("z", k, "_"));
    out_.line("all", k, " = ", y, ";");
    out_.line("}");
    const std::string value =
        to_.write_part(op(k), trace_part::finish, type(k), {cat("all", k), cat(name, "(", rows_.row_elements(), ")")},
                       cat("f", k, "_"));
    out_.line("const ", name, " v", k, " = math::stored<", stored_name(type(k)), ">(", value, ");");
  }

  cpp_exporter& to_;
  source_writer& out_;
  const draft& d_;
  std::vector<place> at_;
  lower::row_body<ints> rows_;
  nest kept_dims_, folded_dims_;
  std::size_t outer_ = 0;  // folded dims but the last
};

void cpp_exporter::write_reduce(const draft& d) { reduce_writer(*this, d).write(); }

}  // namespace kiln::aot
