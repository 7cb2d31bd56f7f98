#include "kiln/graph/custom_op.hpp"

#include <bit>
#include <deque>
#include <mutex>
#include <set>

namespace kiln {
namespace {

struct definition {
  custom_op op;
  std::string name;
  op_table table;
  std::set<custom_attributes> attributes;  // of its operations
};

// An operation's bytes.
struct custom_bytes {
  const definition* of = nullptr;
  const custom_attributes* attributes = nullptr;
};
const custom_bytes& bytes_of(const void* op) { return *static_cast<const custom_bytes*>(op); }

struct definitions {
  std::mutex mutex;
  std::deque<definition> all;

  definition* find(std::string_view name) {
    for (definition& d : all)
      if (d.name == name) return &d;
    return nullptr;
  }
};
definitions& shared() {
  static definitions d;
  return d;
}

void check_results(const shapes& results) {
  for (const shape& s : results)
    if (is_object(s.type))
      raise(fault::of(errc::unsupported, "element type of a custom op's result", "a number or bool", s.type));
}

result<shapes> custom_shapes(const void* op, std::span<const shape> in) {
  const custom_bytes& b = bytes_of(op);
  for (const shape& s : in)
    if (is_object(s.type))
      return fault::of(errc::unsupported, "element type of a custom op's operand", "a number or bool", s.type);
  try {
    shapes out = b.of->op.shape_rule(*b.attributes, in);
    check_results(out);
    return out;
  } catch (error& e) {
    throw e.at_op(b.of->name);
  }
}

// Folding and reference runs have operands in any form: each becomes an argument of its own dtype.
argument operand_of(evaluation& e, std::size_t i) {
  const shape& s = e.in_shape(i);
  argument a(shape{s.type, s.lens});
  visit_compute(s.type, [&]<class T>(type_tag<T>) {
    const auto values = e.in<T>(i);
    encode(s.type, values.data, a.data(), a.elements());
  });
  return a;
}

void compute_custom(const void* op, evaluation& e, bool) {
  const custom_bytes& b = bytes_of(op);
  std::vector<argument> in, out;
  for (std::size_t i = 0; i < e.inputs(); ++i) in.push_back(operand_of(e, i));
  for (std::size_t k = 0; k < e.results(); ++k) out.emplace_back(shape{e.out_shape(k).type, e.out_shape(k).lens});
  b.of->op.compute(*b.attributes, in, out);
  for (std::size_t k = 0; k < e.results(); ++k)
    visit_compute(e.out_shape(k).type, [&]<class T>(type_tag<T>) {
      const auto to = e.out<T>(k);
      decode(e.out_shape(k).type, out[k].data(), to.data, out[k].elements());
    });
}

void print_custom(const void* op, text& out) {
  const custom_attributes& all = *bytes_of(op).attributes;
  if (all.empty()) return;
  const char* between = "{";
  for (const custom_attribute& a : all) {
    out.append(std::string_view(between)).append(std::string_view(a.name)).append(std::string_view(" = ["));
    std::visit(
        [&](const auto& values) {
          for (std::size_t i = 0; i < values.size(); ++i) {
            if (i) out.append(std::string_view(", "));
            detail::put_value(out, values[i]);
          }
        },
        a.values);
    out.append(']');
    between = ", ";
  }
  out.append('}');
}

// In a file, and from `make_custom_operation` to an operation: the name, then the attributes.
void put_call(archive_writer& to, std::string_view name, const custom_attributes& attributes) {
  to.put_text(name);
  to.put_unsigned(attributes.size());
  for (const custom_attribute& a : attributes) {
    to.put_text(a.name);
    to.put_unsigned(a.values.index());
    std::visit(
        [&]<class T>(const std::vector<T>& values) {
          to.put_unsigned(values.size());
          for (const T& v : values) {
            if constexpr (std::is_same_v<T, std::int64_t>)
              to.put_signed(v);
            else if constexpr (std::is_same_v<T, float>)
              to.put_unsigned(std::bit_cast<std::uint32_t>(v));
            else
              to.put_text(v);
          }
        },
        a.values);
  }
}

template <class T> std::vector<T> take_values(archive_reader& from) {
  std::vector<T> out(from.take_count());
  for (T& v : out) {
    if constexpr (std::is_same_v<T, std::int64_t>)
      v = from.take_signed();
    else if constexpr (std::is_same_v<T, float>)
      v = std::bit_cast<float>(static_cast<std::uint32_t>(from.take_unsigned()));
    else
      v = from.take_text();
  }
  return out;
}

custom_attributes take_attributes(archive_reader& from) {
  custom_attributes out(from.take_count(3));
  for (custom_attribute& a : out) {
    a.name = from.take_text();
    switch (from.take_index(3, "kinds of attributes")) {
      case 0: a.values = take_values<std::int64_t>(from); break;
      case 1: a.values = take_values<float>(from); break;
      default: a.values = take_values<std::string>(from); break;
    }
  }
  return out;
}

void restore_custom(void* op, archive_reader& from) {
  const std::string_view name = from.take_text();
  custom_attributes attributes = take_attributes(from);
  definitions& d = shared();
  const std::lock_guard lock(d.mutex);
  definition* const found = d.find(name);
  if (!found) from.fail("a custom op that is defined");
  ::new (op) custom_bytes{found, &*found->attributes.insert(std::move(attributes)).first};
}

op_table table_of(const definition& d) {
  op_table t;
  t.name = d.name;
  t.types = dtypes::movable;
  t.pure = d.op.pure;
  t.bytes = sizeof(custom_bytes);
  t.shape_rule = custom_shapes;
  t.evaluate = compute_custom;
  t.normalize = [](void*, std::span<const shape>, const shape&) {};
  t.print = print_custom;
  t.save = [](const void* op, archive_writer& to) { put_call(to, bytes_of(op).of->name, *bytes_of(op).attributes); };
  t.restore = restore_custom;
  t.hash = [](const void* op) { return std::uint64_t(std::hash<const void*>()(bytes_of(op).attributes)); };
  t.equal = [](const void* a, const void* b) { return bytes_of(a).attributes == bytes_of(b).attributes; };
  t.substitute = [](void*, const bindings&) {};
  t.symbols = [](const void*, small_vector<dimension>&) {};
  return t;
}

}  // namespace

void define_custom_op(custom_op op) {
  const std::string name = op.name();
  if (op.type.empty() || !op.shape_rule || !op.compute)
    raise(errc::invalid_argument, "a custom op has a type, a shape rule and a computation: found '" + name + "'");
  definitions& d = shared();
  const std::lock_guard lock(d.mutex);
  if (d.find(name)) raise(errc::invalid_argument, "a custom op is defined once: found '" + name + "' again");
  definition& made = d.all.emplace_back();
  made.op = std::move(op);
  made.name = name;
  made.table = table_of(made);
}

const custom_op* find_custom_op(std::string_view name) {
  definitions& d = shared();
  const std::lock_guard lock(d.mutex);
  const definition* found = d.find(name);
  return found ? &found->op : nullptr;
}

std::vector<const custom_op*> custom_ops() {
  definitions& d = shared();
  const std::lock_guard lock(d.mutex);
  std::vector<const custom_op*> out;
  for (const definition& each : d.all) out.push_back(&each.op);
  return out;
}

std::vector<const op_table*> custom_op_tables() {
  definitions& d = shared();
  const std::lock_guard lock(d.mutex);
  std::vector<const op_table*> out;
  for (const definition& each : d.all) out.push_back(&each.table);
  return out;
}

operation make_custom_operation(std::string_view name, const custom_attributes& attributes) {
  definitions& d = shared();
  const op_table* const table = [&] {
    const std::lock_guard lock(d.mutex);
    const definition* const found = d.find(name);
    return found ? &found->table : nullptr;
  }();
  if (!table) raise(errc::not_found, "a custom op is defined before it is used: found '" + std::string(name) + "'");
  archive_writer written;
  put_call(written, name, attributes);
  archive_reader from(written.bytes(), std::string(name));
  return operation::restored(*table, from);
}

std::optional<custom_call> custom_call_of(const operation& op) {
  if (op.table().evaluate != compute_custom) return std::nullopt;
  const custom_bytes& b = bytes_of(op.data());
  return custom_call{&b.of->op, b.attributes};
}

}  // namespace kiln
