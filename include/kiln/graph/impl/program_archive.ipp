#include "kiln/graph/program_archive.hpp"

#include <map>
#include <set>

#include "kiln/core/object.hpp"
#include "kiln/graph/impl/check_calls.hpp"
#include "kiln/graph/impl/own_ops.hpp"
#include "kiln/graph/verify.hpp"

namespace kiln {
namespace {

// How a constant is written.
enum class constant_form : std::uint8_t { absent, symbolic, objects, in_place, kept };
constexpr std::size_t constant_forms = 5, most_in_place = 64, instruction_kinds = 3;

class program_writer {
 public:
  program_writer(archive_writer& to, const keep_constant& keep) : to_(to), keep_(keep) {}

  void put(const program& p) {
    to_.put_unsigned(p.modules());
    for (std::uint32_t k = 0; k < p.modules(); ++k) put(p.module({k}));
  }

 private:
  void put(const module_graph& m) {
    to_.put_text(m.name.view());
    to_.put_unsigned(m.size());
    for (std::uint32_t i = 0; i < m.size(); ++i) put(m[i]);
    to_.put_unsigned(m.outputs.size());
    for (std::size_t k = 0; k < m.outputs.size(); ++k) {
      put(m.outputs[k]);
      to_.put_text(m.output_names[k].view());
    }
  }
  void put(const basic_instruction<operation>& i) {
    to_.put_unsigned(static_cast<unsigned>(i.kind) + (i.is_weight ? instruction_kinds : 0));
    to_.put_text(i.name.view());
    to_.put_unsigned(i.results.size());
    for (const shape& s : i.results) put(s);
    if (i.kind == instruction_kind::literal) put(i.constant);
    if (i.kind != instruction_kind::op) return;
    put_name(i.op.name());
    i.op.save(to_);
    to_.put_unsigned(i.inputs.size());
    for (const value_id v : i.inputs) put(v);
  }
  void put(value_id v) {
    to_.put_unsigned(v.instruction);
    to_.put_unsigned(v.result);
  }
  void put(const shape& s) {
    to_.put_unsigned(static_cast<unsigned>(s.type));
    to_.put_unsigned(s.lens.size());
    for (const dimension d : s.lens) to_.put_dimension(d);
  }
  // An op's name once, then its number.
  void put_name(std::string_view name) {
    const auto [at, fresh] = names_.try_emplace(std::string(name), names_.size());
    to_.put_unsigned(at->second);
    if (fresh) to_.put_text(name);
  }
  void put(constant_form f) { to_.put_unsigned(static_cast<unsigned>(f)); }

  void put(const literal& l) {
    if (const auto* values = l.data().values<dimension>()) {
      put(constant_form::symbolic);
      for (const dimension d : *values) to_.put_dimension(d);
    } else if (is_object(l.get_shape().type) && l.bytes()) {
      put(constant_form::objects);
      put_objects(argument(l));
    } else if (!l.bytes()) {
      put(constant_form::absent);
    } else if (const auto bytes = static_cast<std::size_t>(l.get_shape().bytes().value()); bytes <= most_in_place) {
      put(constant_form::in_place);
      to_.put_text({reinterpret_cast<const char*>(l.bytes()), bytes});
    } else {
      put(constant_form::kept);
      to_.put_unsigned(keep_(l.data()));
    }
  }
  void put_argument(const argument& a) {
    const shape type(a.get_shape().type, a.get_shape().lens);
    put(type);
    if (is_object(type.type)) return put_objects(a);
    const argument dense = a.contiguous();
    to_.put_text({reinterpret_cast<const char*>(dense.data()), static_cast<std::size_t>(type.bytes().value())});
  }
  void put_objects(const argument& a) {
    switch (a.get_shape().type) {
      case dtype::string:
        for (const std::string& s : strings_of(a)) to_.put_text(s);
        return;
      case dtype::c64:
      case dtype::c128:
        for (const std::complex<double>& z : complexes_of(a)) {
          to_.put_unsigned(std::bit_cast<std::uint64_t>(z.real()));
          to_.put_unsigned(std::bit_cast<std::uint64_t>(z.imag()));
        }
        return;
      case dtype::sequence: return put_all(items_of(a));
      case dtype::optional: {
        const argument* const held = value_of_optional(a);
        to_.put_unsigned(held != nullptr);
        if (held) put_argument(*held);
        return;
      }
      default: {
        const map_object& m = entries_of(a);
        to_.put_unsigned(!m.is_empty());
        if (m.is_empty()) return;
        put_argument(m.keys);
        put_all(m.values);
      }
    }
  }
  void put_all(const std::vector<argument>& items) {
    to_.put_unsigned(items.size());
    for (const argument& item : items) put_argument(item);
  }

  archive_writer& to_;
  const keep_constant& keep_;
  std::map<std::string, std::uint64_t> names_;
};

class program_reader {
 public:
  program_reader(archive_reader& from, const kept_constant& kept, std::span<const op_table* const> own)
      : from_(from), kept_(kept), own_(own) {}

  program take() {
    program p;
    const std::size_t modules = from_.take_count(3);
    if (modules == 0) from_.fail("a main module");
    p.main() = take_module();
    for (std::size_t k = 1; k < modules; ++k) p.add_module(take_module());
    detail::check_calls(p, from_);
    if (const auto faults = detail::verifier<program>(p, true).run(); !faults.empty())
      from_.fail("instruction " + std::to_string(faults[0].instruction) + " of module " +
                 std::to_string(faults[0].module) + ", " + faults[0].op.str() +
                 ", to fit its operands: " + error(faults[0].why).what());
    return p;
  }

 private:
  module_graph take_module() {
    module_graph m;
    m.name = text(from_.take_text());
    const std::size_t instructions = from_.take_count(4);
    for (std::size_t i = 0; i < instructions; ++i) take_instruction(m);
    check_names(m);
    const std::size_t outputs = from_.take_count(3);
    for (std::size_t k = 0; k < outputs; ++k) {
      m.outputs.push_back(take_value(m));
      m.output_names.push_back(text(from_.take_text()));
    }
    return m;
  }
  void check_names(const module_graph& m) {
    std::set<std::string_view> names;
    for (std::uint32_t i = 0; i < m.size(); ++i)
      if (m[i].kind == instruction_kind::parameter && !names.insert(m[i].name.view()).second)
        from_.fail("parameters of different names, found '" + m[i].name.str() + "' twice");
  }
  void take_instruction(module_graph& m) {
    const std::size_t mark = from_.take_index(2 * instruction_kinds, "kinds of instructions");
    const auto kind = static_cast<instruction_kind>(mark % instruction_kinds);
    const std::string name(from_.take_text());
    shapes results(from_.take_count(2));
    for (shape& s : results) s = take_shape();
    if (results.empty()) from_.fail("a result of instruction '" + name + "'");
    if (kind == instruction_kind::parameter) {
      const value_id v = m.add_parameter(name, results[0]);
      m[v.instruction].is_weight = mark >= instruction_kinds;
    } else if (kind == instruction_kind::literal) {
      const value_id v = m.add_literal(take_literal(results[0]));
      m[v.instruction].name = text(name);
    } else {
      const operation op = take_op(name);
      small_vector<value_id> inputs(from_.take_count(2));
      for (value_id& v : inputs) v = take_value(m);
      m.add_with_shapes(op, std::move(inputs), std::move(results), name);
    }
  }
  value_id take_value(const module_graph& m) {
    const auto i = static_cast<std::uint32_t>(from_.take_index(m.size(), "earlier instructions"));
    return {i, static_cast<std::uint32_t>(from_.take_index(m[i].results.size(), "results"))};
  }
  shape take_shape() {
    shape s;
    s.type = static_cast<dtype>(from_.take_index(all_dtypes, "dtypes"));
    const std::size_t rank = from_.take_index(max_rank + 1, "ranks");
    for (std::size_t d = 0; d < rank; ++d) s.lens.push_back(from_.take_dimension());
    return s;
  }
  operation take_op(const std::string& instruction) {
    const std::size_t number = from_.take_index(tables_.size() + 1, "ops");
    if (number == tables_.size()) {
      const std::string name(from_.take_text());
      const op_table* table = detail::find_own_op(name);
      for (const op_table* t : own_)
        if (!table && t->name == name) table = t;
      if (!table)
        raise(errc::not_found, "instruction '" + instruction + "' is op '" + name +
                                   "', which this program does not have: give its table to the load");
      tables_.push_back(table);
    }
    return operation::restored(*tables_[number], from_);
  }

  // The bytes of a constant; extents that are no constants, or too large, have none.
  std::size_t bytes_of(const shape& s) {
    std::size_t n = size_of(s.type);
    for (const dimension d : s.lens) {
      if (!d.is_constant() || d.raw() < 0) from_.fail("the extents of a constant, found " + to_string(s));
      if (__builtin_mul_overflow(n, static_cast<std::size_t>(d.raw()), &n))
        from_.fail("a constant that fits into memory");
    }
    return n;
  }
  // Elements that are written one by one take a byte each at least.
  std::size_t elements_of(const shape& s) {
    const std::size_t n = bytes_of(s) / size_of(s.type);
    if (n > from_.left()) from_.fail("as many elements as " + to_string(s) + " has");
    return n;
  }
  literal take_literal(const shape& s) {
    switch (static_cast<constant_form>(from_.take_index(constant_forms, "forms of a constant"))) {
      case constant_form::absent: return literal(s, buffer());
      case constant_form::symbolic: {
        small_vector<dimension> values(elements_of(s));
        for (dimension& d : values) d = from_.take_dimension();
        return literal::of_dimensions(s.lens, std::move(values), s.type);
      }
      case constant_form::objects: return take_objects(s).to_literal();
      case constant_form::in_place: return literal(s, take_bytes(s));
      default: {
        const std::size_t bytes = bytes_of(s);
        return literal(s, kept_(from_.take_unsigned(), bytes));
      }
    }
  }
  buffer take_bytes(const shape& s) {
    const std::string_view bytes = from_.take_text();
    if (bytes.size() != bytes_of(s)) from_.fail("the bytes of " + to_string(s));
    buffer data = buffer::allocate(bytes.size());
    if (!bytes.empty()) std::memcpy(data.data(), bytes.data(), bytes.size());
    return data;
  }
  argument take_argument() {
    const nesting inside(*this);
    const shape s = take_shape();
    return is_object(s.type) ? take_objects(s) : argument(literal(s, take_bytes(s)));
  }
  argument take_objects(const shape& s) {
    const std::size_t n = elements_of(s);
    if (s.type == dtype::string) {
      std::vector<std::string> texts;
      for (std::size_t i = 0; i < n; ++i) texts.emplace_back(from_.take_text());
      return string_argument(s.lens, texts);
    }
    if (s.type == dtype::c64 || s.type == dtype::c128) {
      std::vector<std::complex<double>> values;
      for (std::size_t i = 0; i < n; ++i) {
        const auto real = std::bit_cast<double>(from_.take_unsigned());
        values.emplace_back(real, std::bit_cast<double>(from_.take_unsigned()));
      }
      return complex_argument(s.type, s.lens, values);
    }
    if (n != 1) from_.fail("one element of " + to_string(s));
    if (s.type == dtype::sequence) return sequence_argument(take_all());
    const bool filled = from_.take_index(2, "states") == 1;
    if (s.type == dtype::optional) return filled ? optional_argument(take_argument()) : empty_optional();
    if (!filled) return map_argument(argument::of<std::int64_t>({0}, {}), {});
    const argument keys = take_argument();
    return map_argument(keys, take_all());
  }
  std::vector<argument> take_all() {
    std::vector<argument> items(from_.take_count(2));
    for (argument& item : items) item = take_argument();
    return items;
  }

  struct nesting {
    explicit nesting(program_reader& r) : depth(r.depth_) {
      constexpr int most = 64;
      if (++depth > most) r.from_.fail("values nested at most " + std::to_string(most) + " deep");
    }
    ~nesting() { --depth; }
    nesting(const nesting&) = delete;
    nesting& operator=(const nesting&) = delete;
    int& depth;
  };

  archive_reader& from_;
  const kept_constant& kept_;
  std::span<const op_table* const> own_;
  std::vector<const op_table*> tables_;
  int depth_ = 0;
};

}  // namespace

void save_program(archive_writer& to, const program& p, const keep_constant& keep) { program_writer(to, keep).put(p); }

program restore_program(archive_reader& from, const kept_constant& kept, std::span<const op_table* const> own) {
  return program_reader(from, kept, own).take();
}

}  // namespace kiln
