#include "kiln/pass/pipeline.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "kiln/pass/passes.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

// A small convolutional classifier: every stage of the pipeline has something to do.
template <class Builder> constexpr auto classifier() {
  Builder b;
  const auto x = b.input("image", dtype::f32, {1, 1, 6, 6});
  const auto w = b.weight("w", dtype::f32, {2, 1, 3, 3}), bias = b.weight("bias", dtype::f32, {2});
  const auto y = x.conv(w, {.pads = {1, 1, 1, 1}});
  const auto h = (y + y.make_along(1, bias)).relu().reshape({1, 72}).reshape({1, 72});
  const auto v = b.weight("v", dtype::f32, {72, 4});
  b.output((h.dot(v) * 1.0f + (b.scalar(dtype::f32, 1.0f) + 2.0f)).softmax(), "scores");
  return b.finish();
}

template <class Program> constexpr Program optimized(Program p, const pass_options& options = {}) {
  optimize_graph(p, options);
  return p;
}

using whole_registry = static_graph<>;
constexpr std::string_view optimized_text = R"(main:
  %0 = image : f32[1, 1, 6, 6]
  %1 = @w : f32[2, 1, 3, 3]
  %2 = @bias : f32[2]
  %3 = @v : f32[72, 4]
)";
static_assert(kernel_count(optimized(classifier<static_builder<>>())) == 3);
static_assert(print(optimized(classifier<static_builder<>>())).view().substr(0, optimized_text.size()) ==
              optimized_text);

// the text that the compiler found, as data
constexpr auto compiled_text = [] {
  const text t = print(optimized(classifier<static_builder<>>()));
  std::array<char, 4096> out{};
  for (std::size_t i = 0; i < t.size(); ++i) out[i] = t.view()[i];
  return out;
}();

TEST(pipeline, prints_the_same_in_the_compiler_and_at_run_time) {
  program p = classifier<builder>();
  optimize(p);
  EXPECT_EQ(print(p).view(), std::string_view(compiled_text.data()));
}

TEST(pipeline, keeps_the_meaning) {
  const program before = classifier<builder>();
  program p = before;
  optimize(p, {.verify = true});
  EXPECT_LE(difference(before, p), 1e-6) << print(p).view();
}

std::size_t fused_steps(const program& p) {
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    n += p.main()[i].kind == instruction_kind::op && p.main()[i].op.kind() == op_kind::control;
  return n;
}

TEST(pipeline, options_choose_its_parts) {
  program unfused = classifier<builder>(), untouched = unfused;
  const text before = print(untouched);
  optimize(unfused, {.fuse = false});
  EXPECT_EQ(fused_steps(unfused), 0u);
  EXPECT_LT(unfused.main().size(), untouched.main().size());
  const compile_notes notes = optimize(untouched, {.simplify = false, .fuse = false});
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(print(untouched).view(), before.view());
}

TEST(pipeline, notes_name_every_pass_once_in_order) {
  program p = classifier<builder>();
  const compile_notes notes = optimize(p);
  ASSERT_EQ(notes.size(), std::size(simplifying_passes<program>) + std::size(fusing_passes<program>));
  std::size_t at = 0;
  for (const auto& pass : simplifying_passes<program>) EXPECT_EQ(notes[at++].pass, pass.name);
  for (const auto& pass : fusing_passes<program>) EXPECT_EQ(notes[at++].pass, pass.name);
  EXPECT_NE(notes[0].pass, "");
}

// a pass of the caller's own: every relu becomes a leaky one
pass_note leak(program& p) {
  pass_note note("leak");
  note.count(apply_rewrites(
      p.main(), rewrite{"relu to leaky_relu", match::op<op::relu>(match::capture<0>{}),
                        [](auto& r, const captures& c, value_id) { return r.add(op::leaky_relu{0.5f}, {c[0]}); }}));
  return note;
}

TEST(pipeline, runs_passes_of_the_caller_before_fusion) {
  program p = classifier<builder>();
  pass_options options;
  options.extra.push_back({"leak", leak});
  const compile_notes notes = optimize(p, options);
  EXPECT_EQ(notes[std::size(simplifying_passes<program>)].pass, "leak");
  EXPECT_EQ(notes[std::size(simplifying_passes<program>)].counts.total(), 1u);
  EXPECT_NE(print(p).str().find("leaky_relu"), std::string::npos);
  EXPECT_EQ(kernel_count(p), 3u);  // it fuses like any other
}

TEST(pipeline, shows_the_program_behind_every_pass) {
  program p = classifier<builder>();
  std::string seen;
  pass_options options;
  options.observer = {[](void* context, const pass_note& note, const program& after) {
                        EXPECT_GT(after.main().size(), 0u);
                        *static_cast<std::string*>(context) += std::string(note.pass) + ' ';
                      },
                      &seen};
  optimize(p, options);
  EXPECT_TRUE(seen.starts_with("normalize remove_identity constant_folding ")) << seen;
  EXPECT_TRUE(seen.ends_with(" fuse_contraction fuse_reduce fuse_pointwise ")) << seen;
}

pass_note break_graph(program& p) {
  p.main()[static_cast<std::uint32_t>(p.main().size() - 1)].results[0].lens = {7};
  return pass_note("break_graph");
}

TEST(pipeline, the_verifier_names_a_broken_instruction) {
  program p = classifier<builder>();
  pass_options options;
  options.verify = true;
  options.extra.push_back({"break_graph", break_graph});
  EXPECT_THROW(optimize(p, options), error);
}

}  // namespace
}  // namespace kiln::test
