// Kernels and networks on a GPU, with arguments that live there: milliseconds a run and the memory rate they come to.
// bench_device [--steps] [--tune] [--onnx] [NAME...]: the cases whose names begin so, all without a name; with --steps
// each step's time too; with --onnx what is compiled is read from an ONNX file, which counts as compiling.
// bench/versus_torch.py times the same.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>

#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/op/more.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/run_options.hpp"
#include "networks.hpp"

namespace {

using namespace kiln;

struct bench_case {
  std::string name;
  std::function<void(builder&)> make;
};

argument random_values(const shape& s, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  argument a(s);
  std::vector<float> some(4099);
  for (float& v : some) v = value(engine);
  const auto n = a.elements(), width = static_cast<std::int64_t>(size_of(s.type));
  const auto part = std::min<std::int64_t>(n, static_cast<std::int64_t>(some.size()));
  if (is_float(s.type))
    encode(s.type, some.data(), a.data(), part);
  else
    std::memset(a.data(), 0, static_cast<std::size_t>(part * width));
  for (std::int64_t at = part; at < n; at += part)
    std::memcpy(a.data() + at * width, a.data(), static_cast<std::size_t>(std::min(part, n - at) * width));
  return a;
}

value some_weights(builder& b, const dims& lens) {
  const shape s(dtype::f16, lens);
  const argument values = random_values(s, 7);
  buffer copy = buffer::allocate(static_cast<std::size_t>(s.bytes().value()));
  std::memcpy(copy.data(), values.data(), copy.size());
  return b.constant(literal(s, std::move(copy)));
}

// As in MobileNet: channels that lie last, each with a filter of its own, between pointwise ops.
void depthwise(builder& b, std::int64_t batch, std::int64_t channels, std::int64_t size, std::int64_t stride) {
  const auto x = b.input("x", dtype::f16, {batch, size, size, channels}).transpose({0, 3, 1, 2});
  const auto y = x.conv(some_weights(b, {channels, 1, 3, 3}),
                        {.stride = {stride, stride}, .pads = {1, 1, 1, 1}, .group = channels});
  b.output((y + some_weights(b, {channels, 1, 1})).relu().transpose({0, 2, 3, 1}));
}

// Attention of a prompt to itself, [batch, heads, tokens, depth].
void prompt_attention(builder& b, const dims& lens, bool causal) {
  constexpr dtype t = dtype::f16;
  const float scale = 1 / std::sqrt(static_cast<float>(lens[3].value()));
  b.output(b.add(op::attention{.scale = scale, .causal = causal}, b.input("q", t, lens), b.input("k", t, lens),
                 b.input("v", t, lens)));
}

// A layer of a language model: the product with a matrix, its bias and, where told, gelu.
void dense(builder& b, std::int64_t rows, std::int64_t from, std::int64_t to, bool gelu) {
  constexpr dtype t = dtype::f16;
  const value y = b.input("x", t, {rows, from}).dot(b.input("w", t, {from, to})) + b.input("bias", t, {to});
  b.output(gelu ? y.gelu() : y);
}

const std::vector<bench_case>& cases() {
  constexpr dtype t = dtype::f16;
  static const std::vector<bench_case> all = {
      {"copy_256m",
       [](builder& b) {
         b.output(b.input("x", t, {16384, 16384}).transpose({0, 1}) + b.scalar(t, 1.0f));
       }},
      {"chain_256m",
       [](builder& b) {
         const auto x = b.input("x", t, {16384, 16384}), y = b.input("y", t, {16384, 16384});
         b.output((x * y + x).relu() * x.sigmoid());
       }},
      {"softmax",
       [](builder& b) {
         b.output(b.input("x", t, {65536, 4096}).softmax());
       }},
      {"layer_norm",
       [](builder& b) {
         const auto x = b.input("x", t, {65536, 4096});
         b.output(x.normalize({-1}) * b.input("scale", t, {4096}) + b.input("bias", t, {4096}));
       }},
      {"bias_gelu_residual",
       [](builder& b) {
         const auto x = b.input("x", t, {65536, 4096});
         b.output((x + b.input("bias", t, {4096})).gelu() + b.input("r", t, {65536, 4096}));
       }},
      {"transpose",
       [](builder& b) {
         b.output(b.input("x", t, {16384, 16384}).transpose({1, 0}));
       }},
      {"reduce_columns",
       [](builder& b) {
         b.output(b.add(op::reduce_sum{.axes = {0}}, b.input("x", t, {65536, 4096})));
       }},
      {"reduce_all",
       [](builder& b) {
         b.output(b.add(op::reduce_sum{.axes = {0, 1}}, b.input("x", t, {65536, 4096})));
       }},
      {"gemm_4096",
       [](builder& b) {
         const auto x = b.input("x", t, {4096, 4096}), w = b.input("w", t, {4096, 4096});
         b.output((x.dot(w) + b.input("bias", t, {4096})).gelu());
       }},
      {"attention_512",
       [](builder& b) {
         prompt_attention(b, {16, 12, 512, 64}, false);
       }},
      {"attention_512_causal",
       [](builder& b) {
         prompt_attention(b, {16, 12, 512, 64}, true);
       }},
      {"attention_4096",
       [](builder& b) {
         prompt_attention(b, {2, 16, 4096, 64}, false);
       }},
      {"attention_4096_causal",
       [](builder& b) {
         prompt_attention(b, {2, 16, 4096, 64}, true);
       }},
      {"attention_decode",
       [](builder& b) {
         const dims cache{4, 8, 8192, 128};
         b.output(b.add(op::attention{.scale = 0.125f}, b.input("q", t, {4, 32, 1, 128}), b.input("k", t, cache),
                        b.input("v", t, cache)));
       }},
      {"attention_long",
       [](builder& b) {
         prompt_attention(b, {4, 32, 2048, 128}, false);
       }},
      {"attention_causal",
       [](builder& b) {
         prompt_attention(b, {4, 32, 2048, 128}, true);
       }},
      {"conv_56",
       [](builder& b) {
         b.output(b.input("x", t, {16, 64, 56, 56}).conv(some_weights(b, {64, 64, 3, 3}), {.pads = {1, 1, 1, 1}}));
       }},
      {"conv_7",
       [](builder& b) {
         b.output(b.input("x", t, {1, 512, 7, 7}).conv(some_weights(b, {512, 512, 3, 3}), {.pads = {1, 1, 1, 1}}));
       }},
      {"depthwise_112", [](builder& b) { depthwise(b, 16, 96, 112, 2); }},
      {"depthwise_56", [](builder& b) { depthwise(b, 16, 144, 56, 1); }},
      {"depthwise_14", [](builder& b) { depthwise(b, 16, 576, 14, 1); }},
      {"depthwise_one", [](builder& b) { depthwise(b, 1, 144, 56, 1); }},
      {"deconvolution_64",
       [](builder& b) {
         const auto x = b.input("x", t, {16, 64, 64, 128}).transpose({0, 3, 1, 2});
         const op::deconvolution twice{.stride = {2, 2}, .pads = {1, 1, 1, 1}};
         b.output(b.add(twice, x, some_weights(b, {128, 64, 4, 4})).transpose({0, 2, 3, 1}));
       }},
      {"lstm_512",
       [](builder& b) {
         using f = op::cell_function;
         const op::recurrent r{.cell = op::cell_kind::lstm,
                               .functions = {f::sigmoid, f::tanh, f::tanh},
                               .alpha = {0, 0, 0},
                               .beta = {0, 0, 0}};
         const value lengths =
             b.constant(literal::of<std::int64_t>({dtype::i64, {8}}, std::vector<std::int64_t>(8, 128)));
         b.output(b.add(r, b.input("x", t, {128, 8, 2048}), some_weights(b, {512, 2048}), some_weights(b, {2048}),
                        some_weights(b, {8, 512}), lengths, some_weights(b, {8, 512}), some_weights(b, {1536})));
       }},
      {"resnet50_1", [](builder& b) { bench::resnet50(b, t, 1); }},
      {"resnet50_64", [](builder& b) { bench::resnet50(b, t, 64); }},
      {"bert_base_1", [](builder& b) { bench::bert_base(b, t, 1, 128); }},
      {"bert_base_32", [](builder& b) { bench::bert_base(b, t, 32, 512); }},
      {"dense_up", [](builder& b) { dense(b, 16384, 768, 3072, true); }},
      {"dense_down", [](builder& b) { dense(b, 16384, 3072, 768, false); }},
      {"decode_1", [](builder& b) { dense(b, 1, 4096, 14336, false); }},
      {"decode_16", [](builder& b) { dense(b, 16, 4096, 14336, false); }},
      {"dense_128x768x3072",
       [](builder& b) {
         b.output((b.input("x", t, {128, 3072}).dot(b.input("w", t, {3072, 768})) + b.input("bias", t, {768})).relu());
       }},
  };
  return all;
}

std::string dims_text(const shape& s) {
  std::string text;
  for (const dimension& d : s.lens) text += (text.empty() ? "" : ",") + std::to_string(d.value());
  return text;
}

// Each step's milliseconds by itself, the longest first; steps of one kernel and one size together.
void print_steps(const executable& exe, workspace& w, std::span<const argument> inputs, std::span<argument> outputs) {
  std::vector<std::vector<double>> seconds(exe.report().steps.size());
  run_options options;
  options.profile = [&](std::size_t step, double s) { seconds[step].push_back(s); };
  for (int i = 0; i < 9; ++i) exe.run(w, inputs, outputs, options);
  std::map<std::string, std::pair<double, int>> sums;
  for (std::size_t k = 0; k < seconds.size(); ++k) {
    if (seconds[k].empty()) continue;
    std::sort(seconds[k].begin(), seconds[k].end());
    const step_info& s = exe.report().steps[k];
    std::string name = s.kernel;
    for (const auto* side : {&s.inputs, &s.outputs}) {
      name += side == &s.inputs ? " " : " -> ";
      for (const shape& one : *side) name += fmt::format("[{}]", dims_text(one));
    }
    auto& [sum, count] = sums[name];
    sum += seconds[k][seconds[k].size() / 2] * 1e3, ++count;
  }
  std::vector<std::pair<double, std::string>> rows;
  for (const auto& [name, at] : sums)
    rows.emplace_back(at.first, fmt::format("{:9.4f} ms {:3} x {}", at.first, at.second, name));
  std::sort(rows.rbegin(), rows.rend());
  for (const auto& row : rows) fmt::print("  {}\n", row.second);
}

// A program's ONNX file, for as long as this lives.
class written_model {
 public:
  explicit written_model(const program& p) { onnx::write_model(path_, p); }
  ~written_model() { std::filesystem::remove(path_); }
  written_model(const written_model&) = delete;
  written_model& operator=(const written_model&) = delete;
  program read() const { return std::move(onnx::read_model(path_).graph); }

 private:
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("bench_device_" + std::to_string(std::random_device()()) + ".onnx"))
          .string();
};

void time_case(const bench_case& c, const hip_target& target, const compile_options& compiling, bool steps, bool onnx) {
  builder b;
  c.make(b);
  program net = b.finish();
  std::optional<written_model> file;
  if (onnx) file.emplace(net);
  using clock = std::chrono::steady_clock;
  const auto milliseconds = [](clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  const auto begun = clock::now();
  const executable exe = compile(file ? file->read() : std::move(net), target, compiling);
  std::vector<argument> inputs, outputs;
  double bytes = 0;
  for (const port& p : exe.inputs()) {
    inputs.push_back(target.to_device(random_values(p.type, static_cast<unsigned>(inputs.size()) + 1)));
    bytes += static_cast<double>(p.type.bytes().value());
  }
  for (const port& p : exe.outputs()) {
    outputs.push_back(target.allocate(p.type));
    bytes += static_cast<double>(p.type.bytes().value());
  }
  workspace w = exe.make_workspace();
  const auto queue = target.get_device()->make_queue();
  run_options options;
  options.stream = queue->stream();
  exe.run(w, inputs, outputs, options);
  queue->wait();
  const double compile_ms = milliseconds(clock::now() - begun);
  for (int i = 0; i < 4; ++i) exe.run(w, inputs, outputs, options);
  queue->wait();
  std::vector<double> times;
  for (int round = 0; round < 9; ++round) {
    constexpr int each = 10;
    queue->mark();
    for (int i = 0; i < each; ++i) exe.run(w, inputs, outputs, options);
    queue->mark();
    times.push_back(queue->seconds_between_marks().front() * 1e3 / each);
  }
  std::sort(times.begin(), times.end());
  const double ms = times[times.size() / 2];
  fmt::print("kiln {:<20} {:9.4f} ms {:8.1f} GB/s  compiled in {:.0f} ms, {} steps\n", c.name, ms, bytes / ms / 1e6,
             compile_ms, exe.report().steps.size());
  if (steps) print_steps(exe, w, inputs, outputs);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  compile_options compiling;
  bool steps = false, onnx = false;
  int first = 1;
  for (; first < argc && argv[first][0] == '-'; ++first) {
    const std::string_view option = argv[first];
    if (option != "--steps" && option != "--tune" && option != "--onnx")
      throw std::invalid_argument("unknown option " + std::string(option));
    (option == "--steps" ? steps : option == "--onnx" ? onnx : compiling.tune) = true;
  }
  const hip_target target;
  for (const bench_case& c : cases()) {
    bool wanted = argc == first;
    for (int i = first; i < argc; ++i) wanted = wanted || c.name.starts_with(argv[i]);
    if (wanted) try {
        time_case(c, target, compiling, steps, onnx);
      } catch (const std::exception& e) {
        fmt::print("kiln {:<20} failed: {:.2000}\n", c.name, e.what());
      }
  }
} catch (const std::exception& e) {
  fmt::print(stderr, "bench_device: {}\n", e.what());
  return 1;
}
