#include <filesystem>
#include <fstream>

#include "interface/migraphx/help.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::migraphx {

using namespace test;
using testing::HasSubstr;
using lens = std::vector<std::size_t>;

namespace {

TEST(shape, is_what_its_strides_say) {
  const shape plain(type_t::float_type, {2, 3});
  EXPECT_EQ(plain.strides(), (lens{3, 1}));
  EXPECT_TRUE(plain.standard() && plain.packed() && !plain.transposed() && !plain.broadcasted() && !plain.scalar());
  EXPECT_EQ(plain.bytes(), 24u);
  const shape turned(type_t::float_type, {2, 3}, {1, 2});
  EXPECT_TRUE(turned.transposed() && turned.packed() && !turned.standard());
  EXPECT_EQ(turned.index(1), 2u);
  EXPECT_EQ(turned, shape::permuted(type_t::float_type, {2, 3}, {1, 0}));
  const shape spread(type_t::half_type, {2, 3}, {0, 1});
  EXPECT_TRUE(spread.broadcasted() && !spread.packed() && !spread.standard());
  EXPECT_EQ(spread.bytes(), 6u);
  const shape one(type_t::int8_type);
  EXPECT_TRUE(one.scalar() && one.standard());
  EXPECT_EQ(one.elements(), 1u);
  EXPECT_EQ(to_string(plain), "float_type, {2, 3}, {3, 1}");
  EXPECT_EQ(shape().elements(), 0u);
  EXPECT_EQ(shape::tuple({plain, one}).bytes(), 25u);
}

TEST(shape, may_have_ranges) {
  const shape s(type_t::int64_type, std::vector<dynamic_dimension>{{1, 4, {2, 4}}, {3, 3, {}}});
  EXPECT_TRUE(s.dynamic() && !s.standard());
  EXPECT_EQ(s.ndim(), 2u);
  EXPECT_EQ(s.bytes(), 96u);
  EXPECT_TRUE(s.dyn_dims()[1].is_fixed());
  EXPECT_EQ(shape(type_t::int64_type, {5}).dyn_dims()[0].max, 5u);
  EXPECT_EQ(to_string(s), "int64_type, {[1, 4], [3, 3]}");
  EXPECT_THAT(message([&] { (void)s.lens(); }), HasSubstr("not dynamic"));
  EXPECT_THAT(message([] {
                shape(type_t::float_type, std::vector<dynamic_dimension>{{2, 1, {}}});
              }),
              HasSubstr("range"));
}

TEST(shape, refuses_what_is_no_shape) {
  EXPECT_THAT(message([] { shape(type_t::float_type, {1, 2}, {1}); }), HasSubstr("stride"));
  EXPECT_THAT(message([] { (void)shape(type_t::float_type, {2}).index(2); }), HasSubstr("index"));
  EXPECT_THAT(message([] { (void)shape::permuted(type_t::float_type, {2, 2}, {0, 0}); }), HasSubstr("permutation"));
  EXPECT_THAT(message([] { (void)type_named("complex"); }), HasSubstr("bf16_type"));
  EXPECT_EQ(type_named("float"), type_t::float_type);
  EXPECT_THAT(message([] { (void)checked_type(19); }), HasSubstr("0 to 18"));
  EXPECT_THAT(message([] { (void)dtype_of_type(type_t::fp4x2_type); }), HasSubstr("fp4x2_type"));
  EXPECT_THAT(message([] { argument(shape(type_t::float_type, lens(9, 1))); }), HasSubstr("rank"));
  constexpr std::size_t half = std::size_t{1} << 32, whole = ~std::size_t{0};
  for (const auto& [extents, strides] : std::vector<std::pair<lens, lens>>{{{half, half}, {half, 1}},
                                                                           {{half, half}, {0, 0}},
                                                                           {{3}, {whole / 2 + 1}},
                                                                           {{2, 2}, {whole / 2 + 1, whole / 2}},
                                                                           {{2}, {whole}},
                                                                           {{2}, {whole / 4 + 1}}})
    EXPECT_THAT(message([&] { shape(type_t::float_type, extents, strides); }), HasSubstr("64 bits"));
  EXPECT_THAT(message([] { shape(type_t::double_type, {std::size_t{1} << 61}); }), HasSubstr("64 bits"));
  const shape large(type_t::float_type, {std::size_t{1} << 61});
  EXPECT_THAT(message([&] { (void)shape::tuple({large, large}).bytes(); }), HasSubstr("64 bits"));
  for (std::size_t t = 2; t < type_count; ++t) {
    const auto type = static_cast<type_t>(t);
    EXPECT_EQ(type_of_dtype(dtype_of_type(type)), type);
    EXPECT_EQ(type_named(to_string(type)), type);
  }
}

TEST(argument, is_equal_by_its_elements) {
  float memory[] = {1, 2, 3, 4};
  const shape turned(type_t::float_type, {2, 2}, {1, 2});
  EXPECT_TRUE(argument(turned, memory) == argument(turned, std::vector<float>{1, 2, 3, 4}.data()));
  EXPECT_FALSE(argument(turned, memory) == argument(shape(type_t::float_type, {2, 2}), memory));
  EXPECT_EQ(of(fill_argument(turned, 3)), numbers(4, 3));
  EXPECT_EQ(generate_argument(turned, 1), generate_argument(turned, 1));
  const argument pair = argument::tuple({floats({1}, {1}), integers({1}, {2})});
  EXPECT_EQ(pair, argument::tuple({floats({1}, {1}), integers({1}, {2})}));
  EXPECT_EQ(pair.get_shape().parts().size(), 2u);
}

TEST(argument, has_memory_for_ranges_of_extents) {
  const shape s(type_t::float_type, std::vector<dynamic_dimension>{{1, 4, {}}, {3, 3, {}}});
  const argument a(s), b(s);
  EXPECT_EQ(a.value().elements(), 12);
  EXPECT_TRUE(a == b);
  a.data()[47] = 1;
  EXPECT_FALSE(a == b);
  constexpr std::size_t many = std::size_t{1} << 40;
  EXPECT_THAT(message([] {
                argument(shape(type_t::float_type, std::vector<dynamic_dimension>{{1, many, {}}, {1, many, {}}}));
              }),
              HasSubstr("greatest extents"));
}

TEST(argument, borrows_memory_that_is_there) {
  EXPECT_THAT(message([] { argument(shape(type_t::float_type, {2}), nullptr); }), HasSubstr("the address 0"));
  EXPECT_EQ(argument(shape(type_t::float_type, {0, 2}), nullptr).get_shape().elements(), 0u);
}

TEST(argument, is_read_from_files_of_arguments_alone) {
  const kiln::test::temporary_folder folder;
  const std::string file = folder / "argument.msgpack";
  const argument inner = argument::tuple({floats({1}, {1}), integers({2}, {2, 3})});
  save_argument(argument::tuple({inner, inner}), file);
  EXPECT_TRUE(load_argument(file) == argument::tuple({inner, inner}));
  for (const std::string& bytes : {std::string(1 << 20, '\x91'), std::string(1 << 20, '\x81'), std::string("\x93\x01"),
                                   std::string("\x81\xa1x\x01"), std::string()}) {
    std::ofstream(file, std::ios::binary) << bytes;
    EXPECT_THAT(message([&] { load_argument(file); }), HasSubstr("holds an argument in MessagePack")) << bytes.size();
  }
  std::ofstream(file, std::ios::binary) << std::string(100, '\x91');
  EXPECT_THAT(message([&] { load_argument(file); }), HasSubstr("at most 32 values within another"));
  std::filesystem::remove(file);
  EXPECT_THAT(message([&] { load_argument(file); }), HasSubstr(file));
}

TEST(attributes, are_read_from_text) {
  EXPECT_EQ(parse_attributes("{lengths: [1, 2], padding: [0,0], mode: average}").dump(),
            R"({"lengths":[1,2],"padding":[0,0],"mode":"average"})");
  EXPECT_EQ(parse_attributes("{\"axes\" : [1, 2, 3, 4]}  ").dump(), R"({"axes":[1,2,3,4]})");
  EXPECT_EQ(parse_attributes(" ").dump(), "{}");
  EXPECT_EQ(parse_attributes("axis: -1, alpha: 1e-3, flag: true, none: null, s: {a: 'b c'}, l: [[], [x]],").dump(),
            R"({"axis":-1,"alpha":0.001,"flag":true,"none":null,"s":{"a":"b c"},"l":[[],["x"]]})");
  for (const auto& [text, place] :
       std::vector<std::pair<std::string, std::string>>{{"{axes: [1, 2}", "expected ',' or ']' at character 13"},
                                                        {"{axes [1]}", "expected ':' at character 7"},
                                                        {"{a: 1} x", "expected the end at character 8"},
                                                        {"{a: 'b", "closing quote"},
                                                        {"{a: 1x}", "expected a number at character 5"},
                                                        {"{a: }", "expected a value"},
                                                        {"{a: 1, a: 2}", "second 'a'"},
                                                        {"{a: 1e999}", "a double holds"},
                                                        {std::string(40, '{'), "name"},
                                                        {"{a:" + std::string(40, '['), "fewer nested"}})
    EXPECT_THAT(message([&] { parse_attributes(text); }), HasSubstr(place)) << text;
}

TEST(operation, has_what_its_operator_has) {
  EXPECT_EQ(to_string(operation("softmax")), "softmax[axis=1]");
  EXPECT_EQ(operation("softmax", {{"axis", 2}}).values().at("axis"), 2);
  EXPECT_THAT(message([] { operation("softmox"); }), HasSubstr("'softmax'"));
  EXPECT_THAT(message([] { operation("softmax", {{"axes", 1}}); }), HasSubstr("no attribute 'axes'; it has axis"));
  EXPECT_THAT(message([] { operation("softmax", {{"axis", "x"}}); }), HasSubstr("expected a whole number"));
  EXPECT_THAT(message([] { operation("gather", attributes::array({1})); }), HasSubstr("by name"));
  EXPECT_THAT(message([] { operation("group"); }), HasSubstr("not covered"));
  EXPECT_EQ(operation("reduce_sum", {{"axes", 1}}).values().at("axes").dump(), "[1]");
}

// What MIGraphX's sources name.
constexpr std::string_view known[] = {"abs",
                                      "acos",
                                      "acosh",
                                      "add",
                                      "allocate",
                                      "argmax",
                                      "argmin",
                                      "as_shape",
                                      "asin",
                                      "asinh",
                                      "atan",
                                      "atanh",
                                      "batch_norm_inference",
                                      "bit_cast",
                                      "bitwise_and",
                                      "broadcast",
                                      "broadcast_for_dot",
                                      "broadcast_with_dims",
                                      "capture",
                                      "ceil",
                                      "clip",
                                      "concat",
                                      "concat_past_present",
                                      "contiguous",
                                      "convert",
                                      "convolution",
                                      "convolution_backwards",
                                      "cos",
                                      "cosh",
                                      "deconvolution",
                                      "dequantizelinear",
                                      "dimensions_of",
                                      "div",
                                      "dot",
                                      "dynamic_range",
                                      "elu",
                                      "equal",
                                      "erf",
                                      "exp",
                                      "fill",
                                      "fixed_pad",
                                      "flatten",
                                      "floor",
                                      "fmod",
                                      "gather",
                                      "gathernd",
                                      "get_tuple_elem",
                                      "gqa_rotary_embedding",
                                      "greater",
                                      "gridsample",
                                      "group",
                                      "group_query_attention",
                                      "gru",
                                      "identity",
                                      "if",
                                      "im2col",
                                      "isinf",
                                      "isnan",
                                      "layout",
                                      "leaky_relu",
                                      "less",
                                      "load",
                                      "log",
                                      "log2",
                                      "logical_and",
                                      "logical_or",
                                      "logical_xor",
                                      "logsoftmax",
                                      "loop",
                                      "lrn",
                                      "lstm",
                                      "max",
                                      "min",
                                      "mod",
                                      "mul",
                                      "multibroadcast",
                                      "multinomial",
                                      "nearbyint",
                                      "neg",
                                      "nonmaxsuppression",
                                      "nonzero",
                                      "not",
                                      "onehot",
                                      "outline",
                                      "pack_fp4",
                                      "pack_int4",
                                      "pad",
                                      "pointwise",
                                      "pooling",
                                      "pow",
                                      "prefix_scan_sum",
                                      "prelu",
                                      "quant_convolution",
                                      "quant_dot",
                                      "quantizelinear",
                                      "random_seed",
                                      "random_uniform",
                                      "recip",
                                      "reduce_all",
                                      "reduce_any",
                                      "reduce_max",
                                      "reduce_mean",
                                      "reduce_min",
                                      "reduce_prod",
                                      "reduce_sum",
                                      "relu",
                                      "reshape",
                                      "reshape_lazy",
                                      "resize",
                                      "reverse",
                                      "rnn",
                                      "rnn_last_cell_output",
                                      "rnn_last_hs_output",
                                      "rnn_var_sl_last_output",
                                      "rnn_var_sl_shift_output",
                                      "rnn_var_sl_shift_sequence",
                                      "roialign",
                                      "rsqrt",
                                      "run_on_target",
                                      "scalar",
                                      "scan_slice",
                                      "scatter_add",
                                      "scatter_max",
                                      "scatter_min",
                                      "scatter_mul",
                                      "scatter_none",
                                      "scatternd_add",
                                      "scatternd_max",
                                      "scatternd_min",
                                      "scatternd_mul",
                                      "scatternd_none",
                                      "select_module",
                                      "sigmoid",
                                      "sign",
                                      "sin",
                                      "sinh",
                                      "slice",
                                      "softmax",
                                      "sqdiff",
                                      "sqrt",
                                      "squeeze",
                                      "step",
                                      "sub",
                                      "tan",
                                      "tanh",
                                      "topk",
                                      "transpose",
                                      "undefined",
                                      "unique",
                                      "unpack_fp4",
                                      "unpack_int4",
                                      "unsqueeze",
                                      "where"};

TEST(operation, is_covered_or_says_why_not) {
  const auto covered = covered_operators();
  const auto uncovered = uncovered_operators();
  EXPECT_EQ(std::adjacent_find(covered.begin(), covered.end()), covered.end());
  for (const std::string_view name : known) {
    const bool is = std::binary_search(covered.begin(), covered.end(), name);
    const auto why = std::find_if(uncovered.begin(), uncovered.end(), [&](const auto& u) { return u.name == name; });
    EXPECT_NE(is, why != uncovered.end()) << name;
    if (!is)
      EXPECT_THAT(message([&] { operation{std::string(name)}; }), HasSubstr(why->reason)) << name;
    else
      EXPECT_EQ(message([&] { operation{std::string(name)}; }), "") << name;
  }
}

}  // namespace
}  // namespace kiln::migraphx
