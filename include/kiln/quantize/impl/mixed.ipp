#include "kiln/quantize/mixed.hpp"

#include <algorithm>

#include "kiln/quantize/impl/named.hpp"

namespace kiln::quantize {
namespace {

// Of the given program's values, for the next round.
constexpr std::size_t most_kept = std::size_t{256} << 20;

bool is_product(const module_graph& m, std::uint32_t i) {
  return m[i].kind == instruction_kind::op && m[i].op.kind() == op_kind::contraction;
}

// The named products nearest before a value, itself included.
void add_products(const module_graph& m, std::uint32_t at, std::vector<bool>& seen, std::vector<std::string>& to) {
  if (seen[at]) return;
  seen[at] = true;
  if (is_product(m, at)) {
    if (!m[at].name.empty()) to.push_back(m[at].name.str());
    return;
  }
  for (const value_id v : m[at].inputs) add_products(m, v.instruction, seen, to);
}

// The products that may stay in floats, those at the worst values first: what reads one as bytes, and what computes it.
std::vector<std::string> worst_first(const program& p, const accuracy_report& r, const int8_options& options) {
  const module_graph& m = p.main();
  program copy = p;
  std::vector<std::string> known, out;
  for (const value_id v : quantizable_products(copy.main(), !options.products_of_values)) {
    const auto& i = copy.main().producer(v);
    if (detail::is_listed(options.ops, i.op.name())) known.push_back(i.name.str());
  }
  const std::vector<watched_value> values = float_values(p);
  const auto add = [&](const tensor_accuracy& t) {
    for (const watched_value& w : values) {
      if (w.name != t.name) continue;
      std::vector<std::string> near;
      for (std::uint32_t i = 0; t.quantization && i < m.size(); ++i)
        if (is_product(m, i) && quantized_operand(m, {i, 0}) == w.value) near.push_back(m[i].name.str());
      std::vector<bool> seen(m.size(), false);
      add_products(m, w.value.instruction, seen, near);
      for (std::string& name : near) {
        const auto listed = [&](const std::vector<std::string>& list) { return detail::is_listed(list, name); };
        if (listed(known) && !listed(out) && !listed(options.exclude)) out.push_back(std::move(name));
      }
    }
  };
  for (const auto* tensors : {&r.tensors, &r.outputs})
    for (const tensor_accuracy& t : *tensors) add(t);
  return out;
}

double least_of(const accuracy_report& r) {
  double least = r.outputs[0].sqnr;
  for (const tensor_accuracy& o : r.outputs) least = o.sqnr < least || o.sqnr != o.sqnr ? o.sqnr : least;
  return least;
}

}  // namespace

mixed_program to_int8_within(const program& p, double least, const ranges& known, const int8_options& options,
                             const repeated_data& data, const target& t, const compile_options& compiling,
                             const calibration_progress& progress) {
  if (least != least) raise(errc::invalid_argument, "the least SQNR is a number of decibels: found NaN");
  int8_options how = options;
  mixed_program out;
  accuracy_reference reference(p, float_values(p), t, compiling, most_kept);
  const auto compare = [&](const program& made) {
    const accuracy_question q = question_of(p, made);
    return reference.compare(made, q.in_quantized, q.quantizations, data(), progress);
  };
  for (std::size_t more = 1;; more *= 2) {
    out.made = to_int8(p, known, how);
    out.report = compare(out.made.graph);
    if (least_of(out.report) >= least) break;
    const std::vector<std::string> worst = worst_first(p, out.report, how);
    const std::size_t count = std::min(more, worst.size());
    how.exclude.insert(how.exclude.end(), worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count));
    out.in_floats.insert(out.in_floats.end(), worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count));
    if (count < worst.size()) continue;
    out.made = {p, pass_note("quantize")};
    out.report = compare(p);
    break;
  }
  for (const std::string& name : out.in_floats)
    out.made.note.remark(text("'" + name + "' stays in floats: outputs would be less than ")
                             .append(least)
                             .append(std::string_view(" dB near otherwise")));
  return out;
}

}  // namespace kiln::quantize
