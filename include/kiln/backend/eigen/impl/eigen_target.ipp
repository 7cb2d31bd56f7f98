#include "kiln/backend/eigen/eigen_target.hpp"

#include "kiln/backend/eigen/lower.hpp"

namespace kiln {

std::unique_ptr<kernel> eigen_target::make_kernel(const kernel_request& request) const {
  using lower = std::unique_ptr<kernel> (*)(const kernel_request&);
  constexpr lower families[] = {eigen::lower_rows,      eigen::lower_dot,    eigen::lower_convolution,
                                eigen::lower_attention, eigen::lower_window, eigen::lower_gather};
  for (lower family : families)
    if (auto made = family(request)) return made;
  return nullptr;
}

}  // namespace kiln
