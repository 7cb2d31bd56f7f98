// Large raw bytes stay out of the message reader's copies; what is not plainly a model is left to that reader.
#include "kiln/onnx/impl/file/strip_raw_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kiln::onnx {
namespace {

std::string varint(std::size_t n) {
  std::string out;
  for (; n > 127; n >>= 7) out += static_cast<char>(n | 128);
  return out + static_cast<char>(n);
}
std::string message(std::size_t number, const std::string& content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}
std::string tensor(const std::string& name, const std::string& raw) { return message(8, name) + message(9, raw); }
std::string model(const std::string& graph) { return "\x08\x08" + message(7, graph) + message(2, "a producer"); }
std::optional<stripped_model> strip(const std::string& bytes) {
  return strip_raw_data(std::as_bytes(std::span(bytes)));
}

constexpr std::size_t large = 40000;

TEST(strip_raw_data, large_raw_bytes_are_left_out_and_named_by_initializer) {
  const std::string big(large, 'x'), bytes = model(message(2, "g") + message(5, tensor("small", "abcd")) +
                                                   message(5, tensor("big", big)) + message(1, "a node"));
  const auto found = strip(bytes);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->raw.size(), 2u);
  EXPECT_TRUE(found->raw[0].empty());
  ASSERT_EQ(found->raw[1].size(), large);
  EXPECT_EQ(static_cast<const void*>(found->raw[1].data()), bytes.data() + bytes.find(big));
  EXPECT_EQ(found->message, "\x08\x08" + message(2, "a producer") +
                                message(7, message(2, "g") + message(5, tensor("small", "abcd")) +
                                               message(5, message(8, "big")) + message(1, "a node")));
}

TEST(strip_raw_data, what_is_not_plain_is_left_to_the_reader_of_messages) {
  const std::string big(large, 'x'), graph = message(5, tensor("big", big)), whole = model(graph);
  EXPECT_FALSE(strip(model(message(5, tensor("small", "abcd")))));
  EXPECT_FALSE(strip(model(graph) + message(7, graph)));  // two graphs
  EXPECT_FALSE(strip(model(message(5, tensor("big", big) + message(9, big)))));
  for (std::size_t cut : {std::size_t{1}, std::size_t{20}, large / 2, large + 10})
    EXPECT_FALSE(strip(whole.substr(0, whole.size() - cut))) << cut;
  EXPECT_FALSE(strip(std::string(large, '\xff')));
  EXPECT_FALSE(strip(std::string(large, '\0') + whole.substr(0, 3)));
}

}  // namespace
}  // namespace kiln::onnx
