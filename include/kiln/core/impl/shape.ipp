#include "kiln/core/shape.hpp"

namespace kiln {

std::string to_string(const shape& s) {
  std::string out(to_string(s.type));
  out += "[";
  for (std::size_t i = 0; i < s.rank(); ++i) out += (i ? ", " : "") + to_string(s.lens[i]);
  return out + "]";
}

}  // namespace kiln
