#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/quantize/int8.hpp"
#include "kiln/quantize/table.hpp"
#include "peer/ep/ep_host.hpp"

namespace kiln::peer {
namespace {

using ::testing::HasSubstr;
using ep_tables = ep_test;

quantize::ranges ranges_of(const message& model) {
  const program network = quantize::prepared(onnx::parse_model(model.bytes()).graph);
  bool given_one = false;
  return quantize::calibrate(network, quantize::values_to_quantize(network), eigen_target(), [&] {
    return std::exchange(given_one, true) ? std::optional<quantize::sample>() : quantize::sample(ep_rows(64));
  });
}

text_pairs int8_by(const std::filesystem::path& table, const char* native) {
  return {{"migraphx_int8_enable", "1"},
          {"migraphx_int8_calibration_table_name", table.string()},
          {"migraphx_int8_use_native_calibration_table", native}};
}

TEST_F(ep_tables, every_form_gives_the_same_with_either_flag) {
  const message model = ep_dense();
  const quantize::ranges ranges = ranges_of(model);
  const test::temporary_folder folder;
  const plugin_session whole(ep_host(), model.bytes());
  std::vector<float> first;
  for (const quantize::table_form form : quantize::table_forms) {
    const auto file = folder / std::string(to_string(form));
    quantize::write_table(file, ranges, form);
    for (const char* native : {"0", "1"}) {
      SCOPED_TRACE(file.string() + " " + native);
      const logged_session own(model, int8_by(file, native));
      const auto found = floats_of(*own.of, ep_rows(6));
      EXPECT_NE(found, floats_of(whole, ep_rows(6)));
      if (first.empty()) first = found;
      EXPECT_EQ(found, first);
      const bool is_native = form == quantize::table_form::native, says_native = native[0] == '1';
      const std::string mismatch = file.string() + ": its content is of form " + std::string(to_string(form)) +
                                   ", though migraphx_int8_use_native_calibration_table is " + native;
      EXPECT_EQ(own.log.find(mismatch) != own.log.npos, is_native != says_native) << own.log;
      const bool has_one_end = form == quantize::table_form::flatbuffers || form == quantize::table_form::cache;
      EXPECT_EQ(own.log.find("calibration.json has both ends") != own.log.npos, has_one_end) << own.log;
    }
  }
}

TEST_F(ep_tables, a_range_counts_by_its_greater_end) {
  const message model = ep_dense();
  const quantize::ranges ranges = ranges_of(model);
  const test::temporary_folder folder;
  std::string one_sided = "{\"CLS\":\"TensorsData\",\"data\":{", both = one_sided;
  const char* comma = "";
  for (const auto& [name, r] : ranges) {
    const auto entry = [&](double low, double high) {
      const auto number = [](double v) {
        return "{\"data\":[" + std::to_string(v) + "],\"dtype\":\"float32\",\"CLS\":\"numpy.array\"}";
      };
      return std::string(comma) + "\"" + name + "\":{\"CLS\":\"TensorData\",\"lowest\":" + number(low) +
             ",\"highest\":" + number(high) + "}";
    };
    one_sided += entry(-10, 1), both += entry(-10, 10);
    comma = ",";
  }
  std::ofstream(folder / "one.json") << one_sided << "}}";
  std::ofstream(folder / "both.json") << both << "}}";
  const plugin_session a(ep_host(), model.bytes(), int8_by(folder / "one.json", "0"));
  const plugin_session b(ep_host(), model.bytes(), int8_by(folder / "both.json", "0"));
  EXPECT_EQ(floats_of(a, ep_rows(6)), floats_of(b, ep_rows(6)));
}

TEST_F(ep_tables, missing_empty_and_foreign_tables_are_errors) {
  const test::temporary_folder folder;
  EXPECT_THAT(ep_fault(ep_dense(), int8_by(folder / "none.json", "0")), HasSubstr("none.json"));
  std::ofstream(folder / "empty.json");
  EXPECT_THAT(ep_fault(ep_dense(), int8_by(folder / "empty.json", "0")), HasSubstr("empty.json"));
  std::ofstream(folder / "other.cache") << "some_tensor 1.5\n";
  EXPECT_THAT(ep_fault(ep_dense(), int8_by(folder / "other.cache", "0")), HasSubstr("some_tensor"));
}

using ep_environment = ep_test;

TEST_F(ep_environment, a_table_given_by_the_environment_alone_is_in_force) {
  const message model = ep_dense();
  const test::temporary_folder temporary;
  const auto file = temporary / "t.json";
  quantize::write_table(file, ranges_of(model), quantize::table_form::json);
  const plugin_session by_options(ep_host(), model.bytes(), int8_by(file, "0"));
  const variable on("ORT_MIGRAPHX_INT8_ENABLE", "1"), name("ORT_MIGRAPHX_INT8_CALIBRATION_TABLE_NAME", "t.json"),
      folder("ORT_MIGRAPHX_CACHE_PATH", file.parent_path().string());
  const plugin_session by_environment(ep_host(), model.bytes());
  EXPECT_EQ(floats_of(by_environment, ep_rows(6)), floats_of(by_options, ep_rows(6)));
}

TEST_F(ep_environment, a_value_that_is_none_is_an_error_with_its_name) {
  const variable set("ORT_MIGRAPHX_FP16_ENABLE", "maybe");
  EXPECT_THAT(ep_fault(ep_dense(), {}), HasSubstr("ORT_MIGRAPHX_FP16_ENABLE"));
}

}  // namespace
}  // namespace kiln::peer
