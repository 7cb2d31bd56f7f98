#include <algorithm>

#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/op/dynamic/progression.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/runtime/counting_kernel.hpp"

namespace kiln::hip {
namespace {

constexpr int lanes = 256;
const std::string lanes_text = std::to_string(lanes);

// What all of them need after their counts: a count of all, and one for each tile.
std::size_t count_bytes(std::int64_t tiles) { return (static_cast<std::size_t>(1 + tiles) * 8 + 63) / 64 * 64; }

class selecting_kernel : public index_kernel, public counting_kernel {
 public:
  using index_kernel::index_kernel;
  void count(const launch& l) const override { give(l, counting(l.in), rooms(l)); }
  void run(const launch& l) const override { give(l, calls(l.in, l.out, nullptr), rooms(l)); }
  void prepare(std::span<const tensor> in, std::span<const tensor> out) const override {
    build(counting(in), in, {});
    build(calls(in, out, nullptr), in, out);
  }

 protected:
  virtual std::vector<index_call> counting(std::span<const tensor> in) const = 0;
  /// Where the parts of scratch memory begin.
  virtual std::vector<std::size_t> parts(std::span<const tensor> in) const = 0;
  static index_call sum(std::vector<std::string> types, std::size_t counts, const call_numbers& n) {
    return {"sum_counts",
            "index/select.hpp",
            std::move(types),
            "sum_counts<" + lanes_text + ">(p" + std::to_string(counts) + ", n.tiles, lane)",
            n,
            1,
            lanes};
  }

 private:
  std::vector<const std::byte*> rooms(const launch& l) const {
    std::vector<const std::byte*> out;
    for (const std::size_t at : parts(l.in)) out.push_back(l.scratch.data() + at);
    return out;
  }
};

gpu::select_sizes tiles_of(const ints& lens) {
  gpu::select_sizes n{1, 0, {}};
  for (std::size_t d = 0; d < lens.size(); ++d) n.lens[d] = lens[d], n.total *= lens[d];
  n.tiles = (n.total + gpu::select_tile - 1) / gpu::select_tile;
  return n;
}
// A type that holds every place.
std::string place_type(std::int64_t elements) { return elements < std::int64_t{1} << 31 ? "int" : "i64"; }

class nonzero_kernel final : public selecting_kernel {
 public:
  using selecting_kernel::selecting_kernel;
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned) const override {
    return count_bytes(tiles_of(in[0].lens).tiles);
  }
  shape made(std::span<const tensor> in, std::int64_t count) const override {
    return {dtype::i64, {static_cast<std::int64_t>(in[0].rank()), count}};
  }

 protected:
  std::vector<std::size_t> parts(std::span<const tensor>) const override { return {0}; }
  std::vector<index_call> counting(std::span<const tensor> in) const override {
    const gpu::select_sizes n = tiles_of(in[0].lens);
    const std::vector<std::string> types = {name_of(in[0].type), "i64"};
    return {{"count_tile", "index/select.hpp", types, "count_tile<" + lanes_text + ">(p1, p0, n, row, lane)", n,
             n.tiles, lanes},
            sum(types, 1, n)};
  }
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor>, const bindings*) const override {
    if (in[0].rank() == 0) return {};
    const gpu::select_sizes n = tiles_of(in[0].lens);
    return {{"nonzero_tile",
             "index/select.hpp",
             {name_of(in[0].type), "i64", "i64"},
             "nonzero_tile<" + std::to_string(in[0].rank()) + ", " + lanes_text + ", " + place_type(n.total) +
                 ">(p1, p2, p0, n, row, lane)",
             n,
             n.tiles,
             lanes}};
  }
};

// Where the condition holds, as a list; then slices are gathered by it.
class compress_kernel final : public selecting_kernel {
 public:
  compress_kernel(const context_pointer& where, const op::compress& op)
      : selecting_kernel(where, "compress"), op_(op) {}
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned) const override {
    return parts(in)[1] + static_cast<std::size_t>(in[1].elements()) * 8;
  }
  shape made(std::span<const tensor> in, std::int64_t count) const override {
    const axis_extents s = around(in[0]);
    if (in[1].elements() > s.extent)
      raise(fault::of(errc::shape_mismatch, "a condition is no longer than the axis", s.extent, in[1].elements()));
    if (op_.flat) return {in[0].type, {count}};
    shape out{in[0].type, {}};
    for (const std::int64_t n : in[0].lens) out.lens.push_back(n);
    out.lens[static_cast<std::size_t>(normal_axis(op_.along, in[0].rank()))] = count;
    return out;
  }

 protected:
  std::vector<std::size_t> parts(std::span<const tensor> in) const override {
    return {0, count_bytes(tiles_of(in[1].lens).tiles)};
  }
  std::vector<index_call> counting(std::span<const tensor> in) const override {
    const gpu::select_sizes n = tiles_of(in[1].lens);
    const std::vector<std::string> types = {"unsigned char", "bool", "i64", "i64"};
    return {{"count_tile", "index/select.hpp", types, "count_tile<" + lanes_text + ">(p2, p1, n, row, lane)", n,
             n.tiles, lanes},
            sum(types, 2, n)};
  }
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings*) const override {
    if (out[0].elements() == 0) return {};
    const gpu::select_sizes n = tiles_of(in[1].lens);
    const axis_extents s = around(in[0]);
    const std::int64_t count = out[0].elements() / (s.outer * s.inner);
    const tensor moved[] = {in[0], out[0]};
    const mover m(in[0].type, s.inner, moved);
    const std::string place = place_type(n.total);
    return {{"places_tile",
             "index/select.hpp",
             {m.type, "bool", m.type, "i64", place},
             "places_tile<" + lanes_text + ">(p4, p3, p1, n, row, lane)",
             n,
             n.tiles,
             lanes},
            {"gather",
             "index/index.hpp",
             {m.type, "bool", m.type, "i64", place},
             "gather(p2, p0, p4, n, at, faults)",
             gpu::gather_sizes{s.inner / m.elements, count, s.extent},
             out[0].elements() / m.elements}};
  }

 private:
  axis_extents around(const tensor& data) const {
    return op_.flat ? axis_extents({data.elements()}, 0) : axis_extents(data.lens, op_.along);
  }
  op::compress op_;
};

// A range of numbers: one thread finds how many there are.
class progression_kernel final : public selecting_kernel {
 public:
  using selecting_kernel::selecting_kernel;
  std::size_t scratch_bytes(std::span<const tensor>, std::span<const tensor>, unsigned) const override {
    return count_bytes(0);
  }
  void count(const launch& l) const override {
    for (const tensor& t : l.in)
      if (t.elements() != 1)
        raise(fault::of(errc::shape_mismatch, "start, limit and delta are one number each", 1, to_dims(t.lens)));
    selecting_kernel::count(l);
  }
  shape made(std::span<const tensor> in, std::int64_t count) const override {
    if (count == gpu::range_without_step) raise(fault::of(errc::invalid_argument, "the delta of a range", "not 0", 0));
    if (count == gpu::range_without_end) raise(errc::invalid_argument, "a range has an end");
    if (count > gpu::most_of_range) raise(fault::of(errc::limit, "elements of a range", gpu::most_of_range, count));
    return {in[0].type, {count}};
  }

 protected:
  std::vector<std::size_t> parts(std::span<const tensor>) const override { return {0}; }
  std::vector<index_call> counting(std::span<const tensor> in) const override {
    const std::string t = name_of(in[0].type);
    return {{"count_range", "index/select.hpp", {t, t, t, "i64"}, "count_range(p3, *p0, *p1, *p2)", {}, 1}};
  }
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor> out,
                                const bindings*) const override {
    const std::string t = name_of(in[0].type);
    return {{"range", "index/select.hpp", {t, t, t, t}, "range_element(p3, *p0, *p2, at)", {}, out[0].elements()}};
  }
};

class suppressing_kernel final : public selecting_kernel {
 public:
  suppressing_kernel(const context_pointer& where, const op::non_max_suppression& op)
      : selecting_kernel(where, "non_max_suppression"), op_(op) {}
  /// Whether the most boxes and the two bounds have the types that kernels read.
  static bool reads(std::span<const shape> in) {
    return in[2].type == dtype::i64 && in[3].type == dtype::f32 && in[4].type == dtype::f32;
  }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor>, unsigned) const override {
    return parts(in)[1] + static_cast<std::size_t>(in[1].elements()) * 4;
  }
  void count(const launch& l) const override {
    const ints &s = l.in[1].lens, boxes = {s[0], s[2], 4};
    if (!(l.in[0].lens == boxes))
      raise(fault::of(errc::shape_mismatch, "type of the boxes", dims{s[0], s[2], 4}, to_dims(l.in[0].lens)));
    for (std::size_t i = 2; i < 5; ++i)
      if (l.in[i].elements() == 0)
        raise(fault::of(errc::shape_mismatch, "elements of the most boxes, the greatest overlap and the least score", 1,
                        to_dims(l.in[i].lens)));
    constexpr auto most = (std::int64_t{1} << 31) - 1;
    if (s[2] > most) raise(fault::of(errc::limit, "boxes of a batch", most, s[2]));
    selecting_kernel::count(l);
  }
  shape made(std::span<const tensor>, std::int64_t count) const override { return {dtype::i64, {count, 3}}; }

 protected:
  std::vector<std::size_t> parts(std::span<const tensor> in) const override {
    return {0, count_bytes(in[1].lens[0] * in[1].lens[1])};
  }
  std::vector<index_call> counting(std::span<const tensor> in) const override {
    const gpu::box_sizes n = sizes(in);
    const auto word = [](bool b) { return std::string(b ? "true, " : "false, "); };
    const std::vector<std::string> types = {"float", "float", "i64", "float", "float", "i64", "int"};
    return {{"suppress_boxes", "index/boxes.hpp", types,
             "suppress_boxes<" + word(op_.centered) + word(op_.has_least_score) + lanes_text +
                 ">(p6, p5, p0, p1, p2, p3, p4, n, row, lane)",
             n, n.tiles, lanes},
            sum(types, 5, n)};
  }
  std::vector<index_call> calls(std::span<const tensor> in, std::span<const tensor>, const bindings*) const override {
    const gpu::box_sizes n = sizes(in);
    return {{"write_boxes",
             "index/boxes.hpp",
             {"float", "float", "i64", "float", "float", "i64", "i64", "int"},
             "write_boxes<" + lanes_text + ">(p5, p7, p6, n, row, lane)",
             n,
             n.tiles,
             lanes}};
  }

 private:
  static gpu::box_sizes sizes(std::span<const tensor> in) {
    const ints& s = in[1].lens;
    return {s[0], s[1], s[2], s[0] * s[1]};
  }
  op::non_max_suppression op_;
};

}  // namespace

std::unique_ptr<kernel> lower_select(const kernel_request& r, const context_pointer& where) {
  const operation& op = r.instruction.op;
  for (const shape& s : r.inputs)
    if (is_object(s.type) || s.rank() > static_cast<std::size_t>(gpu::index_dims)) return nullptr;
  if (op.is<op::nonzero>() && r.inputs[0].type <= dtype::boolean)
    return std::make_unique<nonzero_kernel>(where, "nonzero");
  if (const auto* c = op.get_if<op::compress>()) return std::make_unique<compress_kernel>(where, *c);
  if (op.is<op::progression>() && r.inputs[0].type < dtype::boolean)
    return std::make_unique<progression_kernel>(where, "progression");
  if (const auto* n = op.get_if<op::non_max_suppression>(); n && suppressing_kernel::reads(r.inputs))
    return std::make_unique<suppressing_kernel>(where, *n);
  return nullptr;
}

}  // namespace kiln::hip
