#include <algorithm>

#include "kiln/backend/hip/impl/rows/row_text.hpp"

namespace kiln::hip {
namespace {

constexpr int threads = 256;

// Elements that one thread moves at a time: 16 bytes of the narrowest operand, but no more than 64 of the widest.
std::int64_t choose_width(const loop_nest& n, std::span<const tensor> in, std::span<const tensor> out) {
  if (n.extent.empty()) return 1;
  std::size_t narrow = 8, wide = 1;
  for (std::size_t k = 0; k < in.size() + out.size(); ++k) {
    if (n.step[k].back() != 1) continue;
    const std::size_t bytes = size_of(k < in.size() ? in[k].type : out[k - in.size()].type);
    narrow = std::min(narrow, bytes), wide = std::max(wide, bytes);
  }
  auto width = static_cast<std::int64_t>(std::min<std::size_t>(16 / narrow, 64 / wide));
  const auto fits = [&](std::int64_t w) {
    if (n.extent.back() % w != 0) return false;
    for (std::size_t k = 0; k < out.size(); ++k)
      if (!movable(n, in.size() + k, out[k], w)) return false;
    return true;
  };
  while (width > 1 && !fits(width)) width /= 2;
  return std::max<std::int64_t>(width, 1);
}

}  // namespace

row_kernel_plan plan_pointwise(const row_program& p, std::span<const tensor> in, std::span<const tensor> out,
                               bool dynamic) {
  const ints& lens = out[0].lens;
  const loop_nest n = make_nest({lens.data(), lens.size()}, in, out, std::vector<bool>(lens.size(), true), true);
  const std::int64_t width = choose_width(n, in, out), runs = n.total() / width;
  // with one loop there is little to a run of elements; where positions must be computed, a thread has several under
  // way
  const bool many = runs >= std::int64_t{1} << 19;
  const int each = many && n.extent.size() > 1 ? 4 : 1;

  row_kernel_plan plan;
  numbers number(dynamic);
  kernel_text t(&p);
  t.open_kernel(threads, "pointwise(", parameter_list(in, out, dynamic), ")");
  t.line("using index = ", index_type(n, n), ";");
  t.line("const index runs = ", number(runs), ", first = index(blockIdx.x) * ", threads * each,
         " + index(threadIdx.x);");
  std::vector<reading> how(in.size());
  for (std::size_t k = 0; k < in.size(); ++k) {
    const bool same = n.extent.empty() || n.step[k].back() == 0;
    how[k] = same ? reading::same : movable(n, k, in[k], width) ? reading::piece : reading::single;
    const std::string_view type = stored_name(in[k].type);
    t.line(
        how[k] == reading::same ? std::string(type) : "pack<" + std::string(type) + ", " + std::to_string(width) + ">",
        " x", k, "[", each, "];");
  }
  const auto positions = [&] {
    t.line("const index i = first + u * ", threads, ";");
    t.line("if (i >= runs) break;");
    write_positions(t, number, n, "i", "a", width);
  };
  t.line("KILN_UNROLL");
  t.open("for (int u = 0; u < ", each, "; ++u)");
  positions();
  for (std::size_t k = 0; k < in.size(); ++k) {
    const std::string offset = offset_text(number, n, k, "a", width);
    if (how[k] == reading::same) {
      t.line("x", k, "[u] = in", k, "[", offset, "];");
    } else if (how[k] == reading::piece) {
      t.line("x", k, "[u] = *reinterpret_cast<const pack<", stored_name(in[k].type), ", ", width, ">*>(in", k, " + ",
             offset, ");");
    } else {
      const std::string step = number(n.step[k].back());
      t.line("KILN_UNROLL");
      t.line("for (int j = 0; j < ", width, "; ++j) x", k, "[u].at[j] = in", k, "[", offset, " + j * ", step, "];");
    }
  }
  t.close();
  t.line("KILN_UNROLL");
  t.open("for (int u = 0; u < ", each, "; ++u)");
  positions();
  for (std::size_t k = 0; k < out.size(); ++k) t.line("pack<", stored_name(out[k].type), ", ", width, "> y", k, ";");
  t.line("KILN_UNROLL");
  t.open("for (int j = 0; j < ", width, "; ++j)");
  for (std::uint32_t k = 0; k < p.values.size(); ++k) {
    const auto& v = p.values[k];
    if (v.op == lower::row_op::parameter)
      t.line("const ", value_name(p.type(k)), " v", k, " = value_of(x", v.index,
             how[v.index] == reading::same ? "[u]);" : "[u].at[j]);");
    else
      write_value(t, p, k);
  }
  for (std::size_t k = 0; k < out.size(); ++k)
    t.line("y", k, ".at[j] = stored<", stored_name(out[k].type), ">(v", p.results[k].value, ");");
  t.close();
  for (std::size_t k = 0; k < out.size(); ++k)
    t.line("*reinterpret_cast<pack<", stored_name(out[k].type), ", ", width, ">*>(out", k, " + ",
           offset_text(number, n, in.size() + k, "a", width), ") = y", k, ";");
  t.close();
  t.close();

  plan.what = t.whole("pointwise");
  plan.block = {threads};
  plan.grid = {static_cast<unsigned>((runs + threads * each - 1) / (threads * each))};
  plan.numbers = number.values();
  plan.passes_numbers = dynamic;
  return plan;
}

}  // namespace kiln::hip
