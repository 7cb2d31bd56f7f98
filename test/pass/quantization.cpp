#include "kiln/pass/dead_code.hpp"
#include "kiln/pass/expand_quantization.hpp"
#include "kiln/pass/insert_quantization.hpp"
#include "kiln/pass/integer_products.hpp"
#include "pass/count_of.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

literal floats(const dims& lens, const std::vector<float>& x) { return literal::of<float>({dtype::f32, lens}, x); }

small_vector<float> only_result(const program& p, const literal& x) { return evaluate(p, {x})[0].to<float>(); }

TEST(quantize_linear, rounds_half_to_even_shifts_and_saturates) {
  builder b;
  const value x = b.input("x", dtype::f32, {8});
  b.output(b.add(op::quantize_linear{dtype::u8}, x, b.scalar(dtype::f32, .5), b.scalar(dtype::u8, 10)));
  b.output(b.add(op::quantize_linear{dtype::i8}, x, b.scalar(dtype::f32, .5)));
  const program p = b.finish();
  const auto out = evaluate(p, {floats({8}, {0, .25F, .75F, -.25F, -6, 1000, -1000, 1.3F})});
  EXPECT_EQ(out[0].to<float>(), (small_vector<float>{10, 10, 12, 10, 0, 255, 0, 13}));
  EXPECT_EQ(out[1].to<float>(), (small_vector<float>{0, 0, 2, 0, -12, 127, -128, 3}));
}

TEST(quantize_linear, floats_of_eight_bits_are_rounded_once_and_saturate) {
  builder b;
  const value x = b.input("x", dtype::f32, {6});
  for (const dtype t : {dtype::f8e4m3fn, dtype::f8e5m2}) {
    const value stored = b.add(op::quantize_linear{t}, x, b.scalar(dtype::f32, .5));
    b.output(b.add(op::dequantize_linear{0}, stored, b.scalar(dtype::f32, .5)));
  }
  const auto out = evaluate(b.finish(), {floats({6}, {0, .53125F, 1e9F, -1e9F, -3.3F, 1})});
  EXPECT_EQ(out[0].to<float>(), (small_vector<float>{0, .5F, 224, -224, -3.25F, 1}));
  EXPECT_EQ(out[1].to<float>(), (small_vector<float>{0, .5F, 28672, -28672, -3.5F, 1}));
}

TEST(quantize_linear, scales_along_an_axis) {
  builder b;
  const value x = b.input("x", dtype::f32, {2, 3}),
              scale = b.constant<float>(dtype::f32, {3}, std::vector<float>{1, 2, 4}),
              zero = b.constant<int>(dtype::i8, {3}, std::vector<int>{0, 1, -1});
  const value stored = b.add(op::quantize_linear{dtype::i8, -1}, x, scale, zero);
  b.output(stored);
  b.output(b.add(op::dequantize_linear{1}, stored, scale, zero));
  const auto out = evaluate(b.finish(), {floats({2, 3}, {3, 3, 3, -8, -8, -9})});
  EXPECT_EQ(out[0].to<float>(), (small_vector<float>{3, 3, 0, -8, -3, -3}));
  EXPECT_EQ(out[1].to<float>(), (small_vector<float>{3, 4, 4, -8, -8, -8}));
}

TEST(quantize_linear, faults_say_what_is_wrong) {
  const auto fault_of = [](const auto& op, std::vector<shape> in) {
    const auto made = op.compute_shape(in);
    return made ? std::string() : error(made.why()).what();
  };
  const shape x{dtype::f32, {2, 3}}, number{dtype::f32, {}}, two{dtype::f32, {2}};
  EXPECT_EQ(fault_of(op::quantize_linear{}, {x, number}), "");
  EXPECT_NE(fault_of(op::quantize_linear{dtype::u8, 1}, {x, two}).find("a scale for each index"), std::string::npos);
  EXPECT_NE(fault_of(op::quantize_linear{dtype::u8, 2}, {x, two}).find("axis"), std::string::npos);
  EXPECT_NE(fault_of(op::quantize_linear{dtype::f16}, {x, number}).find("16 bits"), std::string::npos);
  EXPECT_NE(fault_of(op::quantize_linear{dtype::u8}, {x, number, {dtype::i8, {}}}).find("zero point"),
            std::string::npos);
  EXPECT_NE(fault_of(op::quantize_linear{dtype::u8}, {x, number, {dtype::u8, {1}}}).find("zero points"),
            std::string::npos);
  EXPECT_NE(fault_of(op::dequantize_linear{}, {x, number}).find("dequantized"), std::string::npos);
  EXPECT_NE(fault_of(op::dequantize_linear{}, {{dtype::u8, {2}}, {dtype::f16, {}}}).find("scales"), std::string::npos);
}

// The pointwise ops give what the op's own computation gives, for each type, with and without zero points.
TEST(expand_quantization, keeps_every_value) {
  dice d{11};
  for (const dtype t : {dtype::u8, dtype::i8, dtype::u16, dtype::i16, dtype::u4, dtype::i4, dtype::f8e4m3fn,
                        dtype::f8e5m2, dtype::f8e4m3fnuz, dtype::f8e5m2fnuz})
    for (const bool vector : {false, true})
      for (const bool shifted : {false, true}) {
        const auto build = [&](builder& b) {
          const value x = b.input("x", dtype::f32, {4, 3});
          const value scale =
              vector ? b.constant<float>(dtype::f32, {3}, std::vector<float>{.01F, .3F, 7}) : b.scalar(dtype::f32, .1);
          const value zero = vector ? b.constant<int>(t, {3}, std::vector<int>{0, 1, 3}) : b.scalar(t, 3);
          const value stored =
              shifted ? b.add(op::quantize_linear{t, 1}, x, scale, zero) : b.add(op::quantize_linear{t, 1}, x, scale);
          b.output(stored);
          b.output(shifted ? b.add(op::dequantize_linear{1}, stored, scale, zero)
                           : b.add(op::dequantize_linear{1}, stored, scale));
        };
        program expanded = built<builder>(build);
        EXPECT_EQ(expand_quantization(expanded).counts.total(), 2u);
        verify(expanded);
        EXPECT_EQ(count_of(expanded, "quantize_linear") + count_of(expanded, "dequantize_linear"), 0u);
        const literal x = random_literal({dtype::f32, {4, 3}}, d);
        const auto a = evaluate(built<builder>(build), {x}), b = evaluate(expanded, {x});
        for (std::size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(identical(a[k], b[k])) << to_string(t);
      }
}

// An i32 less its zero point needs more bits than i32 has.
TEST(expand_quantization, i32_less_a_zero_point_does_not_overflow) {
  const auto build = [](builder& b) {
    const value x = b.input("x", dtype::i32, {2});
    b.output(b.add(op::dequantize_linear{0}, x, b.scalar(dtype::f32, 1), b.scalar(dtype::i32, -2000000000)));
  };
  program p = built<builder>(build);
  expand_quantization(p);
  const literal x = literal::of<std::int64_t>({dtype::i32, {2}}, std::vector<std::int64_t>{2000000000, -2000000000});
  EXPECT_EQ(only_result(p, x), (small_vector<float>{4e9F, 0}));
  EXPECT_EQ(only_result(built<builder>(build), x), (small_vector<float>{4e9F, 0}));
}

// A network of a convolution, its bias and relu, and a product.
void small_network(builder& b) {
  dice d{5};
  const auto weights = [&](const dims& lens) { return b.constant(random_literal({dtype::f32, lens}, d)); };
  const value x = b.input("x", dtype::f32, {1, 3, 6, 6});
  value y = x.conv(weights({4, 3, 3, 3}), {.pads = {1, 1, 1, 1}}).add_along(1, weights({4})).relu();
  b.output(y.reshape({1, 144}).dot(weights({144, 5})) + weights({5}));
}

quantization_plan plan_of(program& p, float range) {
  quantization_plan plan{.products = quantizable_products(p.main())};
  for (const value_id v : plan.products) {
    const value_id x = quantized_operand(p.main(), v);
    plan.values.push_back({x, dtype::u8, range / 127.5F, 128});
    range *= 12;
  }
  return plan;
}

TEST(insert_quantization, products_read_integers_and_stay_near) {
  const program before = built<builder>(small_network);
  program p = before;
  const quantization_plan plan = plan_of(p, 2);
  ASSERT_EQ(plan.products.size(), 2u);
  const pass_note note = insert_quantization(p, plan);
  EXPECT_EQ(note.counts.total(), 4u);
  verify(p);
  EXPECT_EQ(count_of(p, "quantize_linear"), 2u);
  EXPECT_EQ(count_of(p, "dequantize_linear"), 4u);
  dice d{7};
  const literal x = random_literal({dtype::f32, {1, 3, 6, 6}}, d);
  const auto exact = only_result(before, x), near = only_result(p, x);
  float most = 0, error = 0;
  for (std::size_t k = 0; k < exact.size(); ++k) {
    most = std::max(most, std::abs(exact[k]));
    error = std::max(error, std::abs(exact[k] - near[k]));
  }
  EXPECT_LT(error, .02F * most);
  EXPECT_GT(error, 0);
  expand_quantization(p);
  integer_products(p);
  dead_code(p);
  EXPECT_EQ(count_of(p, "integer_dot"), 1u);
  EXPECT_EQ(count_of(p, "integer_convolution"), 1u);
  const auto integers = only_result(p, x);
  for (std::size_t k = 0; k < near.size(); ++k) EXPECT_NEAR(near[k], integers[k], 1e-4F * most);
}

// Bytes that a program dequantizes itself are not quantized again; the weights of their products are.
TEST(insert_quantization, what_is_dequantized_already_stays) {
  for (const bool expanded : {false, true})
    for (const bool shifted : {false, true}) {
      program p = built<builder>([&](builder& b) {
        dice d{5};
        const value x = b.input("x", dtype::u8, {2, 8}), scale = b.scalar(dtype::f32, .5);
        const value real = shifted ? b.add(op::dequantize_linear{0}, x, scale, b.scalar(dtype::u8, 3))
                                   : b.add(op::dequantize_linear{0}, x, scale);
        b.output(real.reshape({4, 4}).dot(b.constant(random_literal({dtype::f32, {4, 2}}, d))));
      });
      if (expanded) expand_quantization(p);
      const auto products = quantizable_products(p.main());
      ASSERT_EQ(products.size(), 1u);
      const auto bytes = dequantized_bytes(p.main(), quantized_operand(p.main(), products[0]));
      ASSERT_TRUE(bytes) << print(p).view();
      EXPECT_EQ(bytes->scale, .5F);
      EXPECT_EQ(bytes->zero, shifted ? 3 : 0);
      insert_quantization(p, {products, {}});
      EXPECT_EQ(count_of(p, "quantize_linear"), 0u);
      expand_quantization(p);
      integer_products(p);
      dead_code(p);
      EXPECT_EQ(count_of(p, "integer_dot"), 1u) << print(p).view();
    }
}

TEST(insert_quantization, only_bytes_with_one_scale_and_zero_point_are_dequantized) {
  const auto bytes_of = [](const auto& build) {
    const program p = built<builder>([&](builder& b) { b.output(build(b)); });
    return dequantized_bytes(p.main(), p.main().outputs[0]);
  };
  const auto wide = [](builder& b) { return b.input("x", dtype::u8, {2}).convert(dtype::i32); };
  const auto simplified = bytes_of([&](builder& b) { return (wide(b) + -128).convert(dtype::f32); });
  ASSERT_TRUE(simplified);
  EXPECT_EQ(simplified->scale, 1);
  EXPECT_EQ(simplified->zero, 128);
  EXPECT_FALSE(bytes_of([&](builder& b) { return (wide(b) + 5).convert(dtype::f32); }));
  EXPECT_FALSE(bytes_of([&](builder& b) { return wide(b).convert(dtype::f32) - .5f; }));
  EXPECT_FALSE(bytes_of([&](builder& b) {  // wraps below 0
    return (b.input("x", dtype::u8, {2}).convert(dtype::u16) - b.scalar(dtype::u16, 3)).convert(dtype::f32);
  }));
  EXPECT_FALSE(bytes_of([&](builder& b) { return wide(b).convert(dtype::f32) * -1.0f; }));
  EXPECT_FALSE(bytes_of([&](builder& b) { return wide(b).convert(dtype::f32) * b.input("y", dtype::f32, {2}); }));
  EXPECT_FALSE(bytes_of([](builder& b) { return b.input("x", dtype::f32, {2}) * 2.0f; }));
  EXPECT_FALSE(bytes_of([](builder& b) { return b.input("x", dtype::i16, {2}).convert(dtype::f32) * 2.0f; }));
}

TEST(insert_quantization, one_of_several_instructions_of_a_name_keeps_the_name_to_the_last) {
  program p = built<builder>([](builder& b) {
    dice d{5};
    b.label = text("node");
    const value x = b.input("x", dtype::f32, {2, 4}).tanh();
    const value y = x.dot(b.constant(random_literal({dtype::f32, {4, 2}}, d)));
    b.output(y.relu());
  });
  const auto products = quantizable_products(p.main());
  insert_quantization(p, {products, {{quantized_operand(p.main(), products[0]), dtype::u8, .1F, 3}}});
  const module_graph& m = p.main();
  for (const std::uint32_t i : m.order())
    if (m[i].kind == instruction_kind::op && m[i].op.is<op::quantize_linear>()) {
      EXPECT_TRUE(m[i].name.empty()) << print(p).view();
    }
}

TEST(insert_quantization, a_channel_has_the_scale_of_its_greatest_weight) {
  const auto scales = [](bool per_channel, bool reduced) {
    program p = built<builder>([](builder& b) {
      const value x = b.input("x", dtype::f32, {1, 2});
      b.output(x.dot(b.constant<float>(dtype::f32, {2, 3}, std::vector<float>{1, -127, 0, -.5F, 2, 0})));
    });
    const value_id x = p.main().parameters()[0];
    insert_quantization(
        p,
        {quantizable_products(p.main()), {{x, dtype::u8, .1F, 3}}, {.per_channel = per_channel, .reduced = reduced}});
    const module_graph& m = p.main();
    std::vector<small_vector<float>> out;
    for (const std::uint32_t i : m.order())
      if (m[i].kind == instruction_kind::op && m[i].op.is<op::dequantize_linear>() && m[i].inputs.size() == 2)
        for (const value_id v : m[i].inputs) out.push_back(m.producer(v).constant.to<float>());
    return out;
  };
  using lists = std::vector<small_vector<float>>;
  EXPECT_EQ(scales(true, false), (lists{{127, -127, 0, -64, 2, 0}, {1.0F / 127, 1, 1}}));
  EXPECT_EQ(scales(false, false), (lists{{1, -127, 0, 0, 2, 0}, {1}}));
  EXPECT_EQ(scales(true, true), (lists{{64, -64, 0, -32, 1, 0}, {1.0F / 64, 127.0F / 64, 1}}));
}

TEST(insert_quantization, outputs_and_infinite_weights_stay) {
  program p = built<builder>([](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 2}).relu();
    const float inf = std::numeric_limits<float>::infinity();
    b.output(x.dot(b.constant<float>(dtype::f32, {2, 1}, std::vector<float>{1, inf})));
    b.output(x);
  });
  const value_id x = p.main().outputs[1];
  const pass_note note = insert_quantization(p, {quantizable_products(p.main()), {{x, dtype::u8, .5F, 0}}});
  ASSERT_EQ(note.remarks.size(), 1u);
  EXPECT_NE(note.remarks[0].view().find("not all finite"), std::string_view::npos);
  EXPECT_EQ(count_of(p, "dequantize_linear"), 1u);
  const auto out = evaluate(p, {floats({1, 2}, {.6F, -1})});
  EXPECT_EQ(out[1].to<float>(), (small_vector<float>{.6F, 0}));
}

TEST(dynamic_quantize_linear, expands_to_the_same) {
  for (const dims& lens : {dims{2, 3}, dims{5}, dims{}}) {
    const auto build = [&](builder& b) {
      const value y = b.add(op::dynamic_quantize_linear{}, b.input("x", dtype::f32, lens));
      for (std::size_t k = 0; k < 3; ++k) b.output(y.result(k));
    };
    program p = built<builder>(build);
    EXPECT_EQ(expand_quantization(p).counts.entries[0].name, "dynamic_quantize_linear");
    verify(p);
    EXPECT_EQ(count_of(p, "dynamic_quantize_linear") + count_of(p, "quantize_linear"), 0u);
    dice d{5};
    const literal zeros = literal::of<float>({dtype::f32, lens}, std::vector<float>(6, 0)),
                  any = random_literal({dtype::f32, lens}, d);
    for (const literal& x : {zeros, any}) {
      const auto a = evaluate(built<builder>(build), {x}), b = evaluate(p, {x});
      for (std::size_t k = 0; k < 3; ++k) EXPECT_TRUE(identical(a[k], b[k])) << k;
    }
  }
  // the standard's example: from -3 to 2.5
  builder b;
  const value y = b.add(op::dynamic_quantize_linear{}, b.input("x", dtype::f32, {6}));
  for (std::size_t k = 0; k < 3; ++k) b.output(y.result(k));
  const auto out = evaluate(b.finish(), {floats({6}, {0, 2, -3, -2.5F, 1.34F, .5F})});
  EXPECT_EQ(out[0].to<float>(), (small_vector<float>{153, 255, 0, 26, 221, 179}));
  EXPECT_FLOAT_EQ(out[1].to<float>()[0], .0196078438F);
  EXPECT_EQ(out[2].to<float>()[0], 153);
}

// For a target with a kernel of its own it stays, save where a convolution reads the bytes.
TEST(dynamic_quantize_linear, stays_where_products_of_matrices_read_it) {
  program p = built<builder>([](builder& b) {
    const value x = b.add(op::dynamic_quantize_linear{}, b.input("x", dtype::f32, {1, 3, 4, 4}));
    b.output(b.add(op::centered_dot{}, x.result(0), b.input("w", dtype::i8, {1, 3, 4, 5}), x.result(2)));
    const value image = b.add(op::dynamic_quantize_linear{}, b.input("image", dtype::f32, {1, 3, 4, 4}));
    const value centered =
        image.result(0).convert(dtype::i32) - image.result(2).convert(dtype::i32).broadcast_to({1, 3, 4, 4});
    b.output(centered.conv(b.input("filters", dtype::i32, {2, 3, 1, 1})));
    b.output(x.result(0));
  });
  const auto in = random_inputs(p, 4);
  const auto before = evaluate(p, in);
  EXPECT_EQ(expand_quantization(p, true).counts.total(), 4u);  // the image, its zero point and numbers; the product
  verify(p);
  EXPECT_EQ(count_of(p, "dynamic_quantize_linear"), 1u);
  EXPECT_EQ(expand_quantization(p, true).counts.total(), 0u);
  const auto after = evaluate(p, in);
  for (std::size_t k = 0; k < before.size(); ++k) EXPECT_TRUE(identical(before[k], after[k])) << k;
  expand_quantization(p);
  EXPECT_EQ(count_of(p, "dynamic_quantize_linear"), 0u);
}

TEST(zero_point_sums, are_products_with_one_number) {
  builder b;
  const value sums = b.input("sums", dtype::i32, {4});
  b.output(b.add(op::zero_point_sums{}, sums, b.scalar(dtype::u8, 200)));
  b.output(b.add(op::zero_point_sums{}, sums, b.scalar(dtype::i8, -3)));
  const auto out = evaluate(
      b.finish(), {literal::of<std::int64_t>({dtype::i32, {4}}, std::vector<std::int64_t>{0, 1, -7, 8421504})});
  EXPECT_EQ(out[0].to<std::int64_t>(), (small_vector<std::int64_t>{0, 200, -1400, 1684300800}));
  EXPECT_EQ(out[1].to<std::int64_t>(), (small_vector<std::int64_t>{0, -3, 21, -25264512}));
  const auto fault_of = [](std::vector<shape> in) {
    const auto made = op::zero_point_sums{}.compute_shape(in);
    return made ? std::string() : error(made.why()).what();
  };
  const shape columns{dtype::i32, {4}};
  EXPECT_EQ(fault_of({columns, {dtype::u8, {}}}), "");
  EXPECT_NE(fault_of({columns}).find("number of inputs"), std::string::npos);
  EXPECT_NE(fault_of({{dtype::f32, {4}}, {dtype::u8, {}}}).find("sums of columns"), std::string::npos);
  EXPECT_NE(fault_of({columns, {dtype::u8, {1}}}).find("zero point"), std::string::npos);
}

TEST(centered_dot, expands_to_the_same) {
  const auto build = [&](builder& b) {
    b.output(b.add(op::centered_dot{}, b.input("a", dtype::u8, {2, 3, 4}), b.input("b", dtype::i8, {2, 4, 5}),
                   b.input("zero", dtype::u8, {})));
  };
  program p = built<builder>(build);
  expand_quantization(p);
  EXPECT_EQ(count_of(p, "dot"), 1u);
  const auto in = random_inputs(p, 3);
  EXPECT_TRUE(identical(evaluate(built<builder>(build), in)[0], evaluate(p, in)[0]));
  const shape a{dtype::u8, {2, 3}}, b{dtype::i8, {3, 4}}, unsigned_b{dtype::u8, {3, 4}}, wide{dtype::i32, {3, 4}};
  const auto fault_of = [](std::vector<shape> in) {
    const auto made = op::centered_dot{}.compute_shape(in);
    return made ? std::string() : error(made.why()).what();
  };
  EXPECT_EQ(fault_of({a, b, {dtype::u8, {}}}), "");
  EXPECT_NE(fault_of({a, b}).find("number of inputs"), std::string::npos);
  EXPECT_NE(fault_of({a, b, {dtype::i8, {}}}).find("zero point"), std::string::npos);
  EXPECT_NE(fault_of({a, b, {dtype::u8, {2}}}).find("zero point"), std::string::npos);
  EXPECT_EQ(fault_of({a, unsigned_b, {dtype::u8, {}}}), "");
  EXPECT_NE(fault_of({a, wide, {dtype::u8, {}}}).find("right operand"), std::string::npos);
}

// Two products of one value share its bytes; one has weights that a batch repeats.
TEST(insert_dynamic_quantization, products_read_bytes_of_the_run) {
  for (const bool per_channel : {true, false}) {
    const auto build = [](builder& b) {
      dice d{5};
      const auto weights = [&](const dims& lens) { return b.constant(random_literal({dtype::f32, lens}, d)); };
      const value x = b.input("x", dtype::f32, {3, 4, 8});
      b.output(x.dot(weights({8, 5}).broadcast_to({3, 8, 5})).relu());
      b.output(x.dot(weights({3, 8, 2})));
    };
    const program before = built<builder>(build);
    program p = before;
    const pass_note note =
        insert_dynamic_quantization(p, {quantizable_products(p.main()), {}, {.per_channel = per_channel}});
    EXPECT_EQ(note.counts.total(), 3u);
    verify(p);
    EXPECT_EQ(count_of(p, "dynamic_quantize_linear"), 1u);
    EXPECT_EQ(count_of(p, "centered_dot"), 2u);
    const auto in = random_inputs(p, 3);
    const auto exact = evaluate(before, in), near = evaluate(p, in);
    for (std::size_t k = 0; k < exact.size(); ++k) {
      EXPECT_TRUE(close(near[k], exact[k], .02)) << k;
      EXPECT_FALSE(identical(near[k], exact[k]));
    }
    expand_quantization(p);
    integer_products(p);
    dead_code(p);
    EXPECT_EQ(count_of(p, "integer_dot"), 1u);  // of the other, each matrix of the batch has weights of its own
    const auto integers = evaluate(p, in);
    for (std::size_t k = 0; k < near.size(); ++k) EXPECT_TRUE(close(integers[k], near[k], 1e-5)) << k;
  }
}

}  // namespace
}  // namespace kiln::test
