#include <algorithm>
#include <cmath>
#include <utility>

#include "kiln/graph/impl/picture/layered.hpp"
#include "kiln/graph/picture.hpp"

namespace kiln {

namespace {

using picture::box;
using picture::margin;

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
std::string number(double x) {
  const auto tenths = static_cast<long long>(x * 10 + (x < 0 ? -0.5 : 0.5));
  const long long whole = tenths / 10, rest = tenths < 0 ? -tenths % 10 : tenths % 10;
  return (tenths < 0 && whole == 0 ? "-" : "") + std::to_string(whole) + (rest ? "." + std::to_string(rest) : "");
}

// A drawing as SVG text. One that is far higher than wide is cut between layers into columns. An edge that crosses a
// cut, or spans too many layers, is a numbered mark at both of its ends.
class svg_writer {
 public:
  explicit svg_writer(const picture::layered_drawing& d, const picture_notes& notes = {})
      : boxes_(d.boxes()), layers_(d.layers()) {
    write_legend(notes);
    cut_columns();
    place_columns();
    marks_above_.resize(boxes_.size());
    for (std::size_t b = 0; b < boxes_.size(); ++b) write_edges(b);
    for (std::size_t b = 0; b < boxes_.size(); ++b) {
      if (!boxes_[b].lines.empty()) write_box(b);
      write_marks_above(b);
    }
  }
  std::string text() const {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width_) + "\" height=\"" + number(height_) +
           "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
           "fill=\"#ffffff\"/>\n" +
           out_ + "</svg>\n";
  }

 private:
  static constexpr double mark_radius = 9, screen_ratio = 1.6;

  struct column {
    std::size_t first = 0, last = 0;  // layers
    double shift = 0;                 // of its boxes' x
  };

  double layer_height(std::size_t l) const {
    double tallest = 0;
    for (const std::size_t b : layers_[l]) tallest = std::max(tallest, boxes_[b].height);
    return tallest + picture::gap_y;
  }
  std::size_t edges_after(std::size_t l) const {
    std::size_t n = 0;
    for (const std::size_t b : layers_[l]) n += boxes_[b].below.size();
    return n;
  }

  // As many columns as make the drawing about as wide as a screen; a cut takes the fewest edges near its ideal height.
  void cut_columns() {
    double all = 0, widest = 1;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      all += layer_height(l);
      if (layers_[l].empty()) continue;
      const box &left = boxes_[layers_[l].front()], &right = boxes_[layers_[l].back()];
      widest = std::max(widest, right.x + right.width / 2 - left.x + left.width / 2);
    }
    const double wanted = std::sqrt(screen_ratio * all / widest);
    const auto count = static_cast<std::size_t>(all < 1600 || wanted < 1.5 ? 1 : std::lround(wanted));
    column now;
    double height = 0;
    constexpr auto none = static_cast<std::size_t>(-1);
    std::size_t best = none;
    for (std::size_t l = 0; l + 1 < layers_.size() && columns_.size() + 1 < count; ++l) {
      height += layer_height(l);
      const double each = all / static_cast<double>(count - columns_.size());
      if (height < each * 0.85) continue;
      if (best == none || edges_after(l) <= edges_after(best)) best = l;
      if (height < each * 1.1) continue;
      now.last = best;
      for (std::size_t k = now.first; k <= best; ++k) all -= layer_height(k);
      columns_.push_back(now);
      l = best;
      now.first = best + 1;
      height = 0;
      best = none;
    }
    now.last = layers_.empty() ? 0 : layers_.size() - 1;
    columns_.push_back(now);
  }

  void place_columns() {
    tops_.resize(layers_.size());
    column_of_.resize(layers_.size());
    const double legend_width = std::exchange(width_, margin);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      column& col = columns_[c];
      double y = top_ + margin + 2 * mark_radius, left = 1e9, right = 0;
      for (std::size_t l = col.first; l <= col.last && l < layers_.size(); ++l) {
        tops_[l] = y;
        column_of_[l] = c;
        y += layer_height(l);
        for (const std::size_t b : layers_[l]) {
          left = std::min(left, boxes_[b].x - boxes_[b].width / 2);
          right = std::max(right, boxes_[b].x + boxes_[b].width / 2);
        }
      }
      if (right < left) left = right = 0;
      col.shift = width_ - left;
      width_ += right - left + (c + 1 < columns_.size() ? 3 * margin : margin);
      height_ = std::max(height_, y);
    }
    width_ = std::max(width_, legend_width);
  }

  // A line of colored fields and what they mean.
  void write_legend(const picture_notes& notes) {
    if (notes.legend.empty() && notes.caption.empty()) return;
    constexpr double field = 14, gap = 6, letter = 6.8;
    double x = margin;
    const double y = margin;
    const auto write = [&](const std::string& words, const char* style) {
      out_ +=
          "<text x=\"" + number(x) + "\" y=\"" + number(y + field - 3) + "\"" + style + ">" + xml(words) + "</text>\n";
      x += static_cast<double>(picture::characters(words)) * letter + 2 * gap;
    };
    if (!notes.caption.empty()) write(notes.caption, " font-weight=\"bold\"");
    for (const picture_note& n : notes.legend) {
      out_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(field) + "\" height=\"" +
              number(field) + "\" fill=\"" + xml(n.color) + "\" stroke=\"#555555\"/>\n";
      x += field + gap;
      write(n.text, "");
    }
    width_ = x + margin;
    top_ = y + field;
  }

  const column& column_of(const box& b) const { return columns_[column_of_[b.layer]]; }
  double x_of(const box& b) const { return b.x + column_of(b).shift; }

  void write_curve(double x0, double y0, double x1, double y1) {
    const double mid = (y0 + y1) / 2;
    out_ += "<path d=\"M" + number(x0) + " " + number(y0) + "C" + number(x0) + " " + number(mid) + " " + number(x1) +
            " " + number(mid) + " " + number(x1) + " " + number(y1) + "\" fill=\"none\" stroke=\"#777777\"/>\n";
  }
  void write_text(double x, double y, const std::string& text, const char* style) {
    out_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"middle\"" + style + ">" + xml(text) +
            "</text>\n";
  }
  void write_mark(double x, double y, const std::string& name) {
    out_ += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(mark_radius) +
            "\" fill=\"#ffffff\" stroke=\"#777777\"/>\n";
    write_text(x, y + 4, name, " font-size=\"10\"");
  }

  // A bend passes a mark on to the box that it leads to.
  void mark_reader(std::size_t b, int mark) {
    while (boxes_[b].lines.empty()) b = boxes_[b].below.front();
    if (std::find(marks_above_[b].begin(), marks_above_[b].end(), mark) == marks_above_[b].end())
      marks_above_[b].push_back(mark);
  }
  void write_edges(std::size_t from) {
    const box& b = boxes_[from];
    const double x0 = x_of(b), y0 = tops_[b.layer] + (b.lines.empty() ? 0 : b.height);
    int mark = 0;  // one for all readers that no line reaches
    const auto marked = [&](std::size_t reader) {
      if (mark == 0) {
        mark = ++marks_;
        write_mark(x0 + (b.below.empty() ? 0 : b.width / 2), y0 + mark_radius + 3, std::to_string(mark));
      }
      mark_reader(reader, mark);
    };
    for (const std::size_t reader : b.far_below) marked(reader);
    for (const std::size_t below : b.below) {
      const box& to = boxes_[below];
      if (column_of_[to.layer] == column_of_[b.layer])
        write_curve(x0, y0, x_of(to), tops_[to.layer]);
      else
        marked(below);
    }
  }
  void write_marks_above(std::size_t at) {
    const box& b = boxes_[at];
    double x = x_of(b) + b.width / 2 - mark_radius;
    for (const int mark : marks_above_[at]) {
      write_mark(x, tops_[b.layer] - mark_radius - 3, std::to_string(mark));
      x -= 2 * mark_radius + 3;
    }
  }
  void write_box(std::size_t at) {
    const box& b = boxes_[at];
    const double left = x_of(b) - b.width / 2, top = tops_[b.layer];
    out_ += b.tooltip.empty() ? "<g>" : "<g><title>" + xml(b.tooltip) + "</title>\n";
    out_ += "<rect x=\"" + number(left) + "\" y=\"" + number(top) + "\" width=\"" + number(b.width) + "\" height=\"" +
            number(b.height) + "\" rx=\"4\" fill=\"" + xml(b.color) + "\" stroke=\"#555555\"/>\n";
    for (std::size_t k = 0; k < b.lines.size(); ++k)
      write_text(x_of(b), top + 16 + static_cast<double>(k) * picture::line_height, b.lines[k],
                 k == 0 ? " font-weight=\"bold\"" : " fill=\"#444444\"");
    out_ += "</g>\n";
  }

  const std::vector<box>& boxes_;
  const std::vector<std::vector<std::size_t>>& layers_;
  std::vector<column> columns_;
  std::vector<double> tops_;                 // of layers
  std::vector<std::size_t> column_of_;       // of layers
  double width_ = 0, height_ = 0, top_ = 0;  // top_: below the legend
  int marks_ = 0;
  std::vector<std::vector<int>> marks_above_;  // of boxes
  std::string out_;
};

}  // namespace

std::string to_svg(const program& p) { return svg_writer(picture::layered_drawing(p)).text(); }

std::string to_svg(const program& p, const picture_notes& notes) {
  return svg_writer(picture::layered_drawing(p, &notes), notes).text();
}

}  // namespace kiln
