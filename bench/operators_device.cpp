// Times the large case of each operator in a list on a GPU, in one process: threads compile ahead of the one that runs.
// Prints a line for each case, as cases end; bench/operators/device.py makes tables of them.
//
//     bench_operators_device CASES.txt [--only TEXT] [--first N] [--compilers 12] [--check]
//
// operator_cases.hpp says what CASES.txt holds; the large case is the last of those whose names differ in their last
// word. Fields between tabs: the case's number, its name, "ok", "failed" and the reason or, with --check, "wrong" and
// the difference where results lie farther from the CPU's than the case allows; then us a run (replayed, its arguments
// on the device), kernels, 1e9 bytes a second (the program's operands and results, each once), 1e9 multiplications and
// additions of contractions a second, the bound's us, what bounds ("memory", "products" or "launches"), kernels on the
// host, and all kernels. Lines that begin with # have the ceilings of the bounds: a large copy, large products of each
// type, and a kernel that does next to nothing. With --first the cases before the N-th are left out: a kernel that
// faults ends its process.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/run_options.hpp"
#include "operator_cases.hpp"

namespace {

using namespace kiln;
using bench::case_row;

struct settings {
  std::string list, only;
  std::size_t first = 0, compilers = 12;
  bool check = false;
};

// What a program takes: seconds a run, bytes of its operands and results, and products by operands' type.
struct measured {
  double seconds = 0, bytes = 0;
  std::map<dtype, double> flops;
  double all_flops() const {
    double sum = 0;
    for (const auto& [type, n] : flops) sum += n;
    return sum;
  }
};

double bytes_of(const argument& a) {
  return static_cast<double>(a.elements()) * static_cast<double>(size_of(a.get_shape().type));
}

measured run_times(const executable& exe, const hip_target& target, const std::vector<argument>& given) {
  measured m;
  std::vector<argument> inputs, outputs;
  for (const argument& a : given) inputs.push_back(a.elements() > 0 ? target.to_device(a) : a);
  bool sized = true;
  for (const port& p : exe.outputs())
    sized = sized && !is_object(p.type.type) && p.type.bytes().is_constant() && p.type.bytes().value() > 0;
  workspace w = exe.make_workspace();
  for (const port& p : exe.outputs()) outputs.push_back(sized ? target.allocate(p.type) : argument());
  exe.run(w, inputs, outputs);  // reports faults
  // results of sizes that the run found go to memory on the device from then on
  for (argument& a : outputs)
    if (const shape s = a.get_shape(); !sized && !is_object(s.type) && a.elements() > 0)
      a = target.allocate({s.type, s.lens});
  for (const auto* side : {&inputs, &outputs})
    for (const argument& a : *side) m.bytes += bytes_of(a);
  m.bytes += static_cast<double>(exe.report().constant_bytes + exe.report().packed_bytes);
  for (const step_info& s : exe.report().steps)
    if (s.flops.is_constant() && s.flops.value() > 0 && !s.inputs.empty())
      m.flops[s.inputs[0].type] += static_cast<double>(s.flops.value());
  const auto queue = target.get_device()->make_queue();
  run_options options;
  options.stream = queue->stream();
  const auto several = [&](int n) {
    queue->mark();
    for (int i = 0; i < n; ++i) exe.run(w, inputs, outputs, options);
    queue->mark();
    return queue->seconds_between_marks().front() / n;
  };
  several(3);
  const int each = std::clamp(static_cast<int>(2e-3 / several(1)), 1, 50);
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) times.push_back(several(each));
  m.seconds = bench::median(times);
  return m;
}

// What a bound is computed from.
struct ceilings {
  double bytes = 0, launch = 0;  // a second; seconds
  std::map<dtype, double> flops;

  double products(const measured& m) const {
    double seconds = 0;
    for (const auto& [type, n] : m.flops) {
      const auto at = flops.find(type == dtype::bf16 ? dtype::f16 : type == dtype::u8 ? dtype::i8 : type);
      seconds += n / (at == flops.end() ? flops.at(dtype::f32) : at->second);
    }
    return seconds;
  }
};

ceilings measure_ceilings(const hip_target& target) {
  const auto time = [&](const std::function<void(builder&)>& build) {
    builder b;
    build(b);
    const executable exe = compile(b.finish(), target);
    std::vector<argument> inputs;
    for (const port& p : exe.inputs()) inputs.push_back(bench::random_values(p.type, -1, 1));
    return run_times(exe, target, inputs);
  };
  ceilings c;
  const measured copy = time([](builder& b) {
    b.output(b.input("x", dtype::f16, {16384, 16384}) + b.scalar(dtype::f16, 1.f));
  });
  c.bytes = copy.bytes / copy.seconds;
  c.launch = time([](builder& b) { b.output(b.input("x", dtype::f32, {32}) + b.scalar(dtype::f32, 1.f)); }).seconds;
  fmt::print("#\tmemory\t{:.1f}\n#\tlaunch\t{:.3f}\n", c.bytes / 1e9, c.launch * 1e6);
  for (const dtype t : {dtype::f16, dtype::f32, dtype::f64}) {
    constexpr std::int64_t side = 4096;
    const measured product = time([&](builder& b) {
      b.output(b.input("x", t, {side, side}).dot(b.input("w", t, {side, side})));
    });
    c.flops[t] = product.all_flops() / product.seconds;
    fmt::print("#\tproducts of {}\t{:.0f}\n", to_string(t), c.flops[t] / 1e9);
  }
  c.flops[dtype::i8] = c.flops[dtype::f16];
  return c;
}

// Executables in the order of the cases, made by several threads, at most so many ahead.
class compiled_ahead {
 public:
  struct made {
    std::optional<executable> exe;
    std::vector<argument> inputs;
    std::vector<argument> expected;  // with --check, of cases whose values are known
    std::string fault;
  };

  compiled_ahead(const settings& s, const hip_target& target, const std::vector<case_row>& rows)
      : settings_(s), target_(target), rows_(rows), made_(rows.size()) {
    for (std::size_t i = 0; i < s.compilers; ++i) threads_.emplace_back([this] { work(); });
  }
  ~compiled_ahead() {
    {
      const std::lock_guard lock(mutex_);
      next_ = rows_.size();
    }
    changed_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  made take(std::size_t i) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return made_[i].has_value(); });
    made out = std::move(*made_[i]);
    made_[i].reset();
    taken_ = i + 1;
    changed_.notify_all();
    return out;
  }

 private:
  void work() {
    constexpr std::size_t ahead = 24;
    for (;;) {
      std::size_t i = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return next_ >= rows_.size() || next_ < taken_ + ahead; });
        if (next_ >= rows_.size()) return;
        i = next_++;
      }
      made m;
      try {
        m = make(rows_[i]);
      } catch (const std::exception& e) {
        m.fault = e.what();
      }
      const std::lock_guard lock(mutex_);
      made_[i] = std::move(m);
      changed_.notify_all();
    }
  }
  made make(const case_row& row) const {
    const auto folder = std::filesystem::path(settings_.list).parent_path();
    const std::string bytes = bench::read_file(folder / row.file);
    const auto model = std::as_bytes(std::span(bytes));
    compile_options options;
    options.threads = 1;
    made m;
    m.exe = compile(onnx::parse_model(model, folder.empty() ? "." : folder.string()).graph, target_, options);
    const auto named = bench::inputs_of(row, model);
    for (const port& p : m.exe->inputs()) m.inputs.push_back(named.at(p.name));
    if (settings_.check && row.tolerance >= 0)
      m.expected =
          compile(onnx::parse_model(model, folder.empty() ? "." : folder.string()).graph, eigen_target(), options)
              .run(m.inputs);
    return m;
  }

  const settings& settings_;
  const hip_target& target_;
  const std::vector<case_row>& rows_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<made>> made_;
  std::size_t next_ = 0, taken_ = 0;
  std::vector<std::thread> threads_;
};

std::string measure(compiled_ahead::made m, const hip_target& target, const ceilings& top, const case_row& row) {
  if (!m.exe) return "failed\t" + bench::in_short(m.fault);
  if (!m.expected.empty())
    if (const double apart = bench::difference(m.exe->run(m.inputs), m.expected, row.relative);
        !(apart <= row.tolerance))
      return fmt::format("wrong\t{:.1e} apart from the CPU's", apart);
  const measured found = run_times(*m.exe, target, m.inputs);
  std::vector<std::string> kernels;
  std::set<std::string> on_host;
  for (const step_info& s : m.exe->report().steps) {
    kernels.push_back(s.kernel);
    if (s.fallback) on_host.insert(s.kernel);
  }
  const double memory = found.bytes / top.bytes, products = top.products(found);
  const double bound = std::max({memory, products, top.launch});
  return fmt::format("ok\t{:.2f}\t{}\t{:.1f}\t{:.1f}\t{:.2f}\t{}\t{}\t{}", found.seconds * 1e6, kernels.size(),
                     found.bytes / found.seconds / 1e9, found.all_flops() / found.seconds / 1e9, bound * 1e6,
                     bound == memory     ? "memory"
                     : bound == products ? "products"
                                         : "launches",
                     fmt::join(on_host, ","), bench::in_short(fmt::format("{}", fmt::join(kernels, ","))));
}

// The last case of each name without its extents.
std::vector<case_row> large_cases(const settings& s) {
  std::vector<case_row> rows;
  const auto group = [](const std::string& name) { return name.substr(0, name.rfind(' ')); };
  for (case_row& row : bench::read_cases(s.list, s.only)) {
    if (!rows.empty() && group(rows.back().name) == group(row.name)) rows.pop_back();
    rows.push_back(std::move(row));
  }
  return rows;
}

settings read_settings(int argc, char** argv) {
  settings s;
  s.list = bench::read_options(argc, argv, [&](const std::string& word, const auto& next) {
    if (word == "--only")
      s.only = next();
    else if (word == "--first")
      s.first = std::stoul(next());
    else if (word == "--check")
      s.check = true;
    else if (word == "--compilers")
      s.compilers = std::max(1ul, std::stoul(next()));
    else
      return false;
    return true;
  });
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const settings s = read_settings(argc, argv);
  std::vector<case_row> rows = large_cases(s);
  rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min(s.first, rows.size())));
  const hip_target target;
  const ceilings top = measure_ceilings(target);
  compiled_ahead ahead(s, target, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string line;
    try {
      line = measure(ahead.take(i), target, top, rows[i]);
    } catch (const std::exception& e) {
      line = "failed\t" + bench::in_short(e.what());
    }
    fmt::print("{}\t{}\t{}\n", s.first + i, rows[i].name, line);
    std::fflush(stdout);
  }
} catch (const std::exception& e) {
  fmt::print(stderr, "bench_operators_device: {}\n", e.what());
  return 2;
}
