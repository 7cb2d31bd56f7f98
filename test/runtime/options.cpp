// Options as text: the tables' rows read, write and refuse.
#include "kiln/runtime/options.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "kiln/core/error.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

enum class color : std::uint8_t { red, green, dark_blue };
constexpr std::string_view color_words[] = {"red", "green", "dark blue"};
constexpr std::span<const std::string_view> option_choices(color) { return color_words; }

struct inner {
  std::uint8_t level = 3;
  color paint = color::green;
};

// A field of every kind.
struct sample {
  bool on = true;
  std::size_t bytes = 0;
  double ratio = 0.1;
  std::string title = "none", file;
  std::vector<name_pair> renamed;
  void* place = nullptr;
  inner in;
};

constexpr option_row<sample> sample_rows[] = {
    make_option<&sample::on>("on", "a flag"),
    make_option<&sample::bytes>("bytes", "a count"),
    make_option<&sample::ratio>("ratio", "a number"),
    make_option<&sample::title>("title", "a text"),
    make_path_option<&sample::file>("file", "a path"),
    make_option<&sample::renamed>("renamed", "pairs"),
    make_option<&sample::place>("place", "an address"),
    make_option<&sample::in, &inner::level>("level", "a count in a struct of its own", 9),
    make_option<&sample::in, &inner::paint>("paint", "a choice"),
};
constexpr std::span<const option_row<sample>> samples = sample_rows;
static_assert(is_well_formed(samples));
static_assert(sample_rows[0].kind == option_kind::flag && sample_rows[1].kind == option_kind::count);
static_assert(sample_rows[2].kind == option_kind::number && sample_rows[3].kind == option_kind::text);
static_assert(sample_rows[4].kind == option_kind::path && sample_rows[5].kind == option_kind::pairs);
static_assert(sample_rows[6].kind == option_kind::address && sample_rows[8].kind == option_kind::choice);
static_assert(sample_rows[0].field.view() == "on" && sample_rows[8].field.view() == "in.paint");

// Tables that is_well_formed refuses.
constexpr option_row<sample> twice[] = {make_option<&sample::on>("on", "a"), make_option<&sample::bytes>("on", "b")};
constexpr option_row<sample> spelled[] = {make_option<&sample::on>("On", "a")};
constexpr option_row<sample> mute[] = {make_option<&sample::on>("on", "")};
constexpr option_row<sample> two_lines[] = {make_option<&sample::on>("on", "a\nb")};
static_assert(!is_well_formed<sample>(twice) && !is_well_formed<sample>(spelled));
static_assert(!is_well_formed<sample>(mute) && !is_well_formed<sample>(two_lines));

sample set_to(std::string_view name, std::string_view value) {
  sample s;
  find_option(samples, name).set(s, value);
  return s;
}

// The whole message of the error.
template <class F> std::string refusal(errc code, F f) {
  try {
    f();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

std::string refusal_of(std::string_view name, std::string_view value) {
  return refusal(errc::invalid_argument, [&] { set_to(name, value); });
}

TEST(options, every_kind_is_read) {
  for (const char* yes : {"true", "True", "1", "on"}) EXPECT_TRUE(set_to("on", yes).on) << yes;
  for (const char* no : {"false", "False", "0", "off"}) EXPECT_FALSE(set_to("on", no).on) << no;
  EXPECT_EQ(set_to("bytes", "18446744073709551615").bytes, ~std::size_t(0));
  EXPECT_EQ(set_to("ratio", "-2.5e-3").ratio, -2.5e-3);
  EXPECT_EQ(set_to("title", "a b=c,").title, "a b=c,");
  EXPECT_EQ(set_to("title", "").title, "");
  EXPECT_EQ(set_to("file", "/a/b c").file, "/a/b c");
  EXPECT_EQ(set_to("level", "9").in.level, 9);
  EXPECT_EQ(set_to("paint", "dark blue").in.paint, color::dark_blue);
  EXPECT_EQ(set_to("place", "0x10").place, set_to("place", "16").place);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(set_to("place", "16").place), 16u);
  const std::vector<name_pair> pairs = {{"a", "b"}, {"c d", "e=f"}, {"g,=\\", "\\,h"}};
  EXPECT_EQ(set_to("renamed", R"(a=b,c d=e=f,g\,\=\\=\\\,h)").renamed, pairs);
  EXPECT_EQ(set_to("renamed", to_option_text(pairs)).renamed, pairs);
  EXPECT_THAT(set_to("renamed", "").renamed, IsEmpty());
}

TEST(options, what_is_set_is_what_is_told) {
  const std::pair<const char*, const char*> values[] = {
      {"on", "false"},   {"bytes", "77"},    {"ratio", "0.30000000000000004"},
      {"title", "x"},    {"file", "/tmp/y"}, {"renamed", R"(a\,=b,c=d\\)"},
      {"place", "4096"}, {"level", "0"},     {"paint", "red"}};
  ASSERT_EQ(std::size(values), samples.size());
  for (const auto& [name, value] : values) {
    const option_row<sample>& row = find_option(samples, name);
    EXPECT_NE(row.default_text(), value) << name;
    EXPECT_EQ(row.get(set_to(name, value)), value) << name;
    EXPECT_EQ(row.get(set_to(name, row.default_text())), row.default_text()) << name;
  }
}

TEST(options, what_is_no_value_is_refused_with_what_is_expected_and_found) {
  EXPECT_THAT(refusal_of("on", "yes"), HasSubstr("option 'on': expected true or false, found 'yes'"));
  for (const char* text : {"", "TRUE", " 1", "1 ", "2"}) refusal_of("on", text);
  EXPECT_THAT(refusal_of("level", "10"), HasSubstr("'level': expected a whole number from 0 to 9, found '10'"));
  for (const char* text : {"", "-1", "+1", " 1", "1.0", "0x1", "18446744073709551616"}) refusal_of("bytes", text);
  EXPECT_THAT(refusal_of("ratio", "nan"), HasSubstr("expected a finite number, found 'nan'"));
  for (const char* text : {"", "inf", "1e999", "1,5", "1 "}) refusal_of("ratio", text);
  EXPECT_THAT(refusal_of("paint", "blue"), HasSubstr("expected one of red, green, dark blue, found 'blue'"));
  EXPECT_THAT(refusal_of("renamed", "a"), HasSubstr("expected NAME=NAME,NAME=NAME"));
  for (const char* text : {"a=", "=b", ",", "a=b,", ",a=b", "a=b\\", "a=b,a=c", "a=b,,c=d"})
    refusal_of("renamed", text);
  for (const char* text : {"", "x", "-1", "0x", "0x1g", "99999999999999999999"}) refusal_of("place", text);
}

TEST(options, a_refused_value_changes_nothing) {
  sample s;
  s.renamed = {{"a", "b"}};
  s.ratio = 2;
  for (const auto& [name, value] : {std::pair("renamed", "c=d,e"), {"ratio", "1x"}, {"level", "200"}})
    EXPECT_THROW(find_option(samples, name).set(s, value), error);
  EXPECT_EQ(s.renamed, (std::vector<name_pair>{{"a", "b"}}));
  EXPECT_EQ(s.ratio, 2);
  EXPECT_EQ(s.in.level, inner().level);
}

TEST(options, an_unknown_name_is_told_the_nearest) {
  const auto why = [](std::string_view name) {
    return refusal(errc::not_found, [&] {
      compile_options o;
      set_option(o, name, "1");
    });
  };
  EXPECT_THAT(why("tuen"), AllOf(HasSubstr("no option 'tuen'; nearest 'tune' of threads, tune"), HasSubstr("alias")));
  EXPECT_THAT(why("num_threads"), HasSubstr("nearest 'threads'"));
  EXPECT_THAT(why("tuning-file"), HasSubstr("nearest 'tuning_file'"));
  EXPECT_THAT(why("verify"), HasSubstr("nearest 'verify_passes'"));
  EXPECT_THAT(why(""), HasSubstr("no option ''"));
  EXPECT_THAT(refusal(errc::not_found, [] { get_option(compile_options(), "pool"); }), HasSubstr("'pool'"));
  EXPECT_THAT(refusal(errc::not_found, [] { get_option(run_options(), "threads"); }), HasSubstr("'stream'"));
}

TEST(options, each_row_writes_its_own_field_and_reads_it_back) {
  const std::pair<const char*, const char*> values[] = {
      {"threads", "5"},     {"tune", "true"},          {"tuning_file", "/tmp/tuned.tsv"}, {"simplify", "false"},
      {"fuse", "false"},    {"verify_passes", "true"}, {"alias", "present=past,b=a"},     {"cache", "/tmp/kept"},
      {"cache_limit", "64"}};
  ASSERT_EQ(std::size(values), compile_option_table().size()) << "a new row is tested here too";
  compile_options all;
  for (const auto& [name, value] : values) {
    compile_options one;
    EXPECT_NE(get_option(one, name), value) << name;
    set_option(one, name, value);
    set_option(all, name, value);
    for (const compile_option& row : compile_option_table())
      EXPECT_EQ(row.get(one), row.name == name ? value : row.default_text()) << name << " and " << row.name;
  }
  EXPECT_EQ(all.threads, 5u);
  EXPECT_TRUE(all.tune && !all.passes.simplify && !all.passes.fuse && all.passes.verify);
  EXPECT_EQ(all.tuning_file, "/tmp/tuned.tsv");
  EXPECT_EQ(all.cache, "/tmp/kept");
  EXPECT_EQ(all.cache_limit, 64u);
  ASSERT_EQ(all.aliases.size(), 2u);
  EXPECT_EQ(all.aliases[0].output + " " + all.aliases[0].input, "present past");
  compile_options same;
  for (const compile_option& row : compile_option_table()) row.set(same, row.get(all));
  for (const compile_option& row : compile_option_table()) EXPECT_EQ(row.get(same), row.get(all)) << row.name;
}

TEST(options, threads_have_a_limit) {
  compile_options o;
  set_option(o, "threads", "1024");
  EXPECT_EQ(o.threads, 1024u);
  EXPECT_THROW(set_option(o, "threads", "1025"), error);
}

TEST(options, defaults_are_the_structs) {
  const compile_options o;
  for (const compile_option& row : compile_option_table()) EXPECT_EQ(row.default_text(), row.get(o));
  EXPECT_EQ(get_option(o, "threads"), std::to_string(o.threads));
  EXPECT_EQ(get_option(o, "fuse"), o.passes.fuse ? "true" : "false");
  EXPECT_EQ(get_option(run_options(), "stream"), "0");
}

TEST(options, of_a_run) {
  run_options o;
  set_option(o, "stream", "0xff00");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(o.stream), 0xff00u);
  EXPECT_EQ(get_option(o, "stream"), std::to_string(0xff00));
  EXPECT_THAT(refusal(errc::invalid_argument, [&] { set_option(o, "stream", "default"); }),
              HasSubstr("option 'stream': expected an address"));
}

TEST(options, the_tuners_file) {
  compile_options o;
  EXPECT_EQ(tuning_options_of(o).file, tuning_cache::default_file());
  o.tuning_file = "/tmp/mine.tsv";
  EXPECT_EQ(tuning_options_of(o).file, std::filesystem::path("/tmp/mine.tsv"));
}

}  // namespace
}  // namespace kiln::testing
