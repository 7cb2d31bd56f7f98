#include "kiln/graph/picture.hpp"

#include <algorithm>
#include <vector>

#include "kiln/graph/print.hpp"

namespace kiln {

namespace {

constexpr const char* kind_colour(op_kind k) {
  constexpr const char* colours[] = {"#dcebfa", "#fbe3d0", "#eeeeee", "#f6d5d9", "#fdf3c9", "#dff0d8", "#e6dcf5"};
  static_assert(std::size(colours) == static_cast<std::size_t>(op_kind::dynamic) + 1);
  return colours[static_cast<unsigned>(k)];
}

std::string shape_text(const shape& s) {
  text t;
  detail::print_shape(s, t);
  return t.str();
}

// Characters of UTF-8 text, so that names are cut between them.
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

bool stands_alone(const module_graph::instruction& i) {
  return i.kind == instruction_kind::op || (i.kind == instruction_kind::parameter && !i.is_weight);
}

// What a box says, line by line.
std::vector<std::string> label_of(const program& p, const module_graph& m, const module_graph::instruction& i) {
  std::vector<std::string> lines;
  if (i.kind == instruction_kind::parameter) {
    lines.push_back(i.name.str());
  } else {
    lines.emplace_back(i.op.name());
    if (i.op.kind() == op_kind::control) {
      const module_graph& body = p.module(i.op.body());
      std::string inside;
      for (std::uint32_t k = 0; k < body.size(); ++k)
        if (body[k].kind == instruction_kind::op && body[k].op.kind() != op_kind::view)
          inside += (inside.empty() ? "" : ", ") + std::string(body[k].op.name());
      lines.push_back(inside);
    } else {
      text attributes;
      i.op.print(attributes);
      if (!attributes.empty()) lines.push_back(attributes.str());
    }
    for (const value_id v : i.inputs) {
      const auto& c = m.producer(v);
      if (stands_alone(c)) continue;
      text t;
      if (c.kind == instruction_kind::literal)
        detail::print_literal(c.constant, t);
      else
        t.append('@').append(c.name.view()).append(' ').append(shape_text(c.results[0]));
      lines.push_back(t.str());
    }
  }
  std::string shapes;
  for (const shape& s : i.results) shapes += (shapes.empty() ? "" : ", ") + shape_text(s);
  lines.push_back(shapes);
  for (std::string& l : lines) l = shortened(std::move(l), 44);
  return lines;
}

std::string xml(const std::string& s) {
  std::string out;
  for (const char c : s) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';  // control characters are not XML
    else
      out += c;
  }
  return out;
}
std::string quoted(const std::string& s) {
  std::string out;
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}
std::string number(double x) {
  const auto tenths = static_cast<long long>(x * 10 + (x < 0 ? -0.5 : 0.5));
  const long long whole = tenths / 10, rest = tenths < 0 ? -tenths % 10 : tenths % 10;
  return (tenths < 0 && whole == 0 ? "-" : "") + std::to_string(whole) + (rest ? "." + std::to_string(rest) : "");
}

struct box {
  std::vector<std::string> lines;  // none: a bend of an edge that crosses the layer
  const char* colour = "#ffffff";
  std::size_t layer = 0;
  double x = 0, width = 8, height = 0;  // x: centre
  std::vector<std::size_t> above, below;
};

class drawing {
 public:
  explicit drawing(const program& p) {
    add_boxes(p);
    add_bends();
    order_layers();
    place();
  }

  std::string svg() const {
    std::vector<double> tops(layers_.size() + 1, margin);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      double tallest = 0;
      for (const std::size_t b : layers_[l]) tallest = std::max(tallest, boxes_[b].height);
      tops[l + 1] = tops[l] + tallest + gap_y;
    }
    double right = 0;
    for (const box& b : boxes_) right = std::max(right, b.x + b.width / 2);
    std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(right + margin) + "\" height=\"" +
                      number(tops.back()) + "\" font-family=\"sans-serif\" font-size=\"12\">\n" +
                      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    for (const box& b : boxes_)
      for (const std::size_t below : b.below) {
        const box& c = boxes_[below];
        const double y0 = tops[b.layer] + (b.lines.empty() ? 0 : b.height), y1 = tops[c.layer], mid = (y0 + y1) / 2;
        out += "<path d=\"M" + number(b.x) + " " + number(y0) + "C" + number(b.x) + " " + number(mid) + " " +
               number(c.x) + " " + number(mid) + " " + number(c.x) + " " + number(y1) +
               "\" fill=\"none\" stroke=\"#777777\"/>\n";
      }
    for (const box& b : boxes_) {
      if (b.lines.empty()) continue;
      const double left = b.x - b.width / 2, top = tops[b.layer];
      out += "<rect x=\"" + number(left) + "\" y=\"" + number(top) + "\" width=\"" + number(b.width) + "\" height=\"" +
             number(b.height) + "\" rx=\"4\" fill=\"" + b.colour + "\" stroke=\"#555555\"/>\n";
      for (std::size_t k = 0; k < b.lines.size(); ++k)
        out += "<text x=\"" + number(b.x) + "\" y=\"" + number(top + 16 + static_cast<double>(k) * line) +
               "\" text-anchor=\"middle\"" + (k == 0 ? " font-weight=\"bold\"" : " fill=\"#444444\"") + ">" +
               xml(b.lines[k]) + "</text>\n";
    }
    return out + "</svg>\n";
  }

 private:
  static constexpr double margin = 16, gap_x = 18, gap_y = 34, line = 15;

  std::size_t add_box(std::vector<std::string> lines, const char* colour, std::size_t layer) {
    box b;
    std::size_t widest = 4;
    for (const std::string& l : lines) widest = std::max(widest, characters(l));
    b.width = static_cast<double>(widest) * 6.8 + 16;
    b.height = static_cast<double>(lines.size()) * line + 8;
    b.lines = std::move(lines);
    b.colour = colour;
    b.layer = layer;
    boxes_.push_back(std::move(b));
    return boxes_.size() - 1;
  }
  void join(std::size_t from, std::size_t to) {
    auto& list = boxes_[from].below;
    if (std::find(list.begin(), list.end(), to) != list.end()) return;
    list.push_back(to);
    boxes_[to].above.push_back(from);
  }
  void add_boxes(const program& p) {
    const module_graph& m = p.main();
    constexpr std::size_t none = static_cast<std::size_t>(-1);
    std::vector<std::size_t> box_of(m.size(), none);
    for (const std::uint32_t k : m.order()) {
      const auto& i = m[k];
      if (!stands_alone(i)) continue;
      std::size_t layer = 0;
      for (const value_id v : i.inputs)
        if (box_of[v.instruction] != none) layer = std::max(layer, boxes_[box_of[v.instruction]].layer + 1);
      const bool is_op = i.kind == instruction_kind::op;
      box_of[k] = add_box(label_of(p, m, i), is_op ? kind_colour(i.op.kind()) : "#ffffff", layer);
      for (const value_id v : i.inputs)
        if (box_of[v.instruction] != none) join(box_of[v.instruction], box_of[k]);
    }
    for (std::size_t k = 0; k < m.outputs.size(); ++k) {
      const std::size_t from = box_of[m.outputs[k].instruction];
      const std::string name = k < m.output_names.size() ? m.output_names[k].str() : "output";
      const std::size_t to = add_box({shortened(name, 44)}, "#ffffff", from == none ? 0 : boxes_[from].layer + 1);
      if (from != none) join(from, to);
    }
    // sources stand right above their first reader
    for (box& b : boxes_) {
      if (!b.above.empty() || b.below.empty()) continue;
      std::size_t first = none;
      for (const std::size_t c : b.below) first = std::min(first, boxes_[c].layer);
      b.layer = first - 1;
    }
  }
  void add_bends() {
    const std::size_t n = boxes_.size();
    for (std::size_t from = 0; from < n; ++from) {
      const auto targets = std::move(boxes_[from].below);
      boxes_[from].below.clear();
      for (const std::size_t to : targets) {
        std::erase(boxes_[to].above, from);
        std::size_t at = from;
        for (std::size_t l = boxes_[from].layer + 1; l < boxes_[to].layer; ++l) {
          box bend;
          bend.layer = l;
          boxes_.push_back(std::move(bend));
          join(at, boxes_.size() - 1);
          at = boxes_.size() - 1;
        }
        join(at, to);
      }
    }
    for (std::size_t b = 0; b < boxes_.size(); ++b) {
      if (boxes_[b].layer >= layers_.size()) layers_.resize(boxes_[b].layer + 1);
      layers_[boxes_[b].layer].push_back(b);
    }
  }
  // Fewer crossings: each layer is sorted by the mean position of its neighbours, downwards and upwards in turn.
  void order_layers() {
    std::vector<double> position(boxes_.size(), 0);
    const auto number_layer = [&](const std::vector<std::size_t>& layer) {
      for (std::size_t k = 0; k < layer.size(); ++k) position[layer[k]] = static_cast<double>(k);
    };
    for (const auto& layer : layers_) number_layer(layer);
    for (int sweep = 0; sweep < 6; ++sweep)
      for (std::size_t k = 0; k < layers_.size(); ++k) {
        auto& layer = layers_[sweep % 2 ? layers_.size() - 1 - k : k];
        std::vector<std::pair<double, std::size_t>> keyed;
        for (const std::size_t b : layer) {
          const auto& near = sweep % 2 ? boxes_[b].below : boxes_[b].above;
          keyed.emplace_back(near.empty() ? position[b] : mean(near, position), b);
        }
        std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t j = 0; j < layer.size(); ++j) layer[j] = keyed[j].second;
        number_layer(layer);
      }
  }
  static double mean(const std::vector<std::size_t>& of, const std::vector<double>& values) {
    double sum = 0;
    for (const std::size_t b : of) sum += values[b];
    return sum / static_cast<double>(of.size());
  }
  // Boxes move towards the middle of their neighbours as far as their layer's order and widths allow.
  void place() {
    for (const auto& layer : layers_) {
      double x = margin;
      for (const std::size_t b : layer) {
        boxes_[b].x = x + boxes_[b].width / 2;
        x += boxes_[b].width + gap_x;
      }
    }
    for (int sweep = 0; sweep < 12; ++sweep)
      for (std::size_t k = 0; k < layers_.size(); ++k) {
        const auto& layer = layers_[sweep % 2 ? layers_.size() - 1 - k : k];
        for (std::size_t j = 0; j < layer.size(); ++j) {
          box& b = boxes_[layer[j]];
          double sum = 0;
          for (const std::size_t n : b.above) sum += boxes_[n].x;
          for (const std::size_t n : b.below) sum += boxes_[n].x;
          const std::size_t count = b.above.size() + b.below.size();
          if (!count) continue;
          double x = sum / static_cast<double>(count);
          if (j + 1 < layer.size()) {
            const box& next = boxes_[layer[j + 1]];
            x = std::min(x, next.x - (next.width + b.width) / 2 - gap_x);
          }
          double low = margin + b.width / 2;
          if (j > 0) {
            const box& last = boxes_[layer[j - 1]];
            low = last.x + (last.width + b.width) / 2 + gap_x;
          }
          b.x = std::max(x, low);
        }
      }
    // the last sweep may have left overlaps on the right
    for (const auto& layer : layers_)
      for (std::size_t j = 1; j < layer.size(); ++j) {
        const box& last = boxes_[layer[j - 1]];
        box& b = boxes_[layer[j]];
        b.x = std::max(b.x, last.x + (last.width + b.width) / 2 + gap_x);
      }
  }

  std::vector<box> boxes_;
  std::vector<std::vector<std::size_t>> layers_;
};

void graphviz_module(const program& p, std::uint32_t at, std::string& out) {
  const module_graph& m = p.module({at});
  const std::string prefix = "m" + std::to_string(at) + "_";
  out += "  subgraph cluster_" + std::to_string(at) + " {\n    label=\"" + quoted(m.name.str()) +
         (at ? " @" + std::to_string(at) : "") + "\";\n";
  for (std::uint32_t k = 0; k < m.size(); ++k) {
    if (!stands_alone(m[k])) continue;
    std::string label;
    for (const std::string& l : label_of(p, m, m[k])) label += (label.empty() ? "" : "\\n") + quoted(l);
    out += "    " + prefix + std::to_string(k) + " [label=\"" + label + "\"";
    if (m[k].kind == instruction_kind::op) out += ", fillcolor=\"" + std::string(kind_colour(m[k].op.kind())) + "\"";
    out += "];\n";
  }
  for (std::uint32_t k = 0; k < m.size(); ++k)
    for (const value_id v : m[k].inputs)
      if (stands_alone(m.producer(v)))
        out += "    " + prefix + std::to_string(v.instruction) + " -> " + prefix + std::to_string(k) + ";\n";
  for (std::size_t k = 0; k < m.outputs.size(); ++k) {
    const std::string name = k < m.output_names.size() ? m.output_names[k].str() : "output";
    out += "    " + prefix + "out" + std::to_string(k) + " [label=\"" + quoted(name) + "\"];\n";
    if (stands_alone(m.producer(m.outputs[k])))
      out += "    " + prefix + std::to_string(m.outputs[k].instruction) + " -> " + prefix + "out" + std::to_string(k) +
             ";\n";
  }
  out += "  }\n";
}

}  // namespace

std::string to_graphviz(const program& p) {
  std::string out =
      "digraph kiln {\n  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"sans-serif\"];\n";
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    if (k == 0 || p.module({k}).size()) graphviz_module(p, k, out);
  return out + "}\n";
}

std::string to_svg(const program& p) { return drawing(p).svg(); }

}  // namespace kiln
