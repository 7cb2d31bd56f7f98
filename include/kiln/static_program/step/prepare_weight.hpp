#pragma once
#include "kiln/kernel/conv/winograd/weights.hpp"
#include "kiln/static_program/kernel/conv_nhwc.hpp"
#include "kiln/static_program/plan/prepared_weights.hpp"

namespace kiln::aot {

// Inlined, for units of several instruction sets may hold them.

// Where panel column `column` of line `line` of `lines` lies.
KILN_FN std::int64_t panel_place(std::int64_t column, std::int64_t columns, std::int64_t line, std::int64_t lines) {
  const std::int64_t first = column / kernels::panel_columns * kernels::panel_columns;
  return first * lines + line * kernels::columns_of_panel(first, columns) + column - first;
}

template <int Outputs> KILN_FN void prepare_winograd(const place& w, const float* from, float* to) {
  constexpr std::int64_t points = (Outputs + 2) * (Outputs + 2);
  for (std::int64_t f = 0; f < w.lens[0]; ++f)
    for (std::int64_t c = 0; c < w.lens[1]; ++c)
      kernels::filter_weight<Outputs>(from + (f * w.lens[1] + c) * 9, [&](std::int64_t point, float value) {
        to[panel_place(f, w.lens[0], point * w.lens[1] + c, points * w.lens[1])] = value;
      });
}

/// Writes a weight in the form in which a step reads it.
KILN_FN void prepare_weight(const prepared_weight& prepared, const float* from, float* to) {
  const place& w = prepared.from;
  for (std::int64_t i = 0; i < prepared.elements(); ++i) to[i] = 0;  // some forms are filled up to whole vectors
  switch (prepared.form) {
    case weight_form::rows:
      for (std::int64_t i = 0; i < w.lens[0]; ++i)
        for (std::int64_t j = 0; j < w.lens[1]; ++j)
          to[i * row_pitch(w) + j] = from[w.offset + i * w.strides[0] + j * w.strides[1]];
      return;
    case weight_form::planes: return kernels::transform_winograd_weights(from, to, w.lens[0], w.lens[1]);
    case weight_form::panels_2: return prepare_winograd<2>(w, from, to);
    case weight_form::panels_4: return prepare_winograd<4>(w, from, to);
    case weight_form::panels:
      if (prepared.is_matrix()) {
        const std::size_t k = w.lens.size() - 2;
        for (std::int64_t i = 0; i < prepared.lines(); ++i)
          for (std::int64_t j = 0; j < prepared.columns(); ++j)
            to[panel_place(j, prepared.columns(), i, prepared.lines())] =
                from[w.offset + i * w.strides[k] + j * w.strides[k + 1]];
        return;
      }
      [[fallthrough]];
    case weight_form::depthwise: {
      const std::int64_t filters = w.lens[0], channels = w.lens[1], taps = w.lens[2] * w.lens[3];
      for (std::int64_t f = 0; f < filters; ++f)
        for (std::int64_t c = 0; c < channels; ++c)
          for (std::int64_t t = 0; t < taps; ++t)
            to[prepared.form == weight_form::panels ? panel_place(f, filters, t * channels + c, taps * channels)
                                                    : t * ((filters + 15) / 16 * 16) + f] =
                from[(f * channels + c) * taps + t];
      return;
    }
  }
}

}  // namespace kiln::aot
