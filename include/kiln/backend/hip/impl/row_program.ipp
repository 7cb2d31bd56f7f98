#include "kiln/backend/hip/impl/row_program.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace kiln::hip {
namespace {

using origin = row_value::origin;

bool folds(const basic_instruction<operation>& i) {
  return i.kind == instruction_kind::op && i.op.kind() == op_kind::reduction;
}

// Axes and extents of the body's rows; false where its reductions differ in them.
bool find_rows(const module_graph& body, row_program& p, dims& reduced) {
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    if (!folds(body[i])) continue;
    const dims& full = body.shape_of(body[i].inputs[0]).lens;
    const auto on = reduced_dims(body[i].op.axes(), full.size()).value();
    const std::vector<bool> axes(on.begin(), on.end());
    if (p.reduces() && (p.folded != axes || !(p.full == full)) && !(full == reduced)) return false;
    if (p.reduces()) continue;
    p.folded = axes;
    p.full = full;
    reduced = body[i].results[0].lens;
  }
  p.one_element_rows = p.reduces() && p.full == reduced;
  return true;
}

}  // namespace

std::optional<row_program> row_program::make(const module_graph& body) {
  row_program p;
  dims reduced;
  if (!find_rows(body, p, reduced)) return std::nullopt;
  if (!p.reduces()) p.full = body.outputs.empty() ? dims() : body.shape_of(body.outputs[0]).lens;
  const auto is_row = [&](const shape& s) {
    return p.reduces() && (p.one_element_rows || (s.lens == reduced && !(s.lens == p.full)));
  };
  std::vector<std::uint32_t> of(body.size());
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    const auto& ins = body[i];
    row_value v;
    v.type = ins.results[0].type;
    if (is_object(v.type)) return std::nullopt;
    of[i] = static_cast<std::uint32_t>(p.values.size());
    if (ins.kind == instruction_kind::parameter) {
      v.from = origin::parameter;
      v.row = is_row(ins.results[0]);
      if (!v.row && !(ins.results[0].lens == p.full)) return std::nullopt;
      v.index = static_cast<std::uint32_t>(p.parameters.size());
      p.parameters.push_back(of[i]);
    } else if (ins.kind == instruction_kind::literal) {
      if (ins.constant.has_symbols() || ins.constant.elements() != 1) return std::nullopt;
      v.from = origin::constant;
      v.row = true;
      v.constant = ins.constant;
    } else if (ins.op.kind() == op_kind::view) {  // repeats a value of a row, or renames dims
      of[i] = of[ins.inputs[0].instruction];
      continue;
    } else if (folds(ins) || ins.op.kind() == op_kind::pointwise) {
      v.op = ins.op;
      v.fold = folds(ins);
      v.row = true;
      for (value_id in : ins.inputs) {
        const row_value& from = p.values[of[in.instruction]];
        v.in.push_back(of[in.instruction]);
        v.row = v.row && from.row;
        v.stage = std::max(v.stage, from.stage);
      }
      if (!p.reduces()) v.row = false;
      if (v.fold && !p.values[v.in[0]].row) ++v.stage;
      v.row = v.row || v.fold;
    } else {
      return std::nullopt;
    }
    p.values.push_back(std::move(v));
  }
  for (value_id out : body.outputs) {
    p.results.push_back(of[out.instruction]);
    p.full_result.push_back(!is_row(body.shape_of(out)));
  }
  for (const row_value& v : p.values)
    if (v.from == origin::computed) p.stages = std::max(p.stages, v.row ? v.stage : v.stage + 1);
  for (std::size_t k = 0; k < p.results.size(); ++k)
    if (p.full_result[k]) p.stages = std::max(p.stages, p.values[p.results[k]].stage + 1);
  return p;
}

bool row_program::short_floats() const {
  bool any = false;
  for (const row_value& v : values) {
    if (v.type == dtype::f32 || v.type == dtype::f64) return false;
    any = any || is_float(v.type);
  }
  return any;
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

scalar_kind kind_of_values(dtype t) {
  if (t == dtype::f64) return scalar_kind::f64;
  if (is_float(t)) return scalar_kind::f32;
  if (is_signed_integer(t)) return scalar_kind::i64;
  return is_unsigned_integer(t) ? scalar_kind::u64 : scalar_kind::boolean;
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

std::string prelude(std::string_view text) {
  std::set<std::string_view> headers;
  bool short_numbers = false;
  constexpr std::string_view mark = "kiln::";
  for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
    at += mark.size();
    std::size_t end = at;
    while (end < text.size() && (std::islower(static_cast<unsigned char>(text[end])) || text[end] == '_' ||
                                 std::isdigit(static_cast<unsigned char>(text[end]))))
      ++end;
    const std::string_view name = text.substr(at, end - at);
    if (end < text.size() && text[end] == '(') headers.insert(header_of(name));
    short_numbers = short_numbers || name.starts_with("float") || name.starts_with("int") || name.starts_with("uint");
  }
  std::string out = "#include \"kiln/backend/hip/kernels/elements.hpp\"\n";
  if (headers.contains("all")) headers = {"all"};
  for (std::string_view h : headers)
    if (!h.empty()) out += "#include \"kiln/core/math" + (h == "all" ? "" : "/" + std::string(h)) + ".hpp\"\n";
  if (short_numbers) out += "#include \"kiln/backend/hip/kernels/narrow.hpp\"\n";
  return out + "using namespace kiln::device;\nstruct passed_numbers { i64 at[" + std::to_string(most_numbers) +
         "]; };\n";
}

source whole_source(std::string entry, std::string text, bool short_floats) {
  constexpr std::pair<std::string_view, std::string_view> shorter[] = {
      {"kiln::exp(", "short_exp("}, {"kiln::sigmoid(", "short_sigmoid("}, {"kiln::erf(", "short_erf("}};
  if (short_floats)
    for (const auto& [exact, other] : shorter)
      for (std::size_t at = text.find(exact); at != text.npos; at = text.find(exact, at))
        text.replace(at, exact.size(), other);
  source made{std::move(entry), prelude(text) + text};
  made.short_results = short_floats;
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

namespace {
std::string fold_text(const row_value& fold, bool finished) {
  return visit_compute(fold.type, [&]<class T>(type_tag<T>) {
    T value{};
    fold.op.table().start(fold.op.data(), fold.type, &value);
    if (finished) fold.op.table().finish(fold.op.data(), fold.type, &value, 0);
    return constant_text(fold.type, literal::scalar<T>(dtype_of<T>, value));
  });
}
}  // namespace

std::string identity_text(const row_value& fold) { return fold_text(fold, false); }
std::string empty_text(const row_value& fold) { return fold_text(fold, true); }

std::string traced(kernel_text& out, const operation& op, trace_part part, dtype type,
                   const std::vector<std::string>& names, std::size_t conditions, const std::string& temporary) {
  std::vector<expr> arguments;
  for (std::size_t i = 0; i < names.size(); ++i)
    arguments.push_back(
        expr::argument(static_cast<int>(i), i < conditions ? scalar_kind::boolean : kind_of_values(type)));
  const expr result = as_kind(op.trace(part, arguments), kind_of_values(type));
  const source_text text = print_source(result, names, {.temporary = temporary});
  for (const std::string& s : text.statements) out.line(s);
  return text.values[0];
}

void write_value(kernel_text& out, const row_program& p, std::uint32_t k) {
  const row_value& v = p.values[k];
  const std::string name = "v" + std::to_string(k);
  if (v.from == origin::constant)
    return out.line("const ", value_name(v.type), " ", name, " = ", constant_text(v.type, v.constant), ";");
  const auto conditions = static_cast<std::size_t>(v.op.info().conditions);
  std::vector<std::string> names;
  for (std::uint32_t i : v.in) names.push_back("v" + std::to_string(i));
  const dtype from = p.values[v.in[conditions]].type;
  std::string value = traced(out, v.op, trace_part::compute, from, names, conditions, name + "_");
  // what is stored decides the value: i32 wraps though it is computed in 64 bits, a converted float is clamped
  const bool same = kind_of_values(from) == kind_of_values(v.type);
  const bool whole =
      is_narrow(v.type) ? from == v.type : is_float(v.type) || v.type == dtype::boolean || size_of(v.type) == 8;
  if (v.type != dtype::boolean && (!same || !whole))
    value = "rounded<" + std::string(stored_name(v.type)) + ">(" + value + ")";
  else if (v.type == dtype::boolean && from != dtype::boolean && !v.op.info().returns_bool)
    value = "((" + value + ") != 0)";
  out.line("const ", value_name(v.type), " ", name, " = ", value, ";");
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
