#include "kiln/runtime/dlpack.hpp"

#include <gmock/gmock.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/runtime/executable.hpp"

namespace {

using namespace kiln;

TEST(dlpack, arguments_share_memory_with_what_is_sent_and_received) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  argument a = argument::of<float>({2, 3}, std::span<const float>(values));
  const std::byte* const data = a.data();
  dlpack::managed_tensor* const sent = dlpack::send(a);
  a = argument();  // the struct keeps the memory
  EXPECT_EQ(sent->dl_tensor.data, data);
  dlpack::received back = dlpack::receive(sent);
  EXPECT_EQ(back.value.data(), data);
  EXPECT_EQ(back.where, dlpack::device());
  EXPECT_FALSE(back.read_only);
  EXPECT_EQ(back.value.to<float>(), small_vector<float>(std::span<const float>(values)));
}

TEST(dlpack, a_received_tensor_is_an_input_with_its_strides) {
  builder b;
  const auto x = b.input("x", dtype::f32, {2, 3});
  b.output(x + 1.0f, "y");
  const executable exe = compile(b.finish(), eigen_target());
  std::vector<float> columns_first = {1, 4, 2, 5, 3, 6};
  std::int64_t lens[] = {2, 3}, strides[] = {1, 2};
  bool deleted = false;
  dlpack::managed_tensor m{{columns_first.data(), {}, 2, {}, lens, strides, 0},
                           &deleted,
                           [](dlpack::managed_tensor* self) { *static_cast<bool*>(self->manager_ctx) = true; }};
  {
    const dlpack::received in = dlpack::receive(&m);
    EXPECT_EQ(exe.run({{"x", in.value}}).front().to<float>(), (small_vector<float>{2, 3, 4, 5, 6, 7}));
    EXPECT_FALSE(deleted);
  }
  EXPECT_TRUE(deleted);
}

TEST(dlpack, elements_of_less_than_a_byte_need_the_versioned_struct) {
  const argument a(shape{dtype::i4, {8}});
  EXPECT_THROW((void)dlpack::send(a), error);
  dlpack::managed_tensor_versioned* const sent = dlpack::send_versioned(a, {}, true);
  EXPECT_EQ(sent->flags, dlpack::flag_padded | dlpack::flag_read_only);
  EXPECT_EQ(sent->dl_tensor.dtype.bits, 4);
  const dlpack::received back = dlpack::receive(sent);
  EXPECT_EQ(back.value.get_shape().type, dtype::i4);
  EXPECT_TRUE(back.read_only);
}

TEST(dlpack, objects_are_refused) {
  const argument strings(shape{dtype::string, {1}});
  EXPECT_THROW((void)dlpack::send(strings), error);
  EXPECT_THROW((void)dlpack::send_versioned(strings), error);
}

}  // namespace
