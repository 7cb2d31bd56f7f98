#include "kiln/quantize/mixed.hpp"

#include <algorithm>

#include "kiln/quantize/impl/named.hpp"

namespace kiln::quantize {
namespace {

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

// The products that may stay in floats, those before the worst values first.
std::vector<std::string> worst_first(const program& p, const accuracy_report& r, const int8_options& options) {
  const module_graph& m = p.main();
  program copy = p;
  std::vector<std::string> known, out;
  for (const value_id v : quantizable_products(copy.main())) {
    const auto& i = copy.main().producer(v);
    if (detail::is_listed(options.ops, i.op.name())) known.push_back(i.name.str());
  }
  const std::vector<watched_value> values = float_values(p);
  const auto add = [&](const std::string& tensor) {
    for (const watched_value& w : values) {
      if (w.name != tensor) continue;
      std::vector<bool> seen(m.size(), false);
      std::vector<std::string> before;
      add_products(m, w.value.instruction, seen, before);
      for (std::string& name : before) {
        const auto listed = [&](const std::vector<std::string>& list) { return detail::is_listed(list, name); };
        if (listed(known) && !listed(out) && !listed(options.exclude)) out.push_back(std::move(name));
      }
    }
  };
  for (const auto* tensors : {&r.tensors, &r.outputs})
    for (const tensor_accuracy& t : *tensors) add(t.name);
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
  for (std::size_t more = 1;; more *= 2) {
    out.made = to_int8(p, known, how);
    out.report = compare_accuracy({p, out.made.graph, float_values(p), float_values(out.made.graph)}, t, data(),
                                  compiling, progress);
    if (least_of(out.report) >= least) break;
    const std::vector<std::string> worst = worst_first(p, out.report, how);
    const std::size_t count = std::min(more, worst.size());
    how.exclude.insert(how.exclude.end(), worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count));
    out.in_floats.insert(out.in_floats.end(), worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(count));
    if (count < worst.size()) continue;
    out.made = {p, pass_note("quantize")};
    out.report = compare_accuracy({p, p, float_values(p), float_values(p)}, t, data(), compiling, progress);
    break;
  }
  for (const std::string& name : out.in_floats)
    out.made.note.remark(text("'" + name + "' stays in floats: outputs would be less than " + std::to_string(least) +
                              " dB near otherwise"));
  return out;
}

}  // namespace kiln::quantize
