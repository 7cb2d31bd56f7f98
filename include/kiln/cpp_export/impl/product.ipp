#include <cstring>

#include "kiln/cpp_export/impl/exporter.hpp"
#include "kiln/static_program/plan/product.hpp"

namespace kiln::aot {

namespace {

// Offsets of operand k along axes, the last axis fastest.
std::vector<std::int64_t> offsets(const small_vector<axis>& axes, std::size_t k) {
  std::vector<std::int64_t> all{0};
  for (const axis& a : axes) {
    std::vector<std::int64_t> longer;
    for (std::int64_t o : all)
      for (std::int64_t i = 0; i < a.extent; ++i) longer.push_back(o + i * a.step[k]);
    all = std::move(longer);
  }
  return all;
}

// The start of part `index` of `count` parts of `each` among `all`: the last part overlaps the one before it.
std::string start_of_part(std::string_view index, std::int64_t count, std::int64_t each, std::int64_t all) {
  const std::string start = cat(index, " * ", each);
  return count * each == all ? start : cat(start, " < ", all - each, " ? ", start, " : ", all - each);
}

}  // namespace

// A contraction with its epilogue as loops over the batch and over panels of columns, around one call of the GEMM
// kernel of static programs.
struct cpp_exporter::product_writer {
  product_writer(cpp_exporter& exporter, const draft& step);
  void write();

 private:
  static constexpr const char* names[] = {"left", "right"};

  const node& contraction_node() const { return nodes_[split_.contraction]; }
  bool is_constant(std::size_t k) const;
  void declare_operand(std::size_t k);
  void declare_results_and_epilogue_inputs();
  template <class Fill> void declare_packed(std::size_t k, Fill&& fill);
  void pack_constants();
  void declare_scratch();
  void open_batch_loops();
  void pack_rows();
  void open_panel_loops();
  void pack_panel();
  std::string right_operand() const;
  void multiply();
  void write_epilogue(const std::string& sum, const std::string& target);
  // An offset with the panel's first line and column added, for operands with these steps.
  index_text at_panel(index_text t, std::int64_t line_step, std::int64_t column_step) const {
    if (panel_.count_rows > 1) t.add("y0", line_step);
    if (panel_.count_width > 1) t.add("x0", column_step);
    return t;
  }
  bool has_panels() const { return panel_.count_rows * panel_.count_width > 1; }

  cpp_exporter& exporter_;
  source_writer& out_;
  const draft& draft_;
  const std::span<const node> nodes_;
  const lower::contraction_split split_ = split_of(nodes_);
  const std::vector<place> at_;
  const std::string type_;
  std::optional<padded_operand> padded_[2];  // left, right
  const place* original_[2] = {};
  product_plan plan_;
  panel_shape panel_;
  std::int64_t rows_ = 1, depth_ = 1, pitch_ = 0;
  bool packs_[2] = {}, ready_[2] = {};  // is read from packed memory; is packed when the project is written
  index_text offset_[3];                // of left, right and the result in the batch
  std::vector<index_text> epilogue_offset_;
  std::size_t loops_ = 0;
};

cpp_exporter::product_writer::product_writer(cpp_exporter& exporter, const draft& step)
    : exporter_(exporter),
      out_(exporter.out_),
      draft_(step),
      nodes_(step.nodes.data(), step.nodes.size()),
      at_(exporter.places(step)),
      type_(stored_name(contraction_node().type)),
      epilogue_offset_(split_.epilogue_inputs.size()) {
  const auto [lhs, rhs] = split_.operands;
  shapes in;
  for (std::size_t k : {lhs, rhs}) in.push_back({at_[k].type, to_dims(at_[k].lens)});
  const contraction c = exporter.plan_.operation(contraction_node().attributes).maps(in).value();
  const auto left = padded_operand::of(c.lhs, at_[lhs], c), right = padded_operand::of(c.rhs, at_[rhs], c);
  std::vector<place> read;
  for (std::uint32_t k : split_.epilogue_inputs) read.push_back(at_[k]);
  plan_ = plan_product(c, left, right, at_.back(), read);
  padded_[0] = plan_.swapped ? right : left, padded_[1] = plan_.swapped ? left : right;
  original_[0] = &at_[plan_.swapped ? rhs : lhs], original_[1] = &at_[plan_.swapped ? lhs : rhs];
  rows_ = product_plan::product(plan_.rows), depth_ = product_plan::product(plan_.sum);
  panel_ = panel_shape::of(plan_.lines, plan_.width);
  packs_[0] = plan_.pack[0], packs_[1] = plan_.pack[1] || plan_.along_sum || is_constant(1);
  for (std::size_t k = 0; k < 2; ++k) ready_[k] = packs_[k] && is_constant(k);
  pitch_ = packs_[1] ? panel_.pitch() : plan_.sum_step(1);
}

// A constant that is the same in every iteration of the batch loops.
bool cpp_exporter::product_writer::is_constant(std::size_t k) const {
  if (original_[k]->at.where != memory::constant || padded_[k]->padded || contraction_node().type != dtype::f32)
    return false;
  for (const axis& a : plan_.batch)
    if (a.step[k] != 0) return false;
  return true;
}

void cpp_exporter::product_writer::write() {
  for (std::size_t k = 0; k < 2; ++k)
    if (!ready_[k]) declare_operand(k);
  declare_results_and_epilogue_inputs();
  pack_constants();
  declare_scratch();
  open_batch_loops();
  if (packs_[0] && !ready_[0]) pack_rows();
  open_panel_loops();
  if (packs_[1] && !ready_[1]) pack_panel();
  multiply();
  out_.close(loops_);
}

void cpp_exporter::product_writer::declare_operand(std::size_t k) {
  const std::string name = names[k];
  const padded_operand& operand = *padded_[k];
  if (!operand.padded) {
    place q = operand.where;
    q.offset = plan_.offset[k];
    exporter_.declare(name, q, false);
    return;
  }
  const std::int64_t elements = kiln::product(operand.where.lens);
  exporter_.declare(cat(name, "_in"), *original_[k], false);
  out_.line(type_, "* const ", name, "_padded = reinterpret_cast<", type_, "*>(arena_ + ",
            exporter_.take_scratch(elements * static_cast<std::int64_t>(size_of(contraction_node().type))), ");");
  out_.line("for (std::int64_t i = 0; i < ", elements, "; ++i) ", name, "_padded[i] = 0;");
  const place inside = operand.inside(original_[k]->lens);
  const nest n = make_nest(inside.lens, {*original_[k], inside}, [](std::size_t) { return true; });
  exporter_.open(n, "i");
  out_.line(name, "_padded[", index_text{n.offset(1, "i")}.add(inside.offset).str(), "] = ", name, "_in[",
            n.offset(0, "i"), "];");
  out_.close(n.extent.size());
  out_.line("const ", type_, "* const ", name, " = ", name, "_padded + ", plan_.offset[k], ";");
}

void cpp_exporter::product_writer::declare_results_and_epilogue_inputs() {
  place result = at_.back();
  result.offset = plan_.offset[2];
  exporter_.declare("out", result, true);
  for (std::size_t e = 0; e < split_.epilogue_inputs.size(); ++e) {
    const std::uint32_t k = split_.epilogue_inputs[e];
    place q = at_[k];
    q.offset = plan_.offset[e + 3];
    exporter_.declare(cat("in", k), q, false);
  }
}

template <class Fill> void cpp_exporter::product_writer::declare_packed(std::size_t k, Fill&& fill) {
  const auto constant = exporter_.plan_.constants()[static_cast<std::uint32_t>(original_[k]->at.index)];
  const argument from(exporter_.graph_[constant].constant);
  std::vector<float> packed;
  fill(from.as<float>().data() + plan_.offset[k], packed);
  const auto position =
      exporter_.add_weights(reinterpret_cast<const std::byte*>(packed.data()), packed.size() * sizeof(float));
  out_.line("const float* const ", names[k], " = reinterpret_cast<const float*>(weights + ", position, ");");
}

// Constant operands are packed here, in the order in which they will be read.
void cpp_exporter::product_writer::pack_constants() {
  if (ready_[1])
    declare_packed(1, [&](const float* from, std::vector<float>& packed) {
      const auto pack_columns = [&](std::int64_t y0, std::int64_t x0) {
        for (std::int64_t o : offsets(plan_.sum, 1))
          for (std::int64_t i = 0; i < pitch_; ++i)
            packed.push_back(i < panel_.columns() ? from[o + (y0 + i / panel_.width) * plan_.line_step +
                                                         (x0 + i % panel_.width) * plan_.column_step(1)]
                                                  : 0.0F);
      };
      for (std::int64_t y = 0; y < panel_.count_rows; ++y)
        for (std::int64_t x = 0; x < panel_.count_width; ++x)
          pack_columns(std::min(y * panel_.rows, plan_.lines - panel_.rows),
                       std::min(x * panel_.width, plan_.width - panel_.width));
    });
  if (ready_[0])
    declare_packed(0, [&](const float* from, std::vector<float>& packed) {
      for (std::int64_t r : offsets(plan_.rows, 0))
        for (std::int64_t o : offsets(plan_.sum, 0)) packed.push_back(from[r + o]);
    });
}

void cpp_exporter::product_writer::declare_scratch() {
  const auto declare = [&](std::string_view name, std::int64_t elements) {
    const auto bytes = static_cast<std::int64_t>(size_of(contraction_node().type));
    out_.line(type_, "* const ", name, " = reinterpret_cast<", type_, "*>(arena_ + ",
              exporter_.take_scratch(elements * bytes), ");");
  };
  if (packs_[1] && !ready_[1]) declare("panel", pitch_ * depth_);
  if (packs_[0] && !ready_[0]) declare("rows", rows_ * depth_);
}

void cpp_exporter::product_writer::open_batch_loops() {
  for (const axis& a : plan_.batch) {
    const std::string name = cat("b", loops_++);
    out_.loop(name, a.extent);
    for (std::size_t k = 0; k < 3; ++k) offset_[k].add(name, a.step[k]);
    for (std::size_t e = 0; e < epilogue_offset_.size(); ++e) epilogue_offset_[e].add(name, a.step[e + 3]);
  }
}

void cpp_exporter::product_writer::pack_rows() {
  out_.line(type_, "* row = rows;");
  index_text from = offset_[0];
  std::size_t i = 0;
  for (const small_vector<axis>* group : {&plan_.rows, &plan_.sum})
    for (const axis& a : *group) {
      out_.loop(cat("s", i), a.extent);
      from.add(cat("s", i++), a.step[0]);
    }
  out_.line("*row++ = left[", from.str(), "];");
  out_.close(i);
}

// Names the first line, y0, and column, x0, of a panel, and its first element in the result.
void cpp_exporter::product_writer::open_panel_loops() {
  if (panel_.count_rows > 1) {
    out_.loop("y", panel_.count_rows);
    ++loops_;
    out_.line("const std::int64_t y0 = ", start_of_part("y", panel_.count_rows, panel_.rows, plan_.lines), ";");
  }
  if (panel_.count_width > 1) {
    out_.loop("x", panel_.count_width);
    ++loops_;
    out_.line("const std::int64_t x0 = ", start_of_part("x", panel_.count_width, panel_.width, plan_.width), ";");
  }
  if (has_panels()) out_.line("const std::int64_t first = ", at_panel({}, plan_.width, 1).str(), ";");
}

void cpp_exporter::product_writer::pack_panel() {
  out_.line(type_, "* to = panel;");
  index_text from = at_panel(offset_[1], plan_.line_step, plan_.column_step(1));
  std::size_t i = 0;
  for (const axis& a : plan_.sum) {
    out_.loop(cat("s", i), a.extent);
    from.add(cat("s", i++), a.step[1]);
  }
  out_.line("const ", type_, "* const from = right + ", from.str(), ";");
  index_text source, target;
  if (panel_.rows > 1) {
    out_.loop("line", panel_.rows);
    source.add("line", plan_.line_step);
    target.add("line", panel_.width);
  }
  out_.line("for (std::int64_t i = 0; i < ", panel_.width, "; ++i) to[", target.add("i", 1).str(), "] = from[",
            source.add("i", plan_.column_step(1)).str(), "];");
  if (panel_.rows > 1) out_.close();
  out_.line("to += ", pitch_, ";");
  out_.close(i);
}

std::string cpp_exporter::product_writer::right_operand() const {
  if (packs_[1] && !ready_[1]) return "panel";
  if (!packs_[1]) return cat("right + ", at_panel(offset_[1], plan_.line_step, plan_.column_step(1)).str());
  index_text t;
  if (panel_.count_rows > 1) t.add("y", panel_.count_width * depth_ * pitch_);
  if (panel_.count_width > 1) t.add("x", depth_ * pitch_);
  return cat("right + ", t.str());
}

void cpp_exporter::product_writer::multiply() {
  const bool has_epilogue = nodes_.size() != split_.contraction + 1 || draft_.results[0] != split_.contraction;
  // sums that end as another type have memory of their own
  const bool apart = has_epilogue && at_.back().type != contraction_node().type;
  const std::int64_t out_step = plan_.columns.empty() ? 0 : 1, c_row = apart ? panel_.columns() : plan_.row_step(2);
  index_text target = offset_[2];
  if (has_panels()) target.add("first", out_step);
  if (apart)
    out_.line(
        type_, "* const c = reinterpret_cast<", type_, "*>(arena_ + ",
        exporter_.take_scratch(rows_ * panel_.columns() * static_cast<std::int64_t>(size_of(contraction_node().type))),
        ");");
  else
    out_.line(type_, "* const c = out + ", target.str(), ";");
  out_.line("constexpr product_extents extents{.m = ", rows_, ", .n = ", panel_.columns(), ", .k = ", depth_,
            ", .a_row = ", packs_[0] ? depth_ : plan_.row_step(0), ", .a_step = ", packs_[0] ? 1 : plan_.sum_step(0),
            ", .b_row = ", pitch_, ", .whole = ", packs_[1] || panel_.columns() % 16 == 0 ? "true" : "false", "};");
  const std::string left = ready_[0] ? "left" : packs_[0] ? "rows" : cat("left + ", offset_[0].str());
  out_.line("multiply<extents>(", left, ", ", right_operand(), ", c, ", c_row, ");");
  if (!has_epilogue) return;
  index_text sum;
  if (rows_ > 1) {
    sum.add("r", c_row);
    target.add("r", plan_.row_step(2));
  }
  sum.add("i", apart ? 1 : out_step);
  target.add("i", out_step);
  write_epilogue(sum.str(), target.str());
}

void cpp_exporter::product_writer::write_epilogue(const std::string& sum, const std::string& target) {
  if (rows_ > 1) out_.loop("r", rows_);
  out_.loop("i", panel_.columns());
  out_.line("const ", value_name(contraction_node().type), " v", split_.contraction, " = c[", sum, "];");
  const auto& inputs = split_.epilogue_inputs;
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    if (k == split_.contraction) continue;
    std::size_t e = 0;
    while (e < inputs.size() && inputs[e] != k) ++e;
    if (e < inputs.size()) {
      index_text t = epilogue_offset_[e];
      const std::int64_t step = plan_.column_step(e + 3);
      if (has_panels()) t.add("first", step);
      if (rows_ > 1) t.add("r", plan_.row_step(e + 3));
      t.add("i", step);
      out_.line("const ", value_name(nodes_[k].type), " v", k, " = in", k, "[", t.str(), "];");
    } else if (nodes_[k].op != node::parameter) {
      exporter_.write_node(draft_, k);
    }
  }
  out_.line("out[", target, "] = static_cast<", stored_name(at_.back().type), ">(v", draft_.results[0], ");");
  out_.close(rows_ > 1 ? 2 : 1);
}

void cpp_exporter::write_product(const draft& d) { product_writer(*this, d).write(); }

}  // namespace kiln::aot
