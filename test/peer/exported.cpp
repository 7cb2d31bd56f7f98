#include "kiln/onnx/export.hpp"
#include "kiln/op/dynamic/couple_probabilities.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/quant/centered_dot.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
#include "onnx/every_op.hpp"
#include "onnx/model_writer.hpp"
#include "peer/compare.hpp"
#include "runtime/compare.hpp"

// Programs written as ONNX give the same in ONNX Runtime, and in kiln when they come back.
namespace kiln::peer {
namespace {

struct network {
  std::string name;
  std::function<void(builder&)> make;
};
void PrintTo(const network& n, std::ostream* out) { *out << n.name; }

std::vector<network> programs() {
  const dimension n = dimension::symbol("n", 1, 64);
  return {
      {"convolutions",
       [](builder& b) {
         const auto x = b.input("x", dtype::f32, {2, 3, 9, 9});
         const auto w = b.constant(testing::random_argument({dtype::f32, {4, 3, 3, 3}}, 7).to_literal());
         const op::pooling halved{.mode = op::pooling_mode::average, .lengths = {2, 2}, .stride = {2, 2}};
         b.output(x.conv(w, {.pads = {1, 1, 1, 1}}).relu().pool(halved).flatten().softmax(), "y");
       }},
      {"norms",
       [](builder& b) {
         const auto x = b.input("x", dtype::f32, {3, 5, 16});
         b.output(x.normalize({-1}).gelu() + x.rms_normalize(), "y");
         b.output(x.reduce_max({1}).silu(), "z");
       }},
      {"attention",
       [](builder& b) {
         const auto q = b.input("q", dtype::f32, {2, 4, 5, 8}), k = b.input("k", dtype::f32, {2, 2, 7, 8});
         b.output(q.attention(k, k, {.scale = .3f, .causal = true}), "y");
       }},
      {"symbolic",
       [n](builder& b) {
         const auto x = b.input("x", dtype::f32, {n, 6});
         const auto steps = b.add(op::iota{{n * 2}, 0, dtype::f32});
         b.output(x.reshape({n * 2, 3}) * steps.unsqueeze({1}), "y");
         b.output(x.slice({{0}, {n / 2}, {n}, {}}).reduce_sum({0}), "z");
       }},
      {"dynamic_quantization",
       [n](builder& b) {
         const auto x = b.input("x", dtype::f32, {n, 6});
         const auto bytes = b.add(op::dynamic_quantize_linear{}, x);
         const auto w =
             b.constant<int>(dtype::i8, {6, 2}, std::vector<int>{1, -2, 127, -127, 5, 6, 7, -8, 9, 0, 11, -12});
         b.output(bytes, "bytes");
         b.output(bytes.result(1), "scale");
         b.output(bytes.result(2), "zero");
         b.output(b.add(op::centered_dot{}, bytes, w, bytes.result(2)), "sums");
       }},
      {"indices",
       [](builder& b) {
         const auto x = b.input("x", dtype::f32, {4, 6});
         const auto best = b.add(op::topk{3, 1}, x);
         b.output(best, "values");
         b.output(best.result(1), "places");
         b.output(x | op::cumsum{1, true, true}, "sums");
         b.output((x | op::tri{false, 1}) | op::reverse{{1}}, "corner");
         b.output(x.transpose({1, 0}).concat(b.add(op::fill{{6, 2}, 1.5, dtype::f32}), 1), "beside");
         b.output((x > b.scalar(dtype::f32, 0.0f)) | op::reduce_any{{1}}, "any");
       }},
  };
}

class exported_programs : public ::testing::TestWithParam<network> {};

TEST_P(exported_programs, equal_to_the_program) {
  builder b;
  GetParam().make(b);
  const program p = b.finish();
  const std::string bytes = onnx::export_model(p);
  const std::span<const std::byte> model(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  std::map<std::string, argument> given;
  unsigned seed = 3;
  bindings sizes;
  sizes.bind(dimension::symbol("n", 1, 64), 5);
  for (const value_id v : p.main().parameters()) {
    shape s = p.main().shape_of(v);
    for (dimension& d : s.lens) d = sizes.evaluate(d);
    given.emplace(std::string(std::string_view(p.main().producer(v).name)), testing::random_argument(s, ++seed));
  }
  const std::vector<argument> expected = compile(p, eigen_target()).run(given);
  expect_equal_outputs(compile(onnx::parse_model(model).graph, eigen_target()).run(given), expected, 1e-5);
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  expect_equal_outputs(session(*path, model).run(given), expected, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(programs, exported_programs, ::testing::ValuesIn(programs()),
                         [](const auto& i) { return i.param.name; });

// Each op that ONNX Runtime has kernels for, in a dtype that it has them for; in f32 they all are.
TEST(exported_ops, give_the_same_in_onnx_runtime) {
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  const reference_target reference;
  std::size_t compared = 0;
  for (const testing::op_program& o : testing::every_op_program()) {
    if (o.op == "bit_cast") continue;  // of an operator set that it does not have
    SCOPED_TRACE(o.name);
    builder b;
    o.make(b);
    const program p = b.finish();
    const std::string bytes = onnx::export_model(p);
    const auto given = testing::inputs_of(p, o);
    std::vector<argument> found;
    try {
      found = session(*path, std::as_bytes(std::span(bytes))).run(given);
    } catch (const std::exception& e) {
      const std::string why = e.what();
      const bool lacks = why.starts_with("Could not find an implementation") || why.find("Type Error") != why.npos;
      EXPECT_TRUE(o.type != dtype::f32 && lacks) << e.what();
      continue;
    }
    const auto expected = compile(p, reference).run(given);
    const bool narrow = o.type == dtype::f16 || o.type == dtype::bf16;
    for (std::size_t k = 0; k < expected.size(); ++k)
      testing::expect_close(found[k], expected[k], narrow ? testing::tolerance{4e-2, 2e-2} : testing::tolerance{});
    ++compared;
  }
  EXPECT_GE(compared, 150u);
}

struct of_its_own {
  template <class T> constexpr T operator()(T x) const { return x + x; }
};

TEST(exporting, names_what_onnx_lacks) {
  builder b;
  const auto x = b.input("x", dtype::f32, {4, 3});
  b.output(b.add(of_its_own{}, b.add(op::couple_probabilities{3}, x)), "z");
  try {
    (void)onnx::export_model(b.finish());
    FAIL() << "nothing was missing";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unsupported);
    const std::string why = e.what();
    EXPECT_NE(why.find("of_its_own: "), std::string::npos) << why;
    EXPECT_NE(why.find("couple_probabilities: "), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace kiln::peer
