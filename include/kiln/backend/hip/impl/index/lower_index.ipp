#include <algorithm>

#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/impl/index/topk_plan.hpp"
#include "kiln/op/more.hpp"

namespace kiln::hip {
namespace {

constexpr auto most_dims = static_cast<std::size_t>(gpu::index_dims);

std::size_t checked_rank(std::size_t rank) {
  if (rank > most_dims) raise(fault::of(errc::limit, "dims of an index op on the device", most_dims, rank));
  return rank;
}

std::int64_t known(dimension d) { return d.is_constant() ? d.value() : 0; }

std::vector<index_call> gather_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const axis_extents s(in[0].lens, op.get_if<op::gather>()->axis);
  const tensor moved[] = {in[0], out[0]};
  const mover m(in[0].type, s.inner, moved);
  return {{"gather",
           "index/index.hpp",
           {m.type, name_of(in[1].type), m.type},
           "gather(p2, p0, p1, n, at, faults)",
           gpu::gather_sizes{s.inner / m.elements, in[1].elements(), s.extent},
           out[0].elements() / m.elements}};
}

gpu::element_sizes element_numbers(const ints& data, const ints& indices, std::int64_t axis) {
  checked_rank(data.size());
  const auto a = static_cast<std::size_t>(normal_axis(axis, data.size()));
  const ints steps = row_major(data);
  gpu::element_sizes n{data[a], steps[a], {}};
  for (std::size_t d = 0; d < data.size(); ++d) n.dims[d] = {indices[d], d == a ? 0 : steps[d]};
  return n;
}

gpu::tuple_sizes tuple_numbers(std::int64_t slice, std::int64_t rows, const ints& data, std::size_t batch,
                               std::size_t length) {
  checked_rank(length);
  gpu::tuple_sizes n{slice, rows, {}};
  for (std::size_t d = 0; d < length; ++d) n.extents[d] = data[batch + d];
  return n;
}

std::vector<index_call> gather_elements_calls(const operation& op, std::span<const tensor> in,
                                              std::span<const tensor> out) {
  const mover m(in[0].type, 1, {});
  return {{"gather_elements",
           "index/index.hpp",
           {m.type, name_of(in[1].type), m.type},
           "gather_elements<" + std::to_string(in[0].rank()) + ">(p2, p0, p1, n, at, faults)",
           element_numbers(in[0].lens, in[1].lens, op.get_if<op::gather_elements>()->axis),
           out[0].elements()}};
}

std::vector<index_call> gather_nd_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const ints &data = in[0].lens, &indices = in[1].lens;
  const auto batch = static_cast<std::size_t>(op.get_if<op::gather_nd>()->batch_dims),
             tuple = static_cast<std::size_t>(indices.back());
  std::int64_t slice = 1, rows = 1;
  for (std::size_t d = batch + tuple; d < data.size(); ++d) slice *= data[d];
  for (std::size_t d = batch; d + 1 < indices.size(); ++d) rows *= indices[d];
  const tensor moved[] = {in[0], out[0]};
  const mover m(in[0].type, slice, moved);
  return {{"gather_nd",
           "index/index.hpp",
           {m.type, name_of(in[1].type), m.type},
           "gather_nd<" + std::to_string(tuple) + ">(p2, p0, p1, n, at, faults)",
           tuple_numbers(slice / m.elements, rows, data, batch, tuple),
           out[0].elements() / m.elements}};
}

// A copy by runs of 16 bytes, however many there are: from operand 0 to operand `to`.
index_call whole_copy(std::span<const tensor> in, const tensor& out, std::size_t to, std::vector<std::string> types) {
  const auto bytes = out.elements() * static_cast<std::int64_t>(size_of(out.type));
  const auto aligned = [](const tensor& t) { return reinterpret_cast<std::uintptr_t>(t.data) % 16 == 0; };
  const std::string p = "p" + std::to_string(to);
  if (!aligned(in[0]) || !aligned(out)) {
    types[0] = types[to] = mover(out.type, 1, {}).type;
    return {"copy_data", "index/index.hpp", std::move(types), p + "[at] = p0[at]", {}, out.elements()};
  }
  types[0] = types[to] = "unsigned char";
  return {"copy_data",
          "index/index.hpp",
          std::move(types),
          "copy_run(" + p + ", p0, n.bits, at)",
          gpu::fill_value{bytes},
          (bytes + 15) / 16};
}

// A copy of the data, then the updates; with mode 0 in two rounds.
std::vector<index_call> scatter_calls(std::span<const tensor> in, std::span<const tensor> out, op::scatter_mode mode,
                                      const std::string& function, const std::string& arguments,
                                      const call_numbers& n) {
  std::vector<index_call> calls = {
      whole_copy(in, out[0], 3, {{}, name_of(in[1].type), mover(in[0].type, 1, {}).type, {}})};
  const std::string type = mode == op::scatter_mode::none ? mover(in[0].type, 1, {}).type : name_of(in[0].type);
  for (int round = mode == op::scatter_mode::none ? 1 : 0; round >= 0; --round)
    calls.push_back({function,
                     "index/index.hpp",
                     {type, name_of(in[1].type), type, type, "int"},
                     function + "<" + std::to_string(static_cast<int>(mode)) + arguments +
                         ">(p3, p4, p1, p2, n, at, faults, " + (round == 1 ? "true)" : "false)"),
                     n,
                     in[2].elements()});
  return calls;
}

std::vector<index_call> scatter_elements_calls(const operation& op, std::span<const tensor> in,
                                               std::span<const tensor> out) {
  const auto* s = op.get_if<op::scatter_elements>();
  return scatter_calls(in, out, s->reduction, "scatter_elements", ", " + std::to_string(in[0].rank()),
                       element_numbers(in[0].lens, in[1].lens, s->axis));
}

std::vector<index_call> scatter_nd_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const ints& data = in[0].lens;
  const auto tuple = static_cast<std::size_t>(in[1].lens.back());
  std::int64_t slice = 1;
  for (std::size_t d = tuple; d < data.size(); ++d) slice *= data[d];
  const op::scatter_mode mode = op.get_if<op::scatter_nd>()->reduction;
  const std::string length = std::to_string(tuple);
  if (mode != op::scatter_mode::none)
    return scatter_calls(in, out, mode, "scatter_nd", ", " + length, tuple_numbers(slice, 1, data, 0, tuple));
  // a tuple notes its number once for its whole slice
  const std::int64_t tuples = slice == 0 ? 0 : in[2].elements() / slice;
  const tensor moved[] = {in[2], out[0]};
  const mover m(in[0].type, slice, moved);
  const std::string index = name_of(in[1].type);
  const gpu::tuple_sizes n = tuple_numbers(slice / m.elements, 1, data, 0, tuple);
  return {whole_copy(in, out[0], 3, {{}, index, m.type, {}}),
          {"note_tuple",
           "index/index.hpp",
           {m.type, index, m.type, m.type, "int"},
           "note_tuple<" + length + ">(p4, p1, n, at, faults)",
           n,
           tuples},
          {"scatter_slices",
           "index/index.hpp",
           {m.type, index, m.type, m.type, "int"},
           "scatter_slices<" + length + ">(p3, p4, p1, p2, n, at, faults)",
           n,
           in[2].elements() / m.elements}};
}

std::vector<index_call> pad_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const auto* p = op.get_if<op::pad>();
  const std::size_t rank = in[0].rank();
  gpu::pad_sizes n{static_cast<std::int64_t>(p->mode), {}};
  checked_rank(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t begin = known(p->pads[d]), end = known(p->pads[rank + d]), cropped = begin < 0 ? -begin : 0;
    n.dims[d] = {out[0].lens[d], in[0].lens[d], cropped, in[0].lens[d] - cropped + (end < 0 ? end : 0),
                 begin > 0 ? begin : 0};
  }
  const std::string type = mover(in[0].type, 1, {}).type, pad = "pad<" + std::to_string(rank) + ", " + type + ">";
  if (in.size() == 1)
    return {{"pad", "index/index.hpp", {type, type}, pad + "(p1, p0, nullptr, n, at)", n, out[0].elements()}};
  return {{"pad", "index/index.hpp", {type, type, type}, pad + "(p2, p0, p1, n, at)", n, out[0].elements()}};
}

std::vector<index_call> one_hot_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const axis_extents s(out[0].lens, op.get_if<op::one_hot>()->axis);
  const std::string type = mover(in[1].type, 1, {}).type;
  return {{"one_hot",
           "index/index.hpp",
           {name_of(in[0].type), type, type},
           "one_hot(p2, p0, p1, n, at)",
           s.sizes(),
           out[0].elements()}};
}

std::vector<index_call> tri_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const auto* t = op.get_if<op::tri>();
  const std::string type = mover(in[0].type, 1, {}).type;
  const std::size_t rank = in[0].rank();
  return {{"tri",
           "index/index.hpp",
           {type, type},
           "tri(p1, p0, n, at)",
           gpu::tri_sizes{in[0].lens[rank - 2], in[0].lens[rank - 1], t->k, t->upper},
           out[0].elements()}};
}

std::vector<index_call> iota_calls(const operation& op, std::span<const tensor>, std::span<const tensor> out) {
  const axis_extents s(out[0].lens, op.get_if<op::iota>()->axis);
  return {{"iota", "index/index.hpp", {name_of(out[0].type)}, "iota(p0, n, at)", s.sizes(), out[0].elements()}};
}

std::vector<index_call> fill_calls(const operation& op, std::span<const tensor>, std::span<const tensor> out) {
  // the element's bytes, as the host makes them
  std::int64_t bits = 0;
  const double value = op.get_if<op::fill>()->value;
  encode(out[0].type, &value, reinterpret_cast<std::byte*>(&bits), 1);
  const std::string type = mover(out[0].type, 1, {}).type;
  return {{"fill",
           "index/index.hpp",
           {type},
           "p0[at] = static_cast<" + type + ">(n.bits)",
           gpu::fill_value{bits},
           out[0].elements()}};
}

std::vector<index_call> copy_calls(const operation&, std::span<const tensor> in, std::span<const tensor> out) {
  return {whole_copy(in, out[0], 1, {{}, {}})};
}

// The same bytes; a bool is what is not 0.
std::vector<index_call> bit_cast_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  if (out[0].type != dtype::boolean || in[0].type == dtype::boolean) return copy_calls(op, in, out);
  return {{"bit_cast", "index/index.hpp", {"unsigned char", "bool"}, "p1[at] = p0[at] != 0", {}, out[0].elements()}};
}

// How rows along an axis are divided among threads: `axis_part` of the device.
struct row_division {
  int across = 1, parts = 1;
  std::int64_t work = 0;  // blocks, or rows
  row_division(const axis_extents& s, std::int64_t long_row, int parts_of_short) {
    constexpr int lanes = 256, side_by_side = 32, enough = 16;
    work = s.outer * s.inner;
    if (s.inner == 1) {
      parts = s.extent >= long_row ? lanes : s.extent >= 32 ? parts_of_short : 1;
    } else if (s.inner >= enough && s.extent >= enough) {
      across = side_by_side, parts = lanes / side_by_side;
      work = s.outer * ((s.inner + across - 1) / across);
    }
  }
  int lanes() const { return across * parts; }
  std::string text() const { return std::to_string(across) + ", " + std::to_string(parts); }
};

std::vector<index_call> extreme_calls(const tensor& in, std::int64_t axis, bool greatest, bool last) {
  const axis_extents s(in.lens, axis);
  constexpr std::int64_t long_row = 4096;
  const row_division rows(s, long_row, 32);
  return {{"arg_extreme",
           "reduce/axis.hpp",
           {name_of(in.type), "i64"},
           std::string("arg_extreme<") + (greatest ? "true" : "false") + ", " + (last ? "true" : "false") + ", " +
               rows.text() + ">(p1, p0, n.extent, n.inner, row, lane)",
           s.sizes(),
           rows.work,
           rows.lanes()}};
}
std::vector<index_call> arg_max_calls(const operation& op, std::span<const tensor> in, std::span<const tensor>) {
  const auto* a = op.get_if<op::arg_max>();
  return extreme_calls(in[0], a->axis, true, a->select_last_index);
}
std::vector<index_call> arg_min_calls(const operation& op, std::span<const tensor> in, std::span<const tensor>) {
  const auto* a = op.get_if<op::arg_min>();
  return extreme_calls(in[0], a->axis, false, a->select_last_index);
}

template <class Op, bool Product>
std::vector<index_call> running_calls(const operation& op, std::span<const tensor> in, std::span<const tensor>) {
  const auto* a = op.get_if<Op>();
  const axis_extents s(in[0].lens, a->axis);
  constexpr std::int64_t long_row = 64;
  const row_division rows(s, long_row, 1);
  const auto word = [](bool b) { return std::string(b ? "true, " : "false, "); };
  return {{"running",
           "reduce/axis.hpp",
           {name_of(in[0].type), name_of(in[0].type)},
           "running<" + word(Product) + word(a->exclusive) + word(a->reverse) + rows.text() +
               ">(p1, p0, n.extent, n.inner, row, lane)",
           s.sizes(),
           s.extent == 0 ? 0 : rows.work,
           rows.lanes()}};
}

// A note for each element, or slice that tuples name, of which update wrote it.
std::size_t room_for_notes(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  std::int64_t notes = out[0].elements();
  if (op.is<op::scatter_nd>()) {
    notes = notes == 0 ? 0 : 1;
    for (std::int64_t d = 0; notes != 0 && d < in[1].lens.back(); ++d)
      notes *= out[0].lens[static_cast<std::size_t>(d)];
  }
  return static_cast<std::size_t>(notes) * sizeof(std::int32_t);
}

constexpr index_family families[] = {
    {is_op<op::gather>, gather_calls, true, false, nullptr, 4},
    {is_op<op::gather_elements>, gather_elements_calls, true, false, nullptr, 4},
    {is_op<op::gather_nd>, gather_nd_calls, true, false, nullptr, 4},
    {is_op<op::scatter_elements>, scatter_elements_calls, true, false, nullptr, 1},
    {is_op<op::scatter_nd>, scatter_nd_calls, true, false, nullptr, 1},
    {is_op<op::pad>, pad_calls, false, false, nullptr, 4},
    {is_op<op::one_hot>, one_hot_calls, false, false, nullptr, 4},
    {is_op<op::tri>, tri_calls, false, false, nullptr, 4},
    {is_op<op::iota>, iota_calls, false, true, nullptr, 4},
    {is_op<op::fill>, fill_calls, false, false, nullptr, 4},
    {is_op<op::contiguous>, copy_calls, false, false, nullptr, 4},
    {is_op<op::bit_cast>, bit_cast_calls, false, false, nullptr, 4},
    {is_op<op::arg_max>, arg_max_calls, false, true},
    {is_op<op::arg_min>, arg_min_calls, false, true},
    {is_op<op::cumsum>, running_calls<op::cumsum, false>, false, true},
    {is_op<op::cumprod>, running_calls<op::cumprod, true>, false, true},
    {is_op<op::topk>, topk_calls, false, true, topk_room},
};

op::scatter_mode mode_of(const operation& op) {
  if (const auto* s = op.get_if<op::scatter_elements>()) return s->reduction;
  if (const auto* s = op.get_if<op::scatter_nd>()) return s->reduction;
  return op::scatter_mode::add;
}

}  // namespace

std::unique_ptr<kernel> lower_index(const kernel_request& r, const context_pointer& where) {
  const operation& op = r.instruction.op;
  for (const shape& s : r.inputs)
    if (is_object(s.type)) return nullptr;  // handles that the host owns
  for (index_family f : families) {
    if (!f.is(op)) continue;
    const bool scatters = f.make == scatter_elements_calls || f.make == scatter_nd_calls;
    const bool notes = scatters && mode_of(op) == op::scatter_mode::none;
    const dtype type = r.inputs.empty() ? r.instruction.results[0].type : r.inputs[0].type;
    if ((f.computes || (scatters && !notes)) && type > dtype::boolean) return nullptr;
    if (notes) f.room = room_for_notes;
    return make_index_kernel(where, r, f, notes);
  }
  return nullptr;
}

}  // namespace kiln::hip
