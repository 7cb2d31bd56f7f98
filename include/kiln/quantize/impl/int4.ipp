#include "kiln/quantize/int4.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "kiln/quantize/byte_products.hpp"
#include "kiln/quantize/impl/block_scale.hpp"
#include "kiln/quantize/impl/stored_form.hpp"
#include "kiln/quantize/impl/stored_program.hpp"

namespace kiln::quantize {
namespace detail {

stored_matrix stored(const block_weights& w, bool bytes_suffice) {
  const block_format& f = w.format;
  const std::int64_t blocks = w.blocks();
  stored_matrix m;
  m.op = {.bits = f.bits, .axis = 1, .block = f.block, .bytes_suffice = bytes_suffice};
  if (blocks * f.block != w.depth) m.op.extent = w.depth;
  m.operands.push_back(bytes_literal({dtype::u8, {w.rows, blocks * f.block * f.bits / 8}}, w.data));
  const auto reals = [&](const std::vector<float>& v) {
    return literal::of<float>({dtype::f32, {w.rows, blocks}}, std::span<const float>(v));
  };
  m.operands.push_back(reals(w.scales));
  if (!w.real_zeros.empty())
    m.operands.push_back(reals(w.real_zeros));
  else if (!w.zeros.empty())
    m.operands.push_back(bytes_literal({dtype::u8, {w.rows, (blocks * f.bits + 7) / 8}}, w.zeros));
  else
    m.op.zero = 1 << (f.bits - 1);
  return m;
}

}  // namespace detail

namespace {

using measured_inputs = std::map<value_id, input_products, decltype([](value_id a, value_id b) {
                                   return std::pair(a.instruction, a.result) < std::pair(b.instruction, b.result);
                                 })>;

// What the products among the readers multiply their matrices with, by all samples.
measured_inputs measure(const program& p, const small_vector<value_id>& readers, const calibration_data& data,
                        const target& t, thread_pool& pool, const compile_options& compiling,
                        const calibration_progress& progress) {
  measured_inputs out;
  std::vector<watched_value> watched;
  for (const value_id v : readers) {
    const value_id x = p.main().producer(v).inputs[0];
    const shape& s = p.main().shape_of(x);
    if (p.main().producer(v).op.name() != "dot" || out.contains(x)) continue;
    out.emplace(x, input_products(s.lens[s.rank() - 1].value()));
    watched.push_back({"%" + std::to_string(x.instruction) + "." + std::to_string(x.result), x});
  }
  watched_program run(p, watched, t, compiling);
  while (const std::optional<sample> s = data()) {
    const auto values = run.run(*s);
    for (std::size_t k = 0; k < values.size(); ++k) {
      const auto rows = values[k].to<float>();
      out.at(watched[k].value).add({rows.data(), rows.size()}, pool);
    }
    if (progress) progress(run.samples());
  }
  if (run.samples() == 0) raise(errc::invalid_argument, "gptq needs samples: found none");
  return out;
}

// What all dots that read the same matrix as this one multiply it with; none for other readers.
std::optional<input_products> inputs_of(const module_graph& m, value_id reader, const small_vector<value_id>& readers,
                                        const measured_inputs& inputs) {
  std::optional<input_products> out;
  if (m.producer(reader).op.name() != "dot") return out;
  for (const value_id v : readers) {
    const auto& i = m.producer(v);
    if (i.op.name() != "dot" || i.inputs[1] != m.producer(reader).inputs[1]) continue;
    const auto known = inputs.find(i.inputs[0]);
    if (known == inputs.end()) continue;
    if (out)
      out->add(known->second);
    else
      out = known->second;
  }
  return out;
}

quantized_program stored_in_blocks(program p, const int4_options& options, const detail::matrix_readers& readers,
                                   const measured_inputs& inputs, thread_pool& pool) {
  const program& source = p;
  const auto form_of = [&](const detail::read_matrix& m, pass_note& note) {
    if (options.method != weight_method::gptq)
      return in_blocks(m.weights, m.rows, options.format, options.method, pool);
    const module_graph& graph = source.module({m.module});
    const auto known = m.module == 0 ? inputs_of(graph, m.reader, readers[0], inputs) : std::nullopt;
    if (!known || known->is_zero()) {
      if (graph.producer(m.reader).op.name() == "dot")
        detail::remark_on(m, "is rounded: samples show nothing that it is multiplied with", note);
      return in_blocks(m.weights, m.rows, options.format, weight_method::rtn, pool);
    }
    try {
      return gptq_blocks(m.weights, m.rows, options.format, *known, options.damping, pool);
    } catch (error& e) {
      throw e.at_instruction(m.name);
    }
  };
  return detail::stored_program(p, readers, options.format.block, [&](const detail::read_matrix& m, pass_note& note) {
    return detail::stored(form_of(m, note), options.bytes_suffice);
  });
}

}  // namespace

quantized_program to_int4(program p, const int4_options& options) {
  if (options.method == weight_method::gptq)
    raise(errc::invalid_argument, "gptq needs samples of the program's inputs");
  thread_pool pool(options.threads);
  const detail::matrix_readers readers = detail::chosen_readers(p, options.ops, options.exclude);
  return stored_in_blocks(std::move(p), options, readers, {}, pool);
}

quantized_program to_int4(program p, const int4_options& options, const calibration_data& data, const target& t,
                          const compile_options& compiling, const calibration_progress& progress) {
  thread_pool pool(options.threads);
  const detail::matrix_readers readers = detail::chosen_readers(p, options.ops, options.exclude);
  const measured_inputs inputs = options.method == weight_method::gptq
                                     ? measure(p, readers[0], data, t, pool, compiling, progress)
                                     : measured_inputs{};
  return stored_in_blocks(std::move(p), options, readers, inputs, pool);
}

std::int64_t permit_byte_products(program& p) {
  std::int64_t count = 0;
  for (std::uint32_t k = 0; k < p.modules(); ++k) {
    module_graph& m = p.module({k});
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      const auto* stored = m[i].kind == instruction_kind::op ? m[i].op.get_if<op::block_dequantize>() : nullptr;
      // others are multiplied in floats whatever is permitted
      if (!stored || stored->floats || stored->factor != 1 || stored->block % 16 != 0) continue;
      op::block_dequantize rounded = *stored;
      rounded.bytes_suffice = true;
      m[i].op = rounded;
      ++count;
    }
  }
  return count;
}

}  // namespace kiln::quantize
