#include "driver/npy.hpp"

#include <gmock/gmock.h>

namespace kiln::driver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy(std::string header, std::string_view data, int version = 1) {
  header += '\n';
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(header.size() >> (8 * i) & 255);
  return out + header + std::string(data);
}

template <class T> std::string bytes(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

argument parse(const std::string& s) { return parse_npy({reinterpret_cast<const std::byte*>(s.data()), s.size()}); }

std::string fault_of(const std::string& s) {
  try {
    parse(s);
  } catch (const error& e) {
    return e.what();
  }
  return "nothing";
}

const std::string six = bytes<float>({1, 2, 3, 4, 5, 6});

TEST(npy, reads_rows) {
  const argument a = parse(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", six));
  EXPECT_EQ(to_string(a.get_shape()), "f32[2, 3]");
  EXPECT_THAT(a.to<double>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(npy, turns_columns_into_rows) {
  const argument a = parse(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", six));
  EXPECT_TRUE(a.get_shape().standard());
  EXPECT_THAT(a.to<double>(), ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(npy, reads_scalars_vectors_and_empty_tensors) {
  EXPECT_EQ(
      to_string(
          parse(npy("{'descr': '<i8', 'fortran_order': False, 'shape': ()}", bytes<std::int64_t>({-7}))).get_shape()),
      "i64[]");
  EXPECT_EQ(to_string(parse(npy("{'shape': (6,), 'fortran_order': False, 'descr': \"<f4\"}", six)).get_shape()),
            "f32[6]");
  EXPECT_EQ(to_string(parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (4, 0)}", "")).get_shape()),
            "bool[4, 0]");
}

TEST(npy, swaps_foreign_byte_order) {
  const argument a = parse(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", std::string("\0\1\1\0", 4)));
  EXPECT_THAT(a.to<std::int64_t>(), ElementsAre(1, 256));
}

TEST(npy, reads_the_wide_header_of_version_2) {
  EXPECT_THAT(parse(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", "ab", 2)).to<std::int64_t>(),
              ElementsAre('a', 'b'));
}

TEST(npy, makes_bools_of_any_byte) {
  const argument a = parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", std::string("\0\7", 2)));
  EXPECT_EQ(a.data()[0], std::byte{0});
  EXPECT_EQ(a.data()[1], std::byte{1});
}

TEST(npy, reads_the_types_of_ml_dtypes) {
  const argument b = parse(npy("{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", std::string("\x80\x3f", 2)));
  EXPECT_EQ(b.get_shape().type, dtype::bf16);
  EXPECT_THAT(b.to<double>(), ElementsAre(1));
  const std::string file = npy("{'descr': '|V1', 'fortran_order': False, 'shape': (2,)}", "\xff\x03");
  const std::span<const std::byte> bytes = std::as_bytes(std::span(file.data(), file.size()));
  const argument i = parse_npy(bytes, dtype::i4);
  EXPECT_THAT(i.to<double>(), ElementsAre(-1, 3));
  EXPECT_EQ(i.data()[0], std::byte{0x0f});
  EXPECT_EQ(parse_npy(bytes, dtype::f8e5m2).get_shape().type, dtype::f8e5m2);
  EXPECT_THAT(fault_of(file), HasSubstr("'V1'"));
}

TEST(npy, refuses_what_it_cannot_hold) {
  EXPECT_THAT(fault_of(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "12345678")), HasSubstr("'c8'"));
  EXPECT_THAT(fault_of(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234")),
              HasSubstr("records"));
  EXPECT_THAT(fault_of(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "1")),
              HasSubstr("more than 8 dims"));
}

TEST(npy, names_what_is_wrong_with_a_damaged_file) {
  const std::string whole = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", six);
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_THAT(fault_of(whole.substr(0, n)), HasSubstr("malformed"));
  EXPECT_THAT(fault_of(whole + "x"), HasSubstr("another size"));
  EXPECT_THAT(fault_of(npy("{'descr': '<f4', 'shape': (2, 3)}", six)), HasSubstr("lacks"));
  EXPECT_THAT(fault_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}", six)), HasSubstr("extent"));
  EXPECT_THAT(fault_of(npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 3)}", six)), HasSubstr("True nor False"));
  EXPECT_THAT(fault_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", six)),
              HasSubstr("ends within the data"));
}

TEST(npy, names_a_missing_file) {
  try {
    read_npy("no/such.npy");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::not_found);
    EXPECT_THAT(e.what(), HasSubstr("no/such.npy"));
  }
}

}  // namespace
}  // namespace kiln::driver
