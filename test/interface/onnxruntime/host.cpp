#include "kiln/interface/onnxruntime/host.hpp"

#include <gmock/gmock.h>

#include <array>

namespace kiln::onnxruntime {
namespace {

// An ONNX Runtime that has what a tensor's extents need, and may fail at it.
struct tables {
  std::array<const void*, 512> main{};
  bool fails = false;
  int made = 0, released = 0;
} runtime;
int anything;
template <class Of> Of* some() { return reinterpret_cast<Of*>(&anything); }

template <std::size_t Index, class Result, class... Args>
void put(slot<Index, Result(Args...)>, std::type_identity_t<Result (*)(Args...)> f) {
  runtime.main[Index] = reinterpret_cast<const void*>(f);
}

host fake_host() {
  runtime = {};
  const auto no_table = []() -> const void* const* { return nullptr; };
  put(api::ep_api, no_table);
  put(api::model_editor_api, no_table);
  put(api::status_message, [](const OrtStatus*) { return "no extents"; });
  put(api::status_code_of, [](const OrtStatus*) { return status_code::fail; });
  put(api::release_status, [](OrtStatus*) {});
  put(api::tensor_info_of_value, [](const OrtValue*, OrtTensorTypeAndShapeInfo** out) -> OrtStatus* {
    ++runtime.made;
    *out = some<OrtTensorTypeAndShapeInfo>();
    return nullptr;
  });
  put(api::release_tensor_info, [](OrtTensorTypeAndShapeInfo*) { ++runtime.released; });
  put(api::rank, [](const OrtTensorTypeAndShapeInfo*, std::size_t* out) -> OrtStatus* {
    *out = 2;
    return nullptr;
  });
  put(api::extents, [](const OrtTensorTypeAndShapeInfo*, std::int64_t* out, std::size_t n) -> OrtStatus* {
    if (runtime.fails) return some<OrtStatus>();
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::int64_t>(i + 5);
    return nullptr;
  });
  OrtApiBase base{};
  base.GetApi = [](std::uint32_t) -> const void* const* { return runtime.main.data(); };
  base.GetVersionString = [] { return "1.30"; };
  return host(base);
}

TEST(onnxruntime_host, appends_extents_and_gives_objects_back_where_a_call_fails_too) {
  const host ort = fake_host();
  std::vector<std::int64_t> extents{9};
  EXPECT_EQ(ort.append_extents(some<OrtValue>(), extents), 2u);
  EXPECT_EQ(extents, (std::vector<std::int64_t>{9, 5, 6}));
  EXPECT_EQ(runtime.released, 1);
  runtime.fails = true;
  EXPECT_THROW(ort.append_extents(some<OrtValue>(), extents), error);
  EXPECT_EQ(runtime.made, 2);
  EXPECT_EQ(runtime.released, 2);
}

}  // namespace
}  // namespace kiln::onnxruntime
