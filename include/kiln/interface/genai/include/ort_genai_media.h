/* The parts of GenAI's C++ interface that kiln does not support: their calls throw what says so. ort_genai.h includes
 * it.
 */
#pragma once
#include <ort_genai_generate.h>

namespace OgaDetail {
/* Files of images or audio. */
template <class T, class Paths>
std::unique_ptr<T> Load(OgaResult* (*load)(const OgaStringArray*, T**), const Paths& paths) {
  const auto names = OgaStringArray::Create(paths.data(), paths.size());
  const OgaStringArray* const list = names.get();
  return Owned<T>(load, list);
}
}  // namespace OgaDetail

struct OgaImages : OgaAbstract {
  static std::unique_ptr<OgaImages> Load(const std::vector<const char*>& paths) {
    return OgaDetail::Load(OgaLoadImages, paths);
  }
#if OGA_USE_SPAN
  static std::unique_ptr<OgaImages> Load(std::span<const char* const> paths) {
    return OgaDetail::Load(OgaLoadImages, paths);
  }
#endif
  static std::unique_ptr<OgaImages> Load(const void** data, const size_t* sizes, size_t count) {
    return OgaDetail::Owned<OgaImages>(OgaLoadImagesFromBuffers, data, sizes, count);
  }
  static void operator delete(void* p) { OgaDestroyImages(static_cast<OgaImages*>(p)); }
};

struct OgaAudios : OgaAbstract {
  static std::unique_ptr<OgaAudios> Load(const std::vector<const char*>& paths) {
    return OgaDetail::Load(OgaLoadAudios, paths);
  }
#if OGA_USE_SPAN
  static std::unique_ptr<OgaAudios> Load(std::span<const char* const> paths) {
    return OgaDetail::Load(OgaLoadAudios, paths);
  }
#endif
  static std::unique_ptr<OgaAudios> Load(const void** data, const size_t* sizes, size_t count) {
    return OgaDetail::Owned<OgaAudios>(OgaLoadAudiosFromBuffers, data, sizes, count);
  }
  static void operator delete(void* p) { OgaDestroyAudios(static_cast<OgaAudios*>(p)); }
};

struct OgaMultiModalProcessor : OgaAbstract {
  using Prompts = std::vector<const char*>;
  using Inputs = std::unique_ptr<OgaNamedTensors>;
  static std::unique_ptr<OgaMultiModalProcessor> Create(const OgaModel& model) {
    return OgaDetail::Owned<OgaMultiModalProcessor>(OgaCreateMultiModalProcessor, &model);
  }
  Inputs ProcessImages(const char* prompt, const OgaImages* images = nullptr) const {
    return OgaDetail::Owned<OgaNamedTensors>(OgaProcessorProcessImages, this, prompt, images);
  }
  Inputs ProcessImages(const Prompts& prompts, const OgaImages* images = nullptr) const {
    const auto all = OgaStringArray::Create(prompts.data(), prompts.size());
    return OgaDetail::Owned<OgaNamedTensors>(OgaProcessorProcessImagesAndPrompts, this, all.get(), images);
  }
  Inputs ProcessAudios(const char* prompt, const OgaAudios* audios = nullptr) const {
    return OgaDetail::Owned<OgaNamedTensors>(OgaProcessorProcessAudios, this, prompt, audios);
  }
  Inputs ProcessAudios(const Prompts& prompts, const OgaAudios* audios = nullptr) const {
    const auto all = OgaStringArray::Create(prompts.data(), prompts.size());
    return OgaDetail::Owned<OgaNamedTensors>(OgaProcessorProcessAudiosAndPrompts, this, all.get(), audios);
  }
  Inputs ProcessImagesAndAudios(const char* prompt, const OgaImages* images = nullptr,
                                const OgaAudios* audios = nullptr) const {
    return OgaDetail::Owned<OgaNamedTensors>(OgaProcessorProcessImagesAndAudios, this, prompt, images, audios);
  }
  Inputs ProcessImagesAndAudios(const Prompts& prompts, const OgaImages* images = nullptr,
                                const OgaAudios* audios = nullptr) const {
    const auto all = OgaStringArray::Create(prompts.data(), prompts.size());
    return OgaDetail::Owned<OgaNamedTensors>(OgaProcessorProcessImagesAndAudiosAndPrompts, this, all.get(), images,
                                             audios);
  }
  OgaString Decode(const int32_t* tokens, size_t count) const {
    return OgaDetail::Value<const char*>(OgaProcessorDecode, this, tokens, count);
  }
#if OGA_USE_SPAN
  OgaString Decode(std::span<const int32_t> tokens) const { return Decode(tokens.data(), tokens.size()); }
#endif
  static void operator delete(void* p) { OgaDestroyMultiModalProcessor(static_cast<OgaMultiModalProcessor*>(p)); }
};

struct OgaStreamingProcessor : OgaAbstract {
  static std::unique_ptr<OgaStreamingProcessor> Create(OgaModel& model) {
    return OgaDetail::Owned<OgaStreamingProcessor>(OgaCreateStreamingProcessor, &model);
  }
  std::unique_ptr<OgaNamedTensors> Process(const float* samples, size_t count) {
    return OgaDetail::Owned<OgaNamedTensors>(OgaStreamingProcessorProcess, this, samples, count);
  }
  std::unique_ptr<OgaNamedTensors> Flush() {
    return OgaDetail::Owned<OgaNamedTensors>(OgaStreamingProcessorFlush, this);
  }
  void SetOption(const char* key, const char* value) {
    OgaCheckResult(OgaStreamingProcessorSetOption(this, key, value));
  }
  OgaString GetOption(const char* key) const {
    return OgaDetail::Value<const char*>(OgaStreamingProcessorGetOption, this, key);
  }
  static void operator delete(void* p) { OgaDestroyStreamingProcessor(static_cast<OgaStreamingProcessor*>(p)); }
};

struct OgaMtpGenerator : OgaAbstract {
  static std::unique_ptr<OgaMtpGenerator> Create(const OgaModel& main_model, const OgaModel& mtp_model,
                                                 OgaGeneratorParams& params) {
    return OgaDetail::Owned<OgaMtpGenerator>(OgaCreateMtpGenerator, &main_model, &mtp_model, &params);
  }
  void AppendTokens(const int32_t* tokens, size_t count) {
    OgaCheckResult(OgaMtpGenerator_AppendTokens(this, tokens, count));
  }
  void GenerateNextToken() { OgaCheckResult(OgaMtpGenerator_GenerateNextToken(this)); }
  void Reset() { OgaCheckResult(OgaMtpGenerator_Reset(this)); }
  bool IsDone() const { return OgaMtpGenerator_IsDone(this); }
  size_t GetSequenceCount() const { return OgaMtpGenerator_GetSequenceCount(this); }
  const int32_t* GetSequenceData() const { return OgaMtpGenerator_GetSequenceData(this); }
  size_t GetForwardCount() const { return OgaMtpGenerator_GetForwardCount(this); }
  size_t GetAcceptCount() const { return OgaMtpGenerator_GetAcceptCount(this); }
  size_t GetTrialCount() const { return OgaMtpGenerator_GetTrialCount(this); }
  std::unique_ptr<OgaSpeculativeStats> GetSpeculativeStats() const {
    return OgaDetail::Owned<OgaSpeculativeStats>(OgaMtpGenerator_GetSpeculativeStats, this);
  }
  static void operator delete(void* p) { OgaDestroyMtpGenerator(static_cast<OgaMtpGenerator*>(p)); }
};
