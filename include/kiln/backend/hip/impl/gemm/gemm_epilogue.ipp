#include <algorithm>
#include <cstring>

#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/impl/rows/row_text.hpp"

namespace kiln::hip {

double work_of(const row_program* epilogue) {
  constexpr double function = 20;
  double work = 0;
  for (std::uint32_t k = 0; epilogue && k < epilogue->body.size(); ++k) {
    const auto& v = epilogue->values[k];
    if (v.in.empty() || v.op == lower::row_op::view) continue;
    const auto conditions = static_cast<std::size_t>(epilogue->op(k).info().conditions);
    const std::vector<std::string> names(v.in.size(), "x");
    const source_text text =
        print_op(epilogue->op(k), trace_part::compute, epilogue->type(v.in[conditions]), names, conditions, {});
    for (const std::string& call : text.calls)
      if (is_long_function(call)) work += function;
  }
  return work;
}

bool contiguous(const gemm_problem& p, std::size_t k, std::size_t along, int width) {
  const auto& step = p.steps[k];
  if (step[along] != 1) return false;
  for (std::size_t d = 0; d < 4; ++d)
    if (d != along && step[d] % width != 0) return false;
  return p.aligned[k] >= std::min<std::size_t>(16, static_cast<std::size_t>(width) * size_of(p.types[k]));
}

bool lies_apart(const gemm_problem& p) {
  // the pixels of all images may be evenly spaced, so that they are rows
  const auto uneven = [&](const auto& s) { return s[0] != p.pixels * s[2]; };
  return p.pixels != 0 && std::any_of(p.steps.begin(), p.steps.end(), uneven);
}

int epilogue_width(const gemm_problem& p, bool along_rows) {
  int width = static_cast<int>(16 / size_of(p.types[0]));
  while (width > 1 && (!contiguous(p, 0, along_rows ? 2 : 3, width) || (along_rows && p.pixels % width != 0)))
    width /= 2;
  // narrow tiles of the vector unit have eight rows
  return std::min(width, 8);
}

void write_epilogue(kernel_text& t, const gemm_problem& p, const row_program* epilogue, bool along_rows, int width,
                    std::size_t boxed) {
  t.moves(p.type);
  for (const dtype moved : p.types) t.moves(moved);
  const std::size_t along = along_rows ? 2 : 3;
  const std::string_view out = stored_name(p.types[0]);
  t.open("struct epilogue");
  t.line("static constexpr int width = ", width, ";");
  t.line("static constexpr bool along_rows = ", along_rows ? "true" : "false", ";");
  t.line("using element = ", out, ";");
  if (p.phases)
    t.line("phase_place<", out, "> place;");
  else
    t.line("result_place<", out, ", ", lies_apart(p) ? "true" : "false", "> place;");
  for (std::size_t k = 1; k < p.steps.size(); ++k) t.line("epilogue_operand x", k, ";");
  // what is prefetched, by lines of the cache
  constexpr std::size_t line_bytes = 128;
  std::size_t expected = 0;
  std::string prefetches;
  for (std::size_t k = 1; k < p.steps.size(); ++k) {
    if (along_rows || p.steps[k][2] == 0 || p.steps[k][3] != 1) continue;
    const std::size_t neighbors = line_bytes / size_of(p.types[k]);
    expected = expected == 0 ? neighbors : std::min(expected, neighbors);
    prefetches += cat("prefetch(static_cast<const ", stored_name(p.types[k]), "*>(x", k, ".base) + offset_of(x", k,
                      ".step, p)); ");
  }
  t.line("static constexpr int expected = ", expected, ";");
  t.line("KILN_FN void expect(const position& p) const { ", expected == 0 ? std::string("(void)p; ") : prefetches, "}");
  // what the operands hold at a run of positions
  t.line("template <int V>");
  t.open("struct operands");
  for (std::size_t k = 1; k < p.steps.size(); ++k) t.line("held_run<", stored_name(p.types[k]), ", V> r", k, ";");
  t.close("};");
  // read here: all but the one that the copy unit brings
  bool rows_alike = true;
  t.line("template <int V>");
  t.open("KILN_FN void read(operands<V>& to, const position& p, int count) const");
  for (std::size_t k = 1; k < p.steps.size(); ++k) {
    if (k == boxed) continue;
    rows_alike = rows_alike && p.steps[k][0] == 0 && p.steps[k][2] == 0;
    const std::string_view kind = p.steps[k][along] == 0           ? "same"
                                  : contiguous(p, k, along, width) ? "contiguous"
                                                                   : "strided";
    t.line("read_run<", stored_name(p.types[k]), ", run_kind::", kind, ", along_rows>(to.r", k, ", x", k,
           ", p, count);");
  }
  t.close();
  t.line("static constexpr bool rows_alike = ", rows_alike ? "true" : "false",
         ", boxed = ", boxed != 0 ? "true" : "false", ";");
  if (boxed != 0) t.line("KILN_FN void take_boxed(operands<2>& to, u32 two) const { to.r", boxed, ".words[0] = two; }");
  t.line("template <class S, int V>");
  t.open("KILN_FN auto value(const S (&sums)[V], const operands<V>& x, int j) const");
  if (!epilogue) {
    t.line("return value_of(sums[j]);");
  } else {
    for (std::uint32_t k = 0; k < epilogue->values.size(); ++k) {
      const auto& v = epilogue->values[k];
      if (v.op == lower::row_op::parameter)
        t.line("const ", value_name(epilogue->type(k)), " v", k, " = value_of(",
               v.index == 0 ? std::string("sums[j]") : cat("x.r", v.index) + ".at(j)", ");");
      else
        write_value(t, *epilogue, k);
    }
    t.line("return v", epilogue->results[0].value, ";");
  }
  t.close();
  t.line("template <class S, int V>");
  t.open("KILN_FN void apply(const S (&sums)[V], const operands<V>& x, const position& p, int count) const");
  t.line("element y[V];");
  t.line("KILN_UNROLL");
  t.line("for (int j = 0; j < V; ++j) y[j] = stored<element>(value(sums, x, j));");
  t.line("write_run<along_rows>(place, y, p, count);");
  t.close();
  t.close("};");
  // the value that epilogue_value makes
  t.line(
      "static_assert(sizeof(epilogue) == ",
      (p.phases ? sizeof p.phases->place : sizeof(result_argument)) + (p.steps.size() - 1) * sizeof(epilogue_operand),
      ");");
}

std::vector<std::byte> epilogue_value(const gemm_problem& p) {
  result_argument place{nullptr, {}, static_cast<int>(p.pixels)};
  std::copy(p.steps[0].begin(), p.steps[0].end(), place.step);
  std::vector<std::byte> out;
  const auto put = [&](const auto& value) {
    const auto* at = reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), at, at + sizeof value);
  };
  if (p.phases) {
    gpu::phase_argument<void> phase = p.phases->place;
    static_cast<result_argument&>(phase) = place;
    put(phase);
  } else {
    put(place);
  }
  for (std::size_t k = 1; k < p.steps.size(); ++k) {
    epilogue_operand x{nullptr, {}};
    std::copy(p.steps[k].begin(), p.steps[k].end(), x.step);
    put(x);
  }
  return out;
}

void put_addresses(std::vector<std::byte>& epilogue, const void* result, std::span<const void* const> extra) {
  std::memcpy(epilogue.data(), &result, sizeof result);
  for (std::size_t k = 0; k < extra.size(); ++k)
    std::memcpy(epilogue.data() + sizeof(result_argument) + k * sizeof(epilogue_operand), &extra[k], sizeof extra[k]);
}

}  // namespace kiln::hip
