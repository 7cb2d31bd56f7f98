#pragma once
#include "kiln/onnx/impl/parse.hpp"

// What the classical models of ai.onnx.ml share.
namespace kiln::onnx {

inline constexpr std::string_view learned = "ai.onnx.ml";

/// The classes of a classifier: numbers or strings.
struct class_labels {
  std::int64_t count = 0;
  value table;  ///< one label for each class
};
class_labels read_labels(call& c, std::string_view integers, std::string_view strings);

/// Scores[samples, classes] after the transform that an attribute names.
value transformed(call& c, value scores, std::string_view post_transform);

/// Labels and scores of the best class.
variables classes(call& c, value scores, const class_labels& labels, std::string_view post_transform);
/// Labels and scores of two classes from one column: the second class where the score is beyond the border. The first's
/// score is what is missing to 1, or the negative one; as in ONNX Runtime, SOFTMAX leaves such a pair alone.
enum class pairing { complements, opposes };
variables binary_classes(call& c, value score, const class_labels& labels, std::string_view post_transform,
                         float border, pairing pair);

}  // namespace kiln::onnx
