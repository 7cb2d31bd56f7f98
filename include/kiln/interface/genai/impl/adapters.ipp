#include "kiln/interface/genai/impl/handles.hpp"

namespace kiln::genai {
namespace {

OgaResult* absent(const char* function) noexcept {
  return guarded([&] { raise(errc::unsupported, std::string(function) + ": kiln does not support adapters"); });
}

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;

OgaResult* OgaCreateAdapters(const OgaModel*, OgaAdapters** out) {
  if (out) *out = nullptr;
  return absent("OgaCreateAdapters");
}
void OgaDestroyAdapters(OgaAdapters*) {}
OgaResult* OgaLoadAdapter(OgaAdapters*, const char*, const char*) { return absent("OgaLoadAdapter"); }
OgaResult* OgaUnloadAdapter(OgaAdapters*, const char*) { return absent("OgaUnloadAdapter"); }
OgaResult* OgaSetActiveAdapter(OgaGenerator*, OgaAdapters*, const char*) { return absent("OgaSetActiveAdapter"); }
