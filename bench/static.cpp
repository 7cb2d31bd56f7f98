// Static programs beside exported C++, the Eigen executable, ONNX Runtime (one thread, through its C API) and, for the
// perceptron, Eigen's fixed-size matrices. All are run by turns; a ratio is the median over rounds of that round's
// ratio. Larger networks follow, as static programs, executables and in ONNX Runtime.
//
//     bench_static [--rounds 15] [--check]
//
// Exit status 1 where results differ, and with --check where a static program is slower than it has to be; 77 where
// ONNX Runtime is not in the build tree (cmake/peer.sh).
#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "../test/onnx/model_writer.hpp"
#include "../test/peer/onnxruntime.hpp"
#include "compile/nets.hpp"
#include "exported_library.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/static_program/static_program.hpp"

namespace {

using namespace kiln;

constexpr auto digits_net = [](auto& b) {
  const auto layer = [&](auto x, std::string_view weight, std::string_view bias, std::int64_t from, std::int64_t to) {
    const auto w = b.weight(weight, dtype::f32, {to, from, 3, 3});
    const auto c = b.weight(bias, dtype::f32, {to});
    return x.conv(w, {.pads = {1, 1, 1, 1}}).add_along(1, c).relu();
  };
  const op::pooling halved{.lengths = {2, 2}, .stride = {2, 2}};
  auto x = b.input("image", dtype::f32, {1, 1, 8, 8});
  x = layer(x, "conv1.weight", "conv1.bias", 1, 16);
  x = layer(x, "conv2.weight", "conv2.bias", 16, 32).pool(halved);
  x = layer(x, "conv3.weight", "conv3.bias", 32, 64).pool(halved).flatten();
  x = x.dot(b.weight("hidden.weight", dtype::f32, {256, 64}));
  x = (x + b.weight("hidden.bias", dtype::f32, {64})).relu();
  x = x.dot(b.weight("head.weight", dtype::f32, {64, 10}));
  b.output((x + b.weight("head.bias", dtype::f32, {10})).softmax(), "probabilities");
};
constexpr auto perceptron_net = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 64});
  const auto layer = [&](std::string_view weight, std::string_view bias, std::int64_t to) {
    x = x.dot(b.weight(weight, dtype::f32, {64, to}));
    x = x + b.weight(bias, dtype::f32, {to});
  };
  layer("w1", "b1", 64), x = x.relu();
  layer("w2", "b2", 64), x = x.relu();
  layer("w3", "b3", 10);
  b.output(x, "y");
};

using digits = static_program<digits_net>;
using perceptron = static_program<perceptron_net>;

std::vector<float> read_floats(const std::string& path, std::size_t count) {
  std::vector<float> values(count);
  std::ifstream file(std::string(KILN_SOURCE_DIR) + path, std::ios::binary);
  file.seekg(-static_cast<std::streamoff>(count * sizeof(float)), std::ios::end);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(float)));
  if (!file) throw std::runtime_error("cannot read " + path);
  return values;
}

std::string read_file(const std::string& path) {
  std::ifstream file(std::string(KILN_SOURCE_DIR) + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

argument as_argument(const shape& s, const float* from) {
  argument a(s);
  std::copy_n(from, a.elements(), reinterpret_cast<float*>(a.data()));
  return a;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

struct contender {
  std::string name;
  std::function<void()> run;
  double least = 0;  ///< times the static program that it has to take
  std::vector<double> us{};
};

double microseconds(const std::function<void()>& run, int runs) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) run();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / runs;
}

bool slow = false;  // a static program is slower than it has to be

void race(const std::string& title, std::vector<contender> all, int rounds) {
  for (int round = 0; round < rounds; ++round)
    for (contender& c : all) {
      const int runs = static_cast<int>(std::clamp(20e3 / microseconds(c.run, 1), 1.0, 500.0));
      microseconds(c.run, runs / 10);
      c.us.push_back(microseconds(c.run, runs));
    }
  fmt::print("{}\n", title);
  for (const contender& c : all) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < c.us.size(); ++r) ratios.push_back(c.us[r] / all[0].us[r]);
    fmt::print("  {:<28} {:8.2f} us  {:6.2f} times the static program\n", c.name, median(c.us), median(ratios));
    if (median(ratios) >= c.least) continue;
    fmt::print("  SLOW: {} has to take {} times the static program's time\n", c.name, c.least);
    slow = true;
  }
}

bool close(std::span<const float> found, const argument& expected) {
  const auto e = expected.to<double>();
  double worst = found.size() == e.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(found.size(), e.size()); ++i)
    worst = std::max(worst, std::fabs(found[i] - e[i]) / (1 + std::fabs(e[i])));
  if (worst > 1e-5) fmt::print(stderr, "results differ by {}\n", worst);
  return worst <= 1e-5;
}

struct on_one_thread {
  executable exe;
  workspace space;
  std::vector<argument> inputs, outputs;

  static compile_options one() {
    compile_options o;
    o.threads = 1;
    return o;
  }
  on_one_thread(const program& p, const argument& in)
      : exe(compile(p, eigen_target(), one())),
        space(exe.make_workspace()),
        inputs{in},
        outputs{argument(p.main().shape_of(p.main().outputs[0]))} {}
  void run() { exe.run(space, inputs, outputs); }
};

bool race_digits(const std::string& library, int rounds) {
  static const auto weights = read_floats("/examples/models/digits/weights.bin", digits::weight_elements);
  const auto image = read_floats("/examples/models/digits/test_data_set_0/input_0.pb", 360 * 64);
  static digits fixed(std::span<const float, digits::weight_elements>(weights.data(), weights.size()));
  const std::span<const float, 64> input(image.data(), 64);
  const argument in = as_argument({dtype::f32, {1, 1, 8, 8}}, image.data());

  const std::string model = read_file("/examples/models/digits/model.onnx");
  const peer::session session(library, std::as_bytes(std::span(model)), 1);
  peer::session::binding bound(session, {{session.inputs()[0], in}});

  onnx::import_options options;
  options.dimensions = {{"batch", 1}};
  const program graph =
      onnx::read_model(std::string(KILN_SOURCE_DIR) + "/examples/models/digits/model.onnx", options).graph;
  on_one_thread exe(graph, in);
  const bench::exported_library exported(graph);
  std::array<float, 10> result{};

  race("digits, one image",
       {{"static program", [&] { fixed(input); }},
        {"exported C++", [&] { exported(image.data(), result.data()); }},
        {"Eigen executable", [&] { exe.run(); }, 1},
        {"ONNX Runtime", [&] { bound.run(); }, 1.7}},
       rounds);
  const argument expected = bound.results()[0];
  return close(fixed.result(), expected) && close(result, expected) && close(fixed.result(), exe.outputs[0]);
}

bool race_perceptron(const std::string& library, int rounds) {
  using namespace kiln::test;
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> value(-0.2f, 0.2f);
  static std::vector<float> weights(perceptron::weight_elements);
  for (float& w : weights) w = value(engine);
  alignas(64) std::array<float, 64> x{};
  for (float& v : x) v = value(engine);
  static perceptron fixed(std::span<const float, perceptron::weight_elements>(weights.data(), weights.size()));
  const std::span<const float, 64> input(x);

  graph_parts parts;
  const float* at = weights.data();
  std::string last = "x";
  const auto take = [&](const std::string& name, const std::vector<std::int64_t>& lens, std::size_t n) {
    parts.initializers.push_back(floats(name, lens, std::vector<float>(at, at + n)));
    at += n;
  };
  for (int layer = 1; layer <= 3; ++layer) {
    const std::string k = std::to_string(layer);
    const std::int64_t to = layer == 3 ? 10 : 64;
    take("w" + k, {64, to}, static_cast<std::size_t>(64 * to));
    take("b" + k, {to}, static_cast<std::size_t>(to));
    parts.nodes.push_back(node("Gemm", {last, "w" + k, "b" + k}, {layer == 3 ? "y" : "g" + k}));
    if (layer < 3) parts.nodes.push_back(node("Relu", {"g" + k}, {"r" + k}));
    last = "r" + k;
  }
  parts.inputs.push_back(value_info("x", 1, {1, 64}));
  parts.outputs.push_back(value_info("y", 1, {1, 10}));
  const message whole = model(graph(parts));
  const peer::session session(library, whole.bytes(), 1);
  const argument as_row = as_argument({dtype::f32, {1, 64}}, x.data());
  peer::session::binding bound(session, {{"x", as_row}});
  const program parsed = onnx::parse_model(std::as_bytes(std::span(whole.bytes()))).graph;
  on_one_thread exe(parsed, as_row);
  const bench::exported_library exported(parsed);
  std::array<float, 10> result{};

  using square = Eigen::Matrix<float, 64, 64, Eigen::RowMajor>;
  using wide = Eigen::Matrix<float, 64, 10, Eigen::RowMajor>;
  using row = Eigen::Matrix<float, 1, 64>;
  using short_row = Eigen::Matrix<float, 1, 10>;
  const float* const w = weights.data();
  static const square w1 = Eigen::Map<const square>(w), w2 = Eigen::Map<const square>(w + 4160);
  static const wide w3 = Eigen::Map<const wide>(w + 8320);
  static const row b1 = Eigen::Map<const row>(w + 4096), b2 = Eigen::Map<const row>(w + 8256);
  static const short_row b3 = Eigen::Map<const short_row>(w + 8960);
  static row in = Eigen::Map<const row>(x.data());
  static short_row out;
  const auto by_hand = [] {
    row a, c;
    a.noalias() = in * w1;
    a = (a + b1).cwiseMax(0.0f);
    c.noalias() = a * w2;
    c = (c + b2).cwiseMax(0.0f);
    out.noalias() = c * w3;
    out += b3;
  };
  race("a perceptron 64-64-64-10, one row",
       {{"static program", [&] { fixed(input); }},
        {"exported C++", [&] { exported(x.data(), result.data()); }},
        {"Eigen's fixed sizes by hand", by_hand, 1},
        {"Eigen executable", [&] { exe.run(); }, 1},
        {"ONNX Runtime", [&] { bound.run(); }, 10}},
       rounds);
  const argument expected = bound.results()[0];
  return close(fixed.result(), expected) && close(result, expected) && close({out.data(), 10}, expected) &&
         close(fixed.result(), exe.outputs[0]);
}

// A network with seeded weights, each product keeping its input's magnitude.
template <auto Net> bool race_network(const std::string& title, const std::string& library, int rounds) {
  using network = static_program<Net>;
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> value(-1, 1);
  builder b;
  Net(b);
  program p = b.finish();
  static std::vector<float> weights(network::weight_elements);
  std::size_t at = 0;
  std::string input;
  shape in;
  for (const value_id v : p.main().parameters()) {
    auto& i = p.main()[v.instruction];
    const shape& s = i.results[0];
    if (!i.is_weight) {
      input = i.name.str();
      in = s;
      continue;
    }
    const auto n = static_cast<std::size_t>(s.elements().value());
    const double summands = s.rank() == 4   ? static_cast<double>(n) / static_cast<double>(s.lens[0].value())
                            : s.rank() == 2 ? static_cast<double>(s.lens[0].value())
                                            : 400;
    for (std::size_t k = 0; k < n; ++k) weights[at + k] = value(engine) * static_cast<float>(std::sqrt(3 / summands));
    i.constant = as_argument(s, weights.data() + at).to_literal();
    i.kind = instruction_kind::literal;
    i.is_weight = false;
    at += n;
  }
  argument image(in);
  float* const values = reinterpret_cast<float*>(image.data());
  for (std::int64_t k = 0; k < image.elements(); ++k) values[k] = value(engine);

  static network fixed(std::span<const float, network::weight_elements>(weights.data(), weights.size()));
  using input_span = typename network::template input_span<0>;
  const input_span span(values, input_span::extent);
  const std::string model = onnx::export_model(p);
  const peer::session session(library, std::as_bytes(std::span(model)), 1);
  peer::session::binding bound(session, {{input, image}});
  on_one_thread exe(p, image);
  race(title,
       {{"static program", [&] { fixed(span); }},
        {"Eigen executable", [&] { exe.run(); }, 1},
        {"ONNX Runtime", [&] { bound.run(); }}},
       rounds);
  return close(fixed.result(), bound.results()[0]) && close(fixed.result(), exe.outputs[0]);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 15;
  bool check = false;
  for (int k = 1; k < argc; ++k) {
    const std::string option = argv[k];
    if (option == "--check") {
      check = true;
    } else if (option == "--rounds" && k + 1 < argc && std::atoi(argv[k + 1]) > 0) {
      rounds = std::atoi(argv[++k]);
    } else {
      fmt::print(stderr, "bench_static [--rounds 15] [--check]: found '{}'\n", option);
      return 2;
    }
  }
  const auto library = peer::library();
  if (!library) {
    fmt::print(stderr, "SKIPPED: ONNX Runtime is not in the build tree (bash cmake/peer.sh)\n");
    return 77;
  }
  const bool equal = race_digits(*library, rounds) && race_perceptron(*library, rounds) &&
                     race_network<nets::resnet18>("ResNet-18, one image of 224x224", *library, rounds) &&
                     race_network<nets::mobilenet>("MobileNet, one image of 224x224", *library, rounds) &&
                     race_network<nets::transformer>("4 layers of a transformer, 64 tokens of 128", *library, rounds);
  return equal && !(check && slow) ? 0 : 1;
}
