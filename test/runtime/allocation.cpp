// A run whose sizes fit its workspace allocates nothing, and neither does binding to sizes that fit.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>

#include "kiln/onnx/import.hpp"
#include "kiln/op/sequence/recurrent.hpp"
#include "runtime/compare.hpp"

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, whole != 0 ? whole : alignment);
  if (!p) throw std::bad_alloc();
  return p;
}

}  // namespace

// Out of line: g++ would see new and delete of one object in different wrappings and warn.
#define OUT_OF_LINE [[gnu::noinline]]

OUT_OF_LINE void* operator new(std::size_t n) { return counted(n, alignof(std::max_align_t)); }
OUT_OF_LINE void* operator new[](std::size_t n) { return counted(n, alignof(std::max_align_t)); }
OUT_OF_LINE void* operator new(std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
OUT_OF_LINE void* operator new[](std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
OUT_OF_LINE void operator delete(void* p) noexcept { std::free(p); }
OUT_OF_LINE void operator delete[](void* p) noexcept { std::free(p); }
OUT_OF_LINE void operator delete(void* p, std::size_t) noexcept { std::free(p); }
OUT_OF_LINE void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
OUT_OF_LINE void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
OUT_OF_LINE void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
OUT_OF_LINE void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
OUT_OF_LINE void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace kiln::testing {
namespace {

template <class F> std::size_t allocations_in(F&& f) {
  const std::size_t before = allocations;
  f();
  return allocations - before;
}

TEST(allocation, the_counter_counts) {
  EXPECT_EQ(allocations_in([] { argument a(shape{dtype::f32, {3}}); }), 2u);
}

// Inputs of an executable at given symbol values: ones for integers, small floats.
std::vector<argument> inputs_for(const executable& e, const bindings& sizes) {
  std::vector<argument> in;
  for (const port& p : e.inputs()) {
    shape s = p.type;
    for (dimension& d : s.lens) d = sizes.evaluate(d);
    in.push_back(is_float(s.type) ? random_argument(s, 7) : random_argument(s, 7, 1, 2));
  }
  return in;
}

std::vector<argument> outputs_for(const executable& e, const std::vector<argument>& in) {
  std::vector<shape> shapes;
  for (const argument& a : in) shapes.push_back(a.get_shape());
  std::vector<argument> out;
  for (const shape& s : e.output_shapes(shapes)) out.emplace_back(s);
  return out;
}

bindings sizes_of(std::initializer_list<std::pair<const char*, std::int64_t>> values, const executable& e) {
  bindings b;
  small_vector<dimension> symbols;
  for (const port& p : e.inputs())
    for (dimension d : p.type.lens) collect_symbols(d, symbols);
  for (dimension s : symbols)
    for (const auto& [name, v] : values)
      if (symbol_name(s) == name) b.bind(s, v);
  return b;
}

executable import(const std::string& path) {
  return compile(onnx::read_model(path).graph, eigen_target(), plain_options());
}

TEST(allocation, digits_allocates_nothing_from_its_second_run_on) {
  const executable e = import("examples/models/digits/model.onnx");
  bindings sizes;
  small_vector<dimension> symbols;
  for (const port& p : e.inputs())
    for (dimension d : p.type.lens) collect_symbols(d, symbols);
  for (dimension s : symbols) sizes.bind(s, 3);
  const auto in = inputs_for(e, sizes);
  auto out = outputs_for(e, in);
  workspace w = e.make_workspace();
  e.run(w, in, out);
  EXPECT_EQ(allocations_in([&] { e.run(w, in, out); }), 0u);
}

// Weights that are an input are packed in each run, at an odd address too.
TEST(allocation, a_recurrence_that_each_run_packs_allocates_nothing) {
  constexpr std::int64_t hidden = 75;
  op::recurrent cell{.cell = op::cell_kind::plain, .functions = {}, .alpha = {}, .beta = {}};
  cell.functions.push_back(op::cell_function::tanh);
  cell.alpha.push_back(1), cell.beta.push_back(1);
  builder b;
  const value x = b.input("x", dtype::f32, {3, 2, hidden}), weights = b.input("weights", dtype::f32, {hidden, hidden});
  const small_vector<value> operands{x, weights, b.input("bias", dtype::f32, {hidden}),
                                     b.input("h", dtype::f32, {2, hidden}), b.input("lengths", dtype::i64, {2})};
  b.output(b.add(cell, operands));
  const executable e = compile(b.finish(), eigen_target(), plain_options());
  std::vector<argument> in = inputs_for(e, {});
  std::vector<std::byte> moved(hidden * hidden * sizeof(float) + 1);
  std::memcpy(moved.data() + 1, in[1].data(), moved.size() - 1);
  in[1] = argument(in[1].get_shape(), moved.data() + 1);
  auto out = outputs_for(e, in);
  workspace w = e.make_workspace();
  e.run(w, in, out);
  EXPECT_EQ(allocations_in([&] { e.run(w, in, out); }), 0u);
}

class decode : public ::testing::Test {
 protected:
  struct step {
    std::vector<argument> in, out;
  };
  // One new token behind `past` others.
  step at(std::int64_t past) const {
    const bindings sizes = sizes_of({{"batch_size", 1},
                                     {"sequence_length", 1},
                                     {"past_sequence_length", past},
                                     {"total_sequence_length", past + 1}},
                                    model);
    step s;
    s.in = inputs_for(model, sizes);
    s.out = outputs_for(model, s.in);
    return s;
  }
  executable model = import("examples/models/scripture/model.onnx");
};

TEST_F(decode, allocates_nothing_at_a_size_it_has_run_at) {
  step s = at(9);
  workspace w = model.make_workspace();
  model.run(w, s.in, s.out);
  EXPECT_EQ(allocations_in([&] { model.run(w, s.in, s.out); }), 0u);
}

TEST_F(decode, allocates_nothing_at_new_sizes_once_the_arena_is_large_enough) {
  workspace w = model.make_workspace();
  step largest = at(40);
  model.run(w, largest.in, largest.out);
  const std::size_t growths = w.growths();
  for (std::int64_t past : {3, 17, 4, 39}) {
    step s = at(past);
    EXPECT_EQ(allocations_in([&] { model.run(w, s.in, s.out); }), 0u) << past;
  }
  EXPECT_EQ(w.growths(), growths);
}

TEST_F(decode, binding_to_new_sizes_takes_microseconds) {
  workspace w = model.make_workspace();
  step s[2] = {at(20), at(21)};
  std::vector<shape> shapes[2];
  for (int k = 0; k < 2; ++k)
    for (const argument& a : s[k].in) shapes[k].push_back(a.get_shape());
  model.bind(w, shapes[1]);
  std::vector<double> took;
  for (int round = 0; round < 41; ++round) {
    const auto start = std::chrono::steady_clock::now();
    model.bind(w, shapes[round & 1]);
    took.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(took.begin(), took.end());
  RecordProperty("median_us", static_cast<int>(took[20]));
  EXPECT_LT(took[20], 2000) << "a step of the plan takes about a microsecond; the bound leaves room for sanitizers";
}

TEST(allocation, strided_inputs_are_staged_in_the_workspace) {
  const executable e = compile_eigen([](builder& b) {
    const value x = b.input("x", dtype::f32, {33, 20}), y = b.input("y", dtype::f32, {20});
    b.output((x * y).softmax());
  });
  argument x = random_argument({dtype::f32, {20, 33}}, 1), y = random_argument({dtype::f32, {1}}, 2);
  const std::vector<argument> in{argument(shape{dtype::f32, {33, 20}, {1, 33}}, x.data()),
                                 argument(shape{dtype::f32, {20}, {0}}, y.data())};
  std::vector<argument> out{argument(shape{dtype::f32, {33, 20}})};
  workspace w = e.make_workspace();
  e.run(w, in, out);
  const std::size_t growths = w.growths();
  EXPECT_EQ(allocations_in([&] { e.run(w, in, out); }), 0u);
  EXPECT_EQ(w.growths(), growths);
}

// Ops that have no kernel of their own run through their reference computation out of the workspace's scratch.
TEST(allocation, reference_computations_draw_on_the_workspace) {
  const dimension n = dimension::symbol("n");
  const struct {
    const char* name;
    std::function<void(builder&)> make;
  } cases[] = {
      {"topk",
       [&](builder& b) {
         b.output(b.add(op::topk{.k = 2, .axis = 0}, b.input("x", dtype::f16, {n, 3})));
       }},
      {"cumsum",
       [&](builder& b) {
         b.output(b.add(op::cumsum{.axis = 0}, b.input("x", dtype::i32, {n, 3})));
       }},
      {"pad",
       [&](builder& b) {
         b.output(b.add(op::pad{.pads = {1, 0, 2, 0}}, b.input("x", dtype::f32, {n, 3}), b.scalar(dtype::f32, 0.5)));
       }},
      {"dot f64",
       [&](builder& b) {
         b.output(b.input("x", dtype::f64, {n, 3}).dot(b.input("y", dtype::f64, {3, 4})));
       }},
      {"gather_elements",
       [&](builder& b) {
         b.output(
             b.add(op::gather_elements{.axis = 0}, b.input("x", dtype::f32, {n, 3}), b.input("i", dtype::i64, {n, 3})));
       }},
      {"one symbol in an attribute",
       [&](builder& b) {
         b.output(b.add(op::topk{.k = smaller(n, 3), .axis = 0}, b.input("x", dtype::f32, {n, 3})));
       }},
  };
  for (const auto& [name, make] : cases) {
    SCOPED_TRACE(name);
    const executable e = compile_eigen(make);
    bindings sizes;
    sizes.bind(n, 5);
    const auto in = inputs_for(e, sizes);
    auto out = outputs_for(e, in);
    workspace w = e.make_workspace();
    e.run(w, in, out);
    EXPECT_EQ(allocations_in([&] { e.run(w, in, out); }), 0u);
  }
}

TEST(allocation, convolutions_pooling_and_attention_allocate_nothing) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {2, 8, 9, 9});
    const value w = b.input("w", dtype::f32, {8, 8, 3, 3});
    const value y = x.conv(w, {.pads = {1, 1, 1, 1}}).relu().pool({.lengths = {3, 3}, .stride = {2, 2}});
    b.output(y);
    const value q = b.input("q", dtype::f32, {1, 2, 70, 8}), k = b.input("k", dtype::f32, {1, 2, 70, 8});
    b.output(q.attention(k, k, {.scale = 0.5f, .causal = true}));
    b.output(x.reduce_mean({2, 3}).normalize({1}));
  };
  const executable e = compile_eigen(make);
  const auto in = random_inputs(make);
  auto out = outputs_for(e, in);
  workspace w = e.make_workspace();
  e.run(w, in, out);
  EXPECT_EQ(allocations_in([&] { e.run(w, in, out); }), 0u);
}

}  // namespace
}  // namespace kiln::testing
