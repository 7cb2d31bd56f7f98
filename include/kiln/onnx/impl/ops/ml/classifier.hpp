#pragma once
#include "kiln/onnx/impl/ops/common.hpp"

// What the models of ai.onnx.ml share: linear models, SVMs, tree ensembles.
namespace kiln::onnx {

inline constexpr std::string_view ai_onnx_ml = "ai.onnx.ml";

/// The classes of a classifier: numbers or strings.
struct class_labels {
  std::int64_t count = 0;
  value table;  ///< one label for each class
};
class_labels read_labels(node_context& c, std::string_view integers, std::string_view strings);

/// Scores[samples, classes] after the transform that attribute post_transform names.
value transformed(node_context& c, value scores, std::string_view post_transform);

/// Labels of the best classes, and the transformed scores.
variables classes(node_context& c, value scores, const class_labels& labels, std::string_view post_transform);
/// Labels and scores of two classes by the score of the second, which wins above the threshold. The score of the first
/// is 1 - score or -score. As in ONNX Runtime, SOFTMAX does not transform such pairs.
enum class pairing { complements, opposes };
variables binary_classes(node_context& c, value score, const class_labels& labels, std::string_view post_transform,
                         float threshold, pairing pair);

/// Input 0 as f32[samples, features].
value samples_of(const node_context& c);
/// A vector of f32 constants.
value real_list(node_context& c, std::span<const float> v);

/// values[i] where an element of x is keys[i], the first of them, and `otherwise` where it is no key. Errors:
/// `malformed` where keys and values differ in number.
value looked_up(node_context& c, value x, value keys, value values, value otherwise);

}  // namespace kiln::onnx
