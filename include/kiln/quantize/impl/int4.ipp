#include "kiln/quantize/int4.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "kiln/pass/store_weights.hpp"
#include "kiln/quantize/impl/block_scale.hpp"
#include "kiln/quantize/impl/named.hpp"

namespace kiln::quantize {
namespace {

using detail::is_listed;

// What reads a matrix that is to be stored: of each module, in order.
using chosen_readers = std::vector<small_vector<value_id>>;

chosen_readers chosen(program& p, const int4_options& options) {
  for (const std::string& op : options.ops)
    if (op != "dot" && op != "gather")
      raise(errc::invalid_argument, "ops whose matrices are stored in blocks are dot and gather: found '" + op + "'");
  chosen_readers out(p.modules());
  std::vector<std::string> known;
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    for (const value_id v : readers_of_matrices(p.module({k}))) {
      const auto& i = p.module({k}).producer(v);
      known.push_back(i.name.str());
      if (is_listed(options.ops, i.op.name()) && !is_listed(options.exclude, i.name.view())) out[k].push_back(v);
    }
  for (const std::string& name : options.exclude)
    if (!is_listed(known, name))
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

// Stores the matrices of one module.
class matrix_storer {
 public:
  matrix_storer(const int4_options& options, thread_pool& pool, pass_note& note)
      : options_(options), pool_(pool), note_(note) {}

  void run(module_graph& m, const small_vector<value_id>& readers, const measured_inputs& inputs) {
    const pass_note done = store_weights(m, readers, [&](value_id reader, const literal& matrix) {
      const auto& i = m.producer(reader);
      return form_of(i.name.str(), i.op.name() == "dot", matrix, inputs_of(m, reader, readers, inputs));
    });
    note_.count(done.counts);
    for (const text& remark : done.remarks) note_.remark(remark);
  }

 private:
  stored_matrix form_of(const std::string& name, bool of_product, const literal& matrix,
                        const std::optional<input_products>& inputs) {
    const auto values = matrix.to<float>();
    const shape& s = matrix.get_shape();
    const std::int64_t rows = s.lens[0].value(), depth = s.lens[1].value();
    if (!std::all_of(values.begin(), values.end(), can_be_stored)) {
      remark(name, " is not finite, or its range is not, and stays in f32");
      return {};
    }
    if (depth < options_.format.block)
      remark(name, " is padded from a depth of " + std::to_string(depth) + " to a block of " +
                       std::to_string(options_.format.block));
    const std::span<const float> weights(values.data(), values.size());
    if (options_.method != weight_method::gptq)
      return stored(in_blocks(weights, rows, options_.format, options_.method, pool_), options_.bytes_suffice);
    if (!inputs || inputs->is_zero()) {
      if (of_product) remark(name, " is rounded: samples show nothing that it is multiplied with");
      return stored(in_blocks(weights, rows, options_.format, weight_method::rtn, pool_), options_.bytes_suffice);
    }
    try {
      return stored(gptq_blocks(weights, rows, options_.format, *inputs, options_.damping, pool_),
                    options_.bytes_suffice);
    } catch (error& e) {
      throw e.at_instruction(name);
    }
  }
  void remark(const std::string& name, const std::string& what) {
    note_.remark(text("the matrix of '" + name + "'" + what));
  }

  const int4_options& options_;
  thread_pool& pool_;
  pass_note& note_;
};

quantized_program stored_program(program p, const int4_options& options, const chosen_readers& readers,
                                 const measured_inputs& inputs, thread_pool& pool) {
  quantized_program out;
  matrix_storer storer(options, pool, out.note);
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    storer.run(p.module({k}), readers[k], k == 0 ? inputs : measured_inputs{});
  if (out.note.counts.total() == 0) {
    std::string why = "a constant matrix of f32 that a dot or gather reads: found none that could be stored in blocks";
    for (const text& r : out.note.remarks) why += "; " + r.str();
    raise(errc::invalid_argument, why);
  }
  out.graph = std::move(p);
  return out;
}

}  // namespace

quantized_program to_int4(program p, const int4_options& options) {
  if (options.method == weight_method::gptq)
    raise(errc::invalid_argument, "gptq needs samples of the program's inputs");
  thread_pool pool(options.threads);
  const chosen_readers readers = chosen(p, options);
  return stored_program(std::move(p), options, readers, {}, pool);
}

quantized_program to_int4(program p, const int4_options& options, const calibration_data& data, const target& t,
                          const compile_options& compiling, const calibration_progress& progress) {
  thread_pool pool(options.threads);
  const chosen_readers readers = chosen(p, options);
  const measured_inputs inputs = options.method == weight_method::gptq
                                     ? measure(p, readers[0], data, t, pool, compiling, progress)
                                     : measured_inputs{};
  return stored_program(std::move(p), options, readers, inputs, pool);
}

}  // namespace kiln::quantize
