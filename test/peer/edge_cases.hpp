#pragma once
#include <limits>

#include "peer/one_node.hpp"

/// Nodes of unusual but legal form: empty and scalar tensors, negative axes and steps, extreme numbers, absent inputs,
/// versions of operator sets from 7 to 22. Not among them is what ONNX Runtime takes otherwise than the specification
/// or numpy: maxima and means of nothing or of NaN, integers that overflow, infinities without a bound to clip to.
namespace kiln::peer {

constexpr int f16 = 10, f64 = 11, u32 = 12, u64 = 13, u16 = 4, i16 = 5;
constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

/// A tensor of these values; numbers of integer types are `whole`. Of type 0: an omitted input.
struct tensor_of {
  int type = 0;
  lens extents{};
  std::vector<double> reals{};
  std::vector<std::int64_t> whole{};
};
inline tensor_of f(lens extents, std::vector<double> values, int type = f32) {
  return {type, std::move(extents), std::move(values), {}};
}
inline tensor_of n(lens extents, std::vector<std::int64_t> values, int type = i64) {
  return {type, std::move(extents), {}, std::move(values)};
}
/// 1, -2, 3, -4, ... times a quarter.
inline tensor_of some(lens extents, int type = f32) {
  tensor_of t{type, extents, {}, {}};
  std::int64_t count = 1;
  for (const std::int64_t e : extents) count *= e;
  const bool real = type == f32 || type == f16 || type == f64;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t v = (k * 7 % 23) - 9;
    if (real)
      t.reals.push_back(static_cast<double>(v) / 4);
    else
      t.whole.push_back(type == u8 || type == u32 || type == u64 || type == u16 ? v + 9
                        : type == boolean                                       ? k * 5 % 3 != 0
                                                                                : v);
  }
  return t;
}
inline const tensor_of absent{};

struct edge_case {
  std::string op, detail;
  std::int64_t version = 17;
  std::vector<tensor_of> inputs;
  std::vector<message> attributes{};
  std::vector<int> outputs{f32};
  double tolerance = 1e-5;           ///< of each element's own magnitude, or of 1 where it is less
  bool zeros_have_any_sign = false;  ///< kiln and ONNX Runtime give zeros of unlike sign, which nothing fixes
};

std::vector<edge_case> view_edges();
std::vector<edge_case> number_edges();
std::vector<edge_case> sum_edges();
std::vector<edge_case> large_edges();
std::vector<edge_case> layer_edges();

}  // namespace kiln::peer
