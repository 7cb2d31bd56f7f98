#include "kiln/interface/genai/impl/handles.hpp"

namespace kiln::genai {
namespace {

OgaResult* absent(const char* function) noexcept {
  return guarded(
      [&] { raise(errc::unsupported, std::string(function) + ": kiln does not support speculative decoding"); });
}

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;

OgaResult* OgaGeneratorParamsSetSpeculativeNumber(OgaGeneratorParams*, const char*, double) {
  return absent("OgaGeneratorParamsSetSpeculativeNumber");
}
OgaResult* OgaGeneratorParamsGetSpeculativeNumber(const OgaGeneratorParams*, const char*, double*) {
  return absent("OgaGeneratorParamsGetSpeculativeNumber");
}
OgaResult* OgaGeneratorParamsSetSpeculativeBool(OgaGeneratorParams*, const char*, bool) {
  return absent("OgaGeneratorParamsSetSpeculativeBool");
}
OgaResult* OgaGeneratorParamsGetSpeculativeBool(const OgaGeneratorParams*, const char*, bool*) {
  return absent("OgaGeneratorParamsGetSpeculativeBool");
}
OgaResult* OgaGenerator_GetSpeculativeStats(const OgaGenerator*, OgaSpeculativeStats** out) {
  if (out) *out = nullptr;
  return absent("OgaGenerator_GetSpeculativeStats");
}
void OgaDestroySpeculativeStats(OgaSpeculativeStats*) {}
OgaResult* OgaSpeculativeStatsGetCount(const OgaSpeculativeStats*, const char*, uint64_t*) {
  return absent("OgaSpeculativeStatsGetCount");
}
OgaResult* OgaSpeculativeStatsGetNumber(const OgaSpeculativeStats*, const char*, double*) {
  return absent("OgaSpeculativeStatsGetNumber");
}
OgaResult* OgaSpeculativeStatsGetBool(const OgaSpeculativeStats*, const char*, bool*) {
  return absent("OgaSpeculativeStatsGetBool");
}
