#pragma once
#include "kiln/onnx/impl/import/body_builder.hpp"
#include "kiln/onnx/impl/import/rank_condition.hpp"

namespace kiln::onnx {

/// A part of a graph with one input, a tensor of unknown rank, built for each type that the tensor may have.
class rank_variants {
 public:
  /// `is_first` says whether the tensor has its first type, if something does. Types that the nodes cannot take are
  /// left out.
  rank_variants(import_state& s, body_builder& bodies, const graph& part, const variable& tensor, value is_first);

  type_indices types;
  small_vector<body_module> bodies;
  import_faults why;  ///< why the nodes cannot take a type: of the type with the fewest faults, which is the likeliest

  /// The results of the part: the variant that a run needs. `first` is the part's first node, for names and faults.
  variables join(const node& first);

 private:
  body_module build(std::size_t type);
  value has_type(std::size_t k, value rank);
  body_module joined_body(const node& first, value condition, body_module one, body_module other);
  variables inlined(const body_module& body);

  import_state& state_;
  body_builder& builder_;
  const graph& part_;
  const variable& tensor_;
  value is_first_;
};

}  // namespace kiln::onnx
