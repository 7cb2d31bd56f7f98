#include "kiln/quantize/int4.hpp"
#include "kiln/quantize/byte_products.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "pass/evaluate.hpp"
#include "quantize/message_of.hpp"

namespace kiln::test {
namespace {

using namespace quantize;
using ::testing::HasSubstr;

// Embeddings, a product, and one whose matrix is written transposed.
program small_network() {
  builder b;
  dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(random_literal({dtype::f32, lens}, d)); };
  const value ids = b.input("ids", dtype::i64, {2, 3});
  b.label = text("embed");
  const value x = weights({40, 64}).gather(ids, 0);
  b.label = text("first");
  const value h = x.reshape({6, 64}).dot(weights({64, 48})).relu();
  b.label = text("head");
  b.output(h.dot(weights({40, 48}).transpose({1, 0})), "y");
  return b.finish();
}
std::vector<argument> ids() {
  return {argument(literal::of<std::int64_t>({dtype::i64, {2, 3}}, small_vector<std::int64_t>{0, 39, 7, 7, 21, 3}))};
}
std::vector<float> result_of(const program& p) {
  const auto y = compile(p, eigen_target()).run(ids())[0].to<float>();
  return {y.begin(), y.end()};
}
double loss(const std::vector<float>& exact, const std::vector<float>& found) {
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    signal += exact[i] * exact[i];
    noise += (exact[i] - found[i]) * (exact[i] - found[i]);
  }
  return noise / signal;
}
program imported(const std::string& bytes) {
  return onnx::parse_model(std::as_bytes(std::span(bytes.data(), bytes.size()))).graph;
}
TEST(int4, matrices_are_stored_and_what_they_compute_is_near) {
  const program p = prepared(small_network());
  const std::vector<float> exact = result_of(p);
  const double four = loss(exact, result_of(to_int4(p).graph));
  EXPECT_LT(four, 2e-2);
  EXPECT_LT(loss(exact, result_of(to_int4(p, {.format = {8, 32, true}}).graph)), 1e-2 * four);
  EXPECT_LT(loss(exact, result_of(to_int4(p, {.method = weight_method::k_quant}).graph)), four);
  EXPECT_LT(loss(exact, result_of(to_int4(p, {.format = {4, 16, false}}).graph)),
            loss(exact, result_of(to_int4(p, {.format = {4, 64, false}}).graph)));
}

TEST(int4, embeddings_are_stored_where_they_are_asked_for) {
  const program p = prepared(small_network());
  EXPECT_EQ(to_int4(p).note.counts.total(), 2u);
  const quantized_program all = to_int4(p, {.ops = {"dot", "gather"}});
  EXPECT_EQ(all.note.counts.total(), 3u);
  EXPECT_LT(loss(result_of(p), result_of(all.graph)), 3e-2);
  EXPECT_LT(compile(all.graph, eigen_target()).report().constant_bytes,
            compile(p, eigen_target()).report().constant_bytes);
}

TEST(int4, excluded_instructions_keep_their_matrices) {
  const program p = prepared(small_network());
  EXPECT_EQ(to_int4(p, {.exclude = {"head"}}).note.counts.total(), 1u);
  EXPECT_THAT(message_of([&] { to_int4(p, {.exclude = {"heed"}}); }), HasSubstr("'heed'"));
  EXPECT_THAT(message_of([&] { to_int4(p, {.ops = {"convolution"}}); }), HasSubstr("'convolution'"));
  EXPECT_THAT(message_of([&] { to_int4(p, {.exclude = {"first", "head"}}); }), HasSubstr("found none"));
}

// Inputs that go with each other, as those of trained networks do.
std::vector<sample> correlated_samples() {
  dice d{9};
  std::vector<sample> out;
  for (int k = 0; k < 8; ++k) {
    const auto hidden = random_literal({dtype::f32, {32, 6}}, d).to<float>();
    dice same{4};
    const auto mix = random_literal({dtype::f32, {6, 64}}, same).to<float>();
    const auto noise = random_literal({dtype::f32, {32, 64}}, d).to<float>();
    std::vector<float> x(32 * 64);
    for (std::size_t r = 0; r < 32; ++r)
      for (std::size_t j = 0; j < 64; ++j) {
        float sum = .1f * noise[r * 64 + j];
        for (std::size_t i = 0; i < 6; ++i) sum += hidden[r * 6 + i] * mix[i * 64 + j];
        x[r * 64 + j] = sum;
      }
    out.push_back({{"x", argument(literal::of<float>({dtype::f32, {32, 64}}, std::span<const float>(x)))}});
  }
  return out;
}
calibration_data all_of(const std::vector<sample>& samples, std::size_t count) {
  return [&samples, k = std::size_t{0}, count]() mutable -> std::optional<sample> {
    return k < count ? std::optional(samples[k++]) : std::nullopt;
  };
}

TEST(int4, gptq_makes_up_for_errors_by_what_the_samples_show) {
  builder b;
  dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(random_literal({dtype::f32, lens}, d)); };
  const value x = b.input("x", dtype::f32, {dimension::symbol("n", 1, 64), 64});
  b.output(x.dot(weights({64, 48})).relu().dot(weights({48, 32})), "y");
  const program p = prepared(b.finish());
  const std::vector<sample> samples = correlated_samples();
  const eigen_target t;
  const auto run = [&](const program& q) {  // on a sample that was set aside
    const auto y = compile(q, t).run(samples[7])[0].to<float>();
    return std::vector<float>(y.begin(), y.end());
  };
  const std::vector<float> exact = run(p);
  for (const bool symmetric : {true, false}) {
    const block_format f{4, 32, symmetric};
    const double rounded = loss(exact, run(to_int4(p, {.format = f}).graph));
    const int4_options by_samples{.format = f, .method = weight_method::gptq};
    EXPECT_LT(loss(exact, run(to_int4(p, by_samples, all_of(samples, 7), t).graph)), .6 * rounded) << symmetric;
    EXPECT_THAT(message_of([&] { to_int4(p, by_samples); }), HasSubstr("gptq needs samples"));
    EXPECT_THAT(message_of([&] { to_int4(p, by_samples, all_of(samples, 0), t); }), HasSubstr("found none"));
  }
}

TEST(int4, inputs_that_say_nothing_are_an_error) {
  thread_pool pool(1);
  const std::vector<float> w(64, 1.0f);
  input_products none(32), other(16);
  none.add(std::vector<float>(64, 0.0f), pool);
  other.add(std::vector<float>(64, 1.0f), pool);
  EXPECT_THAT(message_of([&] { gptq_blocks(w, 2, {}, none, .01, pool); }), HasSubstr("not all 0"));
  EXPECT_THAT(message_of([&] { gptq_blocks(w, 2, {}, other, .01, pool); }), HasSubstr("depth"));
  EXPECT_THAT(message_of([&] { gptq_blocks(w, 4, {4, 16, true}, other, 0, pool); }), HasSubstr("damping"));
  EXPECT_THAT(message_of([&] { none.add(std::vector<float>(33), pool); }), HasSubstr("rows of its depth"));
}

TEST(int4, a_matrix_with_infinity_stays) {
  builder b;
  const value x = b.input("x", dtype::f32, {2, 32});
  std::vector<float> w(32 * 32, 1.0f), v(32 * 32, .5f);
  w[5] = INFINITY;
  const auto constant = [&](const std::vector<float>& values) {
    return b.constant(dtype::f32, {32, 32}, std::span<const float>(values));
  };
  b.output(x.dot(constant(w)) + x.dot(constant(v)), "y");
  const quantized_program q = to_int4(prepared(b.finish()));
  EXPECT_EQ(q.note.counts.total(), 1u);
  ASSERT_EQ(q.note.remarks.size(), 1u);
  EXPECT_THAT(q.note.remarks[0].str(), HasSubstr("not finite"));
}

TEST(int4, products_of_a_program_may_be_permitted_to_round) {
  program p = to_int4(prepared(small_network())).graph;
  const std::string before = onnx::export_model(p);
  EXPECT_EQ(before.find("accuracy_level"), before.npos);
  const std::int64_t count = permit_byte_products(p);
  EXPECT_EQ(onnx::export_model(p),
            onnx::export_model(to_int4(prepared(small_network()), {.bytes_suffice = true}).graph));
  EXPECT_EQ(count, to_int4(prepared(small_network())).note.counts.total());
}

TEST(int4, files_have_onnx_runtimes_operators) {
  const program p = prepared(small_network());
  for (const weight_method m : {weight_method::rtn, weight_method::hqq})
    for (const bool symmetric : {true, false}) {
      // a depth of 48 is no multiple of 32
      const quantized_program q = to_int4(p, {.format = {4, 32, symmetric}, .method = m, .bytes_suffice = true});
      const std::string bytes = onnx::export_model(q.graph);
      EXPECT_THAT(bytes, HasSubstr("MatMulNBits"));
      EXPECT_THAT(bytes, HasSubstr("accuracy_level"));
      EXPECT_EQ(result_of(imported(bytes)), result_of(q.graph));
    }
  const quantized_program rows = to_int4(p, {.ops = {"gather"}});
  const std::string bytes = onnx::export_model(rows.graph);
  EXPECT_THAT(bytes, HasSubstr("GatherBlockQuantized"));
  EXPECT_EQ(result_of(imported(bytes)), result_of(rows.graph));
}

TEST(int4, matrices_without_elements_stay) {
  builder b;
  dice d{3};
  const value none = b.input("none", dtype::f32, {2, 0}), x = b.input("x", dtype::f32, {2, 32});
  b.output(none.dot(b.constant(dtype::f32, {0, 4}, std::span<const float>())), "y");
  b.output(x.dot(b.constant(random_literal({dtype::f32, {32, 4}}, d))), "z");
  EXPECT_EQ(to_int4(prepared(b.finish())).note.counts.total(), 1u);
}

TEST(int4, a_matrix_is_stored_for_products_and_gathers_each_in_its_way) {
  builder b;
  dice d{3};
  const value w = b.constant(random_literal({dtype::f32, {64, 64}}, d));
  const value rows = w.gather(b.input("ids", dtype::i64, {2, 3}), 0).reshape({6, 64});
  b.output(rows.dot(w).relu().dot(w), "y");
  const program p = prepared(b.finish());
  const quantized_program q = to_int4(p, {.ops = {"gather", "dot"}});
  EXPECT_EQ(q.note.counts.total(), 3u);
  EXPECT_LT(loss(result_of(p), result_of(q.graph)), 4e-2);
  const std::string bytes = onnx::export_model(q.graph);
  EXPECT_THAT(bytes, testing::AllOf(HasSubstr("MatMulNBits"), HasSubstr("GatherBlockQuantized")));
  EXPECT_EQ(result_of(imported(bytes)), result_of(q.graph));
}

TEST(int4, weights_that_are_outputs_too_are_written_once) {
  const quantized_program q = to_int4(prepared(small_network()));
  program p = q.graph;
  const module_graph& m = p.main();
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (m[i].kind == instruction_kind::op && m[i].op.name() == "block_dequantize") {
      p.main().outputs.push_back(m[i].inputs[1]);  // the scales
      p.main().output_names.push_back(text("scales"));
      break;
    }
  EXPECT_EQ(result_of(imported(onnx::export_model(p))), result_of(q.graph));
}

TEST(int4, what_onnx_runtime_has_no_operator_for_is_written_out) {
  builder b;
  dice d{3};
  const value x = b.input("x", dtype::f32, {2, 64});
  std::vector<std::int64_t> codes(32 * 64, 0);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int64_t>(i * 7 % 200) - 100;
  const value data = b.constant(literal::of<std::int64_t>({dtype::i8, {32, 64}}, codes));
  const value w =
      b.add(op::block_dequantize{.axis = 1, .block = 32}, data, b.constant(random_literal({dtype::f32, {32, 2}}, d)));
  b.output(x.dot(w.transpose({1, 0})), "y");
  b.output(w, "w");  // a reader beside the product
  const program p = b.finish();
  const std::string bytes = onnx::export_model(p);
  EXPECT_THAT(bytes, ::testing::Not(HasSubstr("MatMulNBits")));
  const argument in(random_literal({dtype::f32, {2, 64}}, d));
  const auto run = [&](const program& q) { return compile(q, eigen_target()).run(std::vector<argument>{in}); };
  const auto exact = run(p), again = run(imported(bytes));
  for (std::size_t k = 0; k < 2; ++k) {
    const auto a = exact[k].to<float>(), c = again[k].to<float>();
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], c[i], 1e-3f * (1 + std::abs(a[i])));
  }
}

// Two products of other inputs read one matrix: it serves both.
TEST(int4, a_matrix_of_two_products_is_rounded_for_both) {
  builder b;
  dice d{3};
  const value w = b.constant(random_literal({dtype::f32, {64, 48}}, d));
  const dims lens{dimension::symbol("n", 1, 64), 64};
  b.output(b.input("x", dtype::f32, lens).dot(w), "y");
  b.output(b.input("z", dtype::f32, lens).dot(w), "of_z");
  const program p = prepared(b.finish());
  const eigen_target t;
  const std::vector<sample> mixed = correlated_samples();
  // what x has in its first features, z has in its last ones
  const auto both = [&](std::size_t k) {
    sample out = mixed[k];
    const auto values = out.at("x").to<float>();
    std::vector<float> turned(values.begin(), values.end());
    for (std::size_t r = 0; r < 32; ++r) std::reverse(&turned[r * 64], &turned[r * 64] + 64);
    out["z"] = argument(literal::of<float>({dtype::f32, {32, 64}}, std::span<const float>(turned)));
    return out;
  };
  const auto losses = [&](const program& q) {
    const auto exact = compile(p, t).run(both(7)), found = compile(q, t).run(both(7));
    std::vector<double> out;
    for (std::size_t k = 0; k < 2; ++k) {
      const auto a = exact[k].to<float>(), c = found[k].to<float>();
      out.push_back(loss({a.begin(), a.end()}, {c.begin(), c.end()}));
    }
    return out;
  };
  const auto rounded = losses(to_int4(p).graph);
  const int4_options by_samples{.method = weight_method::gptq};
  const calibration_data data = [&, k = std::size_t{0}]() mutable -> std::optional<sample> {
    return k < 7 ? std::optional(both(k++)) : std::nullopt;
  };
  const auto found = losses(to_int4(p, by_samples, data, t).graph);
  for (std::size_t k = 0; k < 2; ++k) EXPECT_LT(found[k], .75 * rounded[k]) << k;
}

TEST(int4, matrices_in_bodies_are_stored) {
  program p;
  dice d{3};
  const auto body = [&] {
    builder b;
    b.label = text("inside");
    b.output(b.input("x", dtype::f32, {2, 64}).dot(b.constant(random_literal({dtype::f32, {64, 48}}, d))));
    return p.add_module(b.finish().main());
  };
  const module_ref yes = body(), no = body();
  module_graph& m = p.main();
  const value_id condition = m.add_parameter("condition", {dtype::boolean, {}}),
                 x = m.add_parameter("x", {dtype::f32, {2, 64}});
  m.outputs.push_back(m.add_with_shapes(op::branch{yes, no, 1}, {condition, x, x}, {{dtype::f32, {2, 48}}}));
  m.output_names.push_back(text("y"));
  p = prepared(std::move(p));
  const quantized_program q = to_int4(p);
  EXPECT_EQ(q.note.counts.total(), 2u);
  EXPECT_TRUE(q.note.remarks.empty());
  EXPECT_THAT(message_of([&] { to_int4(p, {.exclude = {"inside"}}); }), HasSubstr("found none"));
  const std::string bytes = onnx::export_model(q.graph);
  EXPECT_THAT(bytes, HasSubstr("MatMulNBits"));
  const argument in(random_literal({dtype::f32, {2, 64}}, d));
  for (const bool which : {true, false}) {
    const argument choice(literal::scalar(dtype::boolean, which));
    const auto run = [&](const program& of) {
      const auto y = compile(of, eigen_target()).run(std::vector<argument>{choice, in})[0].to<float>();
      return std::vector<float>(y.begin(), y.end());
    };
    const std::vector<float> exact = run(p), found = run(q.graph);
    EXPECT_GT(loss(exact, found), 1e-6);
    EXPECT_LT(loss(exact, found), 2e-2);
    EXPECT_EQ(run(imported(bytes)), found);
  }
}

TEST(int4, a_block_that_is_longer_than_the_depth_is_padded_and_said_to_be) {
  const program p = prepared(small_network());
  const quantized_program q = to_int4(p, {.format = {4, 64, true}});
  ASSERT_EQ(q.note.remarks.size(), 1u);
  EXPECT_EQ(q.note.remarks[0].str(), "the matrix of 'head' is padded from a depth of 48 to a block of 64");
  EXPECT_LT(loss(result_of(p), result_of(q.graph)), 3e-2);
  EXPECT_EQ(result_of(imported(onnx::export_model(q.graph))), result_of(q.graph));
}

}  // namespace
}  // namespace kiln::test
