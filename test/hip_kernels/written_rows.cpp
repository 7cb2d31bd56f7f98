// Kernels of pointwise groups and of rows as they are written for certain layouts, run on the emulated device.
#include <gmock/gmock.h>

#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/lower.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/op/ops.hpp"
#include "written_kernels.hpp"

namespace kiln::hip {
namespace {

// An operand over memory of its own; steps of 0 repeat elements.
struct operand {
  dtype type = dtype::f32;
  ints lens, strides;
  std::size_t skipped = 0;  // bytes before the first element, behind an address that 16 divides
};

// A case: x and y, each converted to the result's type, and their sum.
struct sum_case {
  std::string name;
  operand x, y, sum;
  std::string_view expected;  // in the text
  bool dynamic = false;
};

struct memory {
  explicit memory(const operand& o) : of(o) {
    std::int64_t reach = 1;
    for (std::size_t d = 0; d < o.lens.size(); ++d) reach += (o.lens[d] - 1) * std::abs(o.strides[d]);
    elements = static_cast<std::size_t>(reach);
    bytes.resize(elements * size_of(o.type) + o.skipped + 64, std::byte{0x5a});
    auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
    first = bytes.data() + (16 - at % 16) % 16 + o.skipped;
  }
  tensor as_tensor() const { return {first, of.type, of.lens, of.strides}; }
  void set(std::size_t i, double v) { encode(of.type, &v, first + i * size_of(of.type), 1); }
  double get(std::size_t i) const {
    double v = 0;
    decode(of.type, first + i * size_of(of.type), &v, 1);
    return v;
  }
  // Bytes behind the last element, which no kernel may write.
  bool untouched() const {
    const std::byte* end = bytes.data() + bytes.size();
    return std::all_of(static_cast<const std::byte*>(first) + elements * size_of(of.type), end,
                       [](std::byte b) { return b == std::byte{0x5a}; });
  }
  operand of;
  std::vector<std::byte> bytes;
  std::byte* first = nullptr;
  std::size_t elements = 0;
};

std::int64_t place(const operand& o, const ints& at) {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < at.size(); ++d) sum += at[d] * o.strides[d];
  return sum;
}

operand full(dtype t, const ints& lens, std::size_t skipped = 0) { return {t, lens, row_major(lens), skipped}; }

std::vector<sum_case> cases() {
  using enum dtype;
  const ints odd{3, 5, 7}, even{4, 6, 8}, flat{105};
  const operand row{f32, odd, {0, 0, 1}}, middle{u8, odd, {7, 0, 1}}, outer{f16, odd, {35, 7, 0}},
      one{f32, odd, {0, 0, 0}};
  return {
      {"runs of the last dim",
       full(f32, even),
       {f32, even, {0, 0, 1}},
       full(f32, even),
       "pack<float, 4>*>(out0 + a0 * 8 + a1 * 4)"},
      {"one dim, a shorter last run", full(f32, flat), full(f32, flat), full(f32, flat), "bool whole"},
      {"a row", full(f32, odd), row, full(f32, odd), "++w1 == 7"},
      {"a row of 16-bit floats", full(f16, odd), {f16, odd, {0, 0, 1}}, full(f16, odd), "pack<f16, 8>*>(out0 + e)"},
      {"a middle dim that repeats, in bytes", full(u8, odd), middle, full(u8, odd),
       "pack<unsigned char, 16>*>(out0 + e)"},
      {"a last dim that repeats", full(f16, odd), outer, full(f16, odd), "++w1 == 7"},
      {"a number", one, full(i8, odd), full(f32, odd), "pack<signed char, 4>*>(in1 + e)"},
      {"types of different sizes", full(i8, odd), full(f64, odd), full(i64, odd), "pack<double, 2>"},
      {"an address that no run divides", full(u8, odd, 1), full(u8, odd), full(u8, odd), "x0[u].at[j] = in0[w0]"},
      {"a result whose address only fewer divide", full(u8, odd), full(u8, odd), full(u8, odd, 4),
       "pack<unsigned char, 4>*>(out0 + e)"},
      {"two that are not dense", {f32, odd, {0, 7, 1}}, {f32, odd, {1, 0, 3}}, full(f32, odd), "++w2 == 7"},
      {"a transposed result",
       full(f32, odd),
       {f32, odd, {0, 0, 1}},
       {f32, odd, {1, 3, 15}},
       "pack<float, 4>*>(out0 + e)"},
      {"a result with gaps", full(f32, odd), full(f32, odd), {f32, odd, {40, 8, 1}}, "pack<float, 1>*>(out0 + a0"},
      {"sizes that are passed", full(f32, odd), row, full(f32, odd), "++w1 == index(z.at[", true},
      {"fewer elements than a run has", full(u8, {3}), full(u8, {3}), full(u8, {3}),
       "pack<unsigned char, 1>*>(out0 + a0)"},
  };
}

TEST(written_pointwise, each_element_is_computed_once_from_its_own_operands) {
  written_kernels kernels;
  const std::vector<sum_case> all = cases();
  std::vector<row_kernel_plan> plans;
  for (const sum_case& c : all) {
    dims lens;
    for (std::int64_t n : c.sum.lens) lens.push_back(n);
    builder b;
    const value x = b.input("x", c.x.type, lens), y = b.input("y", c.y.type, lens);
    b.output(b.add(op::convert{.to = c.sum.type}, x) + b.add(op::convert{.to = c.sum.type}, y));
    const program p = b.finish();
    const auto body = row_program::make(p.main());
    ASSERT_TRUE(body) << c.name;
    const memory mx(c.x), my(c.y), mz(c.sum);
    const tensor in[] = {mx.as_tensor(), my.as_tensor()}, out[] = {mz.as_tensor()};
    plans.push_back(plan_pointwise(*body, in, out, c.dynamic));
    EXPECT_THAT(plans.back().what.text, ::testing::HasSubstr(c.expected)) << c.name;
    EXPECT_EQ(kernels.add(plans.back().what, in, out, {}, c.dynamic), static_cast<int>(plans.size()) - 1);
  }
  kernels.build();
  for (std::size_t k = 0; k < all.size(); ++k) {
    SCOPED_TRACE(all[k].name);
    memory x(all[k].x), y(all[k].y), z(all[k].sum);
    for (std::size_t i = 0; i < x.elements; ++i) x.set(i, static_cast<double>(i * 7 % 50));
    for (std::size_t i = 0; i < y.elements; ++i) y.set(i, static_cast<double>(i * 5 % 60));
    kernels.run(static_cast<int>(k), plans[k].grid, plans[k].block, {x.first, y.first, z.first}, plans[k].numbers);
    EXPECT_TRUE(z.untouched());
    ints at(z.of.lens.size(), 0);
    for (std::int64_t i = 0, total = z.as_tensor().elements(); i < total; ++i) {
      std::int64_t rest = i;
      for (std::size_t d = at.size(); d-- > 0; rest /= z.of.lens[d]) at[d] = rest % z.of.lens[d];
      const auto of = [&](const memory& m) { return m.get(static_cast<std::size_t>(place(m.of, at))); };
      ASSERT_EQ(of(z), of(x) + of(y)) << "element " << i;
    }
  }
}

// Rows so long and few that several blocks share one, in as many kernels as there are levels.
TEST(written_rows, blocks_that_share_rows_join_what_each_of_them_summed) {
  struct row_case {
    std::string name;
    dims lens;
    std::int64_t axis;
    bool whole;  // softmax; else the logarithm of the sum of powers of e
    std::size_t later;
  };
  const row_case all[] = {{"softmax", {1, 131105}, 1, true, 2},
                          {"softmax of columns", {1100, 32}, 0, true, 2},
                          {"a sum of powers", {1, 131109}, 1, false, 2}};
  written_kernels kernels;
  const architecture where = architecture::named("sm_90");
  std::vector<row_kernel_plan> plans;
  std::vector<argument> xs, ys;
  for (const row_case& c : all) {
    builder b;
    const value x = b.input("x", dtype::f32, c.lens);
    const ints axes{c.axis};
    if (c.whole) {
      b.output(x.softmax(c.axis));
    } else {
      const value most = b.add(op::reduce_max{.axes = axes}, x);
      b.output(b.add(op::log{}, b.add(op::reduce_sum{.axes = axes}, (x - most.broadcast_to(c.lens)).exp())) + most);
    }
    const program p = b.finish();
    const auto body = row_program::make(p.main());
    ASSERT_TRUE(body) << c.name;
    xs.emplace_back(shape{dtype::f32, c.lens});
    ys.emplace_back(p.main()[p.main().outputs[0].instruction].results[0]);
    for (std::int64_t i = 0; i < xs.back().elements(); ++i)
      xs.back().as<float>()[i] = static_cast<float>(i * 37 % 101) * 0.1f;
    const tensor in[] = {tensor_of(xs.back())}, out[] = {tensor_of(ys.back())};
    plans.push_back(plan_reduce(*body, in, out, false, where));
    EXPECT_GT(plans.back().grid.y, 1u) << c.name;
    ASSERT_EQ(plans.back().later.size(), c.later) << c.name;
    kernels.add(plans.back().what, in, out, "u64", false);
    for (const auto& stage : plans.back().later) kernels.add(stage.what, in, out, "u64", false);
  }
  kernels.build();
  int next = 0;
  for (std::size_t k = 0; k < plans.size(); ++k) {
    SCOPED_TRACE(all[k].name);
    std::vector<std::uint64_t> partial(plans[k].partial_bytes / 8 + 1, 77);
    const std::vector<void*> pointers = {xs[k].data(), ys[k].data(), partial.data()};
    kernels.run(next++, plans[k].grid, plans[k].block, pointers, {});
    for (const auto& stage : plans[k].later) kernels.run(next++, stage.grid, stage.block, pointers, {});
    EXPECT_EQ(partial.back(), 77u) << "behind the scratch";
    const std::int64_t length = all[k].lens[static_cast<std::size_t>(all[k].axis)].value(),
                       inner = all[k].axis == 0 ? 32 : 1, rows = xs[k].elements() / length;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto at = [&](std::int64_t i) { return inner == 1 ? row * length + i : i * inner + row; };
      double sum = 0;
      for (std::int64_t i = 0; i < length; ++i) sum += std::exp(double(xs[k].as<float>()[at(i)]));
      if (!all[k].whole) {
        ASSERT_NEAR(ys[k].as<float>()[row], std::log(sum), 2e-6 * std::log(sum));
        continue;
      }
      for (std::int64_t i = 0; i < length; ++i) {
        const double expected = std::exp(double(xs[k].as<float>()[at(i)])) / sum;
        ASSERT_NEAR(ys[k].as<float>()[at(i)], expected, 4e-6 * expected) << i;
      }
    }
  }
}

// Rows whose lengths no run divides are taken in runs that begin where memory is aligned for them.
TEST(written_rows, runs_begin_within_other_rows) {
  struct row_case {
    std::string name;
    dtype type;
    dims lens;
    ints axes;
    bool whole;    // squares as shares of their sum, times weights; else the sum
    dims weights;  // which repeat
    bool dynamic = false;
    std::size_t skipped = 0;  // bytes before the operand's first element
    std::string_view expected = "const auto inside";
  };
  using enum dtype;
  const row_case all[] = {{"sums", f32, {1, 4101}, {1}, false, {}},
                          {"sums of 16 bits", f16, {1, 2, 4131}, {2}, false, {}},
                          {"sums of bytes", u8, {2, 4259}, {1}, false, {}},
                          {"shares", f32, {6, 37}, {1}, true, {37}},
                          {"shares of rows that end with a run", f32, {4, 67}, {1}, true, {67}},
                          {"shares of long rows", f32, {2, 12003}, {1}, true, {2, 1}},
                          {"shares of rows in planes", f32, {3, 4, 67}, {2}, true, {4, 1}},
                          {"rows of several dims", f32, {3, 5, 7, 9}, {1, 2, 3}, true, {5, 1, 1}},
                          {"few rows that blocks share", f32, {1, 32809}, {1}, false, {}},
                          {"sizes that are passed", f32, {4, 201}, {1}, true, {1}, true},
                          {"an operand that lies elsewhere", f32, {5, 67}, {1}, true, {67}, false, 4, "real"}};
  written_kernels kernels;
  const architecture where = architecture::named("sm_90");
  std::vector<row_kernel_plan> plans;
  std::vector<memory> xs, ws, ys;
  const auto operand_of = [](dtype t, const dims& lens, std::size_t skipped = 0) {
    ints known;
    for (const dimension& n : lens) known.push_back(n.value());
    return full(t, known, skipped);
  };
  for (const row_case& c : all) {
    builder b;
    const value x = b.input("x", c.type, c.lens);
    const value e = c.whole ? x * x : x, sum = b.add(op::reduce_sum{.axes = c.axes}, e);
    if (c.whole)
      b.output(e / sum.broadcast_to(c.lens) * b.input("w", c.type, c.lens));
    else
      b.output(sum);
    const program p = b.finish();
    const auto body = row_program::make(p.main());
    ASSERT_TRUE(body) << c.name;
    xs.emplace_back(operand_of(c.type, c.lens, c.skipped));
    // weights repeat along the dims that they don't have
    operand w = operand_of(c.type, c.lens);
    std::int64_t step = 1;
    for (std::size_t d = c.lens.size(), of = c.weights.size(); d-- > 0;) {
      const std::int64_t n = of == 0 ? 1 : c.weights[--of].value();
      w.strides[d] = n == 1 ? 0 : step, step *= n;
    }
    ws.emplace_back(w);
    ys.emplace_back(operand_of(c.type, p.main()[p.main().outputs[0].instruction].results[0].lens));
    std::vector<tensor> in = {xs.back().as_tensor()};
    if (c.whole) in.push_back(ws.back().as_tensor());
    const tensor out[] = {ys.back().as_tensor()};
    plans.push_back(plan_reduce(*body, in, out, c.dynamic, where));
    EXPECT_THAT(plans.back().what.text, ::testing::HasSubstr(c.expected)) << c.name;
    // no run is read of which memory ends within
    const bool shifted = c.skipped == 0, ends = !c.dynamic && xs.back().elements * size_of(c.type) % 16 == 0;
    EXPECT_EQ(plans.back().what.text.find("> in0 + ") != std::string::npos, shifted && !ends) << c.name;
    const std::string_view scratch = plans.back().later.empty() ? "" : "u64";
    kernels.add(plans.back().what, in, out, scratch, c.dynamic);
    for (const auto& stage : plans.back().later) kernels.add(stage.what, in, out, scratch, c.dynamic);
  }
  kernels.build();
  int next = 0;
  for (std::size_t k = 0; k < plans.size(); ++k) {
    const row_case& c = all[k];
    SCOPED_TRACE(c.name);
    memory &x = xs[k], &w = ws[k], &y = ys[k];
    for (std::size_t i = 0; i < x.elements; ++i) x.set(i, static_cast<double>(i * 7 % 3 + 1));
    for (std::size_t i = 0; i < w.elements; ++i) w.set(i, static_cast<double>(i % 5 + 1));
    std::vector<std::uint64_t> partial(plans[k].partial_bytes / 8 + 1, 77);
    std::vector<void*> pointers = {x.first};
    if (c.whole) pointers.push_back(w.first);
    pointers.push_back(y.first);
    if (!plans[k].later.empty()) pointers.push_back(partial.data());
    kernels.run(next++, plans[k].grid, plans[k].block, pointers, plans[k].numbers);
    for (const auto& stage : plans[k].later) kernels.run(next++, stage.grid, stage.block, pointers, plans[k].numbers);
    EXPECT_TRUE(y.untouched());
    // by the definition: the place of each element's sum, and of its weight
    const std::size_t rank = c.lens.size();
    ints at(rank, 0), kept(rank, 0);
    std::int64_t rows = 1;
    for (std::size_t d = rank; d-- > 0;)
      if (std::find(c.axes.begin(), c.axes.end(), static_cast<std::int64_t>(d)) == c.axes.end())
        kept[d] = rows, rows *= c.lens[d].value();
    std::vector<double> sums(static_cast<std::size_t>(rows), 0);
    const auto each = [&](auto&& f) {
      for (std::size_t i = 0; i < x.elements; ++i) {
        std::int64_t rest = static_cast<std::int64_t>(i);
        for (std::size_t d = rank; d-- > 0; rest /= c.lens[d].value()) at[d] = rest % c.lens[d].value();
        std::int64_t row = 0;
        for (std::size_t d = 0; d < rank; ++d) row += at[d] * kept[d];
        f(i, static_cast<std::size_t>(row), static_cast<std::size_t>(place(w.of, at)));
      }
    };
    each([&](std::size_t i, std::size_t row, std::size_t) { sums[row] += c.whole ? x.get(i) * x.get(i) : x.get(i); });
    if (c.whole)
      each([&](std::size_t i, std::size_t row, std::size_t of) {
        const double expected = x.get(i) * x.get(i) / sums[row] * w.get(of);
        ASSERT_NEAR(y.get(i), expected, 2e-3 * expected) << i;
      });
    else
      for (std::size_t row = 0; row < sums.size(); ++row) {
        const double expected = c.type == u8 ? std::fmod(sums[row], 256) : sums[row];
        ASSERT_NEAR(y.get(row), expected, 1e-3 * expected) << row;
      }
  }
}

// Scratch memory is asked for before a run tells where its operands are.
TEST(written_rows, a_run_that_needs_more_scratch_memory_than_it_has_is_an_error) {
  const architecture where = architecture::named("sm_90");
  if (const std::string why = why_not_compiled(where); !why.empty()) GTEST_SKIP() << "NOT CHECKED: " << why;
  builder b;
  b.output(b.input("x", dtype::f32, {1, 262144}).reduce_sum({1}));
  const program p = b.finish();
  const auto& sum = p.main()[p.main().outputs[0].instruction];
  const auto made = lower_rows({p, p.main(), sum, {nullptr}, {{}}, {shape(dtype::f32, {1, 262144})}},
                               std::make_shared<const context>(where, ""));
  ASSERT_TRUE(made);
  const auto at = [](std::size_t address) {
    return tensor{reinterpret_cast<std::byte*>(address), dtype::f32, {1, 262144}, {262144, 1}};
  };
  const tensor planned[] = {at(0)}, given[] = {at(4)}, out[] = {{nullptr, dtype::f32, {1, 1}, {1, 1}}};
  std::vector<std::byte> scratch(made->scratch_bytes(planned, out, 1));
  ASSERT_GT(made->scratch_bytes(given, out, 1), scratch.size());
  try {
    made->run({given, out, scratch});
    FAIL() << "ran";
  } catch (const error& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("bytes, found " + std::to_string(scratch.size())));
  }
}

}  // namespace
}  // namespace kiln::hip
