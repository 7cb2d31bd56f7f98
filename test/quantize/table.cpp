#include "kiln/quantize/table.hpp"
#include "quantize/message_of.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <limits>

#include "support/temporary_folder.hpp"

namespace kiln::quantize {
namespace {

using test::message_of;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto& all_forms = table_forms;

ranges example() {
  ranges r;
  r["conv1"] = {{-0.1, 6.0 / 7}, {}, 1, {}};
  r["a:b c"] = {{0, 1e-30}, {}, 1, {}};
  r["zero"] = {};
  r["ünicode/1"] = {{-3e38, 2}, {}, 1, {}};
  return r;
}

TEST(table, magnitudes_go_round_in_every_form) {
  for (const table_form f : all_forms) {
    EXPECT_EQ(form_of_table(table_bytes(example(), f)), f);
    const ranges back = parse_table(table_bytes(example(), f), "table");
    ASSERT_EQ(back.size(), 4u) << to_string(f);
    for (const auto& [name, of] : example()) {
      const double expected = of.whole.magnitude(), found = back.at(name).whole.magnitude();
      if (f == table_form::native)  // a float's scale
        EXPECT_NEAR(found, expected, 1e-7 * expected) << name;
      else
        EXPECT_EQ(found, expected) << name;
      if (f != table_form::json) {
        EXPECT_EQ(back.at(name).whole, back.at(name).whole.mirrored()) << name;
      }
    }
    EXPECT_EQ(table_bytes(back, f), table_bytes(parse_table(table_bytes(back, f), "table"), f)) << to_string(f);
  }
}

// Scales from a table are those from the calibration itself.
TEST(table, scales_are_equal_to_the_bit) {
  for (const table_form f : all_forms)
    for (const double magnitude : {0.1, 6.0 / 7, 1.0, 447.3, 1e-20}) {
      ranges r;
      r["x"].whole = {-magnitude, magnitude / 3};
      const range back = parse_table(table_bytes(r, f), "table").at("x").whole;
      const scheme int8{dtype::i8, true};
      EXPECT_EQ(parameters_for(back, int8).value(), parameters_for(r["x"].whole, int8).value())
          << to_string(f) << magnitude;
    }
}

TEST(table, json_keeps_both_ends_channels_and_moments) {
  ranges r = example();
  r["channels"] = {{-2, 3}, {{-1, 3}, {-2, 0.1}}, 1, {}};
  r["one channel"] = {{-2, 3}, {{-2, 3}}, 1, {}};
  r["weights"] = {{-1, 1}, {}, 1, moments{0.25, 0.5}};
  EXPECT_EQ(parse_table(table_bytes(r, table_form::json), "table"), r);
}

TEST(table, native_text_is_what_others_write) {
  const ranges r = parse_table(
      "TRT-8501-EntropyCalibration2\nimage: 3c010a14\r\n(Unnamed Layer* 2) [Shuffle]_output: 3f800000\n", "t");
  EXPECT_EQ(r.at("(Unnamed Layer* 2) [Shuffle]_output").whole, (range{-127, 127}));
  EXPECT_NEAR(r.at("image").whole.high, 127 * 0.00787594, 1e-6);
  ranges one;
  one["x"].whole = {-127, 0};
  EXPECT_EQ(table_bytes(one, table_form::native), "MGX-1-Calibration\nx: 3f800000\n");
}

TEST(table, json_that_others_write) {
  const ranges r = parse_table(R"({"CLS": "TensorsData", "data": {
      "a": {"lowest": {"data": -1.5, "dtype": "float32", "CLS": "numpy.array"},
            "highest": {"data": 2.0, "dtype": "float32", "CLS": "numpy.array"}, "CLS": "TensorData"},
      "c": {"lowest": {"data": [-1, -2], "dtype": "float32"}, "highest": {"data": [1, 3]}}},
    "calibration_method": {"CLS": "CalibrationMethod", "value": "CalibrationMethod.MinMax"}})",
                               "t");
  EXPECT_EQ(r.at("a").whole, (range{-1.5, 2}));
  EXPECT_EQ(r.at("c").whole, (range{-2, 3}));
  EXPECT_THAT(r.at("c").channels, ElementsAre(range{-1, 1}, range{-2, 3}));
  const ranges older = parse_table(R"(  {"a": [-0.5, 1], "b": 3})", "t");
  EXPECT_EQ(older.at("a").whole, (range{-0.5, 1}));
  EXPECT_EQ(older.at("b").whole, (range{-3, 3}));
}

// What flatc 2.0 writes for {dict: [{key: "conv 1", value: "2.5"}, {key: "fc", value: "0.125"}]} of the same schema.
TEST(table, flatbuffers_that_others_write) {
  const unsigned char bytes[] = {
      0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, 0x00, 0x08, 0x00, 0x04, 0x00, 0x06, 0x00, 0x00, 0x00, 0x04, 0x00,
      0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x30, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0xe0, 0xff, 0xff, 0xff,
      0x14, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x30, 0x2e, 0x31, 0x32, 0x35, 0x00,
      0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x66, 0x63, 0x00, 0x00, 0x08, 0x00, 0x0c, 0x00, 0x04, 0x00, 0x08, 0x00,
      0x08, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x32, 0x2e,
      0x35, 0x00, 0x06, 0x00, 0x00, 0x00, 0x63, 0x6f, 0x6e, 0x76, 0x20, 0x31, 0x00, 0x00};
  std::string whole(reinterpret_cast<const char*>(bytes), sizeof bytes);
  const ranges r = parse_table(whole, "t");
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r.at("conv 1").whole, (range{-2.5, 2.5}));
  EXPECT_EQ(r.at("fc").whole, (range{-0.125, 0.125}));
  // any byte may be wrong, and still nothing but an error comes of it
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int flip : {1, 4, 0x80, 0xff}) {
      std::string broken = whole;
      broken[at] = static_cast<char>(broken[at] ^ flip);
      try {
        parse_table(broken, "broken");
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::malformed);
      }
    }
}

TEST(table, cache_lines) {
  const ranges r = parse_table("conv 1 0.5\nfc -2\n", "t");
  EXPECT_EQ(r.at("conv 1").whole, (range{-0.5, 0.5}));
  EXPECT_EQ(r.at("fc").whole, (range{-2, 2}));
}

TEST(table, malformed_tables_name_place_line_expected_and_found) {
  const auto refused = [](std::string_view bytes, const char* a, const char* b) {
    EXPECT_THAT(message_of([&] { parse_table(bytes, "my.table"); }, errc::malformed),
                AllOf(HasSubstr("my.table"), HasSubstr(a), HasSubstr(b)));
  };
  refused("", "calibration table", "empty");
  refused(" \n\n", "calibration table", "empty");
  refused("MGX-1\n", "one tensor or more", "none");
  refused("MGX-1\nx: 3f80\n", "my.table:2", "'3f80'");
  refused("MGX-1\nx: 3f800000\ny: 3f80000", "my.table:3", "8 hexadecimal digits");
  refused("MGX-1\nx: 3f80000g\n", "my.table:2", "'3f80000g'");
  refused("MGX-1\nx: bf800000\n", "my.table:2", "0 or more");
  refused("MGX-1\nx: 7f800000\n", "my.table:2", "finite");
  refused("MGX-1\n\nx 3f800000\n", "my.table:3", "'x 3f800000'");
  refused("MGX-1\n: 3f800000\n", "my.table:2", "the name of a tensor");
  refused("MGX-1\nx: 3f800000\nx: 3f800000\n", "my.table:3", "'x' again");
  refused("x 1\ny 0.12", "my.table:2", "line break");
  refused("x 1\ny abc\n", "my.table:2", "'abc'");
  refused("x 1\ny nan\n", "my.table:2", "'nan'");
  refused("x 1e999\n", "my.table:1", "'1e999'");
  refused("x\n", "my.table:1", "'x'");
  refused("\x89PNG\r\n", "my.table:1", "another form");
  refused("{\"a\": [1, 2],\n\"b\": [1,", "my.table:2", "the end of the file");
  refused("{\"a\": [1, 2],\n\"b\" 1}", "my.table:2", "byte");
  refused("{\"a\": \"x\"}", "of 'a'", "found a string");
  refused("{\"a\": [1, 2, 3]}", "of 'a'", "found an array");
  refused("{\"a\": [2, 1]}", "lowest value of 'a'", "2 and 1");
  refused("{\"a\": 1e308}", "of 'a' whose difference is finite", "-1e+308 and 1e+308");
  refused("a 1e308\n", "calibration table: expected ends of 'a' whose difference is finite", "1e+308");
  refused("{\"a\": 1, \"a\": 2}", "each tensor once", "'a' again");
  refused("{\"a\": {\"lowest\": 1}}", "of 'a'", "found an object");
  refused("{\"a\": {\"lowest\": [0, 1], \"highest\": [2]}}", "of 'a'", "found an object");
  refused("{\"a\": {\"lowest\": 0, \"highest\": 2, \"axis\": 1.5}}", "axis of 'a'", "1.5");
  refused("{\"a\": {\"lowest\": 0, \"highest\": 2, \"axis\": 65}}", "axis of 'a'", "65");
  refused("{\"a\": {\"lowest\": 0, \"highest\": 2, \"avg\": 0, \"std\": -1}}", "std not below 0", "0 and -1");
  refused("{\"a\": 1e999}", "finite", "1e999");
  refused("{\"CLS\": \"TensorsData\"}", "TensorsData", "none");
  refused("{}", "one tensor or more", "none");
}

// No text is so deep that reading it, or saying what is wrong with it, needs more stack than there is.
TEST(table, depth_is_bounded) {
  for (const std::size_t deep : {9ul, 2000000ul})
    for (const bool closed : {false, true}) {
      std::string bytes = "{\"a\": " + std::string(deep, '[');
      if (closed) bytes += std::string(deep, ']') + "}";
      EXPECT_THAT(message_of([&] { parse_table(bytes, "deep"); }, errc::malformed), HasSubstr("8 deep at most"));
    }
  EXPECT_THAT(message_of([] { parse_table("{\"a\": [[[[[[[]]]]]]]}", "t"); }, errc::malformed),
              HasSubstr("found an array"));
}

TEST(table, json_says_axis_and_method) {
  ranges r;
  r["x"] = {{-2, 3}, {{-1, 3}, {-2, 0.1}}, 3, {}};
  const std::string bytes = table_bytes(r, table_form::json, calibration_method::entropy);
  EXPECT_THAT(bytes, HasSubstr("CalibrationMethod.Entropy"));
  EXPECT_EQ(parse_table(bytes, "t"), r);
  EXPECT_THAT(table_bytes(r, table_form::json), HasSubstr("CalibrationMethod.MinMax"));
}

// "%3" is another value in another program.
TEST(table, unnamed_values_are_left_out) {
  ranges r;
  r["%3"].whole = r["%3.1"].whole = r["x"].whole = r["%x"].whole = {0, 1};
  for (const table_form f : all_forms) {
    const ranges back = parse_table(table_bytes(r, f), "t");
    EXPECT_EQ(back.size(), 2u) << to_string(f);
    EXPECT_TRUE(back.contains("x") && back.contains("%x")) << to_string(f);
  }
  r.erase("x"), r.erase("%x");
  EXPECT_THAT(message_of([&] { table_bytes(r, table_form::json); }, errc::invalid_argument),
              HasSubstr("found none, and 2 of unnamed ones"));
}

// A table that is cut off anywhere is an error, or, at the end of a line, has the lines before it.
TEST(table, tables_that_are_cut_off) {
  for (const table_form f : all_forms) {
    const std::string whole = table_bytes(example(), f);
    for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
      const std::string_view part = std::string_view(whole).substr(0, size);
      try {
        const ranges r = parse_table(part, "cut");
        if (f == table_form::flatbuffers) {  // only bytes that fill up were missing
          EXPECT_EQ(r, parse_table(whole, "whole")) << size;
          continue;
        }
        EXPECT_TRUE(f == table_form::native || f == table_form::cache) << to_string(f) << size;
        EXPECT_TRUE(whole[size] == '\n' || whole[size - 1] == '\n') << to_string(f) << size;
        for (const auto& [name, of] : r) EXPECT_TRUE(example().contains(name)) << name;
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::malformed);
      }
    }
  }
}

TEST(table, names_that_lines_cannot_hold) {
  ranges r;
  r["two\nlines"].whole = {0, 1};
  for (const table_form f : {table_form::native, table_form::cache})
    EXPECT_THAT(message_of([&] { table_bytes(r, f); }, errc::invalid_argument), HasSubstr("line break"));
  for (const table_form f : {table_form::json, table_form::plain_json, table_form::flatbuffers})
    EXPECT_EQ(parse_table(table_bytes(r, f), "t").at("two\nlines").whole.magnitude(), 1);
  ranges infinite;
  infinite["x"].whole = {0, std::numeric_limits<double>::infinity()};
  EXPECT_THAT(message_of([&] { table_bytes(infinite, table_form::json); }, errc::invalid_argument), HasSubstr("'x'"));
}

TEST(table, forms_have_names) {
  for (const table_form f : all_forms) EXPECT_EQ(table_form_named(to_string(f)), f);
  EXPECT_THAT(message_of([] { table_form_named("xml"); }, errc::invalid_argument),
              AllOf(HasSubstr("native, json"), HasSubstr("'xml'")));
}

TEST(table, files) {
  const test::temporary_folder temporary;
  const auto folder = temporary / "tables", path = folder / "calibration.json";
  write_table(path, example(), table_form::json);
  EXPECT_EQ(read_table(path), example());
  write_table(path, example(), table_form::flatbuffers);
  EXPECT_EQ(read_table(path).size(), 4u);
  const auto files = std::distance(std::filesystem::directory_iterator(folder), {});
  EXPECT_EQ(files, 1);  // no draft is left
  EXPECT_THAT(message_of([&] { read_table(folder / "none"); }, errc::not_found), HasSubstr("none"));
  EXPECT_THAT(message_of([&] { read_table(folder); }, errc::io), HasSubstr(folder.string()));
  EXPECT_THAT(message_of([&] { write_table(path / "x" / "y", example(), table_form::json); }, errc::io),
              HasSubstr("x/y"));
  std::ofstream(path) << "MGX-1\nx: 1\n";
  EXPECT_THAT(message_of([&] { read_table(path); }, errc::malformed), HasSubstr("calibration.json:2"));
}

}  // namespace
}  // namespace kiln::quantize
