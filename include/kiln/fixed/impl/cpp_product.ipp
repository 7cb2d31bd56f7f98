#include <cstring>

#include "kiln/fixed/impl/cpp_exporter.hpp"
#include "kiln/fixed/product_plan.hpp"

namespace kiln::fixed {

void cpp_exporter::write_product(const draft& d) {
  const std::span<const node> nodes(d.nodes.data(), d.nodes.size());
  const std::size_t product_node = product_node_of(nodes);
  const node& product = nodes[product_node];
  const operation& op = plan_.operation(product.attributes);
  const auto sources = product_operands(nodes);
  const std::vector<place> at = places(d);
  const place& to = at.back();
  shapes in;
  for (std::size_t k : {sources.lhs, sources.rhs}) in.push_back({at[k].type, to_dims(at[k].lens)});
  const contraction c = op.maps(in).value();
  const std::string type = stored_name(product.type);

  const auto lhs = padded_operand::of(c.lhs, at[sources.lhs], c), rhs = padded_operand::of(c.rhs, at[sources.rhs], c);
  const auto extra = epilogue_inputs(nodes);
  std::vector<place> read;
  for (std::uint32_t k : extra) read.push_back(at[k]);
  const product_plan p = plan_product(c, lhs, rhs, to, std::span<const place>(read.data(), read.size()));
  const padded_operand* const operands[2] = {p.swapped ? &rhs : &lhs, p.swapped ? &lhs : &rhs};
  const place* const original[2] = {&at[p.swapped ? sources.rhs : sources.lhs],
                                    &at[p.swapped ? sources.lhs : sources.rhs]};
  const std::int64_t m = product_plan::product(p.rows), k_count = product_plan::product(p.sum);

  const std::int64_t lines = p.lines, width = p.width, line_step = p.line_step;
  const panel_shape panel = panel_shape::of(lines, width);
  const std::int64_t column_step = p.column_step(1), out_step = p.columns.empty() ? 0 : 1;

  const auto fixed = [&](std::size_t k) {  // a constant that is the same for every turn of the loops
    if (original[k]->at.where != memory::constant || operands[k]->padded || product.type != dtype::f32) return false;
    for (const axis& a : p.batch)
      if (a.step[k] != 0) return false;
    return true;
  };
  const bool packs_right = p.pack[1] || p.along_sum || fixed(1), packs_left = p.pack[0];
  const bool ready_right = packs_right && fixed(1), ready_left = packs_left && fixed(0);
  const std::int64_t pitch = packs_right ? panel.pitch() : p.sum_step(1);

  // ---- operands
  for (std::size_t k = 0; k < 2; ++k) {
    const std::string name = k == 0 ? "left" : "right";
    if ((k == 0 && ready_left) || (k == 1 && ready_right)) continue;
    if (!operands[k]->padded) {
      place q = operands[k]->where;
      q.offset = p.offset[k];
      declare(name, q, false);
      continue;
    }
    const place& big = operands[k]->where;
    const std::int64_t elements = kiln::product(big.lens);
    declare(cat(name, "_in"), *original[k], false);
    out_.line(type, "* const ", name, "_padded = reinterpret_cast<", type, "*>(arena_ + ",
              take_scratch(elements * static_cast<std::int64_t>(size_of(product.type))), ");");
    out_.line("for (std::int64_t i = 0; i < ", elements, "; ++i) ", name, "_padded[i] = 0;");
    const place inside = operands[k]->inside(original[k]->lens);
    const nest n = make_nest(inside.lens, {*original[k], inside}, [](std::size_t) { return true; });
    open(n, "i");
    out_.line(name, "_padded[", index_text{n.offset(1, "i")}.add(inside.offset).str(), "] = ", name, "_in[",
              n.offset(0, "i"), "];");
    out_.close(n.extent.size());
    out_.line("const ", type, "* const ", name, " = ", name, "_padded + ", p.offset[k], ";");
  }
  place result = to;
  result.offset = p.offset[2];
  declare("out", result, true);
  for (std::size_t e = 0; e < extra.size(); ++e) {
    place q = at[extra[e]];
    q.offset = p.offset[e + 3];
    declare(cat("in", extra[e]), q, false);
  }

  // ---- constant operands are packed here, in the order in which they will be read
  const auto packed_constant = [&](std::size_t k, auto&& fill) {
    const argument from(graph_[plan_.constants()[static_cast<std::uint32_t>(original[k]->at.index)]].constant);
    std::vector<float> packed;
    fill(from.as<float>().data() + p.offset[k], packed);
    return add_weights(reinterpret_cast<const std::byte*>(packed.data()), packed.size() * sizeof(float));
  };
  const auto offsets = [](const small_vector<axis>& axes, std::size_t k) {  // of operand k, the last axis fastest
    std::vector<std::int64_t> all{0};
    for (const axis& a : axes) {
      std::vector<std::int64_t> longer;
      for (std::int64_t o : all)
        for (std::int64_t i = 0; i < a.extent; ++i) longer.push_back(o + i * a.step[k]);
      all = std::move(longer);
    }
    return all;
  };
  const auto column_starts = [&] {  // (line, column) of each panel
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (std::int64_t y = 0; y < panel.count_rows; ++y)
      for (std::int64_t x = 0; x < panel.count_width; ++x)
        all.emplace_back(std::min(y * panel.rows, lines - panel.rows), std::min(x * panel.width, width - panel.width));
    return all;
  }();
  const auto declare_packed = [&](std::string_view name, std::int64_t position) {
    out_.line("const float* const ", name, " = reinterpret_cast<const float*>(weights + ", position, ");");
  };
  if (ready_right)
    declare_packed("right", packed_constant(1, [&](const float* from, std::vector<float>& packed) {
                     for (const auto& [y0, x0] : column_starts)
                       for (std::int64_t o : offsets(p.sum, 1))
                         for (std::int64_t i = 0; i < pitch; ++i)
                           packed.push_back(
                               i < panel.columns()
                                   ? from[o + (y0 + i / panel.width) * line_step + (x0 + i % panel.width) * column_step]
                                   : 0.0f);
                   }));
  if (ready_left)
    declare_packed("left", packed_constant(0, [&](const float* from, std::vector<float>& packed) {
                     for (std::int64_t r : offsets(p.rows, 0))
                       for (std::int64_t o : offsets(p.sum, 0)) packed.push_back(from[r + o]);
                   }));
  const auto bytes = static_cast<std::int64_t>(size_of(product.type));
  if (packs_right && !ready_right)
    out_.line(type, "* const panel = reinterpret_cast<", type, "*>(arena_ + ", take_scratch(pitch * k_count * bytes),
              ");");
  if (packs_left && !ready_left)
    out_.line(type, "* const rows = reinterpret_cast<", type, "*>(arena_ + ", take_scratch(m * k_count * bytes), ");");

  // ---- loops
  index_text offset[3];
  std::vector<index_text> extra_offset(extra.size());
  std::size_t loops = 0;
  const auto add_loop = [&](const axis& a) {
    const std::string name = cat("b", loops++);
    out_.loop(name, a.extent);
    for (std::size_t k = 0; k < 3; ++k) offset[k].add(name, a.step[k]);
    for (std::size_t e = 0; e < extra.size(); ++e) extra_offset[e].add(name, a.step[e + 3]);
  };
  for (const axis& a : p.batch) add_loop(a);
  const std::int64_t a_row = packs_left ? k_count : p.row_step(0), a_step = packs_left ? 1 : p.sum_step(0);
  if (packs_left && !ready_left) {
    out_.line(type, "* row = rows;");
    index_text from = offset[0];
    std::size_t i = 0;
    for (const small_vector<axis>* group : {&p.rows, &p.sum})
      for (const axis& a : *group) {
        out_.loop(cat("s", i), a.extent);
        from.add(cat("s", i++), a.step[0]);
      }
    out_.line("*row++ = left[", from.str(), "];");
    out_.close(i);
  }
  // element offset of a panel's first column in the result
  const bool many = panel.count_rows * panel.count_width > 1;
  std::string first = "0", line0 = "0", column0 = "0";
  std::size_t panel_loops = 0;
  if (panel.count_rows > 1) {
    out_.loop("y", panel.count_rows);
    ++panel_loops;
    line0 = "y0";
    out_.line("const std::int64_t y0 = ",
              panel.count_rows * panel.rows == lines ? cat("y * ", panel.rows)
                                                     : cat("y * ", panel.rows, " < ", lines - panel.rows, " ? y * ",
                                                           panel.rows, " : ", lines - panel.rows),
              ";");
  }
  if (panel.count_width > 1) {
    out_.loop("x", panel.count_width);
    ++panel_loops;
    column0 = "x0";
    out_.line("const std::int64_t x0 = ",
              panel.count_width * panel.width == width ? cat("x * ", panel.width)
                                                       : cat("x * ", panel.width, " < ", width - panel.width, " ? x * ",
                                                             panel.width, " : ", width - panel.width),
              ";");
  }
  if (many) {
    index_text t;
    if (line0 != "0") t.add(line0, width);
    if (column0 != "0") t.add(column0, 1);
    out_.line("const std::int64_t first = ", t.str(), ";");
    first = "first";
  }
  if (packs_right && !ready_right) {
    out_.line(type, "* to = panel;");
    index_text from = offset[1];
    if (line0 != "0") from.add(line0, line_step);
    if (column0 != "0") from.add(column0, column_step);
    std::size_t i = 0;
    for (const axis& a : p.sum) {
      out_.loop(cat("s", i), a.extent);
      from.add(cat("s", i++), a.step[1]);
    }
    out_.line("const ", type, "* const from = right + ", from.str(), ";");
    index_text source, target;
    if (panel.rows > 1) {
      out_.loop("line", panel.rows);
      source.add("line", line_step);
      target.add("line", panel.width);
    }
    out_.line("for (std::int64_t i = 0; i < ", panel.width, "; ++i) to[", target.add("i", 1).str(), "] = from[",
              source.add("i", column_step).str(), "];");
    if (panel.rows > 1) out_.close();
    out_.line("to += ", pitch, ";");
    out_.close(i);
  }
  std::string right = "panel";
  if (ready_right) {
    index_text t;
    if (line0 != "0") t.add("y", panel.count_width * k_count * pitch);
    if (column0 != "0") t.add("x", k_count * pitch);
    right = cat("right + ", t.str());
  } else if (!packs_right) {
    index_text t = offset[1];
    if (line0 != "0") t.add(line0, line_step);
    if (column0 != "0") t.add(column0, column_step);
    right = cat("right + ", t.str());
  }
  index_text target = offset[2];
  if (many) target.add(first, out_step);
  const bool finishes = nodes.size() != product_node + 1 || d.results[0] != product_node;
  // sums that end as another type have memory of their own
  const bool apart = finishes && to.type != product.type;
  const std::int64_t c_row = apart ? panel.columns() : p.row_step(2);
  if (apart)
    out_.line(type, "* const c = reinterpret_cast<", type, "*>(arena_ + ", take_scratch(m * panel.columns() * bytes),
              ");");
  else
    out_.line(type, "* const c = out + ", target.str(), ";");
  out_.line("constexpr product_extents extents{.m = ", m, ", .n = ", panel.columns(), ", .k = ", k_count,
            ", .a_row = ", a_row, ", .a_step = ", a_step, ", .b_row = ", pitch,
            ", .whole = ", packs_right || panel.columns() % 16 == 0 ? "true" : "false", "};");
  const std::string left = packs_left && !ready_left ? "rows" : ready_left ? "left" : cat("left + ", offset[0].str());
  out_.line("multiply<extents>(", left, ", ", right, ", c, ", c_row, ");");
  if (finishes) {
    if (m > 1) out_.loop("r", m);
    out_.loop("i", panel.columns());
    index_text sum;
    if (m > 1) {
      sum.add("r", c_row);
      target.add("r", p.row_step(2));
    }
    sum.add("i", apart ? 1 : out_step);
    target.add("i", out_step);
    out_.line("const ", value_name(product.type), " v", product_node, " = c[", sum.str(), "];");
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (k == product_node) continue;
      std::size_t e = 0;
      while (e < extra.size() && extra[e] != k) ++e;
      if (e < extra.size()) {
        index_text t = extra_offset[e];
        const std::int64_t step = p.column_step(e + 3);
        if (many) t.add(first, step);
        if (m > 1) t.add("r", p.row_step(e + 3));
        t.add("i", step);
        out_.line("const ", value_name(nodes[k].type), " v", k, " = in", k, "[", t.str(), "];");
      } else if (nodes[k].op != node::parameter) {
        write_node(d, k);
      }
    }
    out_.line("out[", target.str(), "] = static_cast<", stored_name(to.type), ">(v", d.results[0], ");");
    out_.close(m > 1 ? 2 : 1);
  }
  out_.close(panel_loops + loops);
}

}  // namespace kiln::fixed
