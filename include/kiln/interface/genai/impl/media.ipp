#include "kiln/interface/genai/impl/guard.hpp"

namespace kiln::genai {
namespace {

OgaResult* absent(const char* function, const char* what) noexcept {
  return guarded([&] { raise(errc::unsupported, std::string(function) + ": kiln does not support " + what); });
}
// The same of a function that hands something out: nothing.
template <class T> OgaResult* absent(const char* function, const char* what, T** out) noexcept {
  if (out) *out = nullptr;
  return absent(function, what);
}

constexpr const char* images = "images: models of text alone are run";
constexpr const char* audio = "audio: models of text alone are run";
constexpr const char* media = "images and audio: models of text alone are run";
constexpr const char* heads = "heads that predict several tokens (MTP)";

}  // namespace
}  // namespace kiln::genai

using namespace kiln::genai;

OgaResult* OgaLoadImage(const char*, OgaImages** out) { return absent("OgaLoadImage", images, out); }
OgaResult* OgaLoadImages(const OgaStringArray*, OgaImages** out) { return absent("OgaLoadImages", images, out); }
OgaResult* OgaLoadImagesFromBuffers(const void**, const size_t*, size_t, OgaImages** out) {
  return absent("OgaLoadImagesFromBuffers", images, out);
}
void OgaDestroyImages(OgaImages*) {}
OgaResult* OgaLoadAudio(const char*, OgaAudios** out) { return absent("OgaLoadAudio", audio, out); }
OgaResult* OgaLoadAudios(const OgaStringArray*, OgaAudios** out) { return absent("OgaLoadAudios", audio, out); }
OgaResult* OgaLoadAudiosFromBuffers(const void**, const size_t*, size_t, OgaAudios** out) {
  return absent("OgaLoadAudiosFromBuffers", audio, out);
}
void OgaDestroyAudios(OgaAudios*) {}

OgaResult* OgaCreateMultiModalProcessor(const OgaModel*, OgaMultiModalProcessor** out) {
  return absent("OgaCreateMultiModalProcessor", media, out);
}
void OgaDestroyMultiModalProcessor(OgaMultiModalProcessor*) {}
OgaResult* OgaProcessorProcessImages(const OgaMultiModalProcessor*, const char*, const OgaImages*,
                                     OgaNamedTensors** out) {
  return absent("OgaProcessorProcessImages", images, out);
}
OgaResult* OgaProcessorProcessImagesAndPrompts(const OgaMultiModalProcessor*, const OgaStringArray*, const OgaImages*,
                                               OgaNamedTensors** out) {
  return absent("OgaProcessorProcessImagesAndPrompts", images, out);
}
OgaResult* OgaProcessorProcessAudios(const OgaMultiModalProcessor*, const char*, const OgaAudios*,
                                     OgaNamedTensors** out) {
  return absent("OgaProcessorProcessAudios", audio, out);
}
OgaResult* OgaProcessorProcessAudiosAndPrompts(const OgaMultiModalProcessor*, const OgaStringArray*, const OgaAudios*,
                                               OgaNamedTensors** out) {
  return absent("OgaProcessorProcessAudiosAndPrompts", audio, out);
}
OgaResult* OgaProcessorProcessImagesAndAudios(const OgaMultiModalProcessor*, const char*, const OgaImages*,
                                              const OgaAudios*, OgaNamedTensors** out) {
  return absent("OgaProcessorProcessImagesAndAudios", media, out);
}
OgaResult* OgaProcessorProcessImagesAndAudiosAndPrompts(const OgaMultiModalProcessor*, const OgaStringArray*,
                                                        const OgaImages*, const OgaAudios*, OgaNamedTensors** out) {
  return absent("OgaProcessorProcessImagesAndAudiosAndPrompts", media, out);
}
OgaResult* OgaProcessorDecode(const OgaMultiModalProcessor*, const int32_t*, size_t, const char** out) {
  return absent("OgaProcessorDecode", media, out);
}
OgaResult* OgaCreateTokenizerStreamFromProcessor(const OgaMultiModalProcessor*, OgaTokenizerStream** out) {
  return absent("OgaCreateTokenizerStreamFromProcessor", media, out);
}

OgaResult* OgaCreateStreamingProcessor(const OgaModel*, OgaStreamingProcessor** out) {
  return absent("OgaCreateStreamingProcessor", audio, out);
}
void OgaDestroyStreamingProcessor(OgaStreamingProcessor*) {}
OgaResult* OgaStreamingProcessorProcess(OgaStreamingProcessor*, const float*, size_t, OgaNamedTensors** out) {
  return absent("OgaStreamingProcessorProcess", audio, out);
}
OgaResult* OgaStreamingProcessorFlush(OgaStreamingProcessor*, OgaNamedTensors** out) {
  return absent("OgaStreamingProcessorFlush", audio, out);
}
OgaResult* OgaStreamingProcessorSetOption(OgaStreamingProcessor*, const char*, const char*) {
  return absent("OgaStreamingProcessorSetOption", audio);
}
OgaResult* OgaStreamingProcessorGetOption(const OgaStreamingProcessor*, const char*, const char** out) {
  return absent("OgaStreamingProcessorGetOption", audio, out);
}

OgaResult* OgaCreateMtpGenerator(const OgaModel*, const OgaModel*, const OgaGeneratorParams*, OgaMtpGenerator** out) {
  return absent("OgaCreateMtpGenerator", heads, out);
}
void OgaDestroyMtpGenerator(OgaMtpGenerator*) {}
OgaResult* OgaMtpGenerator_AppendTokens(OgaMtpGenerator*, const int32_t*, size_t) {
  return absent("OgaMtpGenerator_AppendTokens", heads);
}
OgaResult* OgaMtpGenerator_GenerateNextToken(OgaMtpGenerator*) {
  return absent("OgaMtpGenerator_GenerateNextToken", heads);
}
OgaResult* OgaMtpGenerator_Reset(OgaMtpGenerator*) { return absent("OgaMtpGenerator_Reset", heads); }
bool OgaMtpGenerator_IsDone(const OgaMtpGenerator*) { return true; }
size_t OgaMtpGenerator_GetSequenceCount(const OgaMtpGenerator*) { return 0; }
const int32_t* OgaMtpGenerator_GetSequenceData(const OgaMtpGenerator*) { return nullptr; }
size_t OgaMtpGenerator_GetForwardCount(const OgaMtpGenerator*) { return 0; }
size_t OgaMtpGenerator_GetAcceptCount(const OgaMtpGenerator*) { return 0; }
size_t OgaMtpGenerator_GetTrialCount(const OgaMtpGenerator*) { return 0; }
OgaResult* OgaMtpGenerator_GetSpeculativeStats(const OgaMtpGenerator*, OgaSpeculativeStats** out) {
  return absent("OgaMtpGenerator_GetSpeculativeStats", heads, out);
}
