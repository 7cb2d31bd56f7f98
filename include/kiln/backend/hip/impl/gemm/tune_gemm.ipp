#include <algorithm>
#include <mutex>
#include <optional>

#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/kept_files.hpp"

namespace kiln::hip {
namespace {

constexpr std::string_view version = "10";  // of the kernels: choices among other versions don't count
constexpr std::size_t most_candidates = 20;
constexpr int runs_a_time = 8, times = 5;
// of the estimated choice's time: a smaller gain may be noise of the clock
constexpr double worth_changing = 0.97;

std::string describe(const gemm_tile& t) {
  std::string out(t.atom);
  for (int n : {t.rows, t.cols, t.depth, t.warps_m, t.warps_n, t.stages, t.splits, int{t.cluster}, int{t.alternate}})
    out += " " + std::to_string(n);
  return out;
}

// Bytes from an operand's first element to its last; 0 where a step is negative.
class reach {
 public:
  explicit reach(dtype t) : width_(size_of(t)) {}
  reach& along(std::int64_t extent, std::int64_t step) {
    backwards_ = backwards_ || step < 0;
    last_ += (extent - 1) * step;
    return *this;
  }
  std::size_t bytes() const { return backwards_ ? 0 : static_cast<std::size_t>(last_ + 1) * width_; }

 private:
  std::size_t width_;
  std::int64_t last_ = 0;
  bool backwards_ = false;
};

std::size_t reach_of(const gemm_problem& p, const gemm_factor& f, std::int64_t rows) {
  reach r(p.type);
  if (const auto* m = std::get_if<matrix_argument>(&f.value))
    return r.along(p.batch0, m->batch[0])
        .along(p.batch1, m->batch[1])
        .along(rows, m->row_step)
        .along(p.phases ? m->row_step : p.depth, m->depth_step)  // phases are parts of a row
        .bytes();
  const auto& m = std::get<image_argument>(f.value);
  return r.along(p.images, m.image_step)
      .along(p.batch1, m.group_step)
      .along(p.channels, m.channel_step)
      .along(m.planes, m.plane_step)
      .along(m.height, m.row_step)
      .along(m.width, m.col_step)
      .bytes();
}

// Memory for a GEMM's operands; its contents don't matter to the time. Within a network a constant factor comes from
// memory, and the rest from the cache, where the kernels before left it. So each of several runs has a constant factor
// of its own, and the caches are overwritten before them.
struct timed_operands {
  std::vector<buffer> memory;  // a, b, the result, the epilogue's operands
  std::size_t apart = 0;       // bytes from run to run of the second
  buffer other;                // as much as caches hold
};

std::optional<timed_operands> operands_of(const gemm_problem& p, const device& on, std::size_t cache_bytes) {
  std::vector<std::size_t> bytes = {reach_of(p, p.a, p.rows), reach_of(p, p.b, p.cols)};
  const std::int64_t images = p.pixels ? p.rows / p.pixels : p.batch0, rows = p.pixels ? p.pixels : p.rows;
  if (p.phases) bytes.push_back(static_cast<std::size_t>(p.phases->reach) * size_of(p.types[0]));
  for (std::size_t k = p.phases ? 1 : 0; k < p.steps.size(); ++k)
    bytes.push_back(reach(p.types[k])
                        .along(images, p.steps[k][0])
                        .along(p.batch1, p.steps[k][1])
                        .along(rows, p.steps[k][2])
                        .along(p.cols, p.steps[k][3])
                        .bytes());
  timed_operands out;
  for (std::size_t n : bytes)
    if (n == 0) return std::nullopt;
  if (p.constant_b) {
    constexpr std::size_t aligned = 256;
    out.apart = (bytes[1] + aligned - 1) / aligned * aligned;
    bytes[1] = out.apart * runs_a_time;
    out.other = on.allocate(2 * cache_bytes);
  }
  for (std::size_t n : bytes) out.memory.push_back(on.allocate(n));
  return out;
}

// Seconds of one GEMM among several that follow one another, without the cost of launching them.
double seconds_of(const gemm_plan& plan, const function& f, device_queue& queue, const timed_operands& operands,
                  std::span<std::byte> scratch) {
  const std::vector<buffer>& memory = operands.memory;
  std::vector<const void*> extra;
  for (std::size_t k = 3; k < memory.size(); ++k) extra.push_back(memory[k].data());
  const auto run = [&](int i) {
    run_gemm(plan, f, queue, scratch, memory[0].data(), memory[1].data() + static_cast<std::size_t>(i) * operands.apart,
             const_cast<std::byte*>(memory[2].data()), extra);
  };
  run(0);
  queue.wait();
  std::unique_ptr<device_recording> several;
  if (queue.begin_recording()) {
    for (int i = 0; i < runs_a_time; ++i) run(i);
    several = queue.end_recording();
  }
  double least = 1e9;
  for (int time = 0; time < times; ++time) {
    if (operands.other.size() != 0) queue.fill(const_cast<std::byte*>(operands.other.data()), 0, operands.other.size());
    queue.mark();
    if (several)
      queue.replay(*several);
    else
      for (int i = 0; i < runs_a_time; ++i) run(i);
    queue.mark();
    least = std::min(least, queue.seconds_between_marks().front() / runs_a_time);
  }
  return least;
}

}  // namespace

gemm_plan plan_gemm(const gemm_problem& plain, const row_program* epilogue, const context& where) {
  gemm_problem p = plain;
  p.work = work_of(epilogue);
  const std::vector<gemm_tile> tiles = tiles_for(p, where.arch());
  gemm_plan first = plan_gemm(p, epilogue, tiles.front(), where.arch());
  digest problem;
  problem.add(first.what.text);
  const auto add = [&](const void* at, std::size_t n) { problem.add({static_cast<const char*>(at), n}); };
  for (const gemm_factor* f : {&first.a, &first.b}) std::visit([&](const auto& v) { add(&v, sizeof v); }, f->value);
  add(first.result.data(), first.result.size()), add(&first.sizes, sizeof first.sizes);
  const std::string key = "hip " + where.arch().name + " " + std::to_string(where.arch().multiprocessors) +
                          ", kernels " + std::string(version) + ", product " + problem.str();
  if (const auto kept = where.choice(key))
    for (const gemm_tile& t : tiles)
      if (describe(t) == *kept) return plan_gemm(p, epilogue, t, where.arch());
  if (!where.tunes()) return first;

  const std::shared_ptr<const device> on = make_device(*where.calls(), where.index());
  std::vector<std::pair<gemm_plan, std::shared_ptr<const function>>> made;
  for (const gemm_tile& t : tiles) {
    if (made.size() == most_candidates) break;
    gemm_plan plan = plan_gemm(p, epilogue, t, where.arch());
    auto f = where.build(plan.what);
    made.emplace_back(std::move(plan), std::move(f));
  }
  static std::mutex one_at_a_time;  // work beside a candidate would count
  const std::lock_guard guard(one_at_a_time);
  const std::unique_ptr<device_queue> queue = on->make_queue();
  queue->enter();
  device_facts facts;
  where.calls()->describe(where.index(), facts);
  const std::optional<timed_operands> operands = operands_of(p, *on, facts.cache_bytes);
  if (!operands) return first;
  std::size_t best = 0;
  double least = 0;
  for (std::size_t k = 0; k < made.size(); ++k) {
    const gemm_plan& plan = made[k].first;
    const buffer scratch = on->allocate(plan.scratch_bytes);
    const double seconds =
        seconds_of(plan, *made[k].second, *queue, *operands, {const_cast<std::byte*>(scratch.data()), scratch.size()});
    if (k == 0 || seconds < least * (best == 0 ? worth_changing : 1.0)) least = seconds, best = k;
  }
  where.keep_choice(key, describe(tiles[best]));
  return std::move(made[best].first);
}

}  // namespace kiln::hip
