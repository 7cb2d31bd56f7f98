#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/backend/hip/impl/gemm/few_rows.hpp"
#include "kiln/backend/hip/impl/gemm/persistent.hpp"
#include "kiln/backend/hip/impl/gemm/streamed.hpp"
#include "kiln/backend/hip/impl/gemm/untiled.hpp"
#include "kiln/backend/hip/impl/rows/row_text.hpp"

namespace kiln::hip {
namespace {

// Bytes of the type that a dtype is summed in.
int sum_bytes(dtype t) { return is_float(t) && size_of(t) < 4 ? 4 : static_cast<int>(size_of(t)); }

std::size_t shared_bytes_of(const gemm_problem& p, const gemm_tile& t, const architecture& where) {
  if (t.atom == few_rows) return static_cast<std::size_t>(few_rows_shared_bytes(t));
  if (t.atom == staged) return static_cast<std::size_t>(slots_of(t).bytes());
  if (t.persistent())
    return static_cast<std::size_t>(gpu::persistent_tile{t.cols, t.alternate, t.boxes}.shared_bytes());
  if (t.atom == "wgmma") return static_cast<std::size_t>(gpu::wgmma_tile{t.cols}.shared_bytes());
  const gpu::gemm_memory memory{t.rows,
                                t.cols,
                                t.depth,
                                t.warps_m,
                                t.warps_n,
                                t.stages,
                                p.a.depth_contiguous,
                                p.b.depth_contiguous,
                                static_cast<int>(size_of(p.type)),
                                sum_bytes(p.type),
                                atom_rows(t.atom, where),
                                t.cluster};
  return static_cast<std::size_t>(memory.bytes());
}

void* address_of(gemm_factor& f, const void* base) {
  return std::visit([&](auto& v) -> void* { return v.base = base, &v; }, f.value);
}

}  // namespace

std::string gemm_factor::text(dtype type) const {
  return std::string(is_matrix() ? "matrix_operand<" : "image_operand<") + std::string(stored_name(type)) +
         (depth_contiguous ? ", true, " : ", false, ") + (is_matrix() ? std::to_string(vector) : image_arguments) + ">";
}

std::string_view atom_for(dtype type, const architecture& where) {
  const bool narrow = type == dtype::f16 || type == dtype::bf16;
  switch (where.matrices) {
    case matrix_unit::mma:
    case matrix_unit::wgmma: return narrow ? "atom_mma" : "atom_fma";
    case matrix_unit::mfma:  // gfx908 multiplies bf16 of half the depth
      if (type == dtype::bf16 && where.name == "gfx908") break;
      return narrow || type == dtype::f32 ? "atom_mfma" : "atom_fma";
    case matrix_unit::wmma:  // gfx12's lanes hold other elements than gfx11's
      return narrow && where.name.starts_with("gfx11") ? "atom_wmma" : "atom_fma";
    case matrix_unit::none: break;
  }
  return "atom_fma";
}
int atom_rows(std::string_view atom, const architecture& where) { return atom == "atom_fma" ? where.lanes / 4 : 16; }

int vector_of(std::size_t bytes, std::size_t aligned, std::initializer_list<std::int64_t> steps) {
  int width = static_cast<int>(16 / bytes);
  const auto fits = [&](int w) {
    if (aligned % (static_cast<std::size_t>(w) * bytes) != 0) return false;
    for (std::int64_t s : steps)
      if (s % w != 0) return false;
    return true;
  };
  while (width > 1 && !fits(width)) width /= 2;
  // copies to shared memory move at least four bytes
  return width * bytes < 4 ? 1 : width;
}

std::size_t alignment_of(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at % 16 == 0 ? 16 : at & (~at + 1);
}

namespace {

// Warps that a multiprocessor runs together, of tiles like this one: by shared memory and registers, as many sums as a
// thread has and some more.
double resident_warps(const gemm_problem& p, const gemm_tile& t, const architecture& where) {
  constexpr double registers = 65536, beside_sums = 70, beside_memory = 1024;
  const double warps = t.warps_m * t.warps_n, threads = warps * where.lanes;
  const double by_memory =
      static_cast<double>(where.shared_bytes) / (static_cast<double>(shared_bytes_of(p, t, where)) + beside_memory);
  const double by_registers = registers / (t.rows * t.cols + beside_sums * threads);
  return std::max(1.0, std::floor(std::min(by_memory, by_registers))) * warps;
}

}  // namespace

std::vector<gemm_tile> tiles_for(const gemm_problem& p, const architecture& where) {
  const std::string_view atom = atom_for(p.type, where);
  const int bytes = static_cast<int>(size_of(p.type));
  std::vector<gemm_tile> candidates;
  if (atom == "atom_fma" && bytes == 8) {
    candidates = {{atom, 32, 32, 16, 2, 2, 2}};
  } else if (atom == "atom_fma") {
    candidates = {{atom, 64, 64, 32, 2, 2, 2}, {atom, 32, 32, 32, 2, 2, 2}, {atom, 128, 64, 32, 4, 2, 2}};
  } else if (where.on == platform::nvidia) {
    candidates = {{atom, 128, 128, 32, 2, 2, 4}, {atom, 128, 64, 32, 2, 2, 4}, {atom, 64, 128, 32, 2, 2, 4},
                  {atom, 64, 64, 64, 2, 2, 4},   {atom, 64, 32, 64, 2, 2, 4},  {atom, 32, 64, 64, 2, 2, 4},
                  {atom, 32, 32, 64, 2, 2, 4},   {atom, 64, 64, 64, 4, 2, 4},  {atom, 128, 64, 64, 4, 2, 4}};
  } else {
    candidates = {{atom, 128, 128, 32, 2, 2, 2},
                  {atom, 64, 64, 32, 2, 2, 2},
                  {atom, 32, 64, 32, 2, 2, 2},
                  {atom, 32, 32, 32, 2, 2, 2}};
  }
  const bool clusters = atom == "atom_mma" && where.matrices == matrix_unit::wgmma;
  if (clusters && p.a.vector == 8 && p.b.vector == 8) {
    using t = gpu::wgmma_tile;
    for (const int cols : {256, 128, 64})
      candidates.push_back({"wgmma", t::rows, cols, t::depth, t::warps_m, t::warps_n, t{cols}.stages()});
    add_persistent_tiles(candidates, p);
  }
  if (multiplies_float8(p.type, where)) add_persistent_tiles(candidates, p);
  // of an element of the result, and of the operands that have one for each
  double epilogue_bytes = 0;
  for (std::size_t k = 0; k < p.steps.size(); ++k)
    if (p.steps[k][2] != 0 && p.steps[k][3] != 0) epilogue_bytes += static_cast<double>(size_of(p.types[k]));
  const double operand_bytes = epilogue_bytes - static_cast<double>(size_of(p.types[0]));
  const auto turns = std::find_if(candidates.begin(), candidates.end(), [](const auto& t) { return t.persistent(); });
  const bool persistent_there = turns != candidates.end();
  // of operands that lanes read themselves where blocks work tile after tile
  const std::size_t boxed = persistent_there && turns->boxes != 0 ? boxed_operand(p) : 0;
  const double boxed_bytes = boxed != 0 ? static_cast<double>(size_of(p.types[boxed])) : 0;
  const double lane_bytes = operand_bytes - boxed_bytes;
  const bool large = p.rows * p.cols >= std::int64_t{4} * 128 * 64 * where.multiprocessors;
  std::vector<std::pair<double, gemm_tile>> timed;
  const double processors = std::max(where.multiprocessors, 1);
  for (gemm_tile t : candidates) {
    const int warps = t.warps_m * t.warps_n;
    const double tiles =
        static_cast<double>((p.rows + t.rows - 1) / t.rows * ((p.cols + t.cols - 1) / t.cols) * p.batch0 * p.batch1);
    const double steps = static_cast<double>((p.depth + t.depth - 1) / t.depth);
    // a short depth fills few stages, and what they would take has room for more blocks
    if (t.atom != "wgmma") t.stages = std::min(t.stages, std::max(2, static_cast<int>(steps)));
    // cycles of a step: products at the unit's rate, bytes from the cache, and the latency of a lone block. The numbers
    // are fitted to times of 700 kernels on an H200
    const double rate = t.atom == "wgmma" ? 1800 : atom == "atom_fma" ? 100 : 420;
    double work = std::max(static_cast<double>(t.rows) * t.cols * t.depth / rate,
                           static_cast<double>(t.rows + t.cols) * t.depth * bytes / 36);
    // windows are found by the warps that multiply
    if (t.atom == "wgmma" && p.pixels != 0) work *= 1.5;
    const double copied = static_cast<double>(t.rows) * t.depth / (warps * where.lanes), area = double(t.rows) * t.cols;
    // elements of less than four bytes pass through registers one by one; those of images need their positions computed
    const double alone =
        p.a.vector * bytes < 4 ? 900 + 30 * copied : 295 + area * t.depth / warps / 200 + (p.pixels ? 18 * copied : 0);
    for (int splits : {1, 2, 3, 4, 6, 8, 12, 16}) {
      if (t.persistent() && splits > 1) break;
      // where lanes read nothing for each element, none of wgmma was faster than those in turns, and of results that
      // are large none at all
      if (!t.persistent() && splits == 1 && persistent_there && lane_bytes == 0 && (t.atom == "wgmma" || large))
        continue;
      t.splits = splits;
      t.cluster = clusters && t.atom != "wgmma" && splits > 1;
      if (t.cluster && splits != 2 && splits != 4 && splits != 8) continue;
      if (shared_bytes_of(p, t, where) > where.shared_bytes) continue;
      if (splits > 1 && (steps < (t.cluster ? 2 : 4) * splits || tiles * splits > 4 * processors)) continue;
      const double places = t.cluster ? processors - 4 * splits : processors;
      const double share = std::ceil(tiles * splits / places), each = std::ceil(steps / splits);
      const double join = splits == 1 ? 0 : t.cluster ? 800 + 570 * splits : 3000 + splits * area / 12;
      const double time = std::max(share * each * work, each * alone) + 2700 * std::ceil(share / 4) +
                          (t.cluster ? area / splits : area) / warps * 1.6 * std::min(share, 4.0) + join;
      // many short tiles are as fast as the warps that run together move the epilogue's elements
      const double moved =
          share > 4 ? share * area * epilogue_bytes / std::min(0.6 * resident_warps(p, t, where), 18.0) : 0;
      // an epilogue's functions count in turns alone, where a multiprocessor has one block: others have several, of
      // which some multiply while one computes them
      timed.emplace_back(t.persistent() ? persistent_time(t, steps, tiles, processors, lane_bytes, boxed_bytes, p.work)
                                        : std::max(time, moved),
                         t);
    }
  }
  if (sums_each(p)) timed.emplace_back(cycles_of_each(p, where), gemm_tile{each_result, 1, 1, 1, 1, 1, 1});
  std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (persistent_there && large && lane_bytes > 0 && p.cols >= 128 && p.depth <= 512)
    std::stable_partition(timed.begin(), timed.end(), [](const auto& t) { return stores_much(t.second); });
  std::vector<gemm_tile> out;
  if (has_few_rows(p, where) && reads_right_in_runs(p)) {
    if (const auto lines = tile_staged(p.rows, where); lines && !is_narrow(p.type)) out.push_back(*lines);
    for (const gemm_tile& t : few_rows_tiles(p.rows, p.cols, where)) out.push_back(t);
  }
  if (streams(p, where)) out = {{streamed, 1, 1, 1, 1, 1, 1}};
  for (const auto& [time, tile] : timed) out.push_back(tile);
  return out;
}

gemm_plan plan_gemm(const gemm_problem& p, const row_program* epilogue, const gemm_tile& tile,
                    const architecture& where) {
  if (tile.atom == few_rows || tile.atom == staged) return plan_few_rows(p, epilogue, tile, where);
  if (tile.atom == each_result) return plan_each(p, epilogue);
  if (tile.atom == streamed) return plan_streamed(p, epilogue, where);
  // results of a phase whose columns lie far apart are a stride apart along the rows
  const bool along_rows = p.steps[0][3] != 1 && (p.steps[0][2] == 1 || (p.phases && p.steps[0][2] < p.steps[0][3]));
  // a lane holds two neighbors of a row of a box, and reads operands for those
  const int width = tile.boxes != 0 ? 2 : epilogue_width(p, along_rows);
  const int threads = tile.warps_m * tile.warps_n * where.lanes;
  kernel_text t(epilogue);
  if (!p.a.is_matrix()) t.line("#include \"kiln/backend/hip/kernels/conv/image_operand.hpp\"");
  const bool wgmma = tile.atom == "wgmma";
  t.line("#include \"kiln/backend/hip/kernels/gemm/",
         tile.persistent() ? "gemm_persistent"
         : wgmma           ? "gemm_wgmma"
         : tile.cluster    ? "gemm_cluster"
                           : "gemm",
         ".hpp\"");
  t.line("#include \"kiln/backend/hip/kernels/atom/", tile.atom, ".hpp\"");
  if (p.phases) t.line("#include \"kiln/backend/hip/kernels/conv/phases.hpp\"");
  const std::size_t boxed = tile.boxes != 0 ? boxed_operand(p) : 0;
  write_epilogue(t, p, epilogue, along_rows, width, boxed);
  if (!wgmma) {
    const auto word = [](bool b) { return b ? "true" : "false"; };
    const auto whole = [&](const gemm_factor& f, std::int64_t lines, int of) {
      return f.is_matrix() && lines % of == 0 && (p.phases ? p.channels : p.depth) % tile.depth == 0;
    };
    t.line("using atom = ", tile.atom, "<", stored_name(p.type), ">;");
    t.line("using tile = block_tile<", tile.rows, ", ", tile.cols, ", ", tile.depth, ", ", tile.warps_m, ", ",
           tile.warps_n, ", ", tile.stages, ", known_factors<", word(whole(p.a, p.rows, tile.rows)), ", ",
           word(whole(p.b, p.cols, tile.cols)), ", ", word(p.constant_b), ">>;");
  }
  t.line("using factor_a = ", p.a.text(p.type), ";");
  t.line("using factor_b = ", p.b.text(p.type), ";");
  const std::string cluster = tile.cluster ? cat("__cluster_dims__(1, ", tile.splits) + ", 1) " : "";
  // registers change hands only where a block has a multiprocessor for itself by its bounds
  t.open_kernel({threads,
                 tile.persistent() ? 1
                 : wgmma           ? gpu::wgmma_tile{tile.cols}.together()
                                   : 1,
                 true},
                cluster, "gemm_kernel(factor_a a, factor_b b, epilogue result, gemm_sizes s",
                tile.persistent() ? mapped_parameters : "", ")");
  t.line("extern __shared__ __attribute__((aligned(128))) char shared[];");
  if (p.phases) {
    const auto dim = [](const gpu::phase_dim& d) { return cat("{", d.stride, ", ", d.taps, ", ", d.pad, "}"); };
    const gpu::phase_shape& f = p.phases->shape;
    t.line("shift_to_phase<phase_shape{", dim(f.planes), ", ", dim(f.rows), ", ", dim(f.cols),
           "}>(a, b, result.place, s, entry_of(s) / s.inner_batch);");
  }
  if (wgmma)
    t.line(tile.persistent()
               ? cat("gemm_persistent<", stored_name(p.type), ", persistent_tile{", tile.cols, ", ",
                     tile.alternate ? "true, " : "false, ", tile.boxes, "}>(a, b, result, s, maps, shared);")
               : cat("gemm_on_wgmma<", stored_name(p.type), ", ", tile.cols, ">(a, b, result, s, shared);"));
  else if (tile.cluster)
    t.line("gemm_in_cluster<atom, tile, ", tile.splits, ">(a, b, result, s, shared);");
  else
    t.line("gemm<atom, tile>(a, b, result, s, shared);");
  t.close();

  gemm_plan plan;
  plan.what = t.whole("gemm_kernel");
  if (wgmma) plan.what.own_instructions = true;
  const std::int64_t tiles_m = (p.rows + tile.rows - 1) / tile.rows, tiles_n = (p.cols + tile.cols - 1) / tile.cols;
  const std::int64_t entries = p.batch0 * p.batch1;
  plan.block = {static_cast<unsigned>(threads)};
  const std::int64_t tiles = tiles_m * tiles_n * entries;
  plan.grid = {blocks_of(tile.persistent() ? std::min<std::int64_t>(tiles, where.multiprocessors) : tiles),
               static_cast<unsigned>(tile.splits)};
  if (tile.persistent()) {
    plan.boxes_a = boxes_of(p, p.a, p.rows, tile.rows), plan.boxes_b = boxes_of(p, p.b, p.cols, tile.cols);
    if (tile.boxes != 0) plan.boxes_result = boxes_of_positions(p, 0);
    if (boxed != 0) plan.boxes_operand = boxes_of_positions(p, boxed), plan.boxed = boxed;
  }
  plan.shared_bytes = where.shared_bytes_apart(shared_bytes_of(p, tile, where), std::int64_t{plan.grid.x} * plan.grid.y,
                                               tile.cluster ? tile.splits : 1);
  if (tile.splits > 1 && !tile.cluster) {
    plan.partial_bytes = static_cast<std::size_t>(tiles * tile.splits * tile.rows * tile.cols) *
                         static_cast<std::size_t>(sum_bytes(p.type));
    plan.scratch_bytes = plan.partial_bytes + static_cast<std::size_t>(tiles) * sizeof(int);
  }
  plan.sizes = sizes_of(p, tiles_m, tiles_n, tile.splits);
  plan.a = p.a, plan.b = p.b;
  plan.result = epilogue_value(p);
  return plan;
}

void run_gemm(const gemm_plan& plan, const function& f, device_queue& queue, std::span<std::byte> scratch,
              const void* a, const void* b, void* result, std::span<const void* const> extra, std::int64_t entries) {
  gemm_factor fa = plan.a, fb = plan.b;
  std::vector<std::byte> to = plan.result;
  gemm_sizes sizes = plan.sizes;
  put_addresses(to, result, extra);
  if (plan.scratch_bytes != 0) {
    sizes.partial = scratch.data();
    sizes.arrivals = reinterpret_cast<int*>(scratch.data() + plan.partial_bytes);
    queue.fill(sizes.arrivals, 0, plan.scratch_bytes - plan.partial_bytes);
  }
  gpu::persistent_maps maps{};
  const auto map = [&](gpu::tensor_map& one, std::optional<tensor_boxes> boxes, const void* base) {
    if (!boxes) return;
    boxes->base = base;
    one = f.map(*boxes);
  };
  map(maps.a, plan.boxes_a, a), map(maps.b, plan.boxes_b, b), map(maps.result, plan.boxes_result, result);
  if (plan.boxed != 0) map(maps.operand, plan.boxes_operand, extra[plan.boxed - 1]);
  void* values[] = {address_of(fa, a), address_of(fb, b), to.data(), &sizes, &maps, nullptr};
  extent3 grid = plan.grid;
  if (entries != 0 && sizes.entries != 0) {
    sizes.entries = static_cast<int>(entries);
    grid.x = blocks_of((entries * sizes.tiles_m + each_threads - 1) / each_threads);
  } else if (entries != 0) {
    grid.x = blocks_of(entries * sizes.tiles_m * sizes.tiles_n);
  }
  f.give(queue, grid, plan.block, plan.shared_bytes, values);
}

}  // namespace kiln::hip
