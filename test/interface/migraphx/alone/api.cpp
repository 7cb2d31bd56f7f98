// Programs as users of MIGraphX's classes for C++ write them.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <migraphx/migraphx.hpp>
#include <numeric>
#include <thread>

namespace {

int failures = 0;

#define CHECK(what)                                          \
  do {                                                       \
    if (!(what)) {                                           \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
      ++failures;                                            \
    }                                                        \
  } while (0)

template <class F> std::string message(F f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

void test_reduction_of_a_sum() {
  migraphx::program p;
  migraphx::module m = p.get_main_module();
  const migraphx::shape s{migraphx_shape_float_type, {2, 3}};
  std::vector<float> values(6, 2);
  auto x = m.add_parameter("x", s), y = m.add_literal(s, values.data());
  auto sum = m.add_instruction(migraphx::operation("add"), {x, y});
  auto mean = m.add_instruction(migraphx::operation("reduce_mean", "{axes: [%i]}", 1), {sum});
  m.add_return({mean});
  CHECK(migraphx::operation("reduce_mean", "{\"axes\" : [1, 2]}").name() == "reduce_mean");
  p.compile(migraphx::target("ref"));
  std::iota(values.begin(), values.end(), 0.f);
  migraphx::program_parameters parameters;
  parameters.add("x", migraphx::argument(s, values.data()));
  const migraphx::arguments out = p.eval(parameters);
  CHECK(out.size() == 1 && !out.empty());
  CHECK((out[0].as_vector<float>() == std::vector<float>{3, 6}));
  CHECK((out.front().get_shape().lengths() == std::vector<std::size_t>{2, 1}));
  CHECK(p.get_output_shapes().front() == out.back().get_shape());
  std::size_t seen = 0;
  for (const auto& a : out) seen += a.get_shape().elements();
  CHECK(seen == 2);
  CHECK(message([&] { p.compile(migraphx::target("cpu")); }).find("once") != std::string::npos);
  CHECK(message([] { migraphx::target("abacus"); }).find("abacus") != std::string::npos);
}

void test_choice() {
  migraphx::program p;
  const migraphx::shape one{migraphx_shape_float_type, {1}}, truth{migraphx_shape_bool_type};
  migraphx::module m = p.get_main_module();
  auto c = m.add_parameter("c", truth), x = m.add_parameter("x", one);
  const auto branch = [&](const char* name, const char* op) {
    migraphx::module b = p.create_module(name);
    float two = 2;
    b.add_return({b.add_instruction(migraphx::operation(op), {x, b.add_literal(one, &two)})});
    return b;
  };
  auto made = m.add_instruction(migraphx::operation("if"), {c}, {branch("plus", "add"), branch("times", "mul")});
  m.add_return({m.add_instruction(migraphx::operation("get_tuple_elem", "{index: 0}"), {made})});
  p.sort();
  migraphx::program copy = p;
  CHECK(copy == p);
  p.compile(migraphx::target("cpu"));
  float five = 5;
  for (const bool sum : {true, false}) {
    bool condition = sum;
    const auto out = p.eval({{"c", migraphx::argument(truth, &condition)}, {"x", migraphx::argument(one, &five)}});
    CHECK(out[0].as_vector<float>()[0] == (sum ? 7 : 10));
  }
}

void test_ranges() {
  migraphx::onnx_options options;
  options.set_default_dyn_dim_value(migraphx::dynamic_dimension{1, 4, {2, 4}});
  migraphx::program p = migraphx::parse_onnx("examples/models/digits/model.onnx", options);
  const auto shapes = p.get_parameter_shapes();
  CHECK(shapes.size() == 1);
  const char* const name = shapes.names().front();
  CHECK(shapes[name].dynamic());
  CHECK(shapes[name].dyn_dims()[0] == migraphx::dynamic_dimension(1, 4, {2, 4}));
  p.compile(migraphx::target("cpu"));
  std::vector<std::thread> threads;
  for (std::size_t n = 1; n <= 4; ++n)
    threads.emplace_back([&, n] {
      const migraphx::shape s{migraphx_shape_float_type, {n, 1, 8, 8}};
      for (int k = 0; k < 20; ++k) {
        const auto out = p.eval({{name, migraphx::argument::generate(s, n)}});
        const std::vector<float> rows = out[0].as_vector<float>();
        CHECK(rows.size() == 10 * n);
        CHECK(std::fabs(std::accumulate(rows.begin(), rows.end(), 0.f) - static_cast<float>(n)) < 1e-4f);
      }
    });
  for (std::thread& t : threads) t.join();
  const migraphx::shape five{migraphx_shape_float_type, {5, 1, 8, 8}};
  CHECK(message([&] { p.eval({{name, migraphx::argument(five)}}); }).find("[1, 4]") != std::string::npos);
}

void test_files(const char* path) {
  migraphx::program p = migraphx::parse_onnx("examples/models/digits/model.onnx");
  migraphx::quantize_fp16(p);
  migraphx::compile_options options;
  options.set_offload_copy();
  p.compile(migraphx::target("cpu"), options);
  migraphx::save(p, path);
  const migraphx::program q = migraphx::load(path);
  CHECK(q == p);
  const auto shapes = q.get_parameter_shapes();
  const auto x = migraphx::argument::generate(shapes[shapes.names()[0]]);
  CHECK(p.eval({{shapes.names()[0], x}})[0] == q.eval({{shapes.names()[0], x}})[0]);
  migraphx::file_options json;
  json.set_file_format("json");
  CHECK(message([&] { migraphx::save(p, path, json); }).find("json") != std::string::npos);
  std::remove(path);
  CHECK(migraphx::get_onnx_operators().size() > 150);
  CHECK(message([] { migraphx::parse_tf("graph.pb"); }).find("graph.pb") != std::string::npos);
  migraphx::program fresh = migraphx::parse_onnx("examples/models/digits/model.onnx");
  migraphx::quantize_int8_options int8;
  int8.add_op_name("dot");
  CHECK(message([&] { migraphx::quantize_int8(fresh, migraphx::target("ref"), int8); }).find("calibration data") !=
        std::string::npos);
  migraphx::program_parameters sample;
  sample.add(shapes.names()[0], x);
  int8.add_calibration_data(sample);
  migraphx::quantize_int8(fresh, migraphx::target("ref"), int8);
  fresh.compile(migraphx::target("cpu"));
  const auto exact = q.eval(sample)[0].as_vector<float>(), near = fresh.eval(sample)[0].as_vector<float>();
  for (std::size_t i = 0; i < exact.size(); ++i) CHECK(std::fabs(exact[i] - near[i]) < .2f);

  std::ofstream(path, std::ios::trunc) << "image 16\n";  // a calibration.cache
  migraphx::quantize_int8_options by_table;
  by_table.set_table(path);
  migraphx::quantize_fp8_options fp8;
  fp8.set_table("no/such/table");
  migraphx::program tabled = migraphx::parse_onnx("examples/models/digits/model.onnx");
  migraphx::program small = migraphx::parse_onnx("examples/models/digits/model.onnx");
  CHECK(message([&] { migraphx::quantize_fp8(tabled, migraphx::target("ref"), fp8); }).find("no/such/table") !=
        std::string::npos);
  migraphx::quantize_int8(tabled, migraphx::target("ref"), by_table);
  CHECK(!(tabled == small));
  migraphx::quantize_int4_weights(small);
  small.compile(migraphx::target("cpu"));
  CHECK(small.eval(sample)[0].as_vector<float>() != exact);
}

struct square_op final : migraphx::experimental_custom_op_base {
  std::string name() const override { return "square_custom_op"; }
  migraphx::shape compute_shape(migraphx::shapes inputs) const override {
    if (inputs.size() != 2) throw std::runtime_error("square takes an operand and memory");
    return inputs.back();
  }
  migraphx::argument compute(migraphx::context, migraphx::shape output, migraphx::arguments inputs) const override {
    if (!(output == inputs[1].get_shape())) throw std::runtime_error("another shape");
    const float* const from = reinterpret_cast<const float*>(inputs[0].data());
    float* const to = reinterpret_cast<float*>(inputs[1].data());
    for (std::size_t i = 0; i < output.elements(); ++i) to[i] = from[i] * from[i];
    if (from[0] < -100) throw std::runtime_error("far too small");
    return inputs[1];
  }
  std::vector<std::size_t> output_alias(migraphx::shapes) const override { return {1}; }
  bool runs_on_offload_target() const override { return false; }
};

void test_custom_op() {
  square_op square;
  migraphx::register_experimental_custom_op(square);
  CHECK(migraphx::operation("square_custom_op").name() == "square_custom_op");
  migraphx::program p;
  migraphx::module m = p.get_main_module();
  const migraphx::shape s{migraphx_shape_float_type, {3}};
  auto x = m.add_parameter("x", s);
  auto negative = m.add_instruction(migraphx::operation("neg"), {x});
  auto memory = m.add_allocation(s);
  auto squared = m.add_instruction(migraphx::operation("square_custom_op"), {negative, memory});
  m.add_return({m.add_instruction(migraphx::operation("relu"), {squared})});
  CHECK(message([&] { m.add_instruction(migraphx::operation("square_custom_op"), {x}); }).find("takes an operand") !=
        std::string::npos);
  p.compile(migraphx::target("cpu"));
  std::vector<float> values{1, -2, 3};
  for (int k = 0; k < 2; ++k)
    CHECK((p.eval({{"x", migraphx::argument(s, values.data())}})[0].as_vector<float>() == std::vector<float>{1, 4, 9}));
  values[0] = 1000;
  CHECK(message([&] {
          p.eval({{"x", migraphx::argument(s, values.data())}});
        }).find("far too small") != std::string::npos);
}

}  // namespace

int main(int, char** argv) {
  test_reduction_of_a_sum();
  test_choice();
  test_ranges();
  test_files(argv[1]);
  test_custom_op();
  return failures != 0;
}
