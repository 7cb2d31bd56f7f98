#include "kiln/graph/picture.hpp"

#include <gmock/gmock.h>

#include <regex>

#include "kiln/graph/builder.hpp"
#include "kiln/pass/pipeline.hpp"

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

program net() {
  builder b;
  auto x = b.input("in<\"&>", dtype::f32, {1, 2, 4, 4});
  auto y = x.conv(b.weight("w", dtype::f32, {2, 2, 1, 1})).relu();
  b.output(y + x * 2.0f, "out");
  return b.finish();
}
std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(picture, graphviz_has_a_node_and_an_edge_for_each_value) {
  const std::string dot = to_graphviz(net());
  EXPECT_THAT(dot, HasSubstr("digraph kiln {"));
  EXPECT_THAT(dot, HasSubstr("in<\\\"&>"));
  EXPECT_THAT(dot, HasSubstr("@w f32[2, 2, 1, 1]"));
  EXPECT_EQ(count(dot, " -> "), 6u);  // x to convolution and mul, through relu and add to out
}

TEST(picture, svg_is_escaped_and_balanced) {
  const std::string svg = to_svg(net());
  EXPECT_THAT(svg, HasSubstr("in&lt;&quot;&amp;&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("in<")));
  EXPECT_EQ(count(svg, "<text "), count(svg, "</text>"));
  EXPECT_EQ(count(svg, "<rect ") - 1, 6u);  // x, conv, relu, mul, add, out; the first is the ground
  EXPECT_THAT(svg, HasSubstr("convolution"));
}

TEST(picture, boxes_do_not_overlap_and_lie_inside) {
  builder b;
  auto x = b.input("x", dtype::f32, {3});
  auto sum = x;
  for (int i = 0; i < 12; ++i) sum = sum + (x * static_cast<float>(i)).exp();
  b.output(sum);
  const std::string svg = to_svg(b.finish());
  struct rect {
    double x, y, w, h;
  };
  std::vector<rect> boxes;
  const std::regex each("<rect x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\" rx");
  for (std::sregex_iterator it(svg.begin(), svg.end(), each), end; it != end; ++it)
    boxes.push_back({std::stod((*it)[1]), std::stod((*it)[2]), std::stod((*it)[3]), std::stod((*it)[4])});
  ASSERT_GT(boxes.size(), 30u);
  std::smatch size;
  ASSERT_TRUE(std::regex_search(svg, size, std::regex("width=\"([0-9.]+)\" height=\"([0-9.]+)\" font")));
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].x, 0);
    EXPECT_LE(boxes[i].x + boxes[i].w, std::stod(size[1]));
    EXPECT_LE(boxes[i].y + boxes[i].h, std::stod(size[2]));
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_FALSE(boxes[i].x < boxes[j].x + boxes[j].w && boxes[j].x < boxes[i].x + boxes[i].w &&
                   boxes[i].y < boxes[j].y + boxes[j].h && boxes[j].y < boxes[i].y + boxes[i].h)
          << i << " over " << j;
  }
}

TEST(picture, constants_and_their_views_are_named_in_their_readers_box) {
  builder b;
  const auto x = b.input("x", dtype::f32, {2, 3});
  const auto bias = b.constant(literal::of<float>(shape(dtype::f32, {3}), std::vector<float>{1, 2, 3}));
  b.module()[bias.id().instruction].name = text("layer.bias");
  b.output(x + (bias | op::multibroadcast{{2, 3}}), "y");
  const std::string svg = to_svg(b.finish());
  EXPECT_THAT(svg, HasSubstr(">layer.bias f32[3]<"));
  EXPECT_EQ(count(svg, "<rect ") - 1, 3u) << "x, add, y";
  EXPECT_THAT(svg, Not(HasSubstr("multibroadcast")));
}

TEST(picture, a_constant_that_is_folded_keeps_the_name_of_its_greatest_source) {
  builder b;
  const auto x = b.input("x", dtype::f32, {2, 3});
  auto w = b.constant(literal::of<float>(shape(dtype::f32, {3, 2}), std::vector<float>{1, 2, 3, 4, 5, 6}));
  b.module()[w.id().instruction].name = text("weight");
  auto scale = b.constant(literal::of<float>(shape(dtype::f32, {2}), std::vector<float>{7, 8}));
  b.module()[scale.id().instruction].name = text("scale");
  b.output(x.dot(w * scale), "y");
  program p = b.finish();
  optimize(p);
  EXPECT_THAT(to_svg(p), HasSubstr(">weight f32[3, 2]<"));
}

TEST(picture, a_chain_of_views_is_one_box) {
  builder b;
  const auto x = b.input("x", dtype::f32, {2, 3});
  b.output(x.transpose({1, 0}).reshape({6}).exp(), "y");
  const std::string svg = to_svg(b.finish());
  EXPECT_THAT(svg, HasSubstr(">transpose · reshape<"));
  EXPECT_EQ(count(svg, "<rect ") - 1, 4u) << "x, views, exp, y";
}

TEST(picture, an_edge_over_many_layers_is_a_mark_at_both_ends) {
  builder b;
  const auto x = b.input("x", dtype::f32, {3}).exp();
  auto y = x;
  for (int i = 0; i < 9; ++i) y = y.sin();
  b.output(y + x);
  EXPECT_EQ(count(to_svg(b.finish()), "<circle "), 2u);
}

TEST(picture, a_long_network_is_cut_into_columns) {
  builder b;
  auto x = b.input("x", dtype::f32, {3});
  for (int i = 0; i < 100; ++i) x = x.sin();
  b.output(x);
  std::smatch size;
  const std::string svg = to_svg(b.finish());
  ASSERT_TRUE(std::regex_search(svg, size, std::regex("width=\"([0-9.]+)\" height=\"([0-9.]+)\" font")));
  EXPECT_GT(std::stod(size[1]) / std::stod(size[2]), 0.8);
  EXPECT_EQ(count(svg, "<circle ") % 2, 0u);
  EXPECT_GE(count(svg, "<circle "), 4u);
}

TEST(picture, notes_give_colors_tooltips_and_a_legend) {
  const program p = net();
  picture_notes notes;
  notes.other_color = "#123456";
  notes.caption = "Noise";
  notes.legend = {{"#ff0000", "much <"}, {"#00ff00", "little"}};
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    if (p.main()[i].kind == instruction_kind::op && p.main()[i].op.name() == "relu")
      notes.instructions[i] = {"#ff0000", "relu & co"};
  notes.outputs[0] = {"#00ff00", "out: fine"};
  const std::string svg = to_svg(p, notes);
  EXPECT_THAT(svg, HasSubstr("<title>relu &amp; co</title>\n<rect "));
  EXPECT_THAT(svg, HasSubstr("<title>out: fine</title>"));
  EXPECT_THAT(svg, HasSubstr(">much &lt;<"));
  EXPECT_EQ(count(svg, "fill=\"#ff0000\""), 2u) << "its field and the box";
  EXPECT_EQ(count(svg, "fill=\"#00ff00\""), 2u);
  EXPECT_EQ(count(svg, "fill=\"#123456\""), 4u) << "x, convolution, mul, add";
  EXPECT_EQ(count(svg, "<g>"), count(svg, "</g>"));
  std::smatch size, field;
  ASSERT_TRUE(std::regex_search(svg, size, std::regex("width=\"([0-9.]+)\" height=\"([0-9.]+)\" font")));
  ASSERT_TRUE(std::regex_search(svg, field, std::regex("x=\"([0-9.]+)\" y=\"[0-9.]+\">little<")));
  EXPECT_GT(std::stod(size[1]), std::stod(field[1]) + 30) << "the legend lies inside";
  const auto first_box = svg.find("rx=\"4\"");
  const auto top = svg.rfind("y=\"", first_box);
  EXPECT_GT(std::stod(svg.substr(top + 3)), 30) << "the drawing lies below the legend";
}

TEST(picture, a_program_without_ops) {
  builder b;
  b.output(b.input("x", dtype::f32, {}));
  const program p = b.finish();
  EXPECT_THAT(to_svg(p), HasSubstr(">x<"));
  EXPECT_THAT(to_graphviz(program()), HasSubstr("digraph"));
  EXPECT_THAT(to_svg(program()), HasSubstr("<svg"));
}

}  // namespace
}  // namespace kiln
