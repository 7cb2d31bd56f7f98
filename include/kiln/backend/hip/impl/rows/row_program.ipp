#include "kiln/backend/hip/impl/rows/row_program.hpp"

#include <algorithm>
#include <set>

namespace kiln::hip {

using lower::row_op;

std::optional<row_program> row_program::make(const module_graph& body) {
  auto rows = lower::find_row_body(body);
  if (!rows) return std::nullopt;
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    if (is_object(body[i].results[0].type)) return std::nullopt;
    if (rows->values[i].op == row_op::literal && body[i].constant.has_symbols()) return std::nullopt;
    if (rows->values[i].op == row_op::parameter && rows->values[i].full && !(body[i].results[0].lens == rows->full))
      return std::nullopt;
  }
  return row_program{std::move(*rows), body};
}

bool row_program::short_floats() const {
  bool any = false;
  for (std::uint32_t k = 0; k < body.size(); ++k) {
    if (type(k) == dtype::f32 || type(k) == dtype::f64) return false;
    any = any || is_float(type(k));
  }
  return any;
}

bool row_program::narrow() const {
  for (std::uint32_t k = 0; k < body.size(); ++k)
    if (is_narrow(type(k))) return true;
  return false;
}

std::string_view stored_name(dtype t) {
  constexpr std::string_view names[] = {"double",
                                        "float",
                                        "f16",
                                        "bf16",
                                        "signed char",
                                        "short",
                                        "int",
                                        "kiln::scalar::i64",
                                        "unsigned char",
                                        "unsigned short",
                                        "unsigned",
                                        "kiln::scalar::u64",
                                        "bool",
                                        "kiln::float8_e4m3fn",
                                        "kiln::float8_e4m3fnuz",
                                        "kiln::float8_e5m2",
                                        "kiln::float8_e5m2fnuz",
                                        "kiln::float8_e8m0",
                                        "kiln::float4_e2m1",
                                        "kiln::int4",
                                        "kiln::uint4",
                                        "kiln::int2",
                                        "kiln::uint2"};
  static_assert(std::size(names) == static_cast<std::size_t>(dtype::string));
  return names[static_cast<unsigned>(t)];
}

std::string_view value_name(dtype t) {
  return visit_compute(t, []<class T>(type_tag<T>) { return stored_name(dtype_of<T>); });
}

// Which header has an elementary function; the ones of elements.hpp are not listed.
std::string_view header_of(std::string_view function) {
  constexpr std::pair<std::string_view, std::string_view> places[] = {
      {"exp", "exp"},    {"exp2", "exp"},   {"expm1", "exp"},      {"sigmoid", "exp"}, {"erf", "erf"},
      {"log", "log"},    {"log2", "log"},   {"log10", "log"},      {"log1p", "log"},   {"sqrt", "root"},
      {"rsqrt", "root"}, {"recip", "root"}, {"tanh", "hyperbolic"}};
  for (const auto& [name, header] : places)
    if (name == function) return header;
  constexpr std::string_view basic[] = {"select", "isnan",     "isinf",   "abs",   "copysign", "min",
                                        "max",    "sign",      "round",   "floor", "ceil",     "trunc",
                                        "bits",   "from_bits", "convert", "splat"};
  for (std::string_view name : basic)
    if (name == function) return {};
  return "all";
}

bool is_long_function(std::string_view name) { return name[0] >= 'a' && name[0] <= 'z' && !header_of(name).empty(); }

std::string kernel_text::prelude(std::span<const std::string> functions, bool narrow) {
  std::set<std::string_view> headers;
  for (const std::string& f : functions) headers.insert(header_of(f));
  std::string out = "#include \"kiln/backend/hip/kernels/platform/elements.hpp\"\n";
  if (headers.contains("all")) headers = {"all"};
  for (std::string_view h : headers)
    if (!h.empty()) out += "#include \"kiln/core/math" + (h == "all" ? "" : "/" + std::string(h)) + ".hpp\"\n";
  if (narrow) out += "#include \"kiln/backend/hip/kernels/platform/narrow.hpp\"\n";
  return out + "using namespace kiln::gpu;\nstruct passed_numbers { i64 at[" + std::to_string(most_numbers) + "]; };\n";
}

namespace {
constexpr spelling shorter[] = {{"exp", "short_exp"},     {"sigmoid", "short_sigmoid"}, {"erf", "short_erf"},
                                {"log", "short_log"},     {"log1p", "short_log1p"},     {"expm1", "short_expm1"},
                                {"sinh", "short_sinh"},   {"cosh", "short_cosh"},       {"asinh", "short_asinh"},
                                {"acosh", "short_acosh"}, {"atanh", "short_atanh"}};
}

std::string kernel_text::expression(const operation& op, trace_part part, dtype type,
                                    const std::vector<std::string>& names, std::size_t conditions,
                                    std::string_view temporary) {
  dialect how{.temporary = temporary};
  if (short_floats_) how.spelled = shorter;
  const source_text text = print_op(op, part, type, names, conditions, how);
  for (const std::string& s : text.statements) line(s);
  for (const std::string& f : text.calls) {
    const bool other = std::any_of(how.spelled.begin(), how.spelled.end(), [&](auto& s) { return s.function == f; });
    if (!other && f[0] >= 'a' && f[0] <= 'z') functions_.push_back(f);
  }
  return text.values[0];
}

source kernel_text::whole(std::string entry) const {
  source made{std::move(entry), prelude(functions_, narrow_) + str()};
  made.short_results = short_floats_;
  return made;
}

std::string constant_text(dtype t, const literal& value) {
  const scalar_kind kind = kind_of_values(t);
  const expr e = kind == scalar_kind::f32 || kind == scalar_kind::f64
                     ? expr::constant(value.at<double>(0), kind)
                     : expr::constant(kind == scalar_kind::u64 ? static_cast<std::int64_t>(value.at<std::uint64_t>(0))
                                                               : value.at<std::int64_t>(0),
                                      kind);
  return print_source(e, {}).str();
}

void write_value(kernel_text& out, const row_program& p, std::uint32_t k) {
  const auto& v = p.values[k];
  const std::string name = "v" + std::to_string(k);
  const dtype type = p.type(k);
  if (v.op == row_op::view) return;
  if (v.op == row_op::literal)
    return out.line("const ", value_name(type), " ", name, " = ", constant_text(type, p.body[k].constant), ";");
  const op_info& info = p.op(k).info();
  const auto conditions = static_cast<std::size_t>(info.conditions);
  std::vector<std::string> names;
  for (std::uint32_t i : v.in) names.push_back("v" + std::to_string(i));
  const dtype from = p.type(v.in[conditions]);
  std::string value = out.expression(p.op(k), trace_part::compute, from, names, conditions, name + "_");
  const narrowing how = narrowing_of(info, from, type);
  if (how == narrowing::stored) value = cat("rounded<", stored_name(type), ">(", value, ")");
  if (how == narrowing::not_zero) value = "((" + value + ") != 0)";
  out.line("const ", value_name(type), " ", name, " = ", value, ";");
}

loop_nest make_nest(std::span<const std::int64_t> lens, std::span<const tensor> in, std::span<const tensor> out,
                    const std::vector<bool>& use, bool sorted) {
  const std::size_t operands = in.size() + out.size();
  const auto step = [&](std::size_t k, std::size_t d) -> std::int64_t {
    const tensor& t = k < in.size() ? in[k] : out[k - in.size()];
    return t.lens[d] == lens[d] ? t.strides[d] : 0;
  };
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < lens.size(); ++d)
    if (use[d] && lens[d] != 1) order.push_back(d);
  if (sorted)
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(step(operands - 1, a)) > std::abs(step(operands - 1, b));
    });
  loop_nest n;
  n.step.resize(operands);
  for (std::size_t d : order) {
    bool joined = !n.extent.empty();
    for (std::size_t k = 0; joined && k < operands; ++k) joined = n.step[k].back() == step(k, d) * lens[d];
    if (joined) {
      n.extent.back() *= lens[d];
      for (std::size_t k = 0; k < operands; ++k) n.step[k].back() = step(k, d);
    } else {
      n.extent.push_back(lens[d]);
      for (std::size_t k = 0; k < operands; ++k) n.step[k].push_back(step(k, d));
    }
  }
  return n;
}

bool movable(const loop_nest& n, std::size_t operand, const tensor& t, std::int64_t width) {
  const auto& step = n.step[operand];
  if (step.empty() || step.back() != 1) return false;
  for (std::size_t d = 0; d + 1 < step.size(); ++d)
    if (step[d] % width != 0) return false;
  const auto bytes = static_cast<std::size_t>(width) * size_of(t.type);
  return reinterpret_cast<std::uintptr_t>(t.data) % std::min<std::size_t>(bytes, 16) == 0;
}

}  // namespace kiln::hip
