// Values as bytes and back; damage is an error.
#include "kiln/core/archive.hpp"

#include <gmock/gmock.h>

namespace kiln {
namespace {

TEST(archive, numbers_and_text_come_back) {
  archive_writer to;
  const std::uint64_t naturals[] = {0, 1, 127, 128, 300, std::uint64_t{1} << 63, ~std::uint64_t{0}};
  const std::int64_t integers[] = {
      0, -1, 1, -64, 64, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  for (const std::uint64_t v : naturals) to.put_unsigned(v);
  for (const std::int64_t v : integers) to.put_signed(v);
  to.put_text("");
  to.put_text(std::string_view("a\0b", 3));
  archive_reader from(to.bytes(), "it");
  for (const std::uint64_t v : naturals) EXPECT_EQ(from.take_unsigned(), v);
  for (const std::int64_t v : integers) EXPECT_EQ(from.take_signed(), v);
  EXPECT_EQ(from.take_text(), "");
  EXPECT_EQ(from.take_text(), std::string_view("a\0b", 3));
  EXPECT_TRUE(from.at_end());
}

TEST(archive, dimensions_are_the_same_expressions_again) {
  const dimension n = dimension::symbol("n", 1, 64), m = dimension::symbol("m", 0, 9);
  const dimension all[] = {0,     -7,           1 << 20,           n,         n * m + 3, (n + 1) / 2,
                           n % 4, larger(n, m), smaller(n / m, 5), 2 * n - m, n * m + 3};
  archive_writer to;
  for (const dimension d : all) to.put_dimension(d);
  archive_reader from(to.bytes(), "it");
  for (const dimension d : all) EXPECT_EQ(from.take_dimension(), d) << to_string(d);
  EXPECT_TRUE(from.at_end());
}

TEST(archive, an_expression_is_written_once) {
  const dimension d = dimension::symbol("a_symbol_of_a_long_name") + 1;
  archive_writer once, twice;
  once.put_dimension(d);
  twice.put_dimension(d);
  twice.put_dimension(d);
  EXPECT_EQ(twice.bytes().size(), once.bytes().size() + 1);
}

std::string error_of(std::string_view bytes, void (*read)(archive_reader&)) {
  archive_reader from(bytes, "section 'x'");
  try {
    read(from);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::malformed);
    return e.what();
  }
  return "no error";
}

TEST(archive, bytes_that_hold_no_value_are_an_error_that_names_them) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(error_of("", [](archive_reader& r) { r.take_unsigned(); }),
              AllOf(HasSubstr("section 'x'"), HasSubstr("its end")));
  EXPECT_THAT(error_of(std::string(10, '\xff'), [](archive_reader& r) { r.take_unsigned(); }), HasSubstr("64 bits"));
  EXPECT_THAT(error_of("\x05"
                       "abcd",
                       [](archive_reader& r) { r.take_text(); }),
              HasSubstr("at most 4"));
  EXPECT_THAT(error_of("\x03", [](archive_reader& r) { r.take_index(3, "sorts"); }), HasSubstr("one of 3 sorts"));
  EXPECT_THAT(error_of("\x02", [](archive_reader& r) { r.take_dimension(); }), HasSubstr("before this one"));
  EXPECT_THAT(error_of(std::string_view("\x01\x01\x02\x01q\0\0", 7), [](archive_reader& r) { r.take_dimension(); }),
              HasSubstr("an operation"));
}

TEST(archive, counts_stay_in_proportion_to_the_bytes) {
  const auto eight_of = [](std::string_view bytes) {
    return error_of(bytes, [](archive_reader& r) { r.take_count(8); });
  };
  EXPECT_EQ(eight_of("\x02" + std::string(16, 'x')), "no error");
  EXPECT_THAT(eight_of("\x03" + std::string(16, 'x')), ::testing::HasSubstr("at most 2"));
}

TEST(archive, deep_expressions_end_in_an_error) {
  std::string bytes;  // a quotient whose left side is a quotient, and so on
  for (int i = 0; i < 100000; ++i) bytes += std::string_view("\x01\x01\x02\x01/", 5);
  EXPECT_THAT(error_of(bytes, [](archive_reader& r) { r.take_dimension(); }), ::testing::HasSubstr("levels"));
}

}  // namespace
}  // namespace kiln
