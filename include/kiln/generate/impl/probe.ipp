#include "kiln/generate/impl/probe.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/core/error.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::language::detail {

namespace {

using instruction = basic_instruction<operation>;
constexpr std::string_view past_sizer = "kiln.past", now_sizer = "kiln.now";

bool mentions(std::span<const dimension> some, dimension symbol) {
  return std::any_of(some.begin(), some.end(), [&](dimension d) {
    small_vector<dimension> named;
    collect_symbols(d, named);
    return std::find(named.begin(), named.end(), symbol) != named.end();
  });
}

std::uint8_t role_of(std::string_view name, const decoder_ports& ports) {
  if (name == ports.tokens) return of_tokens;
  if (!ports.positions.empty() && name == ports.positions) return of_position;
  for (const auto& c : ports.caches)
    if (name == c.input) return of_cache;
  const auto is_it = [&](const std::string& l) { return name == l; };
  return std::any_of(ports.lengths.begin(), ports.lengths.end(), is_it) ? of_length : 0;
}

}  // namespace

bool mentions(const shape& s, dimension symbol) {
  return mentions(std::span<const dimension>(s.lens.data(), s.lens.size()), symbol);
}

std::uint8_t from_of_itself(const module_graph& m, std::uint32_t at, const decoder_ports& ports) {
  const instruction& i = m[at];
  if (i.kind == instruction_kind::parameter) return role_of(i.name.view(), ports);
  std::uint8_t own = 0;
  for (const shape& s : i.results)
    if (mentions(s, ports.past)) own = of_past;
  if (i.kind == instruction_kind::op) {
    small_vector<dimension> named;
    i.op.symbols(named);
    if (mentions(std::span<const dimension>(named.data(), named.size()), ports.past)) own = of_past;
  } else if (i.constant.has_symbols()) {
    const auto values = i.constant.to<dimension>();
    if (mentions(std::span<const dimension>(values.data(), values.size()), ports.past)) own = of_past;
  }
  return own;
}

std::vector<std::uint8_t> sources_of(const module_graph& m, const decoder_ports& ports) {
  std::vector<std::uint8_t> all(m.size(), 0);
  for (const std::uint32_t at : m.order()) {
    all[at] = from_of_itself(m, at, ports);
    for (const value_id v : m[at].inputs) all[at] |= all[v.instruction];
  }
  return all;
}

std::vector<std::uint32_t> needed_of(const module_graph& m, const small_vector<value_id>& values) {
  std::vector<std::uint8_t> needed(m.size(), 0);
  std::vector<std::uint32_t> open;
  const auto want = [&](value_id v) {
    if (!needed[v.instruction]) needed[v.instruction] = 1, open.push_back(v.instruction);
  };
  for (const value_id v : values) want(v);
  const auto binders = kiln::detail::binders_read(m);
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    for (const value_id v : m[at].inputs) want(v);
    if (at < binders.size())
      for (const std::uint32_t binder : binders[at]) want({binder, 0});
  }
  std::vector<std::uint32_t> out;
  for (const std::uint32_t at : m.order())
    if (needed[at]) out.push_back(at);
  return out;
}

module_graph part_of(const module_graph& m, const small_vector<value_id>& outputs, const small_vector<text>& names) {
  module_graph part;
  part.name = m.name;
  std::vector<std::uint32_t> renamed(m.size(), 0);
  for (const std::uint32_t at : needed_of(m, outputs)) {
    const instruction& i = m[at];
    value_id made;
    if (i.kind == instruction_kind::parameter) {
      made = part.add_parameter(i.name.view(), i.results[0]);
    } else if (i.kind == instruction_kind::literal) {
      made = part.add_literal(i.constant);
    } else {
      small_vector<value_id> in = i.inputs;
      for (value_id& v : in) v.instruction = renamed[v.instruction];
      made = part.add_with_shapes(i.op, std::move(in), i.results);
    }
    part[made.instruction].name = i.name;
    part[made.instruction].is_weight = i.is_weight;
    renamed[at] = made.instruction;
  }
  for (value_id v : outputs) part.outputs.push_back({renamed[v.instruction], v.result});
  part.output_names = names;
  return part;
}

// Whether values of these sizes take no more time and memory than loading a model should.
bool is_small(const module_graph& m, const bindings& known) {
  constexpr std::int64_t most = std::int64_t{1} << 25;
  for (const std::uint32_t at : m.order())
    for (const shape& s : m[at].results) {
      std::int64_t n = 1;
      for (const dimension& d : s.lens) {
        const std::int64_t extent = known.evaluate(d);
        if (extent > most / std::max<std::int64_t>(n, 1)) return false;
        n *= extent;
      }
    }
  return true;
}

std::vector<argument> prober::compute(value_id v, const std::vector<sizes>& all) const {
  program part = p_;
  module_graph& m = part.main();
  m = part_of(p_.main(), {v}, {text("value")});
  for (const sizes& n : all) {
    bindings known;
    known.bind(ports_.past, n.past);
    known.bind(ports_.now, n.now);
    if (!is_small(m, known)) return {};
  }
  // these bind the symbols
  m.add_parameter(past_sizer, shape(dtype::u8, {ports_.past}));
  m.add_parameter(now_sizer, shape(dtype::u8, {ports_.now}));
  std::vector<argument> out;
  compile_options options;
  options.threads = 1;
  try {
    const executable exe = compile(std::move(part), reference_target(), options);
    for (const sizes& n : all) {
      bindings known;
      known.bind(ports_.past, n.past);
      known.bind(ports_.now, n.now);
      std::vector<argument> in;
      for (const port& p : exe.inputs()) {
        dims lens;
        for (const dimension d : p.type.lens) lens.push_back(known.evaluate(d));
        in.emplace_back(shape(p.type.type, lens));
        std::vector<std::int64_t> values(static_cast<std::size_t>(in.back().elements()), 1);
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (p.name == ports_.positions) values[i] = n.past + static_cast<std::int64_t>(i);
          if (p.name == ports_.past_length) values[i] = n.past;
          if (p.name == ports_.total_length) values[i] = n.past + n.now;
          if (p.name == ports_.current_length) values[i] = n.now;
        }
        encode(p.type.type, values.data(), in.back().data(), in.back().elements());
      }
      out.push_back(exe.run(in)[0]);
    }
  } catch (const error&) {
    return {};  // what can't be computed is nothing that is looked for
  }
  return out;
}

bool prober::is_positions(value_id v) const {
  const std::vector<sizes> all{{0, 1}, {0, 7}, {5, 3}, {61, 2}};
  const auto made = compute(v, all);
  for (std::size_t k = 0; k < made.size(); ++k) {
    const auto values = made[k].to<std::int64_t>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != all[k].past + static_cast<std::int64_t>(i)) return false;
  }
  return !made.empty();
}

std::optional<std::int64_t> prober::window_of(value_id mask, bool causal) const {
  // long enough to see any window; one of more than 65536 tokens is not known
  constexpr std::int64_t most = 65536;
  const std::int64_t longest = ports_.context == 0 ? most : std::clamp<std::int64_t>(ports_.context, 64, most);
  const std::vector<sizes> all{{longest - 2, 2}, {0, 1}, {0, 9}, {6, 3}, {33, 31}};
  const auto made = compute(mask, all);
  if (made.empty()) return std::nullopt;
  std::int64_t window = 0;
  for (std::size_t k = 0; k < made.size(); ++k) {
    const shape& s = made[k].get_shape();
    const std::int64_t keys = all[k].past + all[k].now;
    const bool selects = s.type == dtype::boolean;
    const auto values = made[k].to<double>();
    if (s.rank() == 0) return std::nullopt;
    for (std::size_t d = 0; d + 2 < s.rank(); ++d)
      if (!(s.lens[d] == dimension(1))) return std::nullopt;
    const auto at = [&](std::int64_t i, std::int64_t j) {  // every batch and head alike
      const std::int64_t rows = s.rank() < 2 ? 1 : s.lens[s.rank() - 2].value(), cols = s.lens[s.rank() - 1].value();
      return values[static_cast<std::size_t>((rows == 1 ? 0 : i) * cols + (cols == 1 ? 0 : j))];
    };
    constexpr double hides = -1e4;  // an addend whose exponential is 0 next to any score
    for (std::int64_t i = 0; i < all[k].now; ++i) {
      const std::int64_t own = all[k].past + i;
      std::int64_t first = own + 1;
      for (std::int64_t j = 0; j < keys; ++j) {
        const double x = at(i, j);
        if (!selects && x != 0 && !(x <= hides)) return std::nullopt;
        const bool shown = selects ? x != 0 : x == 0;
        if (j > own && shown && !causal) return std::nullopt;
        if (j <= own && shown) first = std::min(first, j);
        if (j <= own && !shown && first <= own) return std::nullopt;  // a gap
      }
      if (first > own) return std::nullopt;
      if (k == 0 && i == 0) window = first == 0 ? 0 : own - first + 1;
      if (first != (window == 0 ? 0 : std::max<std::int64_t>(0, own - window + 1))) return std::nullopt;
    }
  }
  return window;
}

}  // namespace kiln::language::detail
