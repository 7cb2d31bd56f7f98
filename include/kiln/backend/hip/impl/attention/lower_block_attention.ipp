#include <algorithm>

#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/kernels/attention/arguments.hpp"
#include "kiln/backend/hip/lower.hpp"
#include "kiln/op/nn/block_attention.hpp"

namespace kiln::hip {
namespace {

using table_words = gpu::block_table;
static_assert(table_words::first == op::block_attention::first && table_words::tokens == op::block_attention::tokens &&
              table_words::position == op::block_attention::position &&
              table_words::past == op::block_attention::past && table_words::counters == op::block_attention::counters);

/// Attention over blocks of caches. What a launch is depends on the table's extents alone, not on how long sequences
/// are, so that steps of a sequence replay one recording.
class block_attention_kernel final : public gpu_kernel {
 public:
  block_attention_kernel(const op::block_attention& op, const context_pointer& where)
      : gpu_kernel(where, "attention over blocks"), op_(op) {}
  stride_support input_strides(std::size_t i) const override {
    return i < 3 ? stride_support::rows : stride_support::dense;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::rows; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override { built_for(in, out); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    return built_for(in, out)->partial_bytes;
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    const auto made = built_for(l.in, l.out);
    using operand = gpu::attention_operand<const void>;
    const auto rows = [](const tensor& t) { return operand{t.data, 0, t.strides[1], t.strides[2]}; };
    const operand q = rows(l.in[0]), k = rows(l.in[1]), v = rows(l.in[2]), y = rows(l.out[0]);
    gpu::block_table table{};
    table.rows = reinterpret_cast<gpu::i64*>(l.in[3].data);
    table.width = l.in[3].lens[1], table.head = op_.head, table.keys = op_.keys, table.values = op_.values;
    table.window = static_cast<int>(op_.window), table.softcap = op_.softcap;
    if (l.in.size() > 4) table.sinks = l.in[4].as<const float>(), table.sink_step = l.in[4].lens[0] == 1 ? 0 : 1;
    gpu::attention_sizes s = made->sizes;
    s.partial = reinterpret_cast<float*>(l.scratch.data());
    made->run->launch(*l.queue, made->grid, made->block, made->shared_bytes, q, k, v, y, table, s);
  }

 private:
  struct built {
    std::shared_ptr<const function> run;
    extent3 grid, block;
    std::size_t shared_bytes = 0, partial_bytes = 0;
    gpu::attention_sizes sizes{};
  };

  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out) const {
    return built_.get(key_of(in, out), [&] { return build(in, out[0]); });
  }

  built build(std::span<const tensor> in, const tensor& out) const {
    built made;
    if (out.elements() == 0) return made;
    const tensor &q = in[0], &k = in[1], &v = in[2];
    const auto count = [](std::int64_t n) { return static_cast<int>(n); };
    gpu::attention_sizes& s = made.sizes;
    s.heads = count(q.lens[1]), s.group = count(q.lens[1] / k.lens[1]);
    s.depth = count(q.lens[3]), s.value_depth = count(v.lens[3]);
    s.tiles = s.splits = 1, s.scale = op_.scale;
    const std::string t(stored_name(q.type)), rows = "attention_operand<const " + t + "> ";
    const std::string parameters = "attention(" + rows + "q, " + rows + "k, " + rows + "v, attention_operand<" + t +
                                   "> out, block_table table, attention_sizes s)";
    kernel_text text;
    if (!tile_for(in, out, made, text, parameters)) {
      constexpr int threads = 256;
      text.line("#include \"kiln/backend/hip/kernels/attention/attention_plain.hpp\"");
      text.open_kernel(threads, parameters);
      text.line("attention_plain_over_blocks<", t, ", ", op_.block, ", ", (s.value_depth + threads - 1) / threads,
                ">(q, k, v, out, table, s);");
      text.close();
      s.tiles = count(std::min(op_.most, q.lens[2]));
      made.grid = {blocks_of(in[3].lens[0] * s.heads * s.tiles)};
      made.block = {threads};
    }
    made.run = where().build(text.whole("attention"));
    return made;
  }

  // The kernel on matrix units, where a row of the table fits one of its tiles.
  bool tile_for(std::span<const tensor> in, const tensor& out, built& made, kernel_text& text,
                const std::string& parameters) const {
    const tensor& q = in[0];
    gpu::attention_sizes& s = made.sizes;
    constexpr int warps = 4, rows = gpu::block_attention_rows;
    const int bytes = static_cast<int>(size_of(q.type));
    const auto whole = [](int n) { return (n + 15) / 16 * 16; };
    const int depth = whole(s.depth), value_depth = whole(s.value_depth);
    // many tokens of few sequences: products are the work, else it is reading keys
    const bool many = q.lens[2] >= 8 * in[3].lens[0];
    const int keys = many && std::max(depth, value_depth) <= 128 ? 64 : 32;
    const gpu::attention_memory memory{rows, keys, depth, value_depth, bytes};
    if (atom_for(q.type, where().arch()) != "atom_mma" || bytes != 2 || op_.softcap > 0 || in.size() > 4 ||
        std::max(depth, value_depth) > 256 || op_.most * s.group > rows ||
        static_cast<std::size_t>(memory.bytes_in_registers()) > where().arch().shared_bytes)
      return false;
    int vector = vector_of(2, 16, {s.depth, s.value_depth});
    for (const tensor* x : {&in[0], &in[1], &in[2], &out}) {
      const auto step = [&](std::size_t d) { return x->lens[d] == 1 ? 0 : x->strides[d]; };
      vector = std::min(vector, vector_of(2, alignment_of(x->data), {step(1), step(2)}));
    }
    const std::int64_t groups = in[3].lens[0] * (s.heads / s.group), processors = where().arch().multiprocessors;
    // as many blocks as fit at once; how many of them work the keys are worth, which a run knows
    s.splits =
        groups >= 2 * processors ? 1 : static_cast<int>(std::clamp<std::int64_t>(4 * processors / groups, 1, 32));
    made.grid = {blocks_of(s.splits * groups)};
    if (s.splits > 1)
      made.partial_bytes = static_cast<std::size_t>(groups * s.splits) *
                           static_cast<std::size_t>(gpu::split_floats(rows, value_depth)) * sizeof(float);
    text.line("#include \"kiln/backend/hip/kernels/attention/attention_blocks.hpp\"");
    text.line("#include \"kiln/backend/hip/kernels/atom/atom_mma.hpp\"");
    text.line("using tile = attention_tile<1, ", warps, ", ", keys, ", ", depth, ", ", value_depth, ", ", vector, ">;");
    text.open_kernel(warps * 32, parameters);
    text.line("extern __shared__ __attribute__((aligned(128))) char shared[];");
    text.line("attention_over_blocks<", stored_name(q.type), ", tile, ", op_.block,
              ">(q, k, v, out, table, s, shared);");
    text.close();
    made.block = {static_cast<unsigned>(warps * 32)};
    made.shared_bytes = static_cast<std::size_t>(memory.bytes_in_registers());
    return true;
  }

  op::block_attention op_;
  by_sizes<built> built_;
};

}  // namespace

std::unique_ptr<kernel> lower_block_attention(const kernel_request& r, const context_pointer& where) {
  const auto* op = r.instruction.op.get_if<op::block_attention>();
  return op ? std::make_unique<block_attention_kernel>(*op, where) : nullptr;
}

}  // namespace kiln::hip
