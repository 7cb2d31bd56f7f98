#include "kiln/graph/impl/picture/label.hpp"

#include <algorithm>

#include "kiln/graph/print.hpp"
#include "kiln/op/linear/convolution.hpp"
#include "kiln/op/linear/deconvolution.hpp"
#include "kiln/op/nn/pooling.hpp"
#include "kiln/op/view/multibroadcast.hpp"
#include "kiln/op/view/reshape.hpp"

namespace kiln::picture {

namespace {

constexpr std::size_t widest_line = 42, most_constants = 4;

std::string text_of(const auto& printed, const auto& print) {
  text t;
  print(printed, t);
  return t.str();
}
std::string shape_text(const shape& s) {
  return text_of(s, [](const shape& of, text& t) { detail::print_shape(of, t); });
}

// The literal or weight that a value shows through views; null for other values.
const module_graph::instruction* constant_source(const module_graph& m, value_id v) {
  const auto* i = &m.producer(v);
  while (is_view(*i)) i = &m.producer(i->inputs[0]);
  return i->kind == instruction_kind::literal || i->is_weight ? i : nullptr;
}

std::string constant_text(const module_graph::instruction& c) {
  const std::string seen = shape_text(c.results[0]);
  if (c.is_weight) return "@" + c.name.str() + " " + seen;
  if (!c.name.empty()) return c.name.str() + " " + seen;
  if (c.results[0].is_constant() && c.constant.elements() == 1)
    return text_of(c.constant, [](const literal& l, text& t) {
      visit_elements(l, 1, [&](const auto& x) { detail::print_number(x, t); });
    });
  return "constant " + seen;
}

// "3x3, stride 2, pads 1" of a window op; lists of equal numbers are one number.
std::string window_text(const operation& op, const dims& kernel) {
  std::string out;
  const auto add = [&](std::string_view name, std::string_view separator, const auto& list, std::int64_t unless) {
    const auto plain = [&](const auto& d) { return d == dimension(unless); };
    if (list.empty() || std::all_of(list.begin(), list.end(), plain)) return;
    const bool equal = !name.empty() && std::equal(list.begin() + 1, list.end(), list.begin());
    out += std::string(out.empty() ? "" : ", ") + std::string(name);
    for (std::size_t k = 0; k < (equal ? 1 : list.size()); ++k)
      out += (k ? std::string(separator) : "") + to_string(dimension(list[k]));
  };
  const auto take = [&](const auto& o) {
    add("stride ", " ", o.stride, 1);
    add("dilation ", " ", o.dilation, 1);
    add("pads ", " ", o.pads, 0);
    if constexpr (requires { o.group; })
      if (o.group != 1) out += (out.empty() ? "" : ", ") + std::to_string(o.group) + " groups";
  };
  if (const auto* conv = op.get_if<op::convolution>()) {
    add("", "x", kernel, -1);
    take(*conv);
  } else if (const auto* transposed = op.get_if<op::deconvolution>()) {
    add("", "x", kernel, -1);
    take(*transposed);
  } else if (const auto* pool = op.get_if<op::pooling>()) {
    out = std::string(to_string(pool->mode));
    add("", "x", pool->lengths, -1);
    take(*pool);
  }
  return out;
}
std::string window_text(const module_graph& m, const module_graph::instruction& i) {
  dims kernel;
  if (i.inputs.size() > 1 && m.shape_of(i.inputs[1]).rank() > 2)
    for (std::size_t d = 2; d < m.shape_of(i.inputs[1]).rank(); ++d) kernel.push_back(m.shape_of(i.inputs[1]).lens[d]);
  return window_text(i.op, kernel);
}

// The views that end in `last`, in order; nothing where it is no view, or a single one.
std::string chain_title(const module_graph& m, const std::vector<bool>& boxes, const module_graph::instruction& last) {
  if (!is_view(last)) return {};
  std::string title(last.op.name());
  std::uint32_t at = last.inputs[0].instruction;
  if (boxes[at] || !is_view(m[at])) return {};
  for (; !boxes[at] && is_view(m[at]); at = m[at].inputs[0].instruction)
    title = std::string(m[at].op.name()) + " · " + title;
  return title;
}

// Ops of a body in order, without views; neighbors of one name are counted.
std::string body_title(const module_graph& body) {
  std::string out;
  std::string_view last;
  int times = 0;
  const auto flush = [&] {
    if (times == 0) return;
    out += (out.empty() ? "" : " · ") + std::string(last) + (times > 1 ? " ×" + std::to_string(times) : "");
  };
  for (std::uint32_t k = 0; k < body.size(); ++k) {
    if (body[k].kind != instruction_kind::op || is_view(body[k])) continue;
    if (body[k].op.name() == last && times > 0) {
      ++times;
      continue;
    }
    flush();
    last = body[k].op.name();
    times = 1;
  }
  flush();
  return out;
}

}  // namespace

std::vector<bool> boxes_of(const module_graph& m) {
  std::vector<std::uint32_t> readers(m.size(), 0);
  std::vector<bool> only_views(m.size(), true), boxes(m.size());
  for (std::uint32_t i = 0; i < m.size(); ++i)
    for (const value_id v : m[i].inputs) {
      ++readers[v.instruction];
      only_views[v.instruction] = only_views[v.instruction] && is_view(m[i]);
    }
  for (const value_id v : m.outputs) readers[v.instruction] += 2;
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (m[i].kind == instruction_kind::op)
      boxes[i] = !is_view(m[i]) || !(constant_source(m, {i, 0}) || (readers[i] == 1 && only_views[i]));
    else
      boxes[i] = m[i].kind == instruction_kind::parameter && !m[i].is_weight;
  return boxes;
}

std::vector<std::string> label_of(const program& p, const module_graph& m, const std::vector<bool>& boxes,
                                  std::uint32_t at) {
  const auto& i = m[at];
  std::vector<std::string> lines;
  const auto line = [&](std::string s) {
    if (!s.empty()) lines.push_back(shortened(std::move(s), widest_line));
  };
  if (i.kind == instruction_kind::parameter) {
    line(i.name.str());
  } else if (i.op.kind() == op_kind::control) {
    const module_graph& body = p.module(i.op.body());
    const std::string title = body_title(body);
    line(title.empty() ? std::string(i.op.name()) : title);
    for (std::uint32_t k = 0; k < body.size(); ++k)
      if (body[k].kind == instruction_kind::op) line(window_text(body, body[k]));
  } else if (const std::string chain = chain_title(m, boxes, i); !chain.empty()) {
    line(chain);
  } else {
    line(std::string(i.op.name()));
    const std::string window = window_text(m, i);
    const bool shape_says_all = i.op.is<op::reshape>() || i.op.is<op::multibroadcast>();
    if (!shape_says_all)
      line(window.empty() ? text_of(i.op, [](const operation& op, text& t) { op.print(t); }) : window);
  }
  std::size_t constants = 0;
  for (const value_id v : i.inputs)
    if (const auto* c = constant_source(m, v); c && ++constants <= most_constants) line(constant_text(*c));
  if (constants > most_constants) line("and " + std::to_string(constants - most_constants) + " more constants");
  std::string shapes;
  for (const shape& s : i.results) shapes += (shapes.empty() ? "" : ", ") + shape_text(s);
  line(shapes);
  return lines;
}

const char* color_of(op_kind kind) {
  constexpr const char* colors[] = {"#dcebfa", "#fbe3d0", "#eeeeee", "#f6d5d9", "#fdf3c9", "#dff0d8", "#e6dcf5"};
  static_assert(std::size(colors) == static_cast<std::size_t>(op_kind::dynamic) + 1);
  return colors[static_cast<unsigned>(kind)];
}

std::string shortened(std::string s, std::size_t most) {
  std::size_t at = 0, n = 0;
  for (; at < s.size() && n < most; ++n) do
      ++at;
    while (at < s.size() && (static_cast<unsigned char>(s[at]) & 0xc0) == 0x80);
  if (at >= s.size()) return s;
  return s.substr(0, at) + "…";
}
std::size_t characters(const std::string& s) {
  return static_cast<std::size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string output_name(const module_graph& m, std::size_t k) {
  return k < m.output_names.size() ? shortened(m.output_names[k].str(), widest_line) : "output";
}

}  // namespace kiln::picture
