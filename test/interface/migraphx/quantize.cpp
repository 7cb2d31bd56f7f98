#include "kiln/interface/migraphx/quantize.hpp"

#include <filesystem>

#include "interface/migraphx/line.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/interface/migraphx/onnx.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/quantize/quantizer.hpp"
#include "kiln/quantize/table.hpp"
#include "support/temporary_folder.hpp"

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

const std::string digits = "examples/models/digits/";

program network() {
  onnx_options options;
  options.default_dim_value = 128;
  return parse_onnx(digits + "model.onnx", options);
}

// What the network computes on the CPU of the scans that it is calibrated with.
argument rows(program& p, const parameter_map& scans) {
  p.compile(target("cpu"));
  return p.run(scans).at(0);
}

// Acceptance check C-7: the table that calibration of the model writes, in each form.
TEST(program, a_table_gives_the_bits_that_calibration_data_gives) {
  const eigen_target on;
  const kiln::test::temporary_folder folder;
  const std::string table = folder / "table";
  const kiln::argument scans = onnx::read_tensor(digits + "calibration.pb").value;
  const parameter_map data{{"image", argument(scans)}};
  onnx::import_options as_parsed;
  as_parsed.dimensions = {{"batch", 128}};
  const auto source = onnx::read_model(digits + "model.onnx", as_parsed).graph;
  for (const auto to : {quantize::precision::int8, quantize::precision::fp8}) {
    const auto quantized = [&](const std::vector<parameter_map>& samples, const std::string& file) {
      program p = network();
      to == quantize::precision::int8 ? quantize_int8(p, target("cpu"), {{}, samples, file})
                                      : quantize_fp8(p, target("cpu"), {samples, file});
      return rows(p, data);
    };
    const argument direct = quantized({data}, {});
    quantize::quantizer_options options;
    options.how.to = to;
    const quantize::ranges known = quantize::quantizer(source, options, on).calibrate([&, left = 1]() mutable {
      return left-- > 0 ? std::optional(quantize::sample{{"image", scans}}) : std::nullopt;
    });
    for (const quantize::table_form form : quantize::table_forms) {
      quantize::write_table(table, known, form);
      EXPECT_EQ(of(quantized({}, table)), of(direct)) << to_string(to) << ' ' << to_string(form);
    }
    program exact = network();
    EXPECT_NE(of(direct), of(rows(exact, data)));
    quantize::ranges half = known;
    for (auto& [name, r] : half) r.whole = {r.whole.low / 2, r.whole.high / 2};
    quantize::write_table(table, half, quantize::table_form::json);
    EXPECT_NE(of(quantized({}, table)), of(direct)) << "a table is read";
    EXPECT_THAT(message([&] { quantized({data}, table); }), HasSubstr("samples have no use: ranges are given"));
    EXPECT_THAT(message([&] { quantized({}, "no/such/table"); }), HasSubstr("no/such/table"));
  }
  std::filesystem::remove(table);
}

TEST(program, keeps_matrices_in_four_bits) {
  program p, none = line(three);
  module& m = p.main_module();
  numbers weights(64 * 32);
  for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = static_cast<double>(k * 37 % 101) / 50 - 1;
  const auto x = m.add_parameter("x", shape(type_t::float_type, {1, 64}));
  m.add_return({m.add_instruction(operation("dot"), {x, m.add_literal(floats({64, 32}, weights))})});
  program exact = p.clone();
  quantize_int4_weights(p);
  EXPECT_THAT(p.text_of(), HasSubstr("block_dequantize"));
  const parameter_map in{{"x", floats({1, 64}, numbers(64, 1))}};
  EXPECT_EQ(p.output_shapes().at(0), exact.output_shapes().at(0));
  const numbers near = of(rows(p, in)), all = of(rows(exact, in));
  EXPECT_NE(near, all);
  EXPECT_THAT(near, testing::Pointwise(testing::DoubleNear(64 * .5 * 2 / 15), all));  // half a step for each weight
  EXPECT_THAT(message([&] { quantize_int4_weights(p); }), HasSubstr("before it is compiled"));
  EXPECT_NE(message([&] { quantize_int4_weights(none); }), "");
}

}  // namespace
}  // namespace kiln::migraphx
