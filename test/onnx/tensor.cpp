#include "kiln/onnx/tensor.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kiln/core/object.hpp"
#include "kiln/onnx/element.hpp"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::onnx {
namespace {

using test::message;

class tensor_file : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) { return folder_.write(name, bytes).string(); }
  errc code_of(const std::string& file) {
    try {
      read_tensor(file);
    } catch (const error& e) {
      text_ = e.what();
      return e.code();
    }
    ADD_FAILURE() << file << " was read";
    return errc::internal;
  }

  test::temporary_folder folder_;
  std::string text_;
};

TEST_F(tensor_file, every_dtype_survives_a_round_trip) {
  for (std::size_t t = 0; t < all_dtypes; ++t) {
    if (is_object(static_cast<dtype>(t))) continue;
    const shape s{static_cast<dtype>(t), {1, 5}};
    const float values[] = {0, 1, 2, -1, 4};
    const argument before(literal::of<float>(s, values));
    write_tensor(path("t.pb"), before, "name");
    const named_argument after = read_tensor(path("t.pb"));
    EXPECT_EQ(after.name, "name");
    EXPECT_EQ(after.value.get_shape(), s);
    EXPECT_EQ(after.value.to_literal(), before.to_literal()) << to_string(s);
  }
  EXPECT_FALSE(std::filesystem::exists(path("t.pb.part")));
}

TEST_F(tensor_file, rank_zero_and_empty_extents_keep_their_shape) {
  const float one[] = {7};
  write_tensor(path("scalar.pb"), argument::of<float>({}, one));
  EXPECT_EQ(read_tensor(path("scalar.pb")).value.get_shape(), shape(dtype::f32, {}));
  EXPECT_EQ(read_tensor(path("scalar.pb")).value.as<float>()[0], 7);
  write_tensor(path("empty.pb"), argument::of<float>({2, 0, 3}, {}));
  EXPECT_EQ(read_tensor(path("empty.pb")).value.get_shape(), shape(dtype::f32, {2, 0, 3}));
}

TEST_F(tensor_file, strided_values_are_written_row_major) {
  float values[] = {1, 2, 3, 4, 5, 6};
  write_tensor(path("t.pb"), argument(shape{dtype::f32, {2, 3}, {1, 2}}, values));
  const auto read = read_tensor(path("t.pb")).value.to<float>();
  EXPECT_EQ(read, (small_vector<float>{1, 3, 5, 2, 4, 6}));
}

TEST_F(tensor_file, typed_fields_hold_small_types_in_wide_integers) {
  message half;
  half.number(1, 2).number(2, 10).number(5, 0x3c00).number(5, 0xc000);  // 1 and -2
  EXPECT_EQ(read_tensor(write("h.pb", half.str())).value.to<float>(), (small_vector<float>{1, -2}));
  message narrow;
  narrow.number(1, 2).number(2, 3).number(5, -3).number(5, 100);
  EXPECT_EQ(read_tensor(write("i8.pb", narrow.str())).value.to<int>(), (small_vector<int>{-3, 100}));
  message flags;
  flags.number(1, 3).number(2, 9).number(5, 0).number(5, 1).number(5, 5);
  EXPECT_EQ(read_tensor(write("b.pb", flags.str())).value.to<int>(), (small_vector<int>{0, 1, 1}));
  message eighths;
  eighths.number(1, 2).number(2, 17).number(5, 0x38).number(5, 0xc0);  // 1 and -2
  EXPECT_EQ(read_tensor(write("f8.pb", eighths.str())).value.to<float>(), (small_vector<float>{1, -2}));
  message wide;
  wide.number(1, 1).number(2, 12).number(11, 4000000000);
  EXPECT_EQ(read_tensor(write("u32.pb", wide.str())).value.as<std::uint32_t>()[0], 4000000000u);
}

TEST_F(tensor_file, files_pack_elements_below_a_byte_and_memory_does_not) {
  const auto t = test::tensor<std::uint8_t>("x", 22, {3}, {0x9f, 0x07});
  const auto read = read_tensor(write("i4.pb", t.str())).value;
  EXPECT_EQ(read.get_shape(), shape(dtype::i4, {3}));
  EXPECT_EQ(read.to<int>(), (small_vector<int>{-1, -7, 7}));
  message fields;
  fields.number(1, 5).number(2, 25).number(5, 0b11100100).number(5, 2);
  EXPECT_EQ(read_tensor(write("u2.pb", fields.str())).value.to<int>(), (small_vector<int>{0, 1, 2, 3, 2}));
  write_tensor(path("copy.pb"), read);
  EXPECT_EQ(read_tensor(path("copy.pb")).value.to_literal(), read.to_literal());
  EXPECT_LT(std::filesystem::file_size(path("copy.pb")), std::filesystem::file_size(path("i4.pb")));  // no name
  EXPECT_EQ(code_of(write("long.pb", test::tensor<std::uint8_t>("x", 22, {3}, {1, 2, 3}).str())), errc::malformed);
  EXPECT_NE(text_.find("need 2"), std::string::npos) << text_;
}

TEST_F(tensor_file, bool_bytes_become_zero_or_one) {
  const auto t = test::tensor<std::uint8_t>("b", 9, {3}, {0, 1, 0xff});
  const auto read = read_tensor(write("b.pb", t.str())).value;
  EXPECT_EQ(std::to_integer<int>(read.data()[2]), 1);
}

TEST_F(tensor_file, broken_files_say_what_is_wrong) {
  EXPECT_EQ(code_of(path("absent.pb")), errc::not_found);
  EXPECT_NE(text_.find("absent.pb"), std::string::npos);
  EXPECT_EQ(code_of(folder_.path().string()), errc::io);
  EXPECT_EQ(code_of(write("empty.pb", "")), errc::malformed);
  EXPECT_NE(text_.find("empty"), std::string::npos);
  EXPECT_EQ(code_of(write("short.pb", test::floats("x", {3}, {1, 2}).str())), errc::malformed);
  EXPECT_NE(text_.find("8 bytes"), std::string::npos) << text_;
  EXPECT_EQ(code_of(write("negative.pb", test::floats("x", {-1}, {}).str())), errc::malformed);
  EXPECT_EQ(code_of(write("huge.pb", test::floats("x", {1 << 30, 1 << 30, 1 << 30}, {}).str())), errc::malformed);
  EXPECT_EQ(code_of(write("deep.pb", test::floats("x", std::vector<std::int64_t>(9, 1), {1}).str())),
            errc::unsupported);
  const std::string whole = test::floats("x", {3}, {1, 2, 3}).str();
  EXPECT_EQ(code_of(write("cut.pb", whole.substr(0, whole.size() - 1))), errc::malformed);
}

TEST_F(tensor_file, complex_numbers_survive_a_round_trip) {
  for (const dtype t : {dtype::c64, dtype::c128}) {
    const std::vector<std::complex<double>> numbers = {{1, -2}, {0, 0}, {0.5, 1e30}};
    write_tensor(path("z.pb"), complex_argument(t, {3}, numbers), "z");
    const argument read = read_tensor(path("z.pb")).value;
    EXPECT_EQ(read.get_shape(), shape(t, {3}));
    EXPECT_EQ(complexes_of(read)[0], numbers[0]);
    EXPECT_NEAR(complexes_of(read)[2].imag(), 1e30, t == dtype::c64 ? 1e24 : 0);
    EXPECT_FALSE(equal_values(read, complex_argument(t, {3}, std::vector<std::complex<double>>(3))));
  }
  // as pairs in a typed field: 2 numbers an element
  const message fields = message().number(1, 2).number(2, 14).real(4, 3).real(4, 4).real(4, 5).real(4, 6);
  EXPECT_EQ(complexes_of(read_tensor(write("z.pb", fields.str())).value)[1], std::complex<double>(5, 6));
  EXPECT_EQ(code_of(write("z.pb", message().number(1, 2).number(2, 14).real(4, 3).real(4, 4).str())), errc::malformed);
}

TEST_F(tensor_file, maps_survive_a_round_trip) {
  const float one[] = {1}, many[] = {2, 3};
  const std::vector<argument> values = {argument::of<float>({}, one), argument::of<float>({2}, many)};
  const std::int64_t numbers[] = {9, -4};
  const argument by_number = map_argument(argument::of<std::int64_t>({2}, numbers), values);
  const argument by_text = map_argument(string_argument({2}, std::vector<std::string>{"b", "a"}), values);
  for (const argument& before : {by_number, by_text, map_argument(argument::of<std::int64_t>({0}, {}), {})}) {
    write_tensor(path("m.pb"), before, "m");
    const named_argument after = read_value(path("m.pb"), dtype::map);
    EXPECT_EQ(after.name, "m");
    EXPECT_TRUE(equal_values(after.value, before));
  }
  EXPECT_FALSE(equal_values(by_number, by_text));
  const argument list = sequence_argument({by_text, by_text});
  write_tensor(path("s.pb"), list);
  EXPECT_TRUE(equal_values(read_value(path("s.pb"), dtype::sequence).value, list));
  // packed keys: 1, 2, and only one value
  const std::string keys = {1, 2};
  const message one_value = message().number(2, 1).add(3, test::floats("", {}, {1}));
  write("m.pb", message().number(2, 7).text(3, keys).add(5, one_value).str());
  EXPECT_THROW(read_value(path("m.pb"), dtype::map), error);
}

TEST_F(tensor_file, element_types_without_a_dtype_are_named) {
  EXPECT_EQ(code_of(write("t.pb", message().number(1, 0).number(2, 77).str())), errc::unsupported);
  EXPECT_NE(text_.find("unknown element type"), std::string::npos) << text_;
  EXPECT_EQ(code_of(write("t.pb", message().number(1, 0).number(2, 0).str())), errc::malformed);
}

static_assert(to_dtype(to_element(dtype::bf16)) == dtype::bf16);
static_assert(to_dtype(element::string) == dtype::string);
static_assert(to_dtype(element::complex64) == dtype::c64);
static_assert(to_dtype(element::undefined) == std::nullopt);
static_assert(to_string(static_cast<element>(99)) == "an unknown element type");

}  // namespace
}  // namespace kiln::onnx
