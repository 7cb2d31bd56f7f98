#include "kiln/core/trace.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>

#include "kiln/core/error.hpp"

namespace kiln {

namespace {

using what = expr::node::what;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  for (const auto candidate : names)
    if (name == candidate) return true;
  return false;
}
bool compares(std::string_view name) { return is_one_of(name, {"<", "<=", ">", ">=", "==", "!="}); }
bool is_operator(std::string_view name) { return !(name[0] >= 'a' && name[0] <= 'z'); }
bool is_real(scalar_kind kind) { return kind == scalar_kind::f32 || kind == scalar_kind::f64; }

const char* word(scalar_kind kind) {
  constexpr const char* words[] = {"undecided", "float", "double", "int", "unsigned", "i64", "u64", "bool"};
  return words[static_cast<int>(kind)];
}

// The first decided kind among operands [from, …): what the others must agree with.
scalar_kind common_kind(std::string_view name, std::span<const expr> operands, std::size_t from) {
  scalar_kind kind = scalar_kind::undecided;
  for (std::size_t i = from; i < operands.size(); ++i) {
    const scalar_kind other = operands[i].kind();
    if (kind == scalar_kind::undecided) kind = other;
    if (other != scalar_kind::undecided && other != kind)
      throw error(errc::invalid_argument, "an op body mixes " + std::string(word(kind)) + " and " + word(other) +
                                              " in '" + std::string(name) + "': convert one of them first");
  }
  return kind;
}

scalar_kind result_kind(std::string_view name, scalar_kind common, bool undecided_is_fine) {
  using enum scalar_kind;
  if (compares(name) || is_one_of(name, {"isnan", "isinf", "logical_and", "logical_or", "logical_xor", "logical_not"}))
    return boolean;
  const bool wide = common == f64 || common == u64 || common == i64;
  if (name == "bits") return undecided_is_fine && common == undecided ? undecided : wide ? u64 : u32;
  if (name == "from_bits") return wide ? f64 : f32;
  return common;
}

}  // namespace

expr::expr(node n) : node_(new node(std::move(n))) { node_->owners = 1; }
expr::expr(const expr& other) : node_(other.node_) {
  if (node_) ++node_->owners;
}
expr::~expr() {
  if (node_ && --node_->owners == 0) delete node_;
}

scalar_kind expr::kind() const { return node_->kind; }

expr expr::argument(int index, scalar_kind kind) {
  node n(what::argument, kind);
  n.index = index;
  return expr(std::move(n));
}

expr expr::constant(double value, scalar_kind kind) {
  if (kind == scalar_kind::f32) value = static_cast<float>(value);
  if (kind != scalar_kind::undecided && !is_real(kind)) return constant(static_cast<std::int64_t>(value), kind);
  node n(what::constant, kind);
  n.real = value;
  return expr(std::move(n));
}

expr expr::constant(std::int64_t value, scalar_kind kind) {
  if (is_real(kind)) return constant(static_cast<double>(value), kind);
  if (kind == scalar_kind::i32) value = static_cast<std::int32_t>(value);
  if (kind == scalar_kind::u32) value = static_cast<std::uint32_t>(value);
  if (kind == scalar_kind::boolean) value = value != 0;
  node n(what::constant, kind);
  n.integer_constant = true;
  n.integer = value;
  return expr(std::move(n));
}

expr expr::apply(std::string_view name, std::span<const expr> operands) {
  const std::size_t from = name == "select" ? 1 : 0;
  const scalar_kind common = common_kind(name, operands, from);
  node n(what::call, result_kind(name, common, true));
  n.name = name;
  for (std::size_t i = 0; i < operands.size(); ++i)
    n.operands.push_back(as_kind(operands[i], i < from ? scalar_kind::boolean : common));
  return expr(std::move(n));
}

expr as_kind(const expr& e, scalar_kind kind) {
  const expr::node& n = e.top();
  if (n.kind != scalar_kind::undecided || kind == scalar_kind::undecided) return e;
  if (n.is == what::constant)
    return n.integer_constant ? expr::constant(n.integer, kind) : expr::constant(n.real, kind);
  std::vector<expr> operands = n.operands;
  for (auto& operand : operands) operand = as_kind(operand, kind);
  return expr::apply(n.name, operands);
}

scalar_kind kind_of_values(dtype t) {
  if (t == dtype::f64) return scalar_kind::f64;
  if (is_float(t)) return scalar_kind::f32;
  if (is_signed_integer(t)) return scalar_kind::i64;
  return is_unsigned_integer(t) ? scalar_kind::u64 : scalar_kind::boolean;
}

std::string type_name(scalar_kind kind, const dialect& how) {
  if (kind == scalar_kind::i64 || kind == scalar_kind::u64) return std::string(how.prefix) + "scalar::" + word(kind);
  return word(kind);
}

namespace {

template <class F> std::string shortest(F value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string constant_text(const expr::node& n, const dialect& how) {
  using enum scalar_kind;
  if (is_real(n.kind) && !std::isfinite(n.real)) {
    const bool narrow = n.kind == f32;
    char buffer[20];
    const std::uint64_t pattern =
        narrow ? std::bit_cast<std::uint32_t>(static_cast<float>(n.real)) : std::bit_cast<std::uint64_t>(n.real);
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, pattern, 16).ptr;
    return std::string(how.prefix) + "from_bits<" + type_name(n.kind, how) + ">(0x" + std::string(buffer, end) +
           (narrow ? "u)" : "ull)");
  }
  std::string text;
  if (n.kind == f32)
    text = shortest(static_cast<float>(n.real)) + "f";
  else if (n.kind == f64 || !n.integer_constant)
    text = shortest(n.real);
  else if (n.kind == boolean)
    return n.integer ? "true" : "false";
  else if (n.kind == u32)
    text = std::to_string(n.integer) + "u";
  else if (n.kind == u64)
    return type_name(n.kind, how) + "(" + std::to_string(static_cast<std::uint64_t>(n.integer)) + "ull)";
  else if (n.kind == i64 && n.integer == INT64_MIN)
    return type_name(n.kind, how) + "(-9223372036854775807ll - 1)";
  else if (n.kind == i64)
    return type_name(n.kind, how) + "(" + std::to_string(n.integer) + ")";
  else if (n.integer == INT32_MIN)
    return "(-2147483647 - 1)";
  else
    text = std::to_string(n.integer);
  return text[0] == '-' ? "(" + text + ")" : text;
}

class printer {
 public:
  printer(std::span<const std::string> names, const dialect& how) : names_(names), how_(how) {}

  int number(const expr& e) {
    const expr::node& n = e.top();
    if (const auto known = by_node_.find(&n); known != by_node_.end()) return known->second;
    entry made{&n, {}, 0, {}};
    for (const auto& operand : n.operands) made.operands.push_back(number(operand));
    // Equal text means equal value: entries are unified by their spelling over entry numbers.
    std::string key = std::to_string(static_cast<int>(n.kind)) + "|" + n.name + "|" + std::to_string(n.index);
    if (n.is == what::constant) key = "c" + std::to_string(static_cast<int>(n.kind)) + "|" + constant_text(n, how_);
    for (const int operand : made.operands) key += "," + std::to_string(operand);
    const auto [place, fresh] = by_key_.emplace(std::move(key), static_cast<int>(entries_.size()));
    if (fresh) {
      for (const int operand : made.operands) ++entries_[static_cast<std::size_t>(operand)].uses;
      entries_.push_back(std::move(made));
    }
    by_node_.emplace(&n, place->second);
    return place->second;
  }
  void use(int i) { ++entries_[static_cast<std::size_t>(i)].uses; }

  std::string text(int i, source_text& out, bool outermost = false) {
    entry& e = entries_[static_cast<std::size_t>(i)];
    if (!e.name.empty()) return e.name;
    const expr::node& n = *e.node;
    if (n.is == what::argument) return argument_name(n.index);
    if (n.is == what::constant) return constant_value(n);
    std::vector<std::string> operands;
    for (const int operand : e.operands) operands.push_back(text(operand, out));
    if (std::find(out.calls.begin(), out.calls.end(), n.name) == out.calls.end()) out.calls.push_back(n.name);
    if (e.uses < 2) return call_text(n, operands, outermost && !how_.outer_parentheses);
    const std::string value = call_text(n, operands, false);
    e.name = std::string(how_.temporary) + std::to_string(temporaries_++);
    out.statements.push_back("const " + (how_.generic || how_.deduced ? std::string("auto") : type_name(n.kind, how_)) +
                             " " + e.name + " = " + value + ";");
    return e.name;
  }

 private:
  struct entry {
    const expr::node* node;
    std::vector<int> operands;
    int uses;
    std::string name;
  };

  std::string argument_name(int index) const {
    if (index < 0 || static_cast<std::size_t>(index) >= names_.size())
      throw error(errc::invalid_argument, "printing source: argument " + std::to_string(index) + " has no name");
    return names_[static_cast<std::size_t>(index)];
  }
  std::string constant_value(const expr::node& n) const {
    const std::string plain = constant_text(n, how_);
    if (!how_.generic || n.kind == scalar_kind::boolean) return plain;
    return std::string(how_.prefix) + "splat<T>(" + plain + ")";
  }
  std::string call_text(const expr::node& n, const std::vector<std::string>& operands, bool bare) const {
    const auto enclosed = [&](std::string text) { return bare ? text : "(" + text + ")"; };
    if (is_operator(n.name))
      return enclosed(operands.size() == 1 ? n.name + operands[0] : operands[0] + " " + n.name + " " + operands[1]);
    if (n.name == "select" && !how_.generic) return enclosed(operands[0] + " ? " + operands[1] + " : " + operands[2]);
    std::string call = std::string(how_.prefix) + n.name;
    for (const spelling& s : how_.spelled)
      if (s.function == n.name) call = s.text;
    if (n.name == "from_bits") call += how_.generic ? "<T>" : "<" + type_name(n.kind, how_) + ">";
    call += "(";
    for (std::size_t i = 0; i < operands.size(); ++i) call += (i ? ", " : "") + operands[i];
    return call + ")";
  }

  std::span<const std::string> names_;
  const dialect& how_;
  std::vector<entry> entries_;
  std::map<std::string, int> by_key_;
  std::map<const expr::node*, int> by_node_;
  int temporaries_ = 0;
};

}  // namespace

std::string source_text::str() const {
  if (statements.empty() && values.size() == 1) return values[0];
  std::string text;
  for (const auto& statement : statements) text += statement + "\n";
  for (const auto& value : values) text += "return " + value + ";";
  return text;
}

source_text print_source(std::span<const expr> results, std::span<const std::string> names, const dialect& how) {
  printer p(names, how);
  std::vector<int> numbers;
  for (const auto& result : results) numbers.push_back(p.number(as_kind(result, scalar_kind::f32)));
  for (const int i : numbers) p.use(i);
  source_text out;
  for (const int i : numbers) out.values.push_back(p.text(i, out, true));
  return out;
}

source_text print_source(const expr& result, const std::vector<std::string>& names, const dialect& how) {
  return print_source(std::span(&result, 1), names, how);
}

}  // namespace kiln
