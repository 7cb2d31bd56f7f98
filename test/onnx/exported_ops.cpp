#include <gtest/gtest.h>

#include <set>

#include "kiln/onnx/export.hpp"
#include "kiln/onnx/import.hpp"
#include "onnx/every_op.hpp"

// Every op is written as ONNX, and gives the same when it comes back.
namespace kiln::testing {
namespace {

TEST(exported_ops, come_back_as_they_went) {
  const reference_target reference;
  for (const op_program& o : every_op_program()) {
    SCOPED_TRACE(o.name);
    builder b;
    o.make(b);
    const program p = b.finish();
    const std::string bytes = onnx::export_model(p);
    const program again = onnx::parse_model(std::as_bytes(std::span(bytes))).graph;
    const auto given = inputs_of(p, o);
    const auto expected = compile(p, reference).run(given), found = compile(again, reference).run(given);
    ASSERT_EQ(found.size(), expected.size());
    const bool narrow = o.type == dtype::f16 || o.type == dtype::bf16;
    for (std::size_t k = 0; k < found.size(); ++k)
      expect_close(found[k], expected[k], narrow ? tolerance{4e-2, 2e-2} : tolerance{});
  }
}

TEST(exported_ops, are_all_ops) {
  std::set<std::string_view> seen{"fused", "random_uniform", "recurrent"};  // a group, a draw, a layer of its own tests
  const auto all = every_op_program();
  for (const op_program& o : all) seen.insert(o.op);
  const auto check = [&]<class... Ops>(type_list<Ops...>) {
    for (const std::string_view name : {std::string_view(info_of<Ops>().name)...})
      EXPECT_TRUE(seen.contains(name)) << name << " is never written as ONNX";
  };
  check(default_registry::types{});
  check(more_ops{});
}

TEST(exported_ops, rates_of_mel_weights_stay_what_they_are) {
  const auto code = [](const std::function<value(builder&)>& rate) {
    builder b;
    const value low = b.input("lowest", dtype::i64, {}), high = b.scalar(dtype::f32, 3900.0F);
    b.output(b.add(op::mel_weights{8, 64}, rate(b), low, high), "y");
    return error_of([&] { (void)onnx::export_model(b.finish()); }).first;
  };
  EXPECT_EQ(code([](builder& b) { return b.scalar(dtype::f32, 11025.5F); }), errc::unsupported);
  EXPECT_EQ(code([](builder& b) { return b.input("rate", dtype::f32, {}); }), errc::unsupported);
}

TEST(exported_models, keep_metadata) {
  builder b;
  b.output(b.input("x", dtype::f32, {2}).relu(), "y");
  const std::string bytes = onnx::export_model(b.finish(), {{{"task", "none"}, {"labels", "a,b"}}});
  const auto read = onnx::parse_model(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(read.metadata, (std::vector<std::pair<std::string, std::string>>{{"task", "none"}, {"labels", "a,b"}}));
}

}  // namespace
}  // namespace kiln::testing
