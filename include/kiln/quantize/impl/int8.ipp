#include "kiln/quantize/int8.hpp"

#include <algorithm>

#include "kiln/pass/quantizable_results.hpp"
#include "kiln/pass/share_matrices.hpp"
#include "kiln/quantize/impl/named.hpp"
#include "kiln/quantize/impl/static_quantization.hpp"

namespace kiln::quantize {
namespace {

using detail::is_listed;
using kiln::detail::is_quantized_type;

void check_type(const char* what, dtype t) {
  if (!is_quantized_type(t) || bits_of(t) < 4)
    raise(fault::of(errc::invalid_argument, what, "u8, i8, u16, i16, u4 or i4", t));
}

// Names that no product has are mistakes of the caller's.
void check_names(const module_graph& m, const small_vector<value_id>& products, const int8_options& options) {
  for (const std::string& op : options.ops)
    if (op != "dot" && op != "convolution")
      raise(errc::invalid_argument, "ops to quantize to integers are dot and convolution: found '" + op + "'");
  for (const auto* names : {&options.exclude, &options.only})
    for (const std::string& name : *names) {
      const bool known =
          std::any_of(products.begin(), products.end(), [&](value_id v) { return m.producer(v).name.view() == name; });
      if (!known)
        raise(errc::not_found, "no dot or convolution '" + name + "' with constant weights, to be " +
                                   (names == &options.only ? "quantized alone" : "excluded from quantization"));
    }
}

small_vector<value_id> chosen_products(program& p, const int8_options& options) {
  const small_vector<value_id> all = quantizable_products(p.main(), !options.products_of_values);
  check_names(p.main(), all, options);
  small_vector<value_id> out;
  for (const value_id v : all) {
    const auto& i = p.main().producer(v);
    if (is_listed(options.ops, i.op.name()) && !is_listed(options.exclude, i.name.view()) &&
        (options.only.empty() || is_listed(options.only, i.name.view())))
      out.push_back(v);
  }
  return out;
}

using quantizable = small_vector<quantizable_result>;

quantizable results_of(program& p, const small_vector<value_id>& products, const int8_options& options) {
  return options.results ? quantizable_results(p.main(), products) : quantizable();
}

bool has_constant_weights(const module_graph& m, value_id product) {
  return m.producer(quantized_operand(m, product, 1)).kind == instruction_kind::literal;
}

// The operands of products that are quantized, and results that do not share another's scale, each once.
std::vector<watched_value> values_of(const program& p, const small_vector<value_id>& products,
                                     const quantizable& results, const int8_options& options) {
  const module_graph& m = p.main();
  std::vector<watched_value> all = float_values(p), out;
  for (watched_value& w : all) {
    const bool read = std::any_of(products.begin(), products.end(), [&](value_id v) {
      return quantized_operand(m, v) == w.value ||
             (!has_constant_weights(m, v) && quantized_operand(m, v, 1) == w.value);
    });
    const auto result = std::find_if(results.begin(), results.end(), [&](const auto& r) { return r.value == w.value; });
    const bool wanted = result != results.end() ? !result->like : read;
    const auto& made = m.producer(w.value);
    const bool stays = made.kind == instruction_kind::op && is_listed(options.exclude_results_of, made.op.name());
    if (wanted && !stays && !dequantized_bytes(m, w.value)) out.push_back(std::move(w));
  }
  for (const auto& [name, how] : options.overrides)
    if (std::none_of(out.begin(), out.end(), [&, &n = name](const watched_value& w) { return w.name == n; }))
      raise(errc::not_found, "overrides are of values that products read: found '" + name + "'");
  return out;
}

bool is_f32_product(const module_graph& m, std::uint32_t i) {
  return m[i].kind == instruction_kind::op && (m[i].op.is<op::dot>() || m[i].op.is<op::convolution>()) &&
         m.shape_of({i, 0}).type == dtype::f32;
}

// What no option would quantize: products of two values, and those in bodies.
void remark_on_others(program& p, const int8_options& options, pass_note& note) {
  const small_vector<value_id> known = quantizable_products(p.main(), !options.products_of_values);
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

const value_override* override_of(const int8_options& options, const std::string& name) {
  const auto at = options.overrides.find(name);
  return at == options.overrides.end() ? nullptr : &at->second;
}

// How a value of this name is stored, or nothing without a range.
std::optional<quantized_value> numbers_for(const watched_value& w, const ranges& known, const int8_options& options) {
  static const value_override none;
  const value_override* const given = override_of(options, w.name);
  const value_override& o = given ? *given : none;
  const dtype type = o.type.value_or(options.activations);
  if (o.scale || o.zero) {
    if (!o.scale || !o.zero || !(*o.scale > 0))
      raise(errc::invalid_argument, "an override of a scale has a zero point, and is above 0: '" + w.name + "'");
    return quantized_value{w.value, type, *o.scale, *o.zero};
  }
  const auto at = known.find(w.name);
  if (at == known.end() && !(o.low && o.high)) return std::nullopt;
  range r = at == known.end() ? range{} : at->second.whole;
  if (o.low) r.low = *o.low;
  if (o.high) r.high = *o.high;
  const bool is_signed = type == dtype::i8 || type == dtype::i16;
  const scheme codes{type, o.symmetric.value_or(options.symmetric || is_signed), o.reduced.value_or(options.reduced),
                     options.least_width};
  const bool by_deviation = is_float8(type) && !o.low && !o.high && at->second.distribution;
  const auto as =
      by_deviation ? parameters_for_deviation(at->second.distribution->deviation, type) : parameters_for(r, codes);
  if (!as) throw error(as.why()).at_instruction(w.name);
  return quantized_value{w.value, type, as->scale, as->zero_point};
}

std::string label_of(const module_graph& m, value_id v) {
  const auto& i = m.producer(v);
  return i.name.empty() ? "%" + std::to_string(v.instruction) : i.name.str();
}

}  // namespace

program prepared(program p) {
  optimize(p, {.fuse = false});
  share_matrices(p.main());
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
  const small_vector<value_id> products = chosen_products(copy, options);
  std::vector<watched_value> out = values_of(p, products, results_of(copy, products, options), options);
  std::erase_if(out, [&](const watched_value& w) {
    const value_override* const o = override_of(options, w.name);
    return o && o->scale;
  });
  return out;
}

namespace detail {

quantized_program quantize_statically(program p, const ranges& known, const int8_options& options) {
  quantization_plan plan{.weights = options.weights, .bias = options.bias || options.results};
  plan.weights.reduced = options.reduced;
  plan.weights.least_width = options.least_width;
  const small_vector<value_id> products = chosen_products(p, options);
  std::vector<value_id> ready;
  const quantizable results = results_of(p, products, options);
  const std::vector<watched_value> operands = values_of(p, products, results, options);
  for (const watched_value& w : operands)
    if (const auto numbers = numbers_for(w, known, options)) {
      plan.values.push_back(*numbers);
      ready.push_back(w.value);
    }
  for (const quantizable_result& r : results) {
    const auto same = std::find_if(plan.values.begin(), plan.values.end(),
                                   [&](const quantized_value& q) { return r.like && q.value == r.like; });
    if (same == plan.values.end()) continue;
    plan.values.push_back({r.value, same->type, same->scale, same->zero});
    ready.push_back(r.value);
  }
  quantized_program out;
  const module_graph& m = p.main();
  // why a product stays in floats, or nothing
  const auto obstacle = [&](value_id v) -> std::string {
    for (std::size_t side = 0; side < (has_constant_weights(m, v) ? 1u : 2u); ++side) {
      const value_id x = quantized_operand(m, v, side);
      if (std::find(ready.begin(), ready.end(), x) != ready.end()) continue;
      const auto bytes = dequantized_bytes(m, x);
      const bool same = bytes && is_float(bytes->type) == is_float(options.weights.type);
      if (!same) return "its operand '" + label_of(m, x) + (bytes ? "' is of other numbers" : "' has no range");
    }
    return {};
  };
  for (const value_id v : products) {
    if (const std::string why = obstacle(v); why.empty())
      plan.products.push_back(v);
    else
      out.note.remark(text("'" + label_of(m, v) + "' stays in floats: " + why));
  }
  const std::string fit = std::to_string(ready.size()) + " of " + std::to_string(operands.size());
  if (plan.products.empty()) {
    std::string why = "ranges fit " + fit + " values that a dot or convolution with constant weights reads";
    if (!operands.empty()) why += ", such as '" + operands[0].name + "'";
    why += ": found " + std::to_string(known.size()) + " of other names";
    if (!known.empty()) why += ", such as '" + known.begin()->first + "'";
    raise(errc::invalid_argument, why);
  }
  if (ready.size() != operands.size()) out.note.remark(text("ranges fit " + fit + " values that products read"));
  remark_on_others(p, options, out.note);
  pass_note done = insert_quantization(p, plan);
  out.note.count(done.counts);
  for (text& remark : done.remarks) out.note.remark(std::move(remark));
  out.graph = std::move(p);
  return out;
}

}  // namespace detail

quantized_program to_int8(program p, const ranges& known, const int8_options& options) {
  check_type("activations are quantized to a type", options.activations);
  check_type("weights are quantized to a type", options.weights.type);
  for (const auto& [name, o] : options.overrides)
    if (o.type) check_type("an activation is quantized to a type", *o.type);
  return detail::quantize_statically(std::move(p), known, options);
}

quantized_program to_dynamic_int8(program p, const int8_options& options) {
  if (options.weights.type != dtype::i8 || !options.weights.symmetric)
    raise(fault::of(errc::invalid_argument, "weights of dynamic quantization are symmetric and of a type", dtype::i8,
                    options.weights.type));
  quantization_plan plan;
  plan.weights = options.weights;
  plan.weights.reduced = options.reduced;
  quantized_program out;
  for (const value_id v : chosen_products(p, options)) {
    const auto stays = [&](std::string_view why) {
      out.note.remark(text("'" + label_of(p.main(), v) + "' stays in floats: ").append(why));
    };
    if (!p.main().producer(v).op.is<op::dot>() && !options.dynamic_convolutions)
      stays("convolutions are quantized by ranges, or where options ask for it");
    else if (dequantized_bytes(p.main(), quantized_operand(p.main(), v)))
      stays("its operand is of bytes already");
    else
      plan.products.push_back(v);
  }
  if (plan.products.empty())
    raise(errc::invalid_argument,
          "dynamic quantization needs a dot of a value and constant weights, or a convolution where options ask for "
          "it: found none");
  remark_on_others(p, options, out.note);
  pass_note done = insert_dynamic_quantization(p, plan);
  out.note.count(done.counts);
  for (text& remark : done.remarks) out.note.remark(std::move(remark));
  out.graph = std::move(p);
  return out;
}

}  // namespace kiln::quantize
