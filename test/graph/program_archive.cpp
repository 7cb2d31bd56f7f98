// Programs as bytes and back: every op with its attributes, every form of constants, bodies, and what is refused.
#include "kiln/graph/program_archive.hpp"

#include <gmock/gmock.h>

#include "kiln/core/object.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/graph/impl/own_ops.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/quant/integer_dot.hpp"
#include "kiln/pass/pipeline.hpp"

namespace my {

struct scaled {
  float by = 1;
  kiln::ints steps{};
  template <class T> constexpr T operator()(T x) const { return x * static_cast<T>(by); }
};

enum class side : std::uint8_t { left, right };
constexpr std::string_view to_string(side s) { return kiln::enumerator_name(s, {"left", "right"}); }

struct choosing {
  side at = side::left;
  bool both = false;
  std::int8_t shift = 0;
  template <class T> constexpr T operator()(T x) const { return x; }
};

}  // namespace my

namespace kiln {
namespace {

// A program's bytes, and the constants beside them.
struct archived {
  std::string bytes;
  std::vector<buffer> kept;

  explicit archived(const program& p) {
    archive_writer to;
    save_program(to, p, [&](const buffer& b) {
      kept.push_back(b);
      return kept.size() - 1;
    });
    bytes = to.bytes();
  }
  program restored(std::span<const op_table* const> own = {}) const { return from(bytes, own); }
  program from(std::string_view text, std::span<const op_table* const> own = {}) const {
    archive_reader reader(text, "it");
    return restore_program(
        reader,
        [&](std::uint64_t number, std::size_t least) {
          if (number >= kept.size() || kept[number].size() < least) raise(errc::malformed, "no such constant");
          return kept[number];
        },
        own);
  }
};

template <class Op> void expect_same_again(const Op& op) {
  archive_writer to;
  const operation before(op);
  before.save(to);
  archive_reader from(to.bytes(), std::string(before.name()));
  EXPECT_EQ(operation::restored(before.table(), from), before) << before.name();
  EXPECT_TRUE(from.at_end()) << before.name();
}

TEST(program_archive, every_op_comes_back) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (expect_same_again(default_registry::at<I>{}), ...); }
  (std::make_index_sequence<default_registry::size>{});
}

// Ops beside the registry are found by their names, too.
TEST(program_archive, a_program_of_ops_in_no_registry_comes_back) {
  builder b;
  const value x = b.input("x", dtype::f32, {2, 4, 4});
  const value stored = b.add(op::quantize_linear{dtype::i8}, x, b.scalar(dtype::f32, .5));
  b.output(b.add(op::integer_dot{}, stored, stored));
  b.output(x | op::det{});
  const value rate = b.scalar(dtype::i64, 8000), low = b.scalar(dtype::f32, 20.0F), high = b.scalar(dtype::f32, 3e3F);
  b.output(b.add(op::mel_weights{4, 64}, rate, low, high));
  const program p = b.finish();
  archive_writer to;
  save_program(to, p, [](const buffer&) { return std::uint64_t{0}; });
  archive_reader from(to.bytes(), "program");
  EXPECT_EQ(print(restore_program(from, [](std::uint64_t, std::size_t) { return buffer(); })).view(), print(p).view());
}

// What restoring an op of these bytes says.
template <class Op> std::string error_of_attributes(std::string_view bytes) {
  archive_reader from(bytes, "op");
  try {
    operation::restored(table_of<Op>(), from);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::malformed);
    return e.what();
  }
  return "no error";
}

TEST(program_archive, attributes_out_of_range_are_errors) {
  using ::testing::HasSubstr;
  const auto number = [](std::int64_t n) {
    archive_writer to;
    to.put_signed(n);
    return to.bytes();
  };
  EXPECT_EQ(error_of_attributes<op::convert>(number(28)), "no error");
  EXPECT_THAT(error_of_attributes<op::convert>(number(29)), HasSubstr("a choice"));
  EXPECT_EQ(error_of_attributes<my::choosing>(number(1) + number(1) + number(-128)), "no error");
  EXPECT_THAT(error_of_attributes<my::choosing>(number(2) + number(1) + number(0)), HasSubstr("a choice"));
  EXPECT_THAT(error_of_attributes<my::choosing>(number(-1) + number(1) + number(0)), HasSubstr("a choice"));
  EXPECT_THAT(error_of_attributes<my::choosing>(number(1) + number(2) + number(0)), HasSubstr("true or false"));
  EXPECT_THAT(error_of_attributes<my::choosing>(number(1) + number(0) + number(128)), HasSubstr("attribute's type"));
  EXPECT_THAT(error_of_attributes<my::scaled>("\xff\xff\xff\xff\x10"), HasSubstr("32 bits"));
  EXPECT_THAT(error_of_attributes<my::scaled>(std::string("\x01\x09", 2)), HasSubstr("lengths of a list"));
}

// The name that an op of these has; only names are asked for.
template <class... Ops> std::vector<std::string_view> names_of(type_list<Ops...>) { return {type_name<Ops>()...}; }

// Operations of a unit have the tables that kiln compiled once, which are found by name.
template <class... Ops> void check_tables(type_list<Ops...>) {
  for (const op_table* t : {&table_of<Ops>()...}) EXPECT_EQ(t, detail::find_own_op(t->name)) << t->name;
}

TEST(program_archive, ops_beside_the_default_registry_are_found) {
  std::vector<std::string_view> names = names_of(more_ops{});
  for (const char* name :
       {"loop", "branch", "nonzero", "integer_dot", "float8_dot", "integer_convolution", "sequence_at", "zip_maps"})
    names.push_back(name);
  for (const std::string_view name : names) EXPECT_NE(detail::find_own_op(name), nullptr) << name;
  EXPECT_EQ(detail::find_own_op("scaled"), nullptr);
  check_tables(more_ops{});
  check_tables(type_list<op::loop, op::integer_dot, op::relu>{});
  program p;
  const value_id x = p.main().add_parameter("x", {dtype::f32, {4, 4}});
  p.main().add(op::det{}, {x});
  EXPECT_TRUE(archived(p).restored().main()[1].op.is<op::det>());
}

TEST(program_archive, attributes_of_every_sort_come_back) {
  expect_same_again(op::slice{{0, 2}, {dimension::symbol("n"), -1}, {dimension::symbol("n") + 3, 7}, {1, -2}});
  expect_same_again(op::convolution{.stride = {2, 1}, .dilation = {1, 3}, .pads = {0, 1, 2, 3}, .group = 4});
  expect_same_again(op::leaky_relu{0.3f});
  expect_same_again(op::gather{2});
  expect_same_again(op::convert{dtype::bf16});
  expect_same_again(my::scaled{2.5f, {1, 2, 3}});
}

program with_everything() {
  builder b;
  const value x = b.input("x", dtype::f32, {dimension::symbol("batch", 1, 8), 64});
  std::vector<float> weights(64 * 32);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  const value w = b.constant(literal::of<float>({dtype::f32, {64, 32}}, weights));
  b.output((x.dot(w) + 1.0f).relu(), "positive");
  b.output(x.reduce_mean({1}), "mean");
  program p = b.finish();
  optimize(p);
  return p;
}

TEST(program_archive, a_program_prints_the_same_again) {
  const program p = with_everything();
  const archived a(p);
  EXPECT_EQ(a.kept.size(), 1u);  // a scalar stands in the program itself
  const program again = a.restored();
  EXPECT_EQ(std::string(print(again).view()), std::string(print(p).view()));
  EXPECT_EQ(archived(again).bytes, a.bytes);
}

TEST(program_archive, constants_of_every_form_come_back) {
  program p;
  module_graph& m = p.main();
  const auto add = [&](literal l, std::string_view name) {
    const value_id v = m.add_literal(std::move(l));
    m.outputs.push_back(v);
    m.output_names.push_back(text(name));
  };
  const float small[] = {1, 2, 3};
  add(literal::of<float>({dtype::f32, {3}}, small), "in place");
  add(literal::of<double>({dtype::f16, {100}}, std::vector<double>(100, 0.5)), "kept");
  add(literal({dtype::f32, {1000}}, buffer()), "absent");
  add(literal::of_dimensions({2}, {dimension::symbol("n"), 4}), "symbolic");
  const std::string words[] = {"", "two", std::string("t\0w", 3)};
  add(string_argument({3}, words).to_literal(), "strings");
  const std::complex<double> z[] = {{1, -2}};
  add(complex_argument(dtype::c64, {1}, z).to_literal(), "complex");
  add(sequence_argument({argument::of<float>({3}, small), string_argument({1}, {words + 1, 1})}).to_literal(), "list");
  add(optional_argument(argument::of<float>({3}, small)).to_literal(), "optional");
  add(empty_optional().to_literal(), "nothing");
  const std::int64_t keys[] = {3, 5};
  add(map_argument(argument::of<std::int64_t>({2}, keys),
                   {argument::of<float>({}, {small, 1}), argument::of<float>({}, {small + 1, 1})})
          .to_literal(),
      "map");
  const archived a(p);
  const program again = a.restored();
  ASSERT_EQ(again.main().size(), m.size());
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    SCOPED_TRACE(m.output_names[i].str());
    const literal &before = m[i].constant, &after = again.main()[i].constant;
    EXPECT_EQ(after.get_shape(), before.get_shape());
    EXPECT_EQ(again.main().output_names[i], m.output_names[i]);
    if (before.has_symbols())
      EXPECT_EQ(after.to<dimension>()[0], before.to<dimension>()[0]);
    else if (before.bytes())
      EXPECT_TRUE(equal_values(argument(after), argument(before)));
    else
      EXPECT_EQ(after.bytes(), nullptr);
  }
}

TEST(program_archive, a_users_op_needs_its_table) {
  builder b;
  b.output(b.add(my::scaled{3}, {b.input("x", dtype::f32, {4})}), "y");
  const archived a(b.finish());
  const op_table* const tables[] = {&table_of<my::scaled>()};
  EXPECT_EQ(a.restored(tables).main()[1].op, operation(my::scaled{3}));
  try {
    a.restored();
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::not_found);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("scaled"));
  }
}

// ---- programs that nobody compiled

// What reading such a program says.
std::string refusal_of(const program& p) {
  const archived a(p);
  try {
    a.restored();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::malformed);
    return e.what();
  }
  return "no error";
}

// A module that takes x and calls these bodies with it, one after another.
module_graph calling(std::initializer_list<std::uint32_t> bodies) {
  module_graph m;
  value_id x = m.add_parameter("x", {dtype::f32, {4}});
  for (const std::uint32_t body : bodies)
    x = m.add_with_shapes(op::fused{fusion::pointwise, {body}}, {x}, {shape(dtype::f32, {4})});
  m.outputs.push_back(x);
  m.output_names.push_back("y");
  return m;
}
program of_modules(std::initializer_list<module_graph> all) {
  program p;
  p.main() = *all.begin();
  for (std::size_t k = 1; k < all.size(); ++k) p.add_module(all.begin()[k]);
  return p;
}

TEST(program_archive, modules_that_call_themselves_are_refused) {
  using ::testing::HasSubstr;
  EXPECT_EQ(refusal_of(of_modules({calling({1, 2}), calling({2}), calling({})})), "no error");
  EXPECT_THAT(refusal_of(of_modules({calling({1}), calling({1})})), HasSubstr("calls itself"));
  EXPECT_THAT(refusal_of(of_modules({calling({1}), calling({2}), calling({3}), calling({1})})),
              HasSubstr("calls itself"));
  EXPECT_THAT(refusal_of(of_modules({calling({}), calling({2}), calling({1})})), HasSubstr("calls itself"));
  EXPECT_THAT(refusal_of(of_modules({calling({0})})), HasSubstr("a body of instruction 1"));
  EXPECT_THAT(refusal_of(of_modules({calling({7})})), HasSubstr("a body of instruction 1"));
}

TEST(program_archive, calls_that_grow_without_end_are_refused) {
  using ::testing::HasSubstr;
  program deep, wide;
  deep.main() = wide.main() = calling({1});
  for (std::uint32_t k = 1; k < 50; ++k) wide.add_module(calling({k + 1, k + 1}));  // 2^50 calls
  wide.add_module(calling({}));
  EXPECT_THAT(refusal_of(wide), HasSubstr("those of bodies at each call"));
  for (std::uint32_t k = 1; k < 2000; ++k) deep.add_module(calling({k + 1}));
  deep.add_module(calling({}));
  EXPECT_THAT(refusal_of(deep), HasSubstr("100 deep"));
}

TEST(program_archive, calls_that_do_not_fit_their_bodies_are_refused) {
  using ::testing::HasSubstr;
  program p = of_modules({calling({1}), calling({})});
  p.module({1}).add_parameter("z", {dtype::f32, {4}});
  EXPECT_THAT(refusal_of(p), HasSubstr("as many inputs as the body has parameters"));
  module_graph loop;
  small_vector<value_id> in;
  in.push_back(loop.add_parameter("n", {dtype::i64, {}}));
  in.push_back(loop.add_parameter("go", {dtype::boolean, {}}));
  loop.add_with_shapes(op::loop{{1}, 0}, in, {shape(dtype::f32, {4})});
  EXPECT_THAT(refusal_of(of_modules({loop, calling({})})), HasSubstr("bodies that take and give"));
  module_graph branch;
  const value_id c = branch.add_parameter("c", {dtype::boolean, {}});
  branch.add_with_shapes(op::branch{{1}, {1}, 5}, {c}, {shape(dtype::f32, {4})});
  EXPECT_THAT(refusal_of(of_modules({branch, calling({})})), HasSubstr("bodies that take and give"));
}

TEST(program_archive, values_and_names_that_do_not_fit_are_refused) {
  using ::testing::HasSubstr;
  module_graph m = calling({});
  m.add_parameter("x", {dtype::f32, {4}});
  EXPECT_THAT(refusal_of(of_modules({m})), HasSubstr("found 'x' twice"));
  module_graph later;
  const value_id x = later.add_parameter("x", {dtype::f32, {4}});
  later.add_with_shapes(op::relu{}, {value_id{1, 0}}, {shape(dtype::f32, {4})});
  EXPECT_THAT(refusal_of(of_modules({later})), HasSubstr("one of 1 earlier instructions"));
  later = {};
  later.add_parameter("x", {dtype::f32, {4}});
  later.add_with_shapes(op::relu{}, {value_id{x.instruction, 3}}, {shape(dtype::f32, {4})});
  EXPECT_THAT(refusal_of(of_modules({later})), HasSubstr("one of 1 results"));
  later = {};
  later.add_parameter("x", {dtype::f32, {4}});
  later.add_with_shapes(op::relu{}, {x}, {shape(dtype::f32, {5})});
  EXPECT_THAT(refusal_of(of_modules({later})), HasSubstr("the shape rule agrees with the result"));
}

TEST(program_archive, cut_bytes_are_errors) {
  const archived a(with_everything());
  for (std::size_t n = 0; n < a.bytes.size(); ++n)
    EXPECT_THROW(a.from(std::string_view(a.bytes).substr(0, n)), error) << n << " bytes";
}

TEST(program_archive, changed_bytes_are_errors_or_other_programs) {
  const archived a(with_everything());
  for (std::size_t at = 0; at < a.bytes.size(); ++at)
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string changed = a.bytes;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      try {
        a.from(changed);
      } catch (const error&) {
      }
    }
}

}  // namespace
}  // namespace kiln
