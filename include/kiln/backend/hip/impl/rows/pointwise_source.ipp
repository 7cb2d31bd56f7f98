#include <algorithm>

#include "kiln/backend/hip/impl/rows/row_text.hpp"

namespace kiln::hip {
namespace {

constexpr int threads = 256;

// Whether an operand's elements lie one after the other over all dims of the nest.
bool dense(const loop_nest& n, std::size_t operand) {
  std::int64_t step = 1;
  for (std::size_t d = n.extent.size(); d-- > 0; step *= n.extent[d])
    if (n.step[operand][d] != step) return false;
  return true;
}

bool aligned(const tensor& t, std::int64_t width) {
  const auto bytes = std::min<std::size_t>(static_cast<std::size_t>(width) * size_of(t.type), 16);
  return reinterpret_cast<std::uintptr_t>(t.data) % bytes == 0;
}

// Writes a kernel whose threads work runs of `width_` elements: along the last dim of the nest where its extent is a
// multiple of that, else, with `flat_`, through all dims of dense results, the last run being shorter.
class pointwise_writer {
 public:
  pointwise_writer(const row_program& p, std::span<const tensor> in, std::span<const tensor> out, bool dynamic)
      : p_(p), in_(in), out_(out), number_(dynamic), t_(&p) {
    const ints& lens = out[0].lens;
    n_ = make_nest({lens.data(), lens.size()}, in, out, std::vector<bool>(lens.size(), true), true);
    choose_width();
    choose_flat();
    runs_ = (n_.total() + width_ - 1) / width_;
    // with one loop there is little to a run of elements; where positions must be computed, or runs are short, a thread
    // has several under way
    const bool many = runs_ >= std::int64_t{1} << 19, very_many = runs_ >= std::int64_t{3} << 19;
    each_ = !many ? 1 : flat_ ? very_many ? 4 : 2 : n_.extent.size() > 1 ? 4 : 1;
    for (std::size_t k = 0; k < in.size(); ++k) how_.push_back(reading_of(k));
  }

  row_kernel_plan plan() {
    t_.open_kernel(threads, "pointwise(", parameter_list(in_, out_, number_.passed()), ")");
    t_.line("using index = ", index_type(n_, n_), ";");
    if (flat_) t_.line("const index total = ", number_(n_.total()), ";");
    t_.line("const index runs = ", number_(runs_), ", first = index(blockIdx.x) * ", threads * each_,
            " + index(threadIdx.x);");
    for (std::size_t k = 0; k < in_.size(); ++k)
      t_.line(how_[k] == reading::same ? std::string(stored_name(in_[k].type)) : pack_of(in_[k].type), " x", k, "[",
              each_, "];");
    open_runs();
    for (std::size_t k = 0; k < in_.size(); ++k) write_read(k);
    if (walks()) write_walk();
    t_.close();
    open_runs();
    write_values();
    for (std::size_t k = 0; k < out_.size(); ++k) write_result(k);
    t_.close();
    t_.close();

    row_kernel_plan plan;
    plan.what = t_.whole("pointwise");
    plan.block = {threads};
    plan.grid = {static_cast<unsigned>((runs_ + threads * each_ - 1) / (threads * each_))};
    plan.numbers = number_.values();
    plan.passes_numbers = number_.passed();
    return plan;
  }

 private:
  void choose_width() {
    if (n_.extent.empty()) return;
    // 16 bytes of the narrowest operand, but no more than 64 of the widest
    std::size_t narrow = 8, widest = 1;
    for (std::size_t k = 0; k < in_.size() + out_.size(); ++k)
      if (n_.step[k].back() == 1)
        narrow = std::min(narrow, size_of(operand(k).type)), widest = std::max(widest, size_of(operand(k).type));
    const auto fits = [&](std::int64_t w) {
      bool all = n_.extent.back() % w == 0;
      for (std::size_t k = 0; k < out_.size(); ++k) all = all && movable(n_, in_.size() + k, out_[k], w);
      return all;
    };
    width_ = static_cast<std::int64_t>(std::min<std::size_t>(16 / narrow, 64 / widest));
    while (width_ > 1 && !fits(width_)) width_ /= 2;
    width_ = std::max<std::int64_t>(width_, 1);
  }
  void choose_flat() {
    if (n_.extent.empty()) return;
    // 16 bytes of the widest operand: what is read one by one is then near what neighboring threads read
    std::size_t widest = 1;
    for (std::size_t k = 0; k < in_.size() + out_.size(); ++k)
      if (n_.step[k].back() != 0) widest = std::max(widest, size_of(operand(k).type));
    auto wide = static_cast<std::int64_t>(16 / widest);
    const auto fits = [&] {
      bool all = true;
      for (std::size_t k = 0; k < out_.size(); ++k) all = all && dense(n_, in_.size() + k) && aligned(out_[k], wide);
      return all;
    };
    while (wide > width_ && !fits()) wide /= 2;
    if (wide <= width_ || n_.total() < wide) return;
    width_ = wide, flat_ = true;
  }
  const tensor& operand(std::size_t k) const { return k < in_.size() ? in_[k] : out_[k - in_.size()]; }
  reading reading_of(std::size_t k) const {
    if (n_.extent.empty()) return reading::same;
    if (!flat_)
      return n_.step[k].back() == 0 ? reading::same : movable(n_, k, in_[k], width_) ? reading::piece : reading::single;
    if (std::all_of(n_.step[k].begin(), n_.step[k].end(), [](std::int64_t s) { return s == 0; })) return reading::same;
    return dense(n_, k) && aligned(in_[k], width_) ? reading::piece : reading::single;
  }
  bool walks() const { return flat_ && std::find(how_.begin(), how_.end(), reading::single) != how_.end(); }
  bool ragged() const { return flat_ && n_.total() % width_ != 0; }
  std::string pack_of(dtype t) const { return cat("pack<", stored_name(t), ", ", width_, ">"); }
  // With `flat_` a run begins at element e.
  std::string place(std::size_t k) { return flat_ ? "e" : offset_text(number_, n_, k, "a", width_); }

  void open_runs() {
    t_.line("KILN_UNROLL");
    t_.open("for (int u = 0; u < ", each_, "; ++u)");
    t_.line("const index i = first + u * ", threads, ";");
    t_.line("if (i >= runs) break;");
    if (!flat_) return write_positions(t_, number_, n_, "i", "a", width_);
    t_.line("const index e = i * ", width_, ";");
    if (ragged()) t_.line("const bool whole = e + ", width_, " <= total;");
  }
  void each_element() {
    t_.line("KILN_UNROLL");
    t_.open("for (int j = 0; j < ", width_, "; ++j)");
  }

  void write_read(std::size_t k) {
    const std::string type(stored_name(in_[k].type));
    if (how_[k] == reading::same) return t_.line("x", k, "[u] = in", k, "[", flat_ ? "0" : place(k), "];");
    if (how_[k] == reading::piece) {
      t_.line(ragged() ? "if (whole) " : "", "x", k, "[u] = *reinterpret_cast<const ", pack_of(in_[k].type), "*>(in", k,
              " + ", place(k), ");");
      if (!ragged()) return;
      t_.line("else");
      each_element();
      t_.line("x", k, "[u].at[j] = in", k, "[e + (e + j < total ? j : 0)];");
      return t_.close();
    }
    if (flat_) return;
    const std::string step = number_(n_.step[k].back());
    each_element();
    t_.line("x", k, "[u].at[j] = in", k, "[", place(k), " + j * ", step, "];");
    t_.close();
  }
  // Reads of operands that are not dense: positions go on from element to element.
  void write_walk() {
    write_positions(t_, number_, n_, "e", "a", 1);
    const std::size_t rank = n_.extent.size();
    for (std::size_t d = 0; d < rank; ++d) t_.line("index w", d, " = a", d, ";");
    each_element();
    for (std::size_t k = 0; k < in_.size(); ++k)
      if (how_[k] == reading::single)
        t_.line("x", k, "[u].at[j] = in", k, "[", offset_text(number_, n_, k, "w", 1), "];");
    if (ragged()) t_.line("if (e + j + 1 < total)");
    std::string step = "++w0;";
    for (std::size_t d = 1; d < rank; ++d)
      step = cat("if (++w", d, " == ", number_(n_.extent[d]), ") { w", d, " = 0; ", step, " }");
    t_.line(step);
    t_.close();
  }
  void write_values() {
    for (std::size_t k = 0; k < out_.size(); ++k) t_.line(pack_of(out_[k].type), " y", k, ";");
    each_element();
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) {
      const auto& v = p_.values[k];
      if (v.op == lower::row_op::parameter)
        t_.line("const ", value_name(p_.type(k)), " v", k, " = value_of(x", v.index,
                how_[v.index] == reading::same ? "[u]);" : "[u].at[j]);");
      else
        write_value(t_, p_, k);
    }
    for (std::size_t k = 0; k < out_.size(); ++k)
      t_.line("y", k, ".at[j] = stored<", stored_name(out_[k].type), ">(v", p_.results[k].value, ");");
    t_.close();
  }
  void write_result(std::size_t k) {
    t_.line(ragged() ? "if (whole) " : "", "*reinterpret_cast<", pack_of(out_[k].type), "*>(out", k, " + ",
            place(in_.size() + k), ") = y", k, ";");
    if (!ragged()) return;
    t_.line("else");
    each_element();
    t_.line("if (e + j < total) out", k, "[e + j] = y", k, ".at[j];");
    t_.close();
  }

  const row_program& p_;
  std::span<const tensor> in_, out_;
  numbers number_;
  kernel_text t_;
  loop_nest n_;
  std::int64_t width_ = 1, runs_ = 0;
  int each_ = 1;
  bool flat_ = false;
  std::vector<reading> how_;
};

}  // namespace

row_kernel_plan plan_pointwise(const row_program& p, std::span<const tensor> in, std::span<const tensor> out,
                               bool dynamic) {
  return pointwise_writer(p, in, out, dynamic).plan();
}

}  // namespace kiln::hip
