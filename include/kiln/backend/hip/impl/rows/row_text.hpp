#pragma once
#include "kiln/backend/hip/impl/rows/row_program.hpp"

namespace kiln::hip {

/// The type of indices: int where every offset and count fits.
inline std::string_view index_type(const loop_nest& a, const loop_nest& b) {
  std::int64_t most = 1;
  for (const loop_nest* n : {&a, &b}) {
    most = std::max(most, n->total());
    for (const auto& steps : n->step) {
      std::int64_t reach = 0;
      for (std::size_t d = 0; d < n->extent.size(); ++d) reach += std::abs(steps[d]) * n->extent[d];
      most = std::max(most, reach);
    }
  }
  return most < (std::int64_t{1} << 30) ? "int" : "i64";
}

/// Writes the positions along a nest's dims of the linear index `of`: <prefix>0, <prefix>1, …; the last dim counts
/// runs of `width`.
inline void write_positions(kernel_text& out, numbers& number, const loop_nest& n, std::string of,
                            const std::string& prefix, std::int64_t width) {
  for (std::size_t d = n.extent.size(); d-- > 0;) {
    const std::string at = cat(prefix, d);
    if (d == 0) {
      out.line("const index ", at, " = ", of, ";");
      break;
    }
    const std::string extent = number(d + 1 == n.extent.size() ? n.extent[d] / width : n.extent[d]);
    const std::string rest = at + "q";
    out.line("const index ", rest, " = ", of, " / ", extent, ", ", at, " = ", of, " - ", rest, " * ", extent, ";");
    of = rest;
  }
}

/// The offset of an operand at such positions, as an expression.
inline std::string offset_text(numbers& number, const loop_nest& n, std::size_t operand, const std::string& prefix,
                               std::int64_t width) {
  std::string sum;
  for (std::size_t d = 0; d < n.extent.size(); ++d) {
    const std::int64_t step = n.step[operand][d] * (d + 1 == n.extent.size() ? width : 1);
    if (step == 0) continue;
    sum += (sum.empty() ? "" : " + ") + cat(prefix, d) + (step == 1 ? "" : " * " + number(step));
  }
  return sum.empty() ? "0" : sum;
}

/// `const T* in0, …, T* out0, …`, and the numbers where they are passed.
inline std::string parameter_list(std::span<const tensor> in, std::span<const tensor> out, bool passes) {
  std::string list;
  for (std::size_t k = 0; k < in.size(); ++k)
    list +=
        (list.empty() ? "" : ", ") + std::string("const ") + std::string(stored_name(in[k].type)) + "* " + cat("in", k);
  for (std::size_t k = 0; k < out.size(); ++k)
    list += (list.empty() ? "" : ", ") + std::string(stored_name(out[k].type)) + "* " + cat("out", k);
  return list + (passes ? ", const passed_numbers z" : "");
}

/// How an operand is read at a run of `width` elements: one value for all, in one piece, or one by one.
enum class reading : std::uint8_t { same, piece, single };

}  // namespace kiln::hip
