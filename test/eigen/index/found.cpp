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
