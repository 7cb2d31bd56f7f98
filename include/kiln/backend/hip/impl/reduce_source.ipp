#include <algorithm>

#include "kiln/backend/hip/impl/reduce_geometry.hpp"
#include "kiln/backend/hip/impl/row_text.hpp"

namespace kiln::hip {
namespace {

using origin = row_value::origin;

// Writes a kernel that works rows: `lanes` threads a row, each taking runs of `width` elements.
class reduce_writer : reduce_geometry {
 public:
  reduce_writer(const row_program& p, std::span<const tensor> in, std::span<const tensor> out, bool dynamic,
                const architecture& where)
      : reduce_geometry(p, in, out, dynamic, where), number_(dynamic) {}

  row_kernel_plan plan() {
    row_kernel_plan made;
    const bool short_floats = p_.short_floats();
    made.what = whole_source(splits_ > 1 ? "parts" : "rows", splits_ > 1 ? write_parts() : write_whole(), short_floats);
    made.passes_numbers = number_.passed();
    made.block = {static_cast<unsigned>(threads_)};
    made.grid = {static_cast<unsigned>((rows_ + rows_a_block_ - 1) / rows_a_block_), static_cast<unsigned>(splits_)};
    if (rows_ == 0) made.grid.x = 0;
    made.numbers = number_.values();
    if (splits_ == 1) return made;
    made.partial_bytes = static_cast<std::size_t>(rows_ * splits_ * sums_) * 8;
    made.second = whole_source("join", write_join(), short_floats);
    made.numbers = number_.values();
    made.second_grid = {static_cast<unsigned>((rows_ + block_threads - 1) / block_threads)};
    return made;
  }

 private:
  // ---- text
  void begin(std::string_view entry, std::string_view more) {
    t_ = kernel_text();
    std::string list =
        parameter_list(in_, out_, false) + std::string(more) + (number_.passed() ? ", const passed_numbers z" : "");
    t_.open_kernel(static_cast<int>(threads_), entry, "(", list, ")");
    t_.line("using index = ", index_type(rows_nest_, row_nest_), ";");
  }

  void write_row_start(const std::string& row) {
    write_positions(t_, number_, rows_nest_, row, "r", 1);
    for (std::size_t k = 0; k < in_.size() + out_.size(); ++k)
      t_.line(k < in_.size() ? "const " : "", stored_name(operand(k).type), "* const base", k, " = ",
              k < in_.size() ? cat("in", k) : cat("out", k - in_.size()), " + (",
              offset_text(number_, rows_nest_, k, "r", 1), ");");
    for (std::uint32_t k = 0; k < p_.values.size(); ++k)
      if (const row_value& v = p_.values[k]; v.from == origin::constant)
        write_value(t_, p_, k);
      else if (v.from == origin::parameter && v.row)
        t_.line("const ", value_name(v.type), " v", k, " = value_of(base", v.index, "[0]);");
    write_row_values(0);
  }

  std::string count_text(dtype type) { return std::string(value_name(type)) + "(" + number_(length_) + ")"; }

  // Values of a row that are known before pass `stage`.
  void write_row_values(int stage) {
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      const row_value& v = p_.values[k];
      if (v.from != origin::computed || !v.row || v.stage != stage) continue;
      if (!v.fold) {
        write_value(t_, p_, k);
      } else if (p_.values[v.in[0]].row) {  // of a row that repeats one value, or of one element
        const std::string x = traced(t_, v.op, trace_part::prepare, v.type, {cat("v", v.in[0])}, 0, cat("x", k) + "_");
        t_.line(value_name(v.type), " sum", k, " = ", identity_text(v), ";");
        t_.open("for (index n = 0; n < ", number_(length_), "; ++n)");
        const std::string next = combined(v, k, cat("sum", k), x, "c");
        t_.line("sum", k, " = ", next, ";");
        t_.close();
        write_finish(k);
      } else {
        write_finish(k);
      }
    }
  }

  std::string combined(const row_value& v, std::uint32_t k, const std::string& a, const std::string& b,
                       std::string_view mark) {
    return traced(t_, v.op, trace_part::combine, v.type, {a, b}, 0, std::string(mark) + cat("", k) + "_");
  }

  void write_finish(std::uint32_t k) {
    const row_value& v = p_.values[k];
    if (length_ == 0) {
      t_.line("const ", value_name(v.type), " v", k, " = rounded<", stored_name(v.type), ">(", empty_text(v), ");");
      return;
    }
    const std::string value =
        traced(t_, v.op, trace_part::finish, v.type, {cat("sum", k), count_text(v.type)}, 0, cat("f", k) + "_");
    const bool whole = is_float(v.type) || v.type == dtype::boolean || size_of(v.type) == 8;
    t_.line("const ", value_name(v.type), " v", k, " = ",
            whole ? value : "rounded<" + std::string(stored_name(v.type)) + ">(" + value + ")", ";");
  }

  // A fold's combination as a function of two sums.
  void write_combiner(std::uint32_t k) {
    const row_value& v = p_.values[k];
    t_.open("const auto combine", k, " = [](", value_name(v.type), " a, ", value_name(v.type), " b)");
    const std::string value = combined(v, k, "a", "b", "y");
    t_.line("return ", value, ";");
    t_.close("};");
  }

  bool folds_in(std::uint32_t k, int stage) const {
    const row_value& v = p_.values[k];
    return v.fold && v.stage == stage + 1 && !p_.values[v.in[0]].row;
  }
  bool writes_in(std::size_t result, int stage) const {
    return p_.full_result[result] && std::max(p_.values[p_.results[result]].stage, 0) == stage;
  }

  // Full values that pass `stage` computes or reads, operands first.
  std::vector<bool> needed(int stage) const {
    std::vector<bool> need(p_.values.size());
    for (std::uint32_t k = 0; k < p_.values.size(); ++k)
      if (folds_in(k, stage)) need[p_.values[k].in[0]] = true;
    for (std::size_t r = 0; r < p_.results.size(); ++r)
      if (writes_in(r, stage)) need[p_.results[r]] = true;
    for (std::uint32_t k = static_cast<std::uint32_t>(p_.values.size()); k-- > 0;) {
      const row_value& v = p_.values[k];
      if (!need[k] || v.row || v.from != origin::computed || (kept(k) && v.stage < stage)) continue;
      for (std::uint32_t i : v.in) need[i] = true;
    }
    return need;
  }
  // A computed value that stays in registers for a later pass.
  bool kept(std::uint32_t k) const {
    const row_value& v = p_.values[k];
    if (!resident_ || v.row || v.from != origin::computed) return false;
    for (std::uint32_t u = 0; u < p_.values.size(); ++u) {
      const row_value& user = p_.values[u];
      const int stage = user.fold ? user.stage - 1 : user.stage;
      if (user.row && !user.fold) continue;
      for (std::uint32_t i : user.in)
        if (i == k && stage > v.stage) return true;
    }
    return false;
  }

  void write_offsets(std::string_view at) { write_positions(t_, number_, row_nest_, std::string(at), "p", width_); }
  std::string element(std::size_t k) { return offset_text(number_, row_nest_, k, "p", width_); }

  void write_load(std::uint32_t value, const std::string& to) {
    const std::size_t k = p_.values[value].index;
    const std::string_view type = stored_name(in_[k].type);
    if (!row_nest_.extent.empty() && row_nest_.step[k].back() == 0) {
      t_.line("KILN_UNROLL");
      t_.line("for (int j = 0; j < ", width_, "; ++j) ", to, ".at[j] = base", k, "[", element(k), "];");
    } else {
      t_.line(to, " = *reinterpret_cast<const pack<", type, ", ", width_, ">*>(base", k, " + ", element(k), ");");
    }
  }

  void write_pass(int stage, const std::string& first_run, const std::string& end_run, std::vector<bool>& loaded) {
    std::vector<std::uint32_t> sums;
    for (std::uint32_t k = 0; k < p_.values.size(); ++k)
      if (folds_in(k, stage)) sums.push_back(k);
    for (std::uint32_t k : sums) {
      t_.line(value_name(p_.values[k].type), " sum", k, " = ", identity_text(p_.values[k]), ";");
      write_combiner(k);
    }
    const std::vector<bool> need = needed(stage);
    bool any = !sums.empty();
    for (std::size_t r = 0; r < p_.results.size(); ++r) any = any || writes_in(r, stage);
    if (!any || length_ == 0) return;
    const std::string range = number_(length_ / width_);
    const auto loop = [&] {
      if (resident_) {
        t_.line("KILN_UNROLL");
        t_.open("for (int c = 0; c < ", each_, "; ++c)");
        t_.line("const index at = c * ", lanes_, " + lane;");
        if (each_ * lanes_ * width_ != length_) t_.line("if (at >= ", range, ") break;");
      } else {
        t_.open("for (index at = ", first_run, "; at < ", end_run, "; at += ", lanes_, ")");
      }
      write_offsets("at");
    };
    if (resident_) {  // reads of the whole row come first: many are under way at a time
      bool reads = false;
      for (std::uint32_t k = 0; k < p_.values.size(); ++k)
        reads = reads || (need[k] && p_.values[k].from == origin::parameter && !p_.values[k].row && !loaded[k]);
      if (reads) {
        loop();
        for (std::uint32_t k = 0; k < p_.values.size(); ++k)
          if (need[k] && p_.values[k].from == origin::parameter && !p_.values[k].row && !loaded[k]) {
            write_load(k, cat("x", k) + "[c]");
            loaded[k] = true;
          }
        t_.close();
      }
    }
    loop();
    if (!resident_)
      for (std::uint32_t k = 0; k < p_.values.size(); ++k)
        if (need[k] && p_.values[k].from == origin::parameter && !p_.values[k].row) {
          t_.line("pack<", stored_name(p_.values[k].type), ", ", width_, "> x", k, ";");
          write_load(k, cat("x", k));
        }
    for (std::size_t r = 0; r < p_.results.size(); ++r)
      if (writes_in(r, stage)) t_.line("pack<", stored_name(out_[r].type), ", ", width_, "> y", r, ";");
    t_.line("KILN_UNROLL");
    t_.open("for (int j = 0; j < ", width_, "; ++j)");
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      const row_value& v = p_.values[k];
      if (!need[k] || v.row) continue;
      if (v.from == origin::parameter) {
        t_.line("const ", value_name(v.type), " v", k, " = value_of(x", k, resident_ ? "[c].at[j]);" : ".at[j]);");
      } else if (kept(k) && v.stage < stage) {
        t_.line("const ", value_name(v.type), " v", k, " = k", k, "[c][j];");
      } else {
        write_value(t_, p_, k);
        if (kept(k) && v.stage == stage) t_.line("k", k, "[c][j] = v", k, ";");
      }
    }
    for (std::uint32_t k : sums) {
      const row_value& v = p_.values[k];
      const std::string x = traced(t_, v.op, trace_part::prepare, v.type, {cat("v", v.in[0])}, 0, cat("x", k) + "_");
      t_.line("sum", k, " = combine", k, "(sum", k, ", ", x, ");");
    }
    for (std::size_t r = 0; r < p_.results.size(); ++r)
      if (writes_in(r, stage))
        t_.line("y", r, ".at[j] = stored<", stored_name(out_[r].type), ">(v", p_.results[r], ");");
    t_.close();
    for (std::size_t r = 0; r < p_.results.size(); ++r) {
      if (!writes_in(r, stage)) continue;
      const std::size_t k = in_.size() + r;
      t_.line("if (real) *reinterpret_cast<pack<", stored_name(out_[r].type), ", ", width_, ">*>(base", k, " + ",
              element(k), ") = y", r, ";");
    }
    t_.close();
    for (std::uint32_t k : sums) {
      if (lanes_ == 1) continue;
      t_.line("__shared__ ", value_name(p_.values[k].type), " shared", k, "[", columns_ ? threads_ : threads_ / 32 + 1,
              "];");
      if (columns_)
        t_.line("sum", k, " = join_columns<", lanes_, ", ", across_, ">(sum", k, ", shared", k, ", combine", k, ");");
      else
        t_.line("sum", k, " = join_lanes<", lanes_, ">(sum", k, ", shared", k, ", combine", k, ");");
    }
  }

  void write_threads() {
    if (columns_)
      t_.line("const int lane = int(threadIdx.x) / ", across_, ", mine = int(threadIdx.x) % ", across_, ";");
    else
      t_.line("const int lane = int(threadIdx.x) % ", lanes_, ", mine = int(threadIdx.x) / ", lanes_, ";");
    t_.line("const index wanted = index(blockIdx.x) * ", rows_a_block_, " + mine, rows = ", number_(rows_), ";");
    // threads past the last row work it again, since all of a block join their sums
    t_.line("const bool real = wanted < rows;");
    t_.line("const index row = real ? wanted : rows - 1;");
  }

  std::string write_whole() {
    begin("rows", "");
    write_threads();
    write_row_start("row");
    std::vector<bool> loaded(p_.values.size());
    if (resident_)
      for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
        const row_value& v = p_.values[k];
        if (v.from == origin::parameter && !v.row)
          t_.line("pack<", stored_name(v.type), ", ", width_, "> x", k, "[", each_, "];");
        else if (kept(k))
          t_.line(value_name(v.type), " k", k, "[", each_, "][", width_, "];");
      }
    for (int s = 0; s < p_.stages; ++s) {
      write_pass(s, "lane", number_(length_ / width_), loaded);
      write_row_values(s + 1);
    }
    write_row_results("real && lane == 0");
    t_.close();
    return t_.str();
  }

  void write_row_results(std::string_view when) {
    bool any = false;
    for (bool one : p_.full_result) any = any || !one;
    if (!any) return;
    t_.open("if (", when, ")");
    for (std::size_t r = 0; r < p_.results.size(); ++r)
      if (!p_.full_result[r])
        t_.line("*base", in_.size() + r, " = stored<", stored_name(out_[r].type), ">(v", p_.results[r], ");");
    t_.close();
  }

  // A part of each row; its sums go to `partial`.
  std::string write_parts() {
    begin("parts", ", u64* partial");
    write_threads();
    write_row_start("row");
    t_.line("const index runs = ", number_(length_ / width_), ", part = (runs + ", splits_ - 1, ") / ", splits_, ";");
    t_.line("const index begin = index(blockIdx.y) * part, end = begin + part < runs ? begin + part : runs;");
    std::vector<bool> loaded(p_.values.size());
    write_pass(0, "begin + lane", "end", loaded);
    t_.open("if (real && lane == 0)");
    int s = 0;
    for (std::uint32_t k = 0; k < p_.values.size(); ++k)
      if (folds_in(k, 0)) {
        const bool narrow = p_.values[k].type != dtype::f64 && is_float(p_.values[k].type);
        t_.line("partial[(i64(row) * ", splits_, " + blockIdx.y) * ", sums_, " + ", s++, "] = ",
                narrow                                ? cat("u64(__builtin_bit_cast(unsigned, sum", k) + "))"
                : p_.values[k].type == dtype::boolean ? cat("u64(sum", k) + ")"
                                                      : cat("__builtin_bit_cast(u64, sum", k) + ")",
                ";");
      }
    t_.close();
    t_.close();
    return t_.str();
  }

  // One thread a row: joins the parts, and does what follows.
  std::string write_join() {
    const std::int64_t threads = threads_;
    threads_ = block_threads;
    begin("join", ", const u64* partial");
    threads_ = threads;
    t_.line("const index row = index(blockIdx.x) * ", block_threads, " + index(threadIdx.x), rows = ", number_(rows_),
            ";");
    t_.line("if (row >= rows) return;");
    write_row_start("row");
    int s = 0;
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      if (!folds_in(k, 0)) continue;
      const row_value& v = p_.values[k];
      write_combiner(k);
      t_.line(value_name(v.type), " sum", k, " = ", identity_text(v), ";");
      const std::string read = "partial[(i64(row) * " + std::to_string(splits_) + " + n) * " + std::to_string(sums_) +
                               " + " + std::to_string(s++) + "]";
      const bool narrow = v.type != dtype::f64 && is_float(v.type);
      const std::string value = narrow ? "__builtin_bit_cast(float, unsigned(" + read + "))"
                                : v.type == dtype::boolean
                                    ? "bool(" + read + ")"
                                    : "__builtin_bit_cast(" + std::string(value_name(v.type)) + ", " + read + ")";
      t_.line("for (int n = 0; n < ", splits_, "; ++n) sum", k, " = combine", k, "(sum", k, ", ", value, ");");
    }
    write_row_values(1);
    write_row_results("true");
    t_.close();
    return t_.str();
  }

  numbers number_;
  kernel_text t_;
};

}  // namespace

row_kernel_plan plan_reduce(const row_program& p, std::span<const tensor> in, std::span<const tensor> out, bool dynamic,
                            const architecture& where) {
  return reduce_writer(p, in, out, dynamic, where).plan();
}

}  // namespace kiln::hip
