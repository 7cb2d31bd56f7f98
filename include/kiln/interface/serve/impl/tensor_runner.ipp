#include "kiln/interface/serve/tensor_runner.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "kiln/interface/serve/http.hpp"

namespace kiln::serve {

namespace detail {

// A request that waits for a run with others.
struct waiting_run {
  std::vector<argument> inputs, outputs;
  std::vector<shape> shapes;
  std::int64_t rows = 0;
  std::exception_ptr failed;
  bool is_done = false;
};

// All ports begin with one symbol, and have it nowhere else.
inline bool begins_with_one_symbol(const executable& exe) {
  std::vector<port> all(exe.inputs().begin(), exe.inputs().end());
  all.insert(all.end(), exe.outputs().begin(), exe.outputs().end());
  if (exe.inputs().empty() || exe.inputs()[0].type.rank() == 0 || exe.inputs()[0].type.lens[0].is_constant())
    return false;
  const dimension first = exe.inputs()[0].type.lens[0];
  return std::all_of(all.begin(), all.end(), [&](const port& p) {
    const auto& lens = p.type.lens;
    return !lens.empty() && lens[0] == first && p.type.type != dtype::string &&
           std::all_of(lens.begin() + 1, lens.end(), [](dimension d) { return d.is_constant(); });
  });
}

// Rows of a run, which the symbol's upper bound may limit.
inline batch_options within(batch_options o, const executable& exe) {
  o.rows = std::min(o.rows, exe.inputs()[0].type.lens[0].max());
  return o;
}

inline std::size_t bytes_of(const argument& a) {
  return static_cast<std::size_t>(a.elements()) * size_of(a.get_shape().type);
}

}  // namespace detail

using detail::waiting_run;

struct tensor_runner::parts {
  executable exe;
  const batch_options options;
  const bool joins;
  const std::size_t most;  // open requests
  std::mutex mutex;        // of what follows
  std::vector<workspace> idle{};
  std::size_t running = 0, open = 0;  // runs; requests
  std::deque<std::shared_ptr<waiting_run>> queue{};
  bool is_ending = false;
  runner_statistics counts{};
  std::condition_variable come{}, done{}, left{};
  std::thread thread{};

  std::vector<argument> run(std::span<const argument> inputs) {
    // more at a time would take memory for nothing
    static const std::size_t most_runs = std::max(2u, std::thread::hardware_concurrency());
    std::optional<workspace> w;
    {
      std::unique_lock lock(mutex);
      left.wait(lock, [&] { return running < most_runs; });
      ++counts.runs, ++running;
      if (!idle.empty()) {
        w.emplace(std::move(idle.back()));
        idle.pop_back();
      }
    }
    const auto ended = std::shared_ptr<void>(nullptr, [this](void*) {
      const std::lock_guard lock(mutex);
      --running;
      left.notify_one();
    });
    if (!w) w.emplace(exe.make_workspace());
    std::vector<shape> shapes;
    for (const argument& a : inputs) shapes.push_back(a.get_shape());
    auto out = exe.make_outputs(shapes);
    exe.run(*w, inputs, out);
    for (argument& a : out) a = a.owned();  // the workspace is the next one's
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(*w));
    return out;
  }

  void run_together(const std::vector<std::shared_ptr<waiting_run>>& all) {
    if (all.size() == 1) {
      all[0]->outputs = run(all[0]->inputs);
      return;
    }
    std::int64_t rows = 0;
    for (const auto& r : all) rows += r->rows;
    std::vector<argument> inputs;
    for (std::size_t k = 0; k < exe.inputs().size(); ++k) {
      shape s = all[0]->shapes[k];
      s.lens[0] = rows;
      argument whole(shape{s.type, s.lens});
      std::byte* to = whole.data();
      for (const auto& r : all) {
        const argument own = r->inputs[k].contiguous();
        const std::size_t n = detail::bytes_of(own);
        if (n > 0) std::memcpy(to, own.data(), n);
        to += n;
      }
      inputs.push_back(std::move(whole));
    }
    const auto outputs = run(inputs);
    for (const argument& whole : outputs) {
      const std::byte* from = whole.data();
      for (const auto& r : all) {
        shape s = whole.get_shape();
        s.lens[0] = r->rows;
        argument own(shape{s.type, s.lens});
        const std::size_t n = detail::bytes_of(own);
        if (n > 0) std::memcpy(own.data(), from, n);
        from += n;
        r->outputs.push_back(std::move(own));
      }
    }
  }

  // The first request and those after it that fit.
  std::vector<std::shared_ptr<waiting_run>> take(std::unique_lock<std::mutex>& lock) {
    const auto rows = [&] {
      std::int64_t n = 0;
      for (const auto& r : queue) n += r->rows;
      return n;
    };
    come.wait_for(lock, options.wait, [&] { return is_ending || rows() >= options.rows; });
    std::vector<std::shared_ptr<waiting_run>> out;
    for (std::int64_t left = options.rows; !queue.empty() && (out.empty() || queue.front()->rows <= left);) {
      left -= queue.front()->rows;
      out.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    return out;
  }

  void work() {
    for (std::unique_lock lock(mutex);;) {
      come.wait(lock, [&] { return is_ending || !queue.empty(); });
      if (queue.empty()) return;
      const auto all = take(lock);
      lock.unlock();
      try {
        run_together(all);
      } catch (...) {
        // one of them may have been its reason: each one has what is its own
        for (const auto& r : all) try {
            r->outputs = run(r->inputs);
          } catch (...) {
            r->failed = std::current_exception();
          }
      }
      lock.lock();
      for (const auto& r : all) r->is_done = true;
      done.notify_all();
    }
  }
};

tensor_runner::tensor_runner(executable program, batch_options batching, std::size_t most_waiting) {
  bool joins = batching.rows > 1 && detail::begins_with_one_symbol(program);
  if (joins) batching = detail::within(batching, program), joins = batching.rows > 1;
  parts_.reset(new parts{std::move(program), batching, joins, most_waiting, {}});
  if (joins) parts_->thread = std::thread([p = parts_.get()] { p->work(); });
}
tensor_runner::~tensor_runner() {
  {
    const std::lock_guard lock(parts_->mutex);
    parts_->is_ending = true;
    parts_->come.notify_all();
  }
  if (parts_->thread.joinable()) parts_->thread.join();
}

std::vector<argument> tensor_runner::run(std::vector<argument> inputs) {
  parts& p = *parts_;
  auto r = std::make_shared<waiting_run>();
  for (const argument& a : inputs) r->shapes.push_back(a.get_shape());
  p.exe.output_shapes(r->shapes);  // its own errors, before it meets others
  {
    const std::lock_guard lock(p.mutex);
    if (p.open >= p.most)
      throw api_error("the model is busy: expected at most " + std::to_string(p.most) + " requests at a time", {},
                      "model_busy", 429);
    ++p.open, ++p.counts.requests;
  }
  const auto ended = std::shared_ptr<void>(nullptr, [&p](void*) {
    const std::lock_guard own(p.mutex);
    --p.open;
  });
  if (!p.joins) return p.run(inputs);
  r->rows = r->shapes[0].lens[0].value();
  r->inputs = std::move(inputs);
  std::unique_lock lock(p.mutex);
  p.queue.push_back(r);
  p.come.notify_all();
  p.done.wait(lock, [&] { return r->is_done; });
  if (r->failed) std::rethrow_exception(r->failed);
  return std::move(r->outputs);
}

bool tensor_runner::joins() const { return parts_->joins; }
const executable& tensor_runner::program() const { return parts_->exe; }
runner_statistics tensor_runner::statistics() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->counts;
}

}  // namespace kiln::serve
