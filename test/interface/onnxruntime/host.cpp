#include "kiln/interface/onnxruntime/host.hpp"

#include <gmock/gmock.h>

#include <array>

namespace kiln::onnxruntime {
namespace {

// An ONNX Runtime that tells what a tensor is, and may fail at it.
struct tables {
  std::array<const void*, 512> main{};
  bool fails = false;
  int released = 0;  // statuses
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
  put(api::release_status, [](OrtStatus*) { ++runtime.released; });
  put(api::tensor_type,
      [](const OrtValue*, int* element, const std::int64_t** extents, std::size_t* rank) -> OrtStatus* {
        static constexpr std::int64_t found[] = {5, 6};
        if (runtime.fails) return some<OrtStatus>();
        *element = 7, *extents = found, *rank = 2;
        return nullptr;
      });
  OrtApiBase base{};
  base.GetApi = [](std::uint32_t) -> const void* const* { return runtime.main.data(); };
  base.GetVersionString = [] { return "1.30"; };
  return host(base);
}

TEST(onnxruntime_host, tells_what_a_tensor_is_and_gives_the_status_of_a_failure_back) {
  const host ort = fake_host();
  const tensor_type found = ort.type_of(some<OrtValue>());
  EXPECT_EQ(found.element, 7);
  EXPECT_THAT(found.extents, testing::ElementsAre(5, 6));
  EXPECT_EQ(runtime.released, 0);
  runtime.fails = true;
  EXPECT_THROW(ort.type_of(some<OrtValue>()), error);
  EXPECT_EQ(runtime.released, 1);
}

}  // namespace
}  // namespace kiln::onnxruntime
