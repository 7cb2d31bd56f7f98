#include "kiln/runtime/impl/tune/tuning_data.hpp"

#include <atomic>
#include <cstring>

#include "kiln/runtime/impl/run/run_memory.hpp"
#include "kiln/runtime/processor.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::detail {
namespace {

// Bytes that a worker reads between two timed runs: more than an L2 holds.
constexpr std::size_t others_bytes = 4 << 20, line = 64;

std::byte* aligned_memory(buffer& b, std::size_t bytes) {
  b = buffer::allocate(bytes + alignment);
  const auto at = reinterpret_cast<std::uintptr_t>(b.data());
  return b.data() + (alignment - at % alignment) % alignment;
}

unsigned read_lines(const std::byte* from, std::size_t bytes) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes; i += line) sum += static_cast<unsigned>(from[i]);
  return sum;
}

}  // namespace

std::string computation_of(const program& whole, const module_graph& m) {
  text out;
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind != instruction_kind::op) continue;
    out.append(m[i].op.name());
    if (m[i].op.is<op::fused>())
      out.append('{').append(std::string_view(computation_of(whole, whole.module(m[i].op.body())))).append('}');
    else
      m[i].op.print(out);
    for (value_id v : m[i].inputs) out.append(' ').append(static_cast<std::int64_t>(v.instruction));
    out.append(std::string_view("; "));
  }
  return out.str();
}

void fill_for_timing(const argument& to) {
  const shape& s = to.get_shape();
  auto* const at = const_cast<std::byte*>(to.data());
  const std::int64_t n = to.elements();
  std::memset(at, s.type == dtype::boolean, static_cast<std::size_t>(n) * size_of(s.type));
  if (!is_float(s.type)) return;
  constexpr std::int64_t period = 1021;
  for (std::int64_t i = 0; i < std::min(n, period); ++i) {
    const double value = (i % 2 ? -1 : 1) * (0.5 + static_cast<double>(i * 389 % period) / (2 * period));
    encode(s.type, &value, at + i * static_cast<std::int64_t>(size_of(s.type)), 1);
  }
  for (std::int64_t i = period; i < n; i += period)
    std::memcpy(at + i * static_cast<std::int64_t>(size_of(s.type)), at,
                static_cast<std::size_t>(std::min(period, n - i)) * size_of(s.type));
}

tuning_data::tuning_data(const kernel_request& r) : pool_(*r.pool) {
  const auto make = [&](const shape& s, bool nhwc) {
    tensor t{nullptr, s.type, to_ints(s.lens), {}};
    t.strides = nhwc && s.rank() > 2 ? lower::nhwc_strides(t.lens) : row_major(t.lens);
    memory_.emplace_back();
    t.data = aligned_memory(memory_.back(), static_cast<std::size_t>(t.elements()) * size_of(s.type));
    fill_for_timing(argument(shape(s.type, s.lens), memory_.back(), t.data));
    return t;
  };
  for (std::size_t k = 0; k < r.inputs.size(); ++k) {
    const literal* constant = r.constants[k];
    if (!constant || !constant->data().data()) {
      in_.push_back({make(r.inputs[k], r.nhwc[k]), false});
    } else {
      const layout& l = r.constant_layouts[k];
      const auto size = static_cast<std::int64_t>(size_of(r.inputs[k].type));
      constants_.emplace_back(*constant);
      auto* const data = constants_.back().data() + l.offset.value() * size;
      in_.push_back({{data, r.inputs[k].type, to_ints(l.lens), to_ints(l.strides)}, true});
    }
    inputs_.push_back(in_.back().at);
  }
  for (const shape& s : r.instruction.results) {
    results_.push_back(make(s, r.result_nhwc));
    nchw_results_.push_back(results_.back());
    nchw_results_.back().strides = row_major(nchw_results_.back().lens);
  }
  std::byte* const others = aligned_memory(other_, others_bytes * pool_.size());
  std::memset(others, 1, others_bytes * pool_.size());
}

std::function<void()> tuning_data::launch_of(const kernel& k) {
  const std::vector<tensor>& out = k.output_strides(0) == stride_support::dense ? nchw_results_ : results_;
  k.prepare(inputs_, out);
  const std::size_t bytes = k.scratch_bytes(inputs_, out, pool_.size());
  memory_.emplace_back();
  std::byte* const scratch = aligned_memory(memory_.back(), bytes);
  return [this, &k, &out, scratch, bytes] {
    const flush_denormals guard;
    k.run({inputs_, out, {scratch, bytes}, &pool_, &none_});
  };
}

void tuning_data::cool() {
  std::atomic<unsigned> kept{0};
  pool_.parallel_for(pool_.size(), [&](std::int64_t task, unsigned) {
    kept += read_lines(other_.data() + static_cast<std::size_t>(task) * others_bytes, others_bytes);
  });
  for (const operand& o : in_) {
    if (o.constant) continue;
    constexpr std::size_t piece = 1 << 16;
    const std::size_t bytes = static_cast<std::size_t>(o.at.elements()) * size_of(o.at.type);
    pool_.parallel_for(static_cast<std::int64_t>((bytes + piece - 1) / piece), [&](std::int64_t task, unsigned) {
      const std::size_t from = static_cast<std::size_t>(task) * piece;
      kept += read_lines(o.at.data + from, std::min(piece, bytes - from));
    });
  }
}

}  // namespace kiln::detail
