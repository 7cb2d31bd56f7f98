#include "kiln/runtime/report.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace {

using namespace kiln;

compile_report sample() {
  compile_report r;
  r.target = "eigen";
  r.remarks = {"a remark with a byte that is no UTF-8: \xff"};
  r.constant_bytes = 12;
  r.packed_bytes = 640;
  r.optimize_ms = 1.26;
  r.plan_ms = 0.5;
  step_info s;
  s.kernel = "gemm+epilogue", s.instruction = "fc1", s.packed_bytes = 512;
  s.inputs = {{dtype::f32, {dimension::symbol("batch", 1), 4}}}, s.outputs = {{dtype::f32, {2, 3}}};
  r.steps.push_back(s);
  s.kernel = "gemm", s.instruction = "fc2", s.packed_bytes = 128, s.group = 0, s.branch = 1, s.fallback = true;
  r.steps.push_back(s);
  return r;
}

TEST(report, plan_is_a_line_a_step) {
  EXPECT_EQ(plan_text(sample()),
            "   0 gemm+epilogue: (f32[batch, 4]) -> (f32[2, 3]) from fc1\n"
            "   1 gemm: (f32[batch, 4]) -> (f32[2, 3]) from fc2, beside others from 0 on in branch 1\n");
}

TEST(report, text_counts_kernels_and_bytes) {
  EXPECT_EQ(report_text(sample()),
            "a remark with a byte that is no UTF-8: \xff\n"
            "2 kernels, 0 of them copies, 1 by the reference computation\n"
            "12 bytes of constants as they are, 640 packed: 640 gemm\n"
            "passes 1.3 ms, plan and packing 0.5 ms\n");
}

TEST(report, json_has_it_all) {
  const auto j = nlohmann::json::parse(report_json(sample()));
  EXPECT_EQ(j["target"], "eigen");
  EXPECT_EQ(j["packed"]["gemm"], 640);
  EXPECT_EQ(j["steps"].size(), 2u);
  EXPECT_EQ(j["steps"][0]["inputs"][0]["dims"][0], "batch");
  EXPECT_EQ(j["steps"][0]["inputs"][0]["dims"][1], 4);
  EXPECT_EQ(j["steps"][1]["branch"], 1);
  EXPECT_EQ(j["optimize_ms"], 1.26);
}

}  // namespace
