#include "kiln/lower/strides.hpp"

namespace kiln::lower {
namespace {

using enum stride_support;
constexpr layout nchw = layout::standard({2, 3, 4, 5}), nhwc{nchw.lens, nhwc_strides(nchw.lens), 0};
// parts of concatenations: of channels in NCHW and NHWC, of rows in NHWC, of columns
constexpr layout part{{2, 3, 4, 5}, {200, 20, 5, 1}, 20}, nhwc_part{{2, 3, 4, 5}, {160, 1, 40, 8}, 4},
    nhwc_rows{{2, 3, 4, 5}, {120, 1, 15, 3}, 0}, columns{{2, 3, 4, 5}, {120, 40, 10, 1}, 0};
constexpr layout turned{{3, 2}, {1, 3}, 0}, repeated{{2, 3, 4, 5}, {0, 1, 15, 3}, 0};

constexpr bool accepted(stride_support s, std::initializer_list<layout> yes, std::initializer_list<layout> no) {
  for (const layout& l : yes)
    if (!accepts(s, l)) return false;
  for (const layout& l : no)
    if (accepts(s, l)) return false;
  return true;
}
static_assert(accepted(dense, {nchw}, {nhwc, part, nhwc_part, columns, turned}));
static_assert(accepted(nchw_or_nhwc, {nchw, nhwc, nhwc_part}, {part, nhwc_rows, columns, turned}));
static_assert(accepted(strided_nchw_or_nhwc, {nchw, nhwc, nhwc_part, part}, {nhwc_rows, columns}));
static_assert(accepted(rows, {nchw, part, columns, layout::standard({}), {{4, 1}, {1, 7}, 0}}, {nhwc, turned}));
static_assert(accepted(any, {nchw, nhwc, part, turned, repeated}, {}));

static_assert(dense_from(part, 1) && !dense_from(part, 0) && dense_from(columns, 3) && dense_from(turned, 2));
static_assert(distinct_elements(repeated) == dimension(60) && distinct_elements(nchw) == dimension(120));

}  // namespace
}  // namespace kiln::lower
