#include "kiln/interface/migraphx/quantize.hpp"

#include "interface/migraphx/line.hpp"

namespace kiln::migraphx {

using namespace test;
using testing::HasSubstr;

namespace {

TEST(program, computes_in_fewer_bits) {
  for (const bool half : {true, false}) {
    program p = line(three);
    half ? quantize_fp16(p) : quantize_bf16(p);
    EXPECT_THAT(p.text_of(), HasSubstr(half ? "half_type" : "bf16_type"));
    EXPECT_EQ(p.output_shapes().at(0), three);
    const numbers out = of(p.run({{"x", floats({3}, {1, 1.001, 2})}}).at(0));
    EXPECT_EQ(out[0], 3);
    EXPECT_NE(out[1], 1.001f * 2 + 1);
    EXPECT_NEAR(out[1], 3.002, .02);
  }
  program some = line(three);
  quantize_fp16(some, {"dot"});
  EXPECT_THAT(some.text_of(), testing::Not(HasSubstr("half_type")));
  program large;
  module& m = large.main_module();
  const auto x = m.add_parameter("x", three);
  m.add_return({m.add_instruction(operation("add"), {x, m.add_literal(floats({3}, {1e5, 0, 0}))})});
  quantize_fp16(large);
  ASSERT_EQ(large.remarks().size(), 1u);
  EXPECT_THAT(large.remarks()[0], HasSubstr("stays in f32"));
  EXPECT_EQ(of(large.run({{"x", floats({3}, {1, 1, 1})}}).at(0)), numbers({100001, 1, 1}));
  large.compile(target("ref"));
  EXPECT_THAT(message([&] { quantize_bf16(large); }), HasSubstr("before it is compiled"));
  program p = line(three);
  quantize_int8(p, target("ref"), {{}, {{{"x", floats({3}, {1, 2, 3})}}}});
  EXPECT_THAT(p.remarks().back(), HasSubstr("f32 with constant weights"));
  EXPECT_THAT(message([&] { quantize_int8(p, target("ref"), {}); }), HasSubstr("calibration data"));
  EXPECT_THAT(message([&] { quantize_int8(p, target("ref"), {{"add"}, {{}}}); }), HasSubstr("'add'"));
  EXPECT_THAT(message([&] { quantize_fp8(p, target("ref"), {}); }), HasSubstr("fp8 has calibration data"));
  program none = line(three);
  quantize_fp8(none, target("ref"), {{{{"x", floats({3}, {1, 2, 3})}}}});
  EXPECT_THAT(none.remarks().back(), HasSubstr("fp8 is of dots"));
}

TEST(program, computes_in_bytes_by_calibrated_ranges) {
  program p;
  module& m = p.main_module();
  const auto x = m.add_parameter("x", shape(type_t::float_type, {2, 2}));
  m.add_return({m.add_instruction(operation("dot"), {x, m.add_literal(floats({2, 2}, {1, .5, -.25, 1}))})});
  const argument in = floats({2, 2}, {1, 2, -2, .5});
  quantize_int8_options options;
  EXPECT_NE(message([&] { quantize_int8(p, target("ref"), {{}, {{}}}); }), "");  // without the parameter
  options.calibration = {{{"x", in}}};
  quantize_int8(p, target("ref"), options);
  EXPECT_THAT(p.text_of(), HasSubstr("int8_type"));
  p.compile(target("cpu"));
  EXPECT_THAT(of(p.run({{"x", in}}).at(0)),
              testing::Pointwise(testing::DoubleNear(.05), numbers({.5, 2.5, -2.125, -.5})));
  EXPECT_THAT(message([&] { quantize_int8(p, target("ref"), options); }), HasSubstr("before it is compiled"));
}

TEST(program, computes_in_floats_of_eight_bits_by_calibrated_ranges) {
  program p;
  module& m = p.main_module();
  const auto x = m.add_parameter("x", shape(type_t::float_type, {2, 2}));
  m.add_return({m.add_instruction(operation("dot"), {x, m.add_literal(floats({2, 2}, {1, .5, -.25, 1}))})});
  const argument in = floats({2, 2}, {1, 2, -2, .53});
  EXPECT_NE(message([&] { quantize_fp8(p, target("ref"), {{{}}}); }), "");  // without the parameter
  quantize_fp8(p, target("ref"), {{{{"x", in}}}});
  EXPECT_THAT(p.text_of(), HasSubstr("fp8e4m3fn_type"));
  p.compile(target("cpu"));
  const numbers out = of(p.run({{"x", in}}).at(0));
  EXPECT_THAT(out, testing::Pointwise(testing::DoubleNear(.1), numbers({.5, 2.5, -2.1325, -.47})));
  EXPECT_NE(out[3], -.47f);  // it is rounded
}

}  // namespace
}  // namespace kiln::migraphx
