#include <algorithm>

#include "kiln/backend/hip/impl/attention/wgmma_tiles.hpp"
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/kernels/attention/arguments.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {
namespace {

struct attention_tile {
  std::string_view atom;
  bool in_registers, wgmma, simt;
  int atoms_m, warps, keys, depth, value_depth, vector, rows;
  int parts;  // warps that work the same rows, each with keys of its own
  std::size_t shared_bytes;
};

std::size_t memory_of(const attention_tile& t, int bytes) {
  const gpu::attention_memory memory{t.rows, t.keys, t.depth, t.value_depth, bytes};
  return static_cast<std::size_t>(t.wgmma          ? memory.bytes_on_wgmma()
                                  : t.in_registers ? memory.bytes_in_registers(t.parts)
                                  : t.simt         ? memory.bytes_simt()
                                                   : memory.bytes_staged());
}

// Blocks that share the keys of a tile, of `tiles` tiles: as few as fill whole rounds of those that run at once, or all
// but a tenth of one. Each has two steps at least, and shared memory for what it joins.
int splits_of(const attention_tile& t, std::int64_t tiles, std::int64_t keys, const architecture& where) {
  constexpr double gain = 1.1;
  constexpr std::int64_t most = 64;
  const auto room = static_cast<std::int64_t>(where.shared_bytes / t.shared_bytes),
             joined = static_cast<std::int64_t>((t.shared_bytes - gpu::split_flag_bytes) / sizeof(float)) / t.rows;
  const std::int64_t at_once = where.multiprocessors * std::min<std::int64_t>(room, t.parts > 1 ? 2 : 4);
  double best = 0;
  int splits = 1;
  for (std::int64_t n = 1; n <= std::min({most, joined, keys / (2 * t.keys * t.parts)}) || n == 1; ++n) {
    const std::int64_t blocks = tiles * n, rounds = (blocks + at_once - 1) / at_once;
    const double filled = static_cast<double>(blocks) / static_cast<double>(rounds * at_once);
    if (filled > best * gain) best = filled, splits = static_cast<int>(n);
  }
  return splits;
}

class attention_kernel final : public gpu_kernel {
 public:
  attention_kernel(const op::attention& attributes, const context_pointer& where)
      : gpu_kernel(where, "attention"), attributes_(attributes) {}
  stride_support input_strides(std::size_t i) const override {
    return i < 3 ? stride_support::rows : stride_support::any;
  }
  stride_support output_strides(std::size_t) const override { return stride_support::rows; }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override { built_for(in, out); }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned) const override {
    const auto made = built_for(in, out);
    return made->partial_bytes + made->arrivals_bytes;
  }

  void run(const launch& l) const override {
    if (l.out[0].elements() == 0) return;
    const auto made = built_for(l.in, l.out);
    using operand = gpu::attention_operand<const void>;
    const auto rows = [](const tensor& t) { return operand{t.data, t.strides[0], t.strides[1], t.strides[2]}; };
    const operand q = rows(l.in[0]), k = rows(l.in[1]), v = rows(l.in[2]), y = rows(l.out[0]);
    epilogue_operand mask{};
    if (l.in.size() > 3) {
      mask.base = l.in[3].data;
      for (std::size_t d = 0; d < 4; ++d) mask.step[d] = l.in[3].lens[d] == 1 ? 0 : l.in[3].strides[d];
    }
    gpu::attention_sizes s = made->sizes;
    if (made->arrivals_bytes != 0) {
      s.partial = reinterpret_cast<float*>(l.scratch.data());
      s.arrivals = reinterpret_cast<int*>(l.scratch.data() + made->partial_bytes);
      l.queue->fill(s.arrivals, 0, made->arrivals_bytes);
    }
    if (made->boxes.empty()) {
      made->run->launch(*l.queue, made->grid, made->block, made->shared_bytes, q, k, v, y, mask, s);
      return;
    }
    const auto map = [&](std::size_t i) {
      tensor_boxes boxes = made->boxes[i];
      boxes.base = l.in[i].data;
      return made->run->map(boxes);
    };
    const gpu::tensor_map map_q = map(0), map_k = map(1), map_v = map(2);
    made->run->launch(*l.queue, made->grid, made->block, made->shared_bytes, y, mask, s, map_q, map_k, map_v);
  }

 private:
  struct built {
    std::shared_ptr<const function> run;
    extent3 grid, block;
    std::size_t shared_bytes = 0, partial_bytes = 0, arrivals_bytes = 0;
    gpu::attention_sizes sizes{};
    std::vector<tensor_boxes> boxes;  // of queries, keys and values, where the copy unit reads them
  };

  attention_tile tile_for(std::span<const tensor> in, const tensor& out) const {
    const tensor &q = in[0], &k = in[1], &v = in[2];
    const int bytes = static_cast<int>(size_of(q.type));
    attention_tile t{};
    t.atom = atom_for(q.type, where().arch());
    t.in_registers = t.atom == "atom_mma";
    const int rows_of_atom = atom_rows(t.atom, where().arch());
    t.depth = rounded_up(q.lens[3], 16), t.value_depth = rounded_up(v.lens[3], 16);
    t.vector = static_cast<int>(16 / bytes);
    for (const tensor* x : {&q, &k, &v, &out}) {
      const auto step = [&](std::size_t d) { return x->lens[d] == 1 ? 0 : x->strides[d]; };
      t.vector = std::min(t.vector, vector_of(size_of(x->type), alignment_of(x->data), {step(0), step(1), step(2)}));
    }
    const std::int64_t groups = q.lens[0] * k.lens[1],
                       rows = q.lens[1] / std::max<std::int64_t>(k.lens[1], 1) * q.lens[2];
    const auto finish = [&](int atoms_m, int warps, int keys, int parts = 1) {
      t.atoms_m = atoms_m, t.warps = warps, t.keys = keys, t.parts = parts;
      t.rows = atoms_m * warps / parts * rows_of_atom;
      t.shared_bytes = memory_of(t, bytes);
      return t.shared_bytes <= where().arch().shared_bytes;
    };
    if (t.in_registers) {
      const int deep = std::max(t.depth, t.value_depth);
      const int keys = deep <= 128 ? 64 : 32;
      const auto fills = [&](int of) { return groups * ((rows + of - 1) / of) >= where().arch().multiprocessors; };
      const bool mapped = t.vector == 8 && boxes_of_heads(q, 1) && boxes_of_heads(k, 1) && boxes_of_heads(v, 1);
      // a unit of 64 rows is of one head: few queries would fill little of it
      t.wgmma = where().arch().matrices == matrix_unit::wgmma && mapped && deep <= 128 && q.lens[2] > 32 && fills(64);
      if (t.wgmma) {
        const wgmma_tiles best(q.lens, k.lens[1], k.lens[2], deep, attributes_.causal, in.size() > 3, where().arch());
        t.value_depth = rounded_up(v.lens[3], 64);
        if (finish(1, best.groups * 4, best.keys)) return t;
      }
      t.wgmma = false, t.value_depth = rounded_up(v.lens[3], 16);
      if (deep <= 256) {
        // of few rows reading keys is the work, which warps share: each copies 8 KiB of them or so at a time. Eight
        // warps fill a multiprocessor, which is worth four steps of each
        const int of_warp = t.depth + t.value_depth <= 128 ? 32 : 16;
        if (rows <= rows_of_atom && ((k.lens[2] >= 4 * 8 * of_warp && finish(1, 8, of_warp, 8)) ||
                                     finish(1, 4, of_warp, 4) || finish(1, 4, 32)))
          return t;
        if (deep <= 64 && rows > 64 && fills(128) && finish(2, 4, keys)) return t;
        if (rows > 32 && fills(64) && finish(1, 4, keys)) return t;
        if (finish(1, 2, keys)) return t;
      }
      t.in_registers = false;
    }
    if (t.atom == "atom_fma" && tile_simt(t, groups, rows, v.lens[3], bytes)) return t;
    const int atoms_m = rows_of_atom == 8 ? 2 : 1;
    const std::array<std::pair<int, int>, 5> shapes = {{{4, 32}, {2, 32}, {2, 16}, {1, 16}, {0, 0}}};
    for (const auto& [warps, keys] : shapes)
      if (warps != 0 && finish(atoms_m, warps, keys)) return t;
    t.warps = 0;
    return t;
  }

  // A thread works eight rows, where few causal tiles differ in their keys four, of up to 16 rows in all one; two
  // blocks share a multiprocessor where memory for that is there. Whether a block has enough.
  bool tile_simt(attention_tile& t, std::int64_t groups, std::int64_t rows, std::int64_t value_depth, int bytes) const {
    constexpr int deepest = 256, lanes = 16, block_rows = 64;
    const bool many = groups * rows >= std::int64_t{4} * block_rows * where().arch().multiprocessors;
    const int most = rows <= lanes ? 1 : attributes_.causal && !many ? 4 : 8, threads = most == 8 ? 128 : 256;
    attention_tile one = t;
    one.simt = true, one.parts = 1, one.warps = threads / where().arch().lanes;
    one.value_depth = rounded_up(value_depth, 4 * lanes);
    if (one.value_depth > deepest) return false;
    const std::size_t whole = where().arch().shared_bytes;
    for (const std::size_t room : {whole / 2, whole})
      for (one.atoms_m = most; one.atoms_m > 0; one.atoms_m /= 2)
        for (one.keys = rows <= lanes ? 32 : 64; one.keys >= (room == whole ? lanes : 2 * lanes); one.keys /= 2) {
          one.rows = threads / lanes * one.atoms_m;
          one.shared_bytes = memory_of(one, bytes);
          if (one.shared_bytes > room) continue;
          t = one;
          return true;
        }
    return false;
  }

  std::shared_ptr<const built> built_for(std::span<const tensor> in, std::span<const tensor> out) const {
    return built_.get(key_of(in, out), [&] { return build(in, out[0]); });
  }

  gpu::attention_sizes sizes_of(std::span<const tensor> in) const {
    const tensor &q = in[0], &k = in[1], &v = in[2];
    const auto count = [](std::int64_t n) { return static_cast<int>(n); };
    gpu::attention_sizes s{};
    s.heads = count(q.lens[1]), s.group = count(q.lens[1] / k.lens[1]), s.queries = count(q.lens[2]);
    s.keys = count(k.lens[2]), s.depth = count(q.lens[3]), s.value_depth = count(v.lens[3]);
    s.scale = attributes_.scale;
    s.splits = 1;
    s.groups = count(q.lens[0] * k.lens[1]);
    return s;
  }
  static std::string parameters(dtype type, bool mapped = false) {
    const std::string t(stored_name(type)), rows = "attention_operand<const " + t + "> ",
                                            map = ", const __grid_constant__ tensor_map map_";
    return "attention(" + (mapped ? "" : rows + "q, " + rows + "k, " + rows + "v, ") + "attention_operand<" + t +
           "> out, epilogue_operand mask, attention_sizes s" +
           (mapped ? map + "q" + map + "k" + map + "v" : std::string()) + ")";
  }
  // Template arguments that every form of the kernel takes.
  std::string kinds(std::span<const tensor> in) const {
    const std::string mask = in.size() < 4 ? "none" : in[3].type == dtype::boolean ? "keeps" : "adds";
    return ", mask_kind::" + mask + (attributes_.causal ? ", true" : ", false");
  }

  // What no tile serves: doubles, and heads deeper than a block's shared memory.
  built build_plain(std::span<const tensor> in, const tensor& out) const {
    constexpr int threads = 256;
    built made;
    made.sizes = sizes_of(in);
    made.grid = {blocks_of(out.lens[0] * out.lens[1] * out.lens[2])};
    kernel_text text;
    text.line("#include \"kiln/backend/hip/kernels/attention/attention_plain.hpp\"");
    text.open_kernel(threads, parameters(in[0].type));
    text.line("attention_plain<", stored_name(in[0].type), kinds(in), ", ",
              (made.sizes.value_depth + threads - 1) / threads, ">(q, k, v, out, mask, s);");
    text.close();
    made.run = where().build(text.whole("attention"));
    made.block = {threads};
    return made;
  }

  built build(std::span<const tensor> in, const tensor& out) const {
    built made;
    if (out.elements() == 0) return made;
    const tensor &q = in[0], &k = in[1];
    if (q.type == dtype::f64) return build_plain(in, out);
    const attention_tile t = tile_for(in, out);
    if (t.warps == 0) return build_plain(in, out);
    gpu::attention_sizes& s = made.sizes;
    s = sizes_of(in);
    const std::int64_t groups = q.lens[0] * k.lens[1], processors = where().arch().multiprocessors;
    s.tiles = static_cast<int>(t.wgmma ? wgmma_tiles::count(q.lens, k.lens[1], t.warps / 4)
                                       : (std::int64_t{s.group} * s.queries + t.rows - 1) / t.rows);
    if (s.tiles == 1 && (t.in_registers ? !t.wgmma : t.simt)) s.splits = splits_of(t, groups, s.keys, where().arch());
    made.grid = {blocks_of(groups * s.tiles * s.splits)};
    if (t.wgmma) {
      made.grid = {blocks_of(std::min(groups * s.tiles, processors))};
      s.section = wgmma_tiles::section(in, attributes_.causal);
      // tiles of several sections differ in what no order fixed ahead evens out
      if (attributes_.causal && s.section < s.groups) made.arrivals_bytes = sizeof(int);
      for (const auto& [x, lines] : {std::pair{&q, gpu::attention_memory::unit}, {&k, t.keys}, {&in[2], t.keys}})
        made.boxes.push_back(*boxes_of_heads(*x, lines));
    }
    if (s.splits > 1) {
      const std::size_t tiles = static_cast<std::size_t>(groups) * static_cast<std::size_t>(s.tiles);
      made.partial_bytes =
          tiles * static_cast<std::size_t>(s.splits * gpu::split_floats(t.rows, t.value_depth)) * sizeof(float);
      made.arrivals_bytes = tiles * sizeof(int);
    }

    kernel_text text;
    text.line("#include \"kiln/backend/hip/kernels/attention/",
              t.wgmma          ? "attention_wgmma"
              : t.in_registers ? "attention_mma"
              : t.simt         ? "attention_simt"
                               : "attention_staged",
              ".hpp\"");
    text.line("#include \"kiln/backend/hip/kernels/atom/", t.atom, ".hpp\"");
    constexpr int few_keys = 64;
    const bool few = t.in_registers && !t.wgmma && s.keys <= few_keys;
    text.line("using tile = attention_tile<", t.atoms_m, ", ", t.warps, ", ", t.keys, ", ", t.depth, ", ",
              t.value_depth, ", ", t.vector, ", ", few ? "true" : "false", ", ", t.parts, ">;");
    const int threads = t.warps * where().arch().lanes + (t.wgmma ? wgmma_tiles::copying_threads : 0);
    text.open_kernel({threads, 1, t.wgmma}, parameters(q.type, t.wgmma));
    text.line("extern __shared__ __attribute__((aligned(128))) char shared[];");
    text.line(t.wgmma          ? "attention_on_wgmma<"
              : t.in_registers ? "attention_in_registers<"
              : t.simt         ? "attention_simt<"
                               : "attention_staged<",
              t.in_registers || t.simt ? std::string(stored_name(q.type))
                                       : std::string(t.atom) + "<" + std::string(stored_name(q.type)) + ">",
              ", tile", kinds(in),
              t.wgmma ? ">(out, mask, s, map_q, map_k, map_v, shared);" : ">(q, k, v, out, mask, s, shared);");
    text.close();
    source what = text.whole("attention");
    if (t.wgmma) what.own_instructions = true;
    made.run = where().build(what);
    made.block = {static_cast<unsigned>(threads)};
    made.shared_bytes = t.shared_bytes;
    return made;
  }

  op::attention attributes_;
  by_sizes<built> built_;
};

}  // namespace

std::unique_ptr<kernel> lower_attention(const kernel_request& r, const context_pointer& where) {
  const auto* op = r.instruction.op.get_if<op::attention>();
  if (!op) return nullptr;
  return std::make_unique<attention_kernel>(*op, where);
}

}  // namespace kiln::hip
