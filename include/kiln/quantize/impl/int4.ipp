#include "kiln/quantize/int4.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/pass/store_weights.hpp"

namespace kiln::quantize {
namespace {

bool named(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

small_vector<value_id> chosen_readers(program& p, const int4_options& options) {
  for (const std::string& op : options.ops)
    if (op != "dot" && op != "gather")
      raise(errc::invalid_argument, "ops whose matrices are stored in blocks are dot and gather: found '" + op + "'");
  small_vector<value_id> out;
  std::vector<std::string> known;
  for (const value_id v : readers_of_matrices(p.main())) {
    const auto& i = p.main().producer(v);
    known.push_back(i.name.str());
    if (named(options.ops, i.op.name()) && !named(options.exclude, i.name.view())) out.push_back(v);
  }
  for (const std::string& name : options.exclude)
    if (!named(known, name))
      raise(errc::not_found, "no instruction '" + name + "' reads a matrix that could be stored in blocks");
  return out;
}

literal bytes_literal(const dims& lens, const std::vector<std::uint8_t>& bytes) {
  buffer data = buffer::allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(data.data()));
  return literal({dtype::u8, lens}, std::move(data));
}

stored_matrix stored(const block_weights& w, bool bytes_suffice) {
  const block_format& f = w.format;
  const std::int64_t blocks = w.blocks();
  stored_matrix m;
  m.op = {.bits = f.bits, .axis = 1, .block = f.block, .bytes_suffice = bytes_suffice};
  if (blocks * f.block != w.depth) m.op.extent = w.depth;
  m.operands.push_back(bytes_literal({w.rows, blocks * f.block * f.bits / 8}, w.data));
  const auto reals = [&](const std::vector<float>& v) {
    return literal::of<float>({dtype::f32, {w.rows, blocks}}, std::span<const float>(v));
  };
  m.operands.push_back(reals(w.scales));
  if (!w.real_zeros.empty())
    m.operands.push_back(reals(w.real_zeros));
  else if (!w.zeros.empty())
    m.operands.push_back(bytes_literal({w.rows, (blocks * f.bits + 7) / 8}, w.zeros));
  else
    m.op.zero = 1 << (f.bits - 1);
  return m;
}

}  // namespace

quantized_program to_int4(program p, const int4_options& options) {
  const small_vector<value_id> readers = chosen_readers(p, options);
  thread_pool pool(options.threads);
  quantized_program out;
  pass_note done = store_weights(p, readers, [&](const literal& matrix) {
    const auto values = matrix.to<float>();
    if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) {
      out.note.remark(text("a matrix of " + kiln::to_string(matrix.get_shape()) + " is not finite, and stays in f32"));
      return stored_matrix{};
    }
    const std::int64_t rows = matrix.get_shape().lens[0].value();
    return stored(in_blocks({values.data(), values.size()}, rows, options.format, options.method, pool),
                  options.bytes_suffice);
  });
  if (done.counts.total() == 0)
    raise(errc::invalid_argument,
          "a constant matrix of f32 that a dot or gather reads: found none that could be stored in blocks");
  out.note.count(done.counts);
  for (text& remark : done.remarks) out.note.remark(std::move(remark));
  out.graph = std::move(p);
  return out;
}

}  // namespace kiln::quantize
