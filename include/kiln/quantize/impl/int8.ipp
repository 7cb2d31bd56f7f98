#include "kiln/quantize/int8.hpp"

#include <algorithm>

#include "kiln/quantize/impl/named.hpp"

namespace kiln::quantize {
namespace {

using detail::is_listed;

// Names that no product has are mistakes of the caller's.
void check_names(const module_graph& m, const small_vector<value_id>& products, const int8_options& options) {
  for (const std::string& op : options.ops)
    if (op != "dot" && op != "convolution")
      raise(errc::invalid_argument, "ops to quantize to integers are dot and convolution: found '" + op + "'");
  for (const std::string& name : options.exclude) {
    const bool known =
        std::any_of(products.begin(), products.end(), [&](value_id v) { return m.producer(v).name.view() == name; });
    if (!known)
      raise(errc::not_found,
            "no dot or convolution '" + name + "' with constant weights, to be excluded from quantization");
  }
  if (options.activations != dtype::u8 && options.activations != dtype::i8)
    raise(fault::of(errc::invalid_argument, "activations are quantized to a type", "u8 or i8", options.activations));
  if (options.weights.type != dtype::i8)
    raise(fault::of(errc::invalid_argument, "weights are quantized to a type", dtype::i8, options.weights.type));
}

small_vector<value_id> chosen_products(program& p, const int8_options& options) {
  const small_vector<value_id> all = quantizable_products(p.main());
  check_names(p.main(), all, options);
  small_vector<value_id> out;
  for (const value_id v : all) {
    const auto& i = p.main().producer(v);
    if (is_listed(options.ops, i.op.name()) && !is_listed(options.exclude, i.name.view())) out.push_back(v);
  }
  return out;
}

std::vector<watched_value> operands_of(const program& p, const small_vector<value_id>& products) {
  std::vector<watched_value> all = float_values(p), out;
  for (watched_value& w : all) {
    const bool read = std::any_of(products.begin(), products.end(),
                                  [&](value_id v) { return quantized_operand(p.main(), v) == w.value; });
    if (read && !dequantized_bytes(p.main(), w.value)) out.push_back(std::move(w));
  }
  return out;
}

bool is_f32_product(const module_graph& m, std::uint32_t i) {
  return m[i].kind == instruction_kind::op && (m[i].op.is<op::dot>() || m[i].op.is<op::convolution>()) &&
         m.shape_of({i, 0}).type == dtype::f32;
}

// What no option would quantize: products of two values, and those in bodies.
void remark_on_others(program& p, const int8_options& options, pass_note& note) {
  const small_vector<value_id> known = quantizable_products(p.main());
  std::size_t of_values = 0, in_bodies = 0;
  for (std::uint32_t k = 0; k < p.modules(); ++k) {
    const module_graph& m = p.module({k});
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (!is_f32_product(m, i) || !is_listed(options.ops, m[i].op.name())) continue;
      if (k != 0)
        ++in_bodies;
      else if (std::find(known.begin(), known.end(), value_id{i, 0}) == known.end())
        ++of_values;
    }
  }
  const auto remark = [&](std::size_t count, std::string_view why) {
    if (count != 0) note.remark(text(std::to_string(count)).append(why));
  };
  remark(of_values, " of the products are of two values and stay in floats: those with constant weights are quantized");
  remark(in_bodies, " of the products are in bodies of branches and loops and stay in floats");
}

std::string label_of(const module_graph& m, value_id v) {
  const auto& i = m.producer(v);
  return i.name.empty() ? "%" + std::to_string(v.instruction) : i.name.str();
}

}  // namespace

program prepared(program p) {
  optimize(p, {.fuse = false});
  return p;
}

std::vector<std::string> prepared_names(const program& source, const program& prepared,
                                        std::span<const std::string> names) {
  const module_graph &from = source.main(), &to = prepared.main();
  const auto is_product = [](const module_graph& m, std::uint32_t i) {
    return m[i].kind == instruction_kind::op && m[i].op.kind() == op_kind::contraction;
  };
  const auto is_known = [&](std::string_view name) {
    for (std::uint32_t i = 0; i < to.size(); ++i)
      if (is_product(to, i) && to[i].name.view() == name) return true;
    return false;
  };
  // the one op that reads an instruction, else itself
  const auto reader_of = [&](std::uint32_t read) {
    std::uint32_t found = read, readers = 0;
    for (std::uint32_t i = 0; i < from.size(); ++i)
      for (const value_id v : from[i].inputs)
        if (v.instruction == read) found = i, ++readers;
    return readers == 1 ? found : read;
  };
  std::vector<std::string> out(names.begin(), names.end());
  for (std::string& name : out) {
    if (is_known(name)) continue;
    std::uint32_t at = 0;
    while (at < from.size() && !(is_product(from, at) && from[at].name.view() == name)) ++at;
    constexpr int most = 8;  // ops that are folded into a product
    for (int steps = 0; at < from.size() && steps < most; ++steps) {
      at = reader_of(at);
      if (!is_known(from[at].name.view())) continue;
      name = from[at].name.str();
      break;
    }
  }
  return out;
}

std::vector<watched_value> values_to_quantize(const program& p, const int8_options& options) {
  program copy = p;  // looking for products compacts a program: a prepared one is compact, so that its values stay
  return operands_of(p, chosen_products(copy, options));
}

quantized_program to_int8(program p, const ranges& ranges, const int8_options& options) {
  quantization_plan plan;
  plan.weights = options.weights;
  plan.weights.reduced = options.reduced;
  const small_vector<value_id> products = chosen_products(p, options);
  const bool symmetric = options.symmetric || options.activations == dtype::i8;
  std::vector<value_id> known;
  const std::vector<watched_value> operands = operands_of(p, products);
  for (const watched_value& w : operands) {
    const auto at = ranges.find(w.name);
    if (at == ranges.end()) continue;
    const auto as = parameters_for(at->second.whole, {options.activations, symmetric, options.reduced});
    if (!as) throw error(as.why()).at_instruction(w.name);
    plan.values.push_back({w.value, options.activations, as->scale, as->zero_point});
    known.push_back(w.value);
  }
  quantized_program out;
  for (const value_id v : products) {
    const value_id operand = quantized_operand(p.main(), v);
    if (dequantized_bytes(p.main(), operand) || std::find(known.begin(), known.end(), operand) != known.end()) {
      plan.products.push_back(v);
    } else {
      out.note.remark(text("'" + label_of(p.main(), v) + "' stays in floats: its operand '" +
                           label_of(p.main(), operand) + "' has no range"));
    }
  }
  const std::string fit = std::to_string(known.size()) + " of " + std::to_string(operands.size());
  if (plan.products.empty()) {
    std::string why = "ranges fit " + fit + " values that a dot or convolution with constant weights reads";
    if (!operands.empty()) why += ", such as '" + operands[0].name + "'";
    why += ": found " + std::to_string(ranges.size()) + " of other names";
    if (!ranges.empty()) why += ", such as '" + ranges.begin()->first + "'";
    raise(errc::invalid_argument, why);
  }
  if (known.size() != operands.size()) out.note.remark(text("ranges fit " + fit + " values that products read"));
  remark_on_others(p, options, out.note);
  pass_note done = insert_quantization(p, plan);
  out.note.count(done.counts);
  for (text& remark : done.remarks) out.note.remark(std::move(remark));
  out.graph = std::move(p);
  return out;
}

quantized_program to_dynamic_int8(program p, const int8_options& options) {
  quantization_plan plan;
  plan.weights = options.weights;
  plan.weights.reduced = options.reduced;
  quantized_program out;
  for (const value_id v : chosen_products(p, options)) {
    const auto stays = [&](std::string_view why) {
      out.note.remark(text("'" + label_of(p.main(), v) + "' stays in floats: ").append(why));
    };
    if (!p.main().producer(v).op.is<op::dot>())
      stays("convolutions are quantized by ranges alone");
    else if (dequantized_bytes(p.main(), quantized_operand(p.main(), v)))
      stays("its operand is of bytes already");
    else
      plan.products.push_back(v);
  }
  if (plan.products.empty())
    raise(errc::invalid_argument, "dynamic quantization needs a dot of a value and constant weights: found none");
  remark_on_others(p, options, out.note);
  pass_note done = insert_dynamic_quantization(p, plan);
  out.note.count(done.counts);
  for (text& remark : done.remarks) out.note.remark(std::move(remark));
  out.graph = std::move(p);
  return out;
}

}  // namespace kiln::quantize
