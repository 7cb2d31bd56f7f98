// What becomes of programs, and of handles of their instructions, that are changed, copied, saved and loaded.
#include <filesystem>

#include "interface/migraphx/help.hpp"
#include "kiln/interface/migraphx/custom_op.hpp"
#include "kiln/interface/migraphx/quantize.hpp"
#include "kiln/interface/migraphx/save.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::migraphx {

using namespace test;
using testing::HasSubstr;
using testing::Not;

namespace {

const shape three(type_t::float_type, {3});
const parameter_map ones{{"x", floats({3}, {1, 1, 1})}};

struct negation {
  program p;
  instruction_ref x = p.main_module().add_parameter("x", three);
  instruction_ref y = p.main_module().add_instruction(operation("neg"), {x});
  instruction_ref returned = p.main_module().add_return({y});
};

TEST(changes, handles_of_a_rebuilt_module_are_stale) {
  negation n;
  module& m = n.p.main_module();
  quantize_fp16(n.p);
  for (const auto& call : std::vector<std::function<void()>>{[&] { m.replace_return({n.y}); },
                                                             [&] { m.add_instruction(operation("abs"), {n.x}); },
                                                             [&] { m.insert_instruction(n.y, operation("abs"), {}); }})
    EXPECT_THAT(message(call), HasSubstr("is stale: module 'main' was rebuilt"));
  EXPECT_EQ(of(n.p.run(ones).at(0)), numbers({-1, -1, -1}));
  const instruction_ref fresh = &m.instructions().front();
  m.replace_return({fresh});
  EXPECT_EQ(of(n.p.run(ones).at(0)), numbers({1, 1, 1}));
}

TEST(changes, a_compiled_program_stays_as_it_is) {
  const kiln::test::temporary_folder folder;
  const std::string file = folder / "changed.mxr";
  for (const bool in_main : {true, false}) {
    negation n;
    module& other = n.p.create_module("other");
    n.p.compile(target("ref"));
    const program before = n.p.clone();
    EXPECT_EQ(message([&] { n.p.run(ones); }), "");
    if (in_main)
      n.p.main_module().replace_return({n.x});
    else
      other.add_literal(floats({1}, {1}));
    const program after = n.p.clone();
    for (const program* p : {static_cast<const program*>(&n.p), &after}) {
      EXPECT_THAT(message([&] { p->run(ones); }), HasSubstr("changed after it was compiled for target 'ref'"));
      EXPECT_THAT(message([&] { p->run_async(ones, nullptr, ""); }), HasSubstr("changed after"));
      EXPECT_THAT(message([&] { save(*p, file); }), HasSubstr("changed after"));
      EXPECT_THAT(message([&] { save_buffer(*p); }), HasSubstr("changed after"));
    }
    EXPECT_EQ(of(before.run(ones).at(0)), numbers({-1, -1, -1}));
    EXPECT_FALSE(std::filesystem::exists(file));
  }
}

TEST(changes, a_module_has_one_return_and_it_is_last) {
  program p;
  module& m = p.main_module();
  const auto x = m.add_parameter("x", three);
  const auto returned = m.replace_return({x});
  EXPECT_EQ(of(p.run(ones).at(0)), numbers({1, 1, 1}));
  EXPECT_THAT(message([&] { m.add_return({x}); }), HasSubstr("'main' has one return"));
  const auto y = m.add_instruction(operation("neg"), {x});
  EXPECT_EQ(&m.instructions().back(), y);
  EXPECT_EQ(m.replace_return({y}), returned);
  EXPECT_EQ(&m.instructions().back(), returned);
  EXPECT_EQ(of(p.run(ones).at(0)), numbers({-1, -1, -1}));
}

// c ? x + x : x
struct choice {
  program p;
  module& m = p.main_module();
  module &then = p.create_module("then"), &other = p.create_module("else");
  instruction_ref c = m.add_parameter("c", shape(type_t::bool_type)), x = m.add_parameter("x", three);
  choice() {
    then.add_return({then.add_instruction(operation("add"), {x, x})});
    other.add_return({x});
    const auto made = m.add_instruction(operation("if"), {c}, {&then, &other});
    m.add_return({m.add_instruction(operation("get_tuple_elem"), {made})});
  }
  numbers when(const program& q, bool c_is) const {
    return of(q.run({{"c", scalar(type_t::bool_type, c_is)}, {"x", floats({3}, {1, 2, 3})}}).at(0));
  }
};

TEST(changes, modules_print_what_they_read_around_themselves) {
  const choice made;
  EXPECT_THAT(made.p.text_of(), HasSubstr("then:@0 = add(main:@1, main:@1) ->"));
}

TEST(changes, a_module_is_complete_before_an_operator_is_given_it) {
  choice made;
  EXPECT_EQ(made.when(made.p, true), numbers({2, 4, 6}));
  made.then.replace_return({made.x});
  const program copy = made.p.clone();
  for (const program* q : {static_cast<const program*>(&made.p), &copy})
    EXPECT_THAT(message([&] { made.when(*q, true); }), HasSubstr("'then' is complete before 'if' is given it"));
  EXPECT_THAT(message([&] { made.p.compile(target("ref")); }), HasSubstr("changed since"));
}

TEST(changes, a_rebuilt_program_with_bodies_is_copied) {
  choice made;
  quantize_fp16(made.p);
  EXPECT_THAT(made.p.text_of(), HasSubstr("add(main:(stale), main:(stale))"));
  program copy = made.p.clone();
  const program again = copy.clone();
  made.p.compile(target("cpu"));
  copy.compile(target("ref"));
  for (const program* q : {static_cast<const program*>(&made.p), static_cast<const program*>(&copy), &again}) {
    EXPECT_EQ(made.when(*q, true), numbers({2, 4, 6}));
    EXPECT_EQ(made.when(*q, false), numbers({1, 2, 3}));
  }
  const auto condition = made.m.add_parameter("other", shape(type_t::bool_type));
  EXPECT_THAT(message([&] {
                made.m.add_instruction(operation("if"), {condition}, {&made.then, &made.other});
              }),
              HasSubstr("is stale"));
}

TEST(changes, the_main_module_reads_its_own_instructions_alone) {
  program p;
  module &m = p.main_module(), &other = p.create_module("other");
  const auto x = m.add_parameter("x", three);
  const auto y = other.add_instruction(operation("neg"), {x});
  const auto one = other.add_literal(floats({3}, {1, 1, 1}));
  for (const instruction_ref foreign : {y, one}) {
    EXPECT_THAT(message([&] { m.add_instruction(operation("add"), {x, foreign}); }), HasSubstr("of module 'other'"));
    EXPECT_THAT(message([&] { m.add_return({foreign}); }), HasSubstr("of module 'other'"));
  }
  EXPECT_EQ(m.instructions().size(), 1u);
}

TEST(changes, files_keep_options_results_and_optimals) {
  program p;
  const shape ranges(type_t::float_type, std::vector<dynamic_dimension>{{1, 8, {2, 4}}, {3, 3, {}}});
  const auto x = p.main_module().add_parameter("x", ranges);
  p.main_module().add_return({p.main_module().add_instruction(operation("neg"), {x})});
  for (const bool compiled : {false, true}) {
    if (compiled) p.compile(target("eigen"), {false, false, false});
    const program q = load_buffer(save_buffer(p));
    EXPECT_EQ(q.parameter_shapes().at("x"), ranges);
    ASSERT_EQ(q.is_compiled(), compiled);
    if (!compiled) continue;
    EXPECT_EQ(q.get_compiled()->target_name, "eigen");
    EXPECT_FALSE(q.get_compiled()->options.offload_copy);
    EXPECT_FALSE(q.get_compiled()->options.fast_math);
    EXPECT_FALSE(q.get_compiled()->options.exhaustive_tune);
    EXPECT_EQ(q.get_compiled()->result_names, p.get_compiled()->result_names);
  }
  program narrow;
  module& m = narrow.main_module();
  m.add_return({m.add_instruction(operation("neg"), {m.add_parameter("x", ranges)})});
  quantize_fp16(narrow);
  EXPECT_EQ(narrow.parameter_shapes().at("x"), ranges);
}

TEST(changes, files_keep_the_options_of_a_gpu) {
  std::unique_ptr<kiln::target> gpu;
  try {
    gpu = named_target("gpu");
  } catch (const error&) {
  }
  if (!gpu || !gpu->get_device()) GTEST_SKIP() << "there is no GPU here";
  for (const bool offload : {false, true}) {
    negation n;
    n.p.compile(target("gpu"), {offload, true, false});
    const program q = load_buffer(save_buffer(n.p));
    EXPECT_EQ(q.get_compiled()->options.offload_copy, offload);
    EXPECT_EQ(q.parameter_names(), n.p.parameter_names());
    EXPECT_EQ(q.parameter_names().size(), offload ? 1u : 2u);
  }
}

TEST(changes, remarks_are_saved_and_a_damaged_note_is_refused) {
  program p;
  module& m = p.main_module();
  const auto x = m.add_parameter("x", three);
  m.add_return({m.add_instruction(operation("add"), {x, m.add_literal(floats({3}, {1e5, 0, 0}))})});
  quantize_fp16(p);
  ASSERT_EQ(p.remarks().size(), 1u);
  EXPECT_EQ(load_buffer(save_buffer(p)).remarks(), p.remarks());
  const kiln::program graph = p.graph();
  for (const char* note : {"{", "[]", R"({"optimals": {"x": 5}, "remarks": 1})", R"({"compiled": 3, "remarks": {}})"}) {
    const auto bytes = save_to_bytes({nullptr, &graph, {{"migraphx", note}}});
    EXPECT_THAT(message([&] { load_buffer(bytes); }), HasSubstr("the buffer is damaged: expected a note")) << note;
  }
  EXPECT_EQ(load_buffer(save_to_bytes({nullptr, &graph})).parameter_names(), p.parameter_names());
  const std::byte nothing[] = {std::byte{1}, std::byte{2}};
  EXPECT_THAT(message([&] { load_buffer(nothing); }), HasSubstr("the buffer: expected a saved program"));
}

TEST(changes, a_custom_ops_ranges_are_those_of_the_same_axis) {
  custom_op own;
  own.name = "like_first";
  own.compute_shape = [](const std::vector<shape>& in) { return in.at(0); };
  own.compute = [](const shape&, const std::vector<argument>& in) { return in[0]; };
  own.runs_on_offload_target = false;
  register_custom_op(own);
  program p;
  module& m = p.main_module();
  const shape ranges(type_t::float_type, std::vector<dynamic_dimension>{{1, 8, {}}, {1, 8, {}}});
  const auto x = m.add_parameter("x", ranges), y = m.add_parameter("y", ranges);
  m.add_return({m.add_instruction(operation("like_first"), {x, y})});
  p.compile(target("cpu"));
  const argument a = floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = floats({4, 5}, numbers(20, 7));
  const argument out = p.run({{"x", a}, {"y", b}}).at(0);
  EXPECT_EQ(out.get_shape(), a.get_shape());
  EXPECT_EQ(of(out), of(a));
}

}  // namespace
}  // namespace kiln::migraphx
