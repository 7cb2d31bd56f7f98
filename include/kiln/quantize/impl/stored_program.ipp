#include "kiln/quantize/impl/stored_program.hpp"

#include <algorithm>

#include "kiln/quantize/impl/block_scale.hpp"
#include "kiln/quantize/impl/named.hpp"

namespace kiln::quantize::detail {

matrix_readers chosen_readers(program& p, std::span<const std::string> ops, std::span<const std::string> exclude) {
  for (const std::string& op : ops)
    if (op != "dot" && op != "gather")
      raise(errc::invalid_argument, "ops whose matrices are stored in blocks are dot and gather: found '" + op + "'");
  matrix_readers out(p.modules());
  std::vector<std::string> known;
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    for (const value_id v : readers_of_matrices(p.module({k}))) {
      const auto& i = p.module({k}).producer(v);
      known.push_back(i.name.str());
      if (is_listed(ops, i.op.name()) && !is_listed(exclude, i.name.view())) out[k].push_back(v);
    }
  for (const std::string& name : exclude)
    if (!is_listed(known, name))
      raise(errc::not_found, "no instruction '" + name + "' reads a matrix that could be stored in blocks");
  return out;
}

literal bytes_literal(const shape& s, std::span<const std::uint8_t> bytes) {
  buffer data = buffer::allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(data.data()));
  return literal(s, std::move(data));
}

void remark_on(const read_matrix& m, std::string_view what, pass_note& note) {
  note.remark(text("the matrix of '" + m.name + "' ").append(what));
}

quantized_program stored_program(program& p, const matrix_readers& readers, std::int64_t block,
                                 const matrix_store& store) {
  quantized_program out;
  for (std::uint32_t k = 0; k < p.modules(); ++k) {
    module_graph& m = p.module({k});
    const pass_note done = store_weights(m, readers[k], [&](value_id reader, const literal& matrix) {
      const auto values = matrix.to<float>();
      const shape& s = matrix.get_shape();
      const read_matrix read{k,
                             reader,
                             m.producer(reader).name.str(),
                             {values.data(), values.size()},
                             s.lens[0].value(),
                             s.lens[1].value()};
      if (!std::all_of(values.begin(), values.end(), can_be_stored)) {
        remark_on(read, "is not finite, or its range is not, and stays in f32", out.note);
        return stored_matrix{};
      }
      if (read.depth < block)
        remark_on(read,
                  "is padded from a depth of " + std::to_string(read.depth) + " to a block of " + std::to_string(block),
                  out.note);
      return store(read, out.note);
    });
    out.note.count(done.counts);
    for (const text& remark : done.remarks) out.note.remark(remark);
  }
  if (out.note.counts.total() == 0) {
    std::string why = "a constant matrix of f32 that a dot or gather reads: found none that could be stored in blocks";
    for (const text& r : out.note.remarks) why += "; " + r.str();
    raise(errc::invalid_argument, why);
  }
  out.graph = std::move(p);
  return out;
}

}  // namespace kiln::quantize::detail
