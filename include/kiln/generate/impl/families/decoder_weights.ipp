#include "kiln/generate/impl/families/decoder_weights.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/core/mapped_file.hpp"
#include "kiln/pass/store_weights.hpp"

namespace kiln::language::detail {

namespace {

void put_number(std::string& name, std::string_view mark, std::int64_t n) {
  if (const auto at = name.find(mark); at != name.npos) name.replace(at, mark.size(), std::to_string(n));
}
std::string extents_text(const std::vector<std::int64_t>& extents) {
  std::string out = "[";
  for (const std::int64_t e : extents) out += (out.size() > 1 ? ", " : "") + std::to_string(e);
  return out + "]";
}
void check_extents(const weight_entry& e, const std::vector<std::int64_t>& expected) {
  if (e.extents == expected) return;
  throw error(errc::malformed, "tensor '" + e.name + "': expected the extents " + extents_text(expected) + ", found " +
                                   extents_text(e.extents));
}
// A part of a tensor [experts, outputs, inputs].
weight_entry part_of(const weight_entry& e, std::int64_t k, std::int64_t count) {
  if (e.extents.size() != 3 || e.extents[0] != count)
    throw error(errc::malformed, "tensor '" + e.name + "': expected rank 3 and " + std::to_string(count) +
                                     " experts first, found " + extents_text(e.extents));
  weight_entry out = e;
  out.extents.erase(out.extents.begin());
  const std::size_t bytes = e.bytes.size() / static_cast<std::size_t>(count);
  out.bytes = buffer_part(e.bytes, static_cast<std::size_t>(k) * bytes, bytes);
  return out;
}

}  // namespace

decoder_weights::decoder_weights(builder& b, const weight_source& from, const architecture& a)
    : build_(b), from_(from), a_(a), pool_(default_pool()) {}

std::vector<std::string> decoder_weights::spellings(std::string_view role, std::int64_t layer, std::string_view part,
                                                    std::int64_t expert) const {
  const std::string ending = "." + std::string(part);
  if (from_.has_roles) {
    const std::string name = std::string(role) + ending;
    return {layer < 0 ? name : "blk." + std::to_string(layer) + "." + name};
  }
  std::vector<std::string> out;
  for (const weight_name& n : a_.names) {
    if (n.role != role) continue;
    std::string name(n.name);
    if (layer >= 0) put_number(name, "%d", layer);
    if (expert >= 0) put_number(name, "%e", expert);
    out.push_back(name + ending);
    // files of the decoder without its head leave its name out
    if (const auto dot = name.find('.'); dot != name.npos && name.substr(0, dot) != "lm_head")
      out.push_back(name.substr(dot + 1) + ending);
  }
  return out;
}
const weight_entry* decoder_weights::find(std::string_view role, std::int64_t layer, std::string_view part,
                                          std::int64_t expert) const {
  for (const std::string& name : spellings(role, layer, part, expert))
    if (const weight_entry* e = from_.table.find(name)) return e;
  return nullptr;
}
bool decoder_weights::has(std::string_view role, std::int64_t layer, std::string_view part) const {
  return find(role, layer, part) != nullptr;
}
weight_entry decoder_weights::get(std::string_view role, std::int64_t layer, std::string_view part,
                                  std::int64_t expert) const {
  const weight_entry* e = find(role, layer, part, expert);
  if (!e) {
    const auto names = spellings(role, layer, part, expert);
    throw error(errc::malformed,
                "expected a tensor '" + (names.empty() ? std::string(role) : names.front()) + "', found none");
  }
  if (!e->fault.empty()) throw error(errc::unsupported, "tensor '" + e->name + "' has " + e->fault);
  return expert >= 0 && from_.has_roles ? part_of(*e, expert, a_.experts) : *e;
}

row_order decoder_weights::order_of(std::string_view role) const {
  return {from_.pairs_are_adjacent && (role == "attn_q" || role == "attn_k") ? a_.depth : 0};
}

// A plain matrix as f32[columns, rows], which a product reads without another pass over it.
literal decoder_weights::turned(const weight_entry& e, row_order order) {
  const std::int64_t rows = e.extents[0], columns = e.extents[1];
  buffer made = buffer::allocate(static_cast<std::size_t>(rows * columns) * sizeof(float));
  auto* const to = reinterpret_cast<float*>(made.data());
  const std::size_t bytes = size_of(e.type);
  constexpr std::int64_t block = 32;
  pool_->parallel_for((rows + block - 1) / block, [&](std::int64_t task, unsigned) {
    const std::int64_t first = task * block, n = std::min(block, rows - first);
    float part[block][block];
    for (std::int64_t c = 0; c < columns; c += block) {
      const std::int64_t wide = std::min(block, columns - c);
      for (std::int64_t r = 0; r < n; ++r)
        decode(e.type, e.bytes.data() + static_cast<std::size_t>(order.source_of(first + r) * columns + c) * bytes,
               part[r], wide);
      for (std::int64_t k = 0; k < wide; ++k)
        for (std::int64_t r = 0; r < n; ++r) to[(c + k) * rows + first + r] = part[r][k];
    }
  });
  forget_pages(e.bytes);
  return literal(shape(dtype::f32, {columns, rows}), std::move(made));
}

value decoder_weights::stored(const weight_entry& e, row_order order) {
  build_.label = text();
  build_.label.append(e.name);
  if (e.format == weight_format::plain) return build_.constant(plain_literal(e, order));
  stored_blocks s = repack(e, order, *pool_);
  const value numbers = build_.constant(std::move(s.numbers)), scales = build_.constant(std::move(s.scales));
  return s.has_zeros ? build_.add(s.op, numbers, scales, build_.constant(std::move(s.zeros)))
                     : build_.add(s.op, numbers, scales);
}

bool decoder_weights::stays(const weight_entry& e) const {
  return a_.blocks_stay && a_.type == dtype::f32 &&
         (e.format == weight_format::q4_0 || e.format == weight_format::q8_0);
}

// Blocks as views of the file's bytes: the numbers of each and its scale, which lie side by side.
value decoder_weights::in_place(const weight_entry& e, row_order order) {
  build_.label = text();
  build_.label.append(e.name);
  const weight_block unit = block_of(e.format);
  const auto bytes = static_cast<std::int64_t>(unit.bytes);
  const std::int64_t rows = e.extents[0], blocks = e.extents[1] / unit.numbers;
  const bool four = e.format == weight_format::q4_0;
  const buffer data = order.depth == 0 ? e.bytes : rows_in_order(e, order);
  const auto part = [&](dtype t, std::int64_t width, std::int64_t first, std::int64_t end) {
    return build_.constant(literal(shape(t, {rows, blocks, width}), data))
        .slice({.axes = {2}, .starts = {first}, .ends = {end}, .steps = {1}});
  };
  const value numbers = part(four ? dtype::u8 : dtype::i8, bytes, 2, bytes);
  const value scales = part(dtype::f16, bytes / 2, 0, 1).convert(a_.type);
  const op::block_dequantize op{.bits = four ? 4 : 8, .axis = 2, .block = unit.numbers, .zero = four ? 8 : 0};
  value real = build_.add(op, numbers, scales);
  if (four) real = real.reshape({rows, blocks, 16, 2}).transpose({0, 1, 3, 2});  // byte j has numbers j and j + 16
  return real.reshape({rows, blocks * unit.numbers});
}

// A plain matrix as `a_.weights` says, [outputs, inputs]: meanwhile it alone is there in f32.
value decoder_weights::narrow(const weight_entry& e, row_order order, bool columns_first) {
  const std::int64_t stored_rows = e.extents[0], columns = e.extents[1];
  const std::size_t bytes = size_of(e.type);
  std::vector<float> real(static_cast<std::size_t>(stored_rows * columns));
  pool_->parallel_for(stored_rows, [&](std::int64_t r, unsigned) {
    const std::byte* const from = e.bytes.data() + static_cast<std::size_t>(order.source_of(r) * columns) * bytes;
    if (!columns_first) return decode(e.type, from, real.data() + r * columns, columns);
    std::vector<float> row(static_cast<std::size_t>(columns));
    decode(e.type, from, row.data(), columns);
    for (std::int64_t c = 0; c < columns; ++c)
      real[static_cast<std::size_t>(c * stored_rows + r)] = row[static_cast<std::size_t>(c)];
  });
  forget_pages(e.bytes);
  stored_matrix m;
  try {
    m = quantize::stored(real, columns_first ? columns : stored_rows, *a_.weights, *pool_);
  } catch (error& fault) {
    throw fault.at_instruction(e.name);
  }
  ++narrowed_;
  build_.label = text();
  build_.label.append(e.name);
  const value numbers = build_.constant(std::move(m.operands[0])), scales = build_.constant(std::move(m.operands[1]));
  return m.operands.size() > 2 ? build_.add(m.op, numbers, scales, build_.constant(std::move(m.operands[2])))
                               : build_.add(m.op, numbers, scales);
}

value decoder_weights::vector(std::string_view role, std::int64_t layer, std::int64_t n, std::string_view part) {
  const weight_entry e = get(role, layer, part);
  check_extents(e, {n});
  if (e.format != weight_format::plain || !is_float(e.type))
    throw error(errc::unsupported, "tensor '" + e.name + "': a vector that is not of floats");
  // small: read once here, so that nothing is converted in a run
  const literal l = plain_literal(e, order_of(role));
  std::vector<float> values(static_cast<std::size_t>(n));
  decode(e.type, l.bytes(), values.data(), n);
  return build_.constant<float>(dtype::f32, {n}, values);
}

value decoder_weights::product(value x, std::string_view role, std::int64_t layer, std::int64_t inputs,
                               std::int64_t outputs, std::int64_t expert) {
  weight_entry e = get(role, layer, "weight", expert);
  if (outputs == 1 && e.extents.size() == 1) e.extents.insert(e.extents.begin(), 1);  // a row may be a vector
  const bool columns_first = a_.columns_first && role != "output" && role != "token_embd";
  check_extents(e, columns_first ? std::vector{inputs, outputs} : std::vector{outputs, inputs});
  if (e.format == weight_format::plain && !is_float(e.type))
    throw error(errc::unsupported, "tensor '" + e.name + "': a matrix that is not of floats");
  value w;
  // what chooses experts stays as it is: a small matrix, whose rounding would send tokens elsewhere
  const bool narrows = a_.weights && !role.starts_with("ffn_gate_inp");
  if (narrows && e.format != weight_format::plain) ++kept_;
  if (narrows && e.format == weight_format::plain) {
    w = narrow(e, order_of(role), columns_first).convert(a_.type).transpose({1, 0});
  } else if (columns_first || e.format != weight_format::plain || a_.type != dtype::f32 || size_of(e.type) == 2) {
    // 16-bit floats stay so until they are packed
    w = stays(e) ? in_place(e, order_of(role)) : stored(e, order_of(role)).convert(a_.type);
    if (!columns_first) w = w.transpose({1, 0});
  } else {
    build_.label.append(e.name);
    w = build_.constant(turned(e, order_of(role)));
  }
  const value y = x.dot(w);
  build_.label = text();
  return expert < 0 && has(role, layer, "bias") ? y + vector(role, layer, outputs, "bias").convert(a_.type) : y;
}

std::int64_t decoder_weights::outputs(std::string_view role, std::int64_t layer, std::int64_t expert) const {
  const weight_entry e = get(role, layer, "weight", expert);
  if (e.extents.size() != 2)
    throw error(errc::malformed, "tensor '" + e.name + "': expected a matrix, found " + extents_text(e.extents));
  return e.extents[a_.columns_first ? 1 : 0];
}

value decoder_weights::rows(value of, std::string_view role, std::int64_t count, std::int64_t width) {
  const weight_entry e = get(role, -1, "weight");
  check_extents(e, {count, width});
  if (e.format == weight_format::plain && !is_float(e.type))
    throw error(errc::unsupported, "tensor '" + e.name + "': a table that is not of floats");
  value out;
  // the table stays in blocks with scales of 16 bits: only the rows of tokens [batch, length] become f32, whose depth
  // is then the last of three dims
  if (stays(e)) {
    stored_blocks s = repack(e, {}, *pool_);
    s.op.axis = 2;
    build_.label = text();
    build_.label.append(e.name);
    const value numbers = build_.constant(std::move(s.numbers)), scales = build_.constant(std::move(s.scales));
    out = build_.add(s.op, numbers.gather(of, 0), scales.gather(of, 0).convert(a_.type));
  } else {
    out = stored(e, {}).gather(of, 0).convert(a_.type);
  }
  build_.label = text();
  return out;
}

std::vector<float> decoder_weights::numbers(std::string_view role) const {
  const weight_entry* e = find(role, -1, "weight");
  return e ? plain_numbers(*e) : std::vector<float>();
}

}  // namespace kiln::language::detail
