#include <algorithm>

#include "kiln/backend/hip/impl/rows/reduce_geometry.hpp"
#include "kiln/backend/hip/impl/rows/row_text.hpp"

namespace kiln::hip {
namespace {

using lower::row_op;

// Writes a kernel that runs the levels of rows: `lanes` threads a row, each taking runs of `width` elements.
class reduce_writer : reduce_geometry {
 public:
  reduce_writer(const row_program& p, std::span<const tensor> in, std::span<const tensor> out, bool dynamic,
                const architecture& where)
      : reduce_geometry(p, in, out, dynamic, where), number_(dynamic) {}

  row_kernel_plan plan() {
    row_kernel_plan made;
    made.what = splits_ > 1 ? write_parts(0) : write_whole();
    made.passes_numbers = number_.passed();
    made.block = {static_cast<unsigned>(threads_)};
    made.grid = {static_cast<unsigned>((rows_ + rows_a_block_ - 1) / rows_a_block_), static_cast<unsigned>(splits_)};
    if (rows_ == 0) made.grid.x = 0;
    made.numbers = number_.values();
    if (splits_ == 1) return made;
    made.partial_bytes = static_cast<std::size_t>(rows_ * splits_ * sums_) * 8;
    for (int level = 1; level < p_.levels; ++level) made.later.push_back({write_parts(level), made.grid, made.block});
    if (folds(p_.levels - 1))
      made.later.push_back({write_join(),
                            {static_cast<unsigned>((rows_ + block_threads - 1) / block_threads)},
                            {static_cast<unsigned>(block_threads)}});
    made.numbers = number_.values();
    return made;
  }

 private:
  // ---- text
  void begin(std::string_view entry, std::string_view more) {
    t_ = kernel_text(&p_);
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
    if (shifted_) write_shift();
    for (std::uint32_t k = 0; k < p_.values.size(); ++k)
      if (p_.values[k].op == row_op::literal)
        write_value(t_, p_, k);
      else if (p_.values[k].op == row_op::parameter && !p_.values[k].full)
        t_.line("const ", value_name(p_.type(k)), " v", k, " = value_of(base", p_.values[k].index, "[0]);");
    write_row_values(0);
  }

  // Where a row's elements lie within runs: `phase` before its first one, and how many runs have elements of it.
  void write_shift() {
    t_.line("const index length = ", number_(length_), ", phase = index(",
            offset_text(number_, rows_nest_, main_, "r", 1), ") % ", width_, ";");
    t_.line("const index runs = (length + phase + ", width_ - 1, ") / ", width_, ";");
    t_.line("const auto inside = [&](index i) { return i >= 0 && i < length; };");
  }
  std::string count_of_runs() { return shifted_ ? "runs" : number_(length_ / width_); }

  // Values of one element per row that are known before `level`.
  void write_row_values(int level) {
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      const auto& v = p_.values[k];
      if (v.full || v.level != level) continue;
      if (v.op == row_op::reduction)
        write_finish(k);
      else if (v.op == row_op::pointwise)
        write_value(t_, p_, k);
    }
  }

  std::string combined(std::uint32_t k, const std::string& a, const std::string& b, std::string_view mark) {
    return t_.expression(p_.op(k), trace_part::combine, p_.type(k), {a, b}, 0, cat(mark, k, "_"));
  }

  void write_finish(std::uint32_t k) {
    const dtype type = p_.type(k);
    std::string value = length_ == 0 ? print_source(start_of(p_.op(k), type, true), {}).str()
                                     : t_.expression(p_.op(k), trace_part::finish, type,
                                                     {cat("sum", k), cat(value_name(type), "(", number_(length_), ")")},
                                                     0, cat("f", k, "_"));
    if (length_ == 0 || narrowing_of(type) == narrowing::stored)
      value = cat("rounded<", stored_name(type), ">(", value, ")");
    t_.line("const ", value_name(type), " v", k, " = ", value, ";");
  }

  // Declares a fold's sum and its combination as a function of two sums.
  void write_sum(std::uint32_t k) {
    const std::string_view type = value_name(p_.type(k));
    t_.line(type, " sum", k, " = ", print_source(start_of(p_.op(k), p_.type(k)), {}).str(), ";");
    t_.open("const auto combine", k, " = [](", type, " a, ", type, " b)");
    const std::string value = combined(k, "a", "b", "y");
    t_.line("return ", value, ";");
    t_.close("};");
  }

  // A computed value that stays in registers for a later level.
  bool kept(std::uint32_t k) const { return resident_ && p_.values[k].kept; }

  // With `shifted_` a run begins at element s of its row, which may be before the first.
  void write_offsets(std::string_view at) {
    if (!shifted_) return write_positions(t_, number_, row_nest_, std::string(at), "p", width_);
    t_.line("const index s = ", at, " * ", width_, " - phase;");
  }
  std::string element(std::size_t k) { return shifted_ ? "s" : offset_text(number_, row_nest_, k, "p", width_); }
  void each_element() {
    t_.line("KILN_UNROLL");
    t_.open("for (int j = 0; j < ", width_, "; ++j)");
  }

  using values_list = row_program::list<bool>;

  void write_load(std::uint32_t value, const std::string& to) {
    const std::size_t k = p_.values[value].index;
    const std::string pack = cat("pack<", stored_name(in_[k].type), ", ", width_, ">");
    if (shifted_ ? repeats(k) : !row_nest_.extent.empty() && row_nest_.step[k].back() == 0) {
      each_element();
      t_.line(to, ".at[j] = base", k, "[", shifted_ ? "0" : element(k), "];");
      return t_.close();
    }
    const bool whole = !shifted_ || in_phase(k, main_, width_);
    // memory may end within the last run of a row, which is one of a thread's last
    const bool bounded = whole && shifted_ && (number_.passed() || end_of(k) % width_ != 0);
    if (bounded)
      t_.open("if (", resident_ ? cat("c >= ", (least_runs() + lanes_ - 1) / lanes_ - 1, " && ") : std::string(),
              "base", k, " + s + ", width_, " > in", k, " + ", number_(end_of(k)), ")");
    if (bounded || !whole) {
      each_element();
      write_positions(t_, number_, row_nest_, "(inside(s + j) ? s + j : 0)", "p", 1);
      t_.line(to, ".at[j] = base", k, "[", offset_text(number_, row_nest_, k, "p", 1), "];");
      t_.close();
    }
    if (bounded) t_.close("} else {");
    if (whole) t_.line(to, " = *reinterpret_cast<const ", pack, "*>(base", k, " + ", element(k), ");");
    if (bounded) t_.line("}");
  }
  void write_full_result(std::size_t r) {
    const std::size_t k = in_.size() + r;
    const std::string pack = cat("pack<", stored_name(out_[r].type), ", ", width_, ">");
    const auto whole = [&] { t_.line("*reinterpret_cast<", pack, "*>(base", k, " + ", element(k), ") = y", r, ";"); };
    t_.open("if (real)");
    if (shifted_) t_.line("if (s >= 0 && s + ", width_, " <= length)");
    whole();
    if (shifted_) {
      t_.line("else");
      each_element();
      t_.line("if (inside(s + j)) base", k, "[s + j] = y", r, ".at[j];");
      t_.close();
    }
    t_.close();
  }

  // Opens the loop over this thread's runs of a row from `first` to `end`; a resident row has its runs in registers.
  void open_runs(const std::string& first, const std::string& end) {
    if (resident_) {
      t_.line("KILN_UNROLL");
      t_.open("for (int c = 0; c < ", each_, "; ++c)");
      t_.line("const index at = c * ", lanes_, " + lane;");
      // loads that nothing decides are under way together
      if (shifted_)
        t_.line("if (c >= ", least_runs() / lanes_, " && at >= runs) break;");
      else if (each_ * lanes_ * width_ != length_)
        t_.line("if (at >= ", count_of_runs(), ") break;");
    } else {
      t_.open("for (index at = ", first, "; at < ", end, "; at += ", lanes_, ")");
    }
    write_offsets("at");
  }

  // Reads of a resident row come first: many are under way at a time.
  void write_resident_loads(const values_list& need, const std::string& first, const std::string& end) {
    std::vector<std::uint32_t> reads;
    for (std::uint32_t k = 0; k < p_.values.size(); ++k)
      if (need[k] && p_.is_full_parameter(k) && !loaded_[k]) reads.push_back(k);
    if (reads.empty()) return;
    open_runs(first, end);
    for (std::uint32_t k : reads) {
      write_load(k, cat("x", k, "[c]"));
      loaded_[k] = true;
    }
    t_.close();
  }

  // [element]
  // The values of element j of a run.
  void write_element(int level, const values_list& need) {
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      const auto& v = p_.values[k];
      if (!need[k] || !v.full) continue;
      if (v.op == row_op::parameter) {
        t_.line("const ", value_name(p_.type(k)), " v", k, " = value_of(x", k, resident_ ? "[c].at[j]);" : ".at[j]);");
      } else if (kept(k) && v.level < level) {
        t_.line("const ", value_name(p_.type(k)), " v", k, " = k", k, "[c][j];");
      } else {
        write_value(t_, p_, k);
        if (kept(k) && v.level == level) t_.line("k", k, "[c][j] = v", k, ";");
      }
    }
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      if (!p_.folds_in(k, level)) continue;
      const std::string x =
          t_.expression(p_.op(k), trace_part::prepare, p_.type(k), {cat("v", p_.values[k].in[0])}, 0, cat("x", k, "_"));
      t_.line(shifted_ ? "if (inside(s + j)) " : "", "sum", k, " = combine", k, "(sum", k, ", ", x, ");");
    }
    for (std::size_t r = 0; r < p_.results.size(); ++r)
      if (p_.writes_in(r, level))
        t_.line("y", r, ".at[j] = stored<", stored_name(out_[r].type), ">(v", p_.results[r].value, ");");
  }

  // [/element]

  // One level over this thread's runs: sums, kept values and full results.
  void write_level(int level, const std::string& first, const std::string& end) {
    bool any = false;
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      if (!p_.folds_in(k, level)) continue;
      write_sum(k);
      any = true;
    }
    for (std::size_t r = 0; r < p_.results.size(); ++r) any = any || p_.writes_in(r, level);
    if (!any || length_ == 0) return;
    const values_list need = p_.needed(level, resident_);
    if (resident_) write_resident_loads(need, first, end);
    open_runs(first, end);
    if (!resident_)
      for (std::uint32_t k = 0; k < p_.values.size(); ++k)
        if (need[k] && p_.is_full_parameter(k)) {
          t_.line("pack<", stored_name(p_.type(k)), ", ", width_, "> x", k, ";");
          write_load(k, cat("x", k));
        }
    for (std::size_t r = 0; r < p_.results.size(); ++r)
      if (p_.writes_in(r, level)) t_.line("pack<", stored_name(out_[r].type), ", ", width_, "> y", r, ";");
    each_element();
    write_element(level, need);
    t_.close();
    for (std::size_t r = 0; r < p_.results.size(); ++r)
      if (p_.writes_in(r, level)) write_full_result(r);
    t_.close();
    if (lanes_ > 1) join_sums(level);
  }

  // Joins the sums of a row's threads.
  void join_sums(int level) {
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      if (!p_.folds_in(k, level)) continue;
      t_.line("__shared__ ", value_name(p_.type(k)), " shared", k, "[", columns_ ? threads_ : threads_ / 32 + 1, "];");
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
    // threads past the last row compute it again, since all of a block join their sums
    t_.line("const bool real = wanted < rows;");
    t_.line("const index row = real ? wanted : rows - 1;");
  }

  source write_whole() {
    begin("rows", "");
    write_threads();
    write_row_start("row");
    if (resident_) {
      for (std::uint32_t k = 0; k < p_.values.size(); ++k)
        if (p_.is_full_parameter(k))
          t_.line("pack<", stored_name(p_.type(k)), ", ", width_, "> x", k, "[", each_, "];");
        else if (kept(k))
          t_.line(value_name(p_.type(k)), " k", k, "[", each_, "][", width_, "];");
    }
    for (int level = 0; level < p_.levels; ++level) {
      write_level(level, "lane", count_of_runs());
      write_row_values(level + 1);
    }
    write_row_results("real && lane == 0");
    t_.close();
    return t_.whole("rows");
  }

  void write_row_results(std::string_view when) {
    bool any = false;
    for (const auto& r : p_.results) any = any || !r.full;
    if (!any) return;
    t_.open("if (", when, ")");
    for (std::size_t r = 0; r < p_.results.size(); ++r)
      if (!p_.results[r].full)
        t_.line("*base", in_.size() + r, " = stored<", stored_name(out_[r].type), ">(v", p_.results[r].value, ");");
    t_.close();
  }

  // Whether anything is summed in a level.
  bool folds(int level) const {
    bool any = false;
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) any = any || p_.folds_in(k, level);
    return any;
  }
  // The sum of fold k of a part of a row, among those of all folds.
  std::string partial(std::uint32_t k, std::string_view part) const {
    std::int64_t slot = 0;
    for (std::uint32_t other = 0; other < k; ++other) slot += p_.values[other].op == row_op::reduction;
    return cat("partial[(i64(row) * ", splits_, " + ", part, ") * ", sums_, " + ", slot, "]");
  }
  std::string read_partial(std::uint32_t k, std::string_view part) const {
    const std::string read = partial(k, part);
    if (kind_of_values(p_.type(k)) == scalar_kind::f32) return "__builtin_bit_cast(float, unsigned(" + read + "))";
    if (p_.type(k) == dtype::boolean) return "bool(" + read + ")";
    return cat("__builtin_bit_cast(", value_name(p_.type(k)), ", ", read, ")");
  }
  // The sums of a level of all parts of a row, which were written to `partial`: each of `step` threads, from `first`
  // on, adds every step-th.
  void write_joined(int level, std::string_view first, std::int64_t step) {
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      if (!p_.folds_in(k, level)) continue;
      write_sum(k);
      t_.line("for (int n = ", first, "; n < ", splits_, "; n += ", step, ") sum", k, " = combine", k, "(sum", k, ", ",
              read_partial(k, "n"), ");");
    }
    if (step > 1) join_sums(level);
  }

  // A level of a part of each row; its sums go to `partial`, its full results to memory.
  source write_parts(int level) {
    const std::string entry = level == 0 ? "parts" : cat("parts", level);
    begin(entry, ", u64* partial");
    write_threads();
    write_row_start("row");
    for (int before = 0; before < level; ++before) {
      write_joined(before, "lane", lanes_);
      write_row_values(before + 1);
    }
    if (!shifted_) t_.line("const index runs = ", count_of_runs(), ";");
    t_.line("const index part = (runs + ", splits_ - 1, ") / ", splits_, ";");
    t_.line("const index begin = index(blockIdx.y) * part, end = begin + part < runs ? begin + part : runs;");
    write_level(level, "begin + lane", "end");
    if (folds(level)) {
      t_.open("if (real && lane == 0)");
      for (std::uint32_t k = 0; k < p_.values.size(); ++k)
        if (p_.folds_in(k, level))
          t_.line(partial(k, "blockIdx.y"), " = ",
                  kind_of_values(p_.type(k)) == scalar_kind::f32 ? cat("u64(__builtin_bit_cast(unsigned, sum", k, "))")
                  : p_.type(k) == dtype::boolean                 ? cat("u64(sum", k, ")")
                                                                 : cat("__builtin_bit_cast(u64, sum", k, ")"),
                  ";");
      t_.close();
    } else {
      write_row_results("real && lane == 0 && blockIdx.y == 0");
    }
    t_.close();
    return t_.whole(entry);
  }

  // One thread a row: joins the parts of a row, then computes what reads the sums.
  source write_join() {
    const std::int64_t threads = threads_;
    threads_ = block_threads;
    begin("join", ", const u64* partial");
    threads_ = threads;
    t_.line("const index row = index(blockIdx.x) * ", block_threads, " + index(threadIdx.x), rows = ", number_(rows_),
            ";");
    t_.line("if (row >= rows) return;");
    write_row_start("row");
    for (int level = 0; level < p_.levels; ++level) {
      write_joined(level, "0", 1);
      write_row_values(level + 1);
    }
    write_row_results("true");
    t_.close();
    return t_.whole("join");
  }

  numbers number_;
  kernel_text t_;
  std::vector<bool> loaded_ = std::vector<bool>(p_.values.size());  // parameters of a resident row that were read
};

}  // namespace

row_kernel_plan plan_reduce(const row_program& p, std::span<const tensor> in, std::span<const tensor> out, bool dynamic,
                            const architecture& where) {
  return reduce_writer(p, in, out, dynamic, where).plan();
}

}  // namespace kiln::hip
