#pragma once
#include <map>
#include <string>
#include <vector>

#include "kiln/core/argument.hpp"
#include "kiln/interface/genai/impl/guard.hpp"
#include "kiln/text/token.hpp"

namespace kiln::genai {

using language::token;
using language::tokens;

}  // namespace kiln::genai

struct OgaSequences {
  std::vector<kiln::language::tokens> lists;
};
struct OgaStringArray {
  std::vector<std::string> texts;
};
struct OgaTensor {
  kiln::argument value;
};
struct OgaNamedTensors {
  std::map<std::string, kiln::argument, std::less<>> all;
};
