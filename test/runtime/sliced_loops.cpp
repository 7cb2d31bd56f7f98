// Bodies of loops that are given slices.
#include <algorithm>
#include <numeric>

#include "kiln/backend/reference/reference_target.hpp"
#include "runtime/loop_programs.hpp"
#include "runtime/recording_device.hpp"

namespace kiln::testing {
namespace {

// A body that reads 5 rows of extents `row` only at its iteration's number is given them, on the host and on devices,
// wherever they lie; one that reads them elsewhere, too, is given all.
program rows_program(const dims& row, bool elsewhere) {
  dims all = row, stacked = row;
  all.insert(0, 5), stacked.insert(0, dimension::symbol("rounds"));
  builder body;
  const value number = body.input("number", dtype::i64, {}), go = body.input("go", dtype::boolean, {}),
              sum = body.input("sum", dtype::f32, row), rows = body.input("rows", dtype::f32, all);
  const std::int64_t axis = -static_cast<std::int64_t>(all.size());
  value one = body.add(op::gather{.axis = axis}, rows, number);
  if (elsewhere)
    one = one +
          body.add(op::gather{}, rows,
                   number - body.constant(literal::of<std::int64_t>({dtype::i64, {}}, std::vector<std::int64_t>{1})));
  body.output(go);
  body.output(sum + one);
  body.output(one + one);
  program p;
  module_graph& m = p.main();
  small_vector<value_id> in;
  in.push_back(m.add_parameter("most", {dtype::i64, {}}));
  in.push_back(m.add_parameter("begins", {dtype::boolean, {}}));
  in.push_back(m.add_parameter("first", {dtype::f32, row}));
  in.push_back(m.add_parameter("rows", {dtype::f32, all}));
  const module_ref iteration = p.add_module(module_graph(body.finish().main()));
  const value_id made =
      p.main().add_with_shapes(op::loop{iteration, 1}, in, {shape(dtype::f32, row), shape(dtype::f32, stacked)});
  for (const char* const name : {"last", "all"}) {
    p.main().outputs.push_back({made.instruction, static_cast<std::uint32_t>(p.main().outputs.size())});
    p.main().output_names.push_back(text(name));
  }
  return p;
}

std::vector<float> values_of(const argument& a) {
  const auto v = a.to<float>();
  return {v.begin(), v.end()};
}

class sliced_loops : public ::testing::Test {
 protected:
  const aligned_target own;
  const fake::gpu_target copying;
  const recording_target recording;
  const reference_target host;
  const std::vector<const target*> targets{&own, &copying, &recording, &host};
};

// Runs a program of rows that lie at `rows`: by `at(r, i)` element i of row r.
template <class At>
void expect_rows(const executable& exe, workspace& w, std::int64_t most, const argument& rows, bool elsewhere,
                 const At& at) {
  dims row = rows.get_shape().lens;
  row.erase(0);
  std::vector<float> sum(static_cast<std::size_t>(product(row).value()), 1), all;
  std::vector<argument> in = loop_inputs(most, true, argument::of<float>(row, sum)), out(2);
  in[3] = rows;
  exe.run(w, in, out);
  for (std::int64_t k = 0; k < most; ++k)
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const float one = at(k, i) + (elsewhere ? at((k + 4) % 5, i) : 0);
      sum[i] += one, all.push_back(one + one);
    }
  EXPECT_EQ(values_of(out[0]), sum);
  EXPECT_EQ(values_of(out[1]), all);
}

TEST_F(sliced_loops, read_where_slices_lie) {
  for (const target* t : targets)
    for (const std::int64_t n : {3, 4})
      for (const bool elsewhere : {false, true}) {
        SCOPED_TRACE(::testing::Message() << t->name() << ' ' << n << elsewhere);
        const executable exe = compile(rows_program({n}, elsewhere), *t);
        std::vector<float> first(static_cast<std::size_t>(n), 1), values(static_cast<std::size_t>(5 * n));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 17);
        const argument rows = argument::of<float>({5, n}, values);
        workspace w = exe.make_workspace();
        for (const std::int64_t most : {1, 4, 5})
          expect_rows(exe, w, most, most == 4 && t->has_device() ? on_device(*t->get_device(), rows) : rows, elsewhere,
                      [&](std::int64_t r, std::size_t i) { return values[static_cast<std::size_t>(r * n) + i]; });
        const auto& remarks = exe.report().remarks;
        const bool gathers = std::any_of(remarks.begin(), remarks.end(),
                                         [](const auto& r) { return r.find("a body of 2 kernels") == r.npos; });
        EXPECT_EQ(gathers, elsewhere);
        std::vector<argument> in = loop_inputs(6, true, argument::of<float>({n}, first)), out(2);
        in[3] = rows;
        try {
          exe.run(w, in, out);
          ADD_FAILURE() << "there is no row 5";
        } catch (const error& e) {
          EXPECT_NE(std::string(e.what()).find("an index lies within the extent"), std::string::npos) << e.what();
        }
      }
}

// Scans along other axes and backward hand on what they scan as it lies. Each case runs alone, too: then slices of the
// device's memory are copied one by one.
TEST_F(sliced_loops, read_slices_of_any_strides) {
  struct placed {
    dims row, strides;  // of rows and their elements
    std::size_t first;  // element 0 of row 0
  };
  const std::vector<placed> cases{{{3}, {1, 5}, 0},        {{4}, {1, 5}, 0},  {{3}, {-3, 1}, 12},
                                  {{4}, {-4, 1}, 16},      {{4}, {-1, 5}, 4}, {{3}, {0, 1}, 0},
                                  {{4}, {8, 2}, 0},        {{4}, {4, -1}, 3}, {{4}, {8, 1}, 0},
                                  {{4}, {1, 0}, 0},        {{}, {1}, 0},      {{}, {3}, 0},
                                  {{}, {-1}, 4},           {{}, {0}, 0},      {{2, 3}, {2, 1, 10}, 0},
                                  {{2, 3}, {-6, 3, 1}, 24}};
  std::vector<float> values(40);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 31);
  const argument all = argument::of<float>({40}, values);
  for (const target* t : targets)
    for (const placed& c : cases) {
      dims lens = c.row;
      lens.insert(0, 5);
      const executable exe = compile(rows_program(c.row, false), *t);
      const std::vector<std::int64_t> places = [&] {  // of a row's elements
        std::vector<std::int64_t> out{0};
        for (std::size_t d = 0; d < c.row.size(); ++d) {
          std::vector<std::int64_t> longer;
          for (const std::int64_t p : out)
            for (std::int64_t i = 0; i < c.row[d].value(); ++i) longer.push_back(p + i * c.strides[d + 1].raw());
          out = longer;
        }
        return out;
      }();
      for (const bool there : {false, true}) {
        if (there && !t->has_device()) continue;
        const argument held = there ? on_device(*t->get_device(), all) : all;
        const argument rows({dtype::f32, lens, c.strides}, const_cast<std::byte*>(held.data()) + 4 * c.first);
        workspace w = exe.make_workspace();
        for (const std::int64_t most : {1, 5, 5, 5}) {
          SCOPED_TRACE(::testing::Message()
                       << t->name() << ' ' << to_string(shape(dtype::f32, c.strides)) << there << most);
          expect_rows(exe, w, most, rows, false, [&](std::int64_t r, std::size_t i) {
            return values[static_cast<std::size_t>(static_cast<std::int64_t>(c.first) + r * c.strides[0].raw() +
                                                   places[i])];
          });
        }
      }
    }
}

// An extent that is a symbol of the body alone is known by the whole value, which the body then keeps; where nothing
// else mentions the symbol, it is given slices.
TEST_F(sliced_loops, keep_a_value_whose_extent_is_asked_for) {
  const auto make = [](const dimension m, bool asks) {
    builder body;
    const value number = body.input("number", dtype::i64, {}), go = body.input("go", dtype::boolean, {}),
                sum = body.input("sum", dtype::f32, {3}), rows = body.input("rows", dtype::f32, {m, 3}),
                more = body.input("more", dtype::f32, {m, 3});
    body.output(go);
    value next = sum + body.add(op::gather{}, rows, number) + body.add(op::gather{}, more, number);
    if (asks)
      next = next + body.add(op::convert{.to = dtype::f32},
                             body.constant(literal::of_dimensions({1}, small_vector<dimension>{m})));
    body.output(next);
    program p;
    module_graph& main = p.main();
    small_vector<value_id> in;
    in.push_back(main.add_parameter("most", {dtype::i64, {}}));
    in.push_back(main.add_parameter("begins", {dtype::boolean, {}}));
    in.push_back(main.add_parameter("first", {dtype::f32, {3}}));
    in.push_back(main.add_parameter("rows", {dtype::f32, {5, 3}}));
    in.push_back(main.add_parameter("more", {dtype::f32, {5, 3}}));
    const module_ref iteration = p.add_module(module_graph(body.finish().main()));
    p.main().outputs.push_back(p.main().add_with_shapes(op::loop{iteration, 1}, in, {shape(dtype::f32, {3})}));
    p.main().output_names.push_back(text("last"));
    return p;
  };
  const dimension m = dimension::symbol("m");
  std::vector<float> values(15);
  std::iota(values.begin(), values.end(), 1.f);
  for (const target* t : targets)
    for (const bool asks : {false, true}) {
      SCOPED_TRACE(::testing::Message() << t->name() << asks);
      const executable exe = compile(make(m, asks), *t), sized = compile(make(5, false), *t);
      EXPECT_EQ(exe.report().remarks == sized.report().remarks, !asks);
      std::vector<argument> in = loop_inputs(4, true, argument::of<float>({3}, std::vector<float>{1, 2, 3})), out(1);
      in[3] = argument::of<float>({5, 3}, values);
      in.push_back(in[3]);
      workspace w = exe.make_workspace();
      exe.run(w, in, out);
      const float extents = asks ? 4 * 5 : 0;
      EXPECT_EQ(values_of(out[0]), (std::vector<float>{45 + extents, 54 + extents, 63 + extents}));
    }
}

}  // namespace
}  // namespace kiln::testing
