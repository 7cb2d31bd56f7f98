#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {

std::unique_ptr<kernel> lower_index(const kernel_request&, const context_pointer&) { return nullptr; }
std::unique_ptr<kernel> lower_window(const kernel_request&, const context_pointer&) { return nullptr; }

}  // namespace kiln::hip
