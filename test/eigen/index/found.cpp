// What only a run can count: elements that are not zero, chosen slices, distinct elements; and numbered rows, and
// padded rows of few elements.
#include <map>

#include "kiln/op/dynamic/selection.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

std::vector<argument> results_of(const operation& op, const std::vector<argument>& in) {
  const auto made = op.produce(in);
  return {made.begin(), made.end()};
}
std::vector<std::int64_t> numbers(const argument& a) {
  const auto all = a.to<std::int64_t>();
  return {all.begin(), all.end()};
}

TEST(nonzero, of_every_type_and_rank) {
  for (const dtype type : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::i8, dtype::u16, dtype::i32,
                           dtype::i64, dtype::boolean, dtype::f8e5m2})
    for (const dims& lens :
         {dims{}, dims{1}, dims{300}, dims{3, 70}, dims{5, 0, 2}, dims{7, 5, 1}, dims{2, 3, 4, 50}}) {
      SCOPED_TRACE(to_string(shape{type, lens}));
      argument x = random_argument({type, lens}, 3, 0, 3);
      for (std::int64_t i = 0; i < x.elements(); i += 2) {
        const double zero = i % 4 ? 0.0 : -0.0;
        encode(type, &zero, x.data() + i * static_cast<std::int64_t>(size_of(type)), 1);
      }
      const auto values = x.to<double>();
      const ints extents = to_ints(lens);
      std::vector<std::vector<std::int64_t>> places(lens.size());
      std::int64_t n = 0;
      ints at = first_index(extents);
      for (std::size_t i = 0; i < values.size(); ++i, next_index(at, extents)) {
        if (values[i] == 0) continue;
        ++n;
        for (std::size_t d = 0; d < lens.size(); ++d) places[d].push_back(at[d]);
      }
      std::vector<std::int64_t> expected;
      for (const auto& along : places) expected.insert(expected.end(), along.begin(), along.end());
      const auto found = results_of(op::nonzero{n}, {x});
      EXPECT_EQ(found[0].get_shape().lens, (dims{static_cast<std::int64_t>(lens.size()), n}));
      EXPECT_EQ(numbers(found[0]), expected);
    }
}

TEST(unique, by_counting_and_by_sorting) {
  for (const double range : {3.0, 1e9})
    for (const dtype type : {dtype::f32, dtype::f64, dtype::i64, dtype::u8, dtype::f16})
      for (const bool ascending : {true, false})
        for (const std::int64_t n : {0, 1, 500}) {
          const double high = std::min(range, type == dtype::u8 ? 200.0 : type == dtype::f16 ? 6e4 : 1e9);
          argument x = random_argument({type, {n}}, 5, type == dtype::u8 ? 0 : -high, high);
          const double odd[] = {0.0, -0.0, std::numeric_limits<double>::quiet_NaN()};
          if (is_float(type))
            for (std::int64_t i = 0; i < n; i += 7)
              encode(type, &odd[i % 3], x.data() + i * static_cast<std::int64_t>(size_of(type)), 1);
          SCOPED_TRACE(::testing::Message() << to_string(x.get_shape()) << " below " << high << ' ' << ascending);
          struct order {  // a NaN comes last
            bool operator()(double a, double b) const { return a < b || (a == a && b != b); }
          };
          std::map<double, std::vector<std::int64_t>, order> all;
          const auto values = x.to<double>();
          for (std::size_t i = 0; i < values.size(); ++i) all[values[i]].push_back(static_cast<std::int64_t>(i));
          std::vector<std::vector<std::int64_t>> groups;
          for (const auto& [value, places] : all) groups.push_back(places);
          if (!ascending) std::sort(groups.begin(), groups.end());
          std::vector<std::int64_t> first, counts, inverse(values.size());
          for (std::size_t g = 0; g < groups.size(); ++g) {
            first.push_back(groups[g][0]);
            counts.push_back(static_cast<std::int64_t>(groups[g].size()));
            for (const std::int64_t i : groups[g]) inverse[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(g);
          }
          op::unique u;
          u.ascending = ascending;
          u.count = static_cast<std::int64_t>(groups.size());
          const auto found = results_of(u, {x});
          EXPECT_EQ(numbers(found[1]), first);
          EXPECT_EQ(numbers(found[2]), inverse);
          EXPECT_EQ(numbers(found[3]), counts);
        }
}

TEST(compress, of_elements_and_slices) {
  for (const dtype type : {dtype::f32, dtype::u8, dtype::i64, dtype::f16})
    for (const std::int64_t axis : {-1, 0, 1, 2}) {
      const argument x = random_argument({type, {3, 5, 7}}, 3, 0, 99);
      const dims lens{3, 5, 7};
      const std::int64_t extent = axis < 0 ? 105 : lens[static_cast<std::size_t>(axis)].value();
      argument where = random_argument({dtype::boolean, {extent - 1}}, 9);
      std::vector<std::int64_t> kept;
      for (std::int64_t k = 0; k < extent - 1; ++k)
        if (where.as<bool>()[static_cast<std::size_t>(k)]) kept.push_back(k);
      const std::int64_t n = static_cast<std::int64_t>(kept.size());
      const auto found = results_of(op::compress{std::max<std::int64_t>(axis, 0), axis < 0, n}, {x, where});
      const argument flat(x.to_literal().reshaped({105}));
      builder b;
      const value from = axis < 0 ? b.input("x", type, {105}) : b.input("x", type, lens);
      b.output(from.gather(b.constant<std::int64_t>(dtype::i64, {n}, small_vector<std::int64_t>(kept)),
                           std::max<std::int64_t>(axis, 0)));
      const argument in[] = {axis < 0 ? flat : x};
      expect_close(found[0], compile(b.finish(), reference_target()).run(in)[0], {0, 0});
    }
}

// A run writes them into the caller's memory, by threads.
TEST(compress, of_a_run) {
  for (const dtype type : {dtype::f32, dtype::u8, dtype::i64})
    for (const std::int64_t axis : {-1, 0, 1, 2})
      for (const dims& lens : {dims{3, 5, 7}, dims{4, 300, 90}, dims{2, 3, 0}}) {
        SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << " axis " << axis);
        const std::int64_t all = shape{type, lens}.elements().value(),
                           extent = axis < 0 ? all : lens[static_cast<std::size_t>(axis)].value();
        const op::compress o{std::max<std::int64_t>(axis, 0), axis < 0, dimension::symbol("count")};
        const auto make = [&](builder& b) {
          const value x = b.input("x", type, lens);
          b.output(b.add(o, x, b.input("where", dtype::boolean, {extent})));
        };
        const std::vector<argument> in{random_argument({type, lens}, 3, 0, 99),
                                       random_argument({dtype::boolean, {extent}}, 9)};
        const argument expected = o.produce(in)[0];
        const executable e = compile_eigen(make);
        std::vector<argument> out = e.run(in);
        expect_close(out[0], expected, {0, 0});
        workspace w = e.make_workspace();
        argument given(expected.get_shape());
        out[0] = given;
        e.run(w, in, out);
        EXPECT_EQ(out[0].data(), given.data());
        expect_close(given, expected, {0, 0});
        if (::testing::Test::HasFatalFailure()) return;
      }
}

// Each box in the order of scores against all that are kept already.
TEST(non_max_suppression, equals_a_plain_search) {
  constexpr std::int64_t classes = 3, n = 200;
  argument boxes = random_argument({dtype::f32, {1, n, 4}}, 3, 0, 8), scores({dtype::f32, {1, classes, n}});
  const argument tied = random_argument({dtype::i32, {classes * n}}, 5, -9, 9);
  for (std::int64_t k = 0; k < classes * n; ++k)  // many scores are equal, zeros of either sign among them
    scores.as<float>()[static_cast<std::size_t>(k)] =
        static_cast<float>(tied.as<std::int32_t>()[static_cast<std::size_t>(k)]) * (k % 2 ? -0.1F : 0.1F);
  for (const float most_overlap : {0.0F, 0.3F, -1.0F})
    for (const std::int64_t most : {1, 20, 1000}) {
      std::vector<std::int64_t> expected;
      const auto box = boxes.as<float>();
      const auto overlap = [&](std::int64_t i, std::int64_t j) {
        const auto side = [&](std::int64_t k, int d, bool high) {
          const float a = box[static_cast<std::size_t>(4 * k + d)], b = box[static_cast<std::size_t>(4 * k + d + 2)];
          return high ? std::max(a, b) : std::min(a, b);
        };
        float shared = 1, areas[2] = {1, 1};
        for (int d = 0; d < 2; ++d) {
          shared *= std::max(
              0.0F, std::min(side(i, d, true), side(j, d, true)) - std::max(side(i, d, false), side(j, d, false)));
          areas[0] *= side(i, d, true) - side(i, d, false);
          areas[1] *= side(j, d, true) - side(j, d, false);
        }
        return shared / (areas[0] + areas[1] - shared);
      };
      for (std::int64_t c = 0; c < classes; ++c) {
        const float* const score = scores.as<float>().data() + c * n;
        std::vector<std::int64_t> order(n), kept;
        for (std::int64_t k = 0; k < n; ++k) order[static_cast<std::size_t>(k)] = k;
        std::stable_sort(order.begin(), order.end(),
                         [&](std::int64_t a, std::int64_t b) { return score[a] > score[b]; });
        for (const std::int64_t k : order) {
          const bool meets =
              std::any_of(kept.begin(), kept.end(), [&](std::int64_t o) { return overlap(o, k) > most_overlap; });
          if (score[k] <= -0.5F || meets || static_cast<std::int64_t>(kept.size()) == most) continue;
          kept.push_back(k);
          expected.insert(expected.end(), {0, c, k});
        }
      }
      const auto found = results_of(
          op::non_max_suppression{false, true, static_cast<std::int64_t>(expected.size() / 3)},
          {boxes, scores, argument::of<std::int64_t>({1}, std::vector{most}),
           argument::of<float>({1}, std::vector{most_overlap}), argument::of<float>({1}, std::vector{-0.5F})});
      EXPECT_EQ(numbers(found[0]), expected) << most_overlap << ' ' << most;
    }
}

TEST(iota, equals_the_reference) {
  for (const dtype type : {dtype::f32, dtype::f64, dtype::i32, dtype::i64})
    for (const dims& lens : {dims{0}, dims{40000}, dims{3, 50}, dims{200, 300}, dims{2, 3, 9000}})
      for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(lens.size()); ++axis) {
        SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << " axis " << axis);
        // an operand keeps it from being folded
        expect_same([&](builder& b) { b.output(b.add(op::iota{lens, axis, type}) + b.input("x", type, {1})); }, {0, 0});
      }
}

}  // namespace
}  // namespace kiln::testing
