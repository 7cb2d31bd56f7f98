#pragma once
#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"
#include "kiln/lower/memory_plan.hpp"

/// Memory plans as text, made by an executor whose kernels' limits hang on their ops.
namespace kiln::testing {

/// `neg` writes a result as a whole, `floor` rows, `sin` and `tanh` also channels as two dims, others any strides;
/// results of `tanh` and of views of them prefer NHWC; `sqrt` reads row-major operands, `cos` NHWC; `abs` holds
/// constants itself.
template <class Program, bool Callers> class printed_plan {
 public:
  static constexpr bool callers_outputs = Callers;

  constexpr explicit printed_plan(const Program& p) : graph_(p.main()), values_(p, *this) {}

  constexpr text print(std::span<const lower::growing_output> growing) {
    values_.grow(growing);
    std::uint32_t left = lower::none;
    for (std::uint32_t i = 0; i < graph_.size(); ++i)
      if (is<op::abs>(i)) left = values_.readers().leave(graph_, i, graph_[i].inputs[0]);
    for (std::uint32_t i = 0; i < graph_.size(); ++i) values_.place(i);
    for (std::uint32_t k = 0; k < graph_.outputs.size(); ++k) values_.place_output(k);
    if constexpr (!Callers) bytes_ = values_.share_arena();
    text out;
    for (const step& s : steps_) {
      out.append(s.name).append('(');
      put_all(out, s.in);
      put_all(out.append(std::string_view(") > ")), s.out);
      out.append('\n');
    }
    put_all(out.append(std::string_view("return ")), values_.outputs());
    if (!values_.constants().empty())
      out.append(std::string_view("; constants: ")).append(static_cast<std::int64_t>(values_.constants().size()));
    if (left != lower::none) out.append(std::string_view("; nothing reads ")).append(graph_[left].name.view());
    return out;
  }

  // ---- for the memory plan
  constexpr bool prefers_nhwc(value_id v) const {
    while (is_view(graph_.producer(v))) v = graph_.producer(v).inputs[0];
    return is<op::tanh>(v.instruction);
  }
  constexpr std::optional<layout> operand_of_nhwc_view(std::uint32_t i) const {
    if (!prefers_nhwc({i, 0}) || !is<op::reshape>(i)) return std::nullopt;
    const dims& lens = graph_[i].results[0].lens;
    return reshape_layout({lens, lower::nhwc_strides(lens)}, graph_.shape_of(graph_[i].inputs[0]).lens);
  }
  constexpr bool writes(value_id v, const layout& where) const {
    if (where.lens.size() != graph_.shape_of(v).rank())
      return is<op::sin>(v.instruction) || is<op::tanh>(v.instruction);
    if (is<op::floor>(v.instruction)) return lower::accepts(lower::stride_support::rows, where);
    return !is<op::neg>(v.instruction);
  }
  constexpr void make_step(std::uint32_t i) {
    step s;
    s.name = text(graph_[i].op.name());
    for (const value_id v : graph_[i].inputs) {
      if (is<op::abs>(i)) continue;
      lower::placement at = values_.placement_of(v);
      const bool nhwc = is<op::cos>(i);
      if (nhwc ? !lower::is_nhwc(at.where) : is<op::sqrt>(i) && !at.where.dense())
        at = values_.copy_of(v, nhwc, "copy");
      s.in.push_back(at);
    }
    for (std::uint32_t r = 0; r < graph_[i].results.size(); ++r) s.out.push_back(values_.result({i, r}));
    add(std::move(s));
  }
  constexpr void make_copy(const lower::placement& from, const lower::placement& to, const shape&,
                           std::string_view why) {
    step s;
    s.name = text("copy for ");
    s.name.append(why);
    s.in.push_back(from);
    s.out.push_back(to);
    add(std::move(s));
  }

  constexpr const auto& values() const { return values_; }
  constexpr std::int64_t bytes() const { return bytes_; }

 private:
  struct step {
    text name;
    small_vector<lower::placement> in, out;
  };

  template <class Op> constexpr bool is(std::uint32_t i) const {
    return graph_[i].kind == instruction_kind::op && graph_[i].op.template is<Op>();
  }
  constexpr void add(step s) {
    small_vector<std::uint32_t> touched;
    for (const auto& at : s.in) touched.push_back(at.buffer);
    for (const auto& at : s.out) touched.push_back(at.buffer);
    values_.add_step(touched);
    steps_.push_back(std::move(s));
  }
  constexpr void put_all(text& out, const small_vector<lower::placement>& all) const {
    for (std::size_t k = 0; k < all.size(); ++k) put(out.append(std::string_view(k ? ", " : "")), all[k]);
  }
  // A letter for the kind of the buffer, its number (in the arena by first use), and strides that are not row-major.
  constexpr void put(text& out, const lower::placement& at) const {
    const lower::buffer& b = values_.buffers()[at.buffer];
    std::int64_t number = b.index;
    if (b.kind == lower::memory::arena)
      for (number = 0; values_.arena()[static_cast<std::size_t>(number)] != at.buffer;) ++number;
    out.append("aiowcsp"[static_cast<int>(b.kind)]).append(number);
    if (!at.where.dense()) {
      for (std::size_t d = 0; d < at.where.strides.size(); ++d)
        out.append(d ? ',' : '[').append(at.where.strides[d].value());
      out.append(']');
    }
    if (at.where.offset.value() != 0) out.append('+').append(at.where.offset.value());
  }

  const typename Program::module_type& graph_;
  lower::memory_plan<Program, printed_plan> values_;
  small_vector<step> steps_;
  std::int64_t bytes_ = 0;
};

template <class Builder, bool Callers, class Build>
constexpr auto planned(Build build, std::span<const lower::growing_output> growing = {}) {
  Builder b;
  build(b);
  const auto p = b.finish();
  return printed_plan<std::remove_cvref_t<decltype(p)>, Callers>(p).print(growing);
}

}  // namespace kiln::testing

/// The plan of `build` is that text, at run time and in constant evaluation.
#define KILN_EXPECT_PLAN(callers, build, expected)                                                             \
  static_assert(kiln::testing::planned<kiln::static_builder<>, callers>(build) == std::string_view(expected)); \
  EXPECT_EQ((kiln::testing::planned<kiln::builder, callers>(build).view()), std::string_view(expected))
