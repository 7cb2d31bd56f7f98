#pragma once
#include "kiln/interface/c/impl/handles.hpp"
#include "kiln/quantize/mixed.hpp"

struct kiln_sample {
  kiln::quantize::sample inputs;
  std::string why;
};

struct kiln_samples {
  std::vector<kiln::quantize::sample> all;
  kiln_sample_callback next = nullptr;
  void* user = nullptr;
};

namespace kiln::c {

/// The caller's samples, which outlive what this returns; null: none.
quantize::repeated_data repeated(const kiln_samples* samples);

}  // namespace kiln::c
