#include "kiln/quantize/impl/stored_program.hpp"

#include <algorithm>

#include "kiln/quantize/impl/block_scale.hpp"
#include "kiln/quantize/impl/named.hpp"

namespace kiln::quantize::detail {

small_vector<value_id> chosen_readers(program& p, std::span<const std::string> ops,
                                      std::span<const std::string> exclude) {
  for (const std::string& op : ops)
    if (op != "dot" && op != "gather")
      raise(errc::invalid_argument, "ops whose matrices are stored in blocks are dot and gather: found '" + op + "'");
  small_vector<value_id> out;
  std::vector<std::string> known;
  for (const value_id v : readers_of_matrices(p.main())) {
    const auto& i = p.main().producer(v);
    known.push_back(i.name.str());
    if (is_listed(ops, i.op.name()) && !is_listed(exclude, i.name.view())) out.push_back(v);
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

quantized_program stored_program(program& p, const small_vector<value_id>& readers, const matrix_store& store) {
  quantized_program out;
  pass_note done = store_weights(p, readers, [&](value_id reader, const literal& matrix) {
    const auto values = matrix.to<float>();
    if (!std::all_of(values.begin(), values.end(), can_be_stored)) {
      const std::string name = p.main().producer(reader).name.str();
      out.note.remark(text("the matrix of '" + name + "' is not finite, or its range is not, and stays in f32"));
      return stored_matrix{};
    }
    return store(reader, {values.data(), values.size()}, matrix.get_shape().lens[0].value(), out.note);
  });
  if (done.counts.total() == 0) {
    std::string why = "a constant matrix of f32 that a dot or gather reads: found none that could be stored in blocks";
    for (const text& r : out.note.remarks) why += "; " + r.str();
    raise(errc::invalid_argument, why);
  }
  out.note.count(done.counts);
  for (text& remark : done.remarks) out.note.remark(std::move(remark));
  out.graph = std::move(p);
  return out;
}

}  // namespace kiln::quantize::detail
