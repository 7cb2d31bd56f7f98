/* Configurations, models and tokenizers of GenAI's C++ interface; ort_genai.h includes it. */
#pragma once
#include <ort_genai_values.h>

struct OgaRuntimeSettings : OgaAbstract {
  static std::unique_ptr<OgaRuntimeSettings> Create() {
    return OgaDetail::Owned<OgaRuntimeSettings>(OgaCreateRuntimeSettings);
  }
  void SetHandle(const char* name, void* handle) { OgaCheckResult(OgaRuntimeSettingsSetHandle(this, name, handle)); }
  void SetHandle(const std::string& name, void* handle) { SetHandle(name.c_str(), handle); }
  static void operator delete(void* p) { OgaDestroyRuntimeSettings(static_cast<OgaRuntimeSettings*>(p)); }
};

struct OgaConfig : OgaAbstract {
  static std::unique_ptr<OgaConfig> Create(const char* folder) {
    return OgaDetail::Owned<OgaConfig>(OgaCreateConfig, folder);
  }
  static std::unique_ptr<OgaConfig> CreateFromPackageEp(const char* package, const char* ep) {
    return OgaDetail::Owned<OgaConfig>(OgaCreateConfigFromPackageEp, package, ep);
  }
  void ClearProviders() { OgaCheckResult(OgaConfigClearProviders(this)); }
  void AppendProvider(const char* provider) { OgaCheckResult(OgaConfigAppendProvider(this, provider)); }
  void SetProviderOption(const char* provider, const char* name, const char* value) {
    OgaCheckResult(OgaConfigSetProviderOption(this, provider, name, value));
  }
  void Overlay(const char* json) { OgaCheckResult(OgaConfigOverlay(this, json)); }
  void AddModelData(const std::string& file, const void* data, size_t bytes) {
    OgaCheckResult(OgaConfigAddModelData(this, file.c_str(), data, bytes));
  }
  void AddModelData(const std::string& file, const std::vector<std::byte>& data) {
    AddModelData(file, data.data(), data.size());
  }
#if OGA_USE_SPAN
  void AddModelData(const std::string& file, std::span<const std::byte> data) {
    AddModelData(file, data.data(), data.size());
  }
#endif
  void RemoveModelData(const std::string& file) { OgaCheckResult(OgaConfigRemoveModelData(this, file.c_str())); }
  void SetDecoderProviderOptionsHardwareDeviceType(const char* provider, const char* type) {
    OgaCheckResult(OgaConfigSetDecoderProviderOptionsHardwareDeviceType(this, provider, type));
  }
  void SetDecoderProviderOptionsHardwareDeviceId(const char* provider, uint32_t id) {
    OgaCheckResult(OgaConfigSetDecoderProviderOptionsHardwareDeviceId(this, provider, id));
  }
  void SetDecoderProviderOptionsHardwareVendorId(const char* provider, uint32_t id) {
    OgaCheckResult(OgaConfigSetDecoderProviderOptionsHardwareVendorId(this, provider, id));
  }
  void ClearDecoderProviderOptionsHardwareDeviceType(const char* provider) {
    OgaCheckResult(OgaConfigClearDecoderProviderOptionsHardwareDeviceType(this, provider));
  }
  void ClearDecoderProviderOptionsHardwareDeviceId(const char* provider) {
    OgaCheckResult(OgaConfigClearDecoderProviderOptionsHardwareDeviceId(this, provider));
  }
  void ClearDecoderProviderOptionsHardwareVendorId(const char* provider) {
    OgaCheckResult(OgaConfigClearDecoderProviderOptionsHardwareVendorId(this, provider));
  }
  static void operator delete(void* p) { OgaDestroyConfig(static_cast<OgaConfig*>(p)); }
};

struct OgaModel : OgaAbstract {
  static std::unique_ptr<OgaModel> Create(const char* folder) {
    return OgaDetail::Owned<OgaModel>(OgaCreateModel, folder);
  }
  static std::unique_ptr<OgaModel> Create(const char* folder, const OgaRuntimeSettings& settings) {
    return OgaDetail::Owned<OgaModel>(OgaCreateModelWithRuntimeSettings, folder, &settings);
  }
  static std::unique_ptr<OgaModel> Create(const OgaConfig& config) {
    return OgaDetail::Owned<OgaModel>(OgaCreateModelFromConfig, &config);
  }
  OgaString GetType() const { return OgaDetail::Value<const char*>(OgaModelGetType, this); }
  OgaString GetDeviceType() const { return OgaDetail::Value<const char*>(OgaModelGetDeviceType, this); }
  static void operator delete(void* p) { OgaDestroyModel(static_cast<OgaModel*>(p)); }
};

struct OgaTokenizer : OgaAbstract {
  static std::unique_ptr<OgaTokenizer> Create(const OgaModel& model) {
    return OgaDetail::Owned<OgaTokenizer>(OgaCreateTokenizer, &model);
  }
  static std::unique_ptr<OgaTokenizer> Create(const OgaConfig& config) {
    return OgaDetail::Owned<OgaTokenizer>(OgaCreateTokenizerFromConfig, &config);
  }
  static std::unique_ptr<OgaTokenizer> Create(const char* folder) {
    return OgaDetail::Owned<OgaTokenizer>(OgaCreateTokenizerFromPath, folder);
  }
  void UpdateOptions(const char* const* keys, const char* const* values, size_t count) {
    OgaCheckResult(OgaUpdateTokenizerOptions(this, keys, values, count));
  }
  int32_t GetBosTokenId() const { return OgaDetail::Value<int32_t>(OgaTokenizerGetBosTokenId, this); }
  int32_t GetPadTokenId() const { return OgaDetail::Value<int32_t>(OgaTokenizerGetPadTokenId, this); }
  int32_t GetBotTokenId() const { return OgaDetail::Value<int32_t>(OgaTokenizerGetBotTokenId, this); }
  int32_t GetEotTokenId() const { return OgaDetail::Value<int32_t>(OgaTokenizerGetEotTokenId, this); }
  int32_t GetBorTokenId() const { return OgaDetail::Value<int32_t>(OgaTokenizerGetBorTokenId, this); }
  int32_t GetEorTokenId() const { return OgaDetail::Value<int32_t>(OgaTokenizerGetEorTokenId, this); }
#if OGA_USE_SPAN
  std::span<const int32_t> GetEosTokenIds() const {
#else
  std::vector<int32_t> GetEosTokenIds() const {
#endif
    const int32_t* ids = nullptr;
    size_t count = 0;
    OgaCheckResult(OgaTokenizerGetEosTokenIds(this, &ids, &count));
    return {ids, ids + count};
  }
  void Encode(const char* text, OgaSequences& sequences) const {
    OgaCheckResult(OgaTokenizerEncode(this, text, &sequences));
  }
  std::unique_ptr<OgaTensor> EncodeBatch(const char** texts, size_t count) const {
    return OgaDetail::Owned<OgaTensor>(OgaTokenizerEncodeBatch, this, texts, count);
  }
  std::unique_ptr<OgaStringArray> DecodeBatch(const OgaTensor& tokens) const {
    return OgaDetail::Owned<OgaStringArray>(OgaTokenizerDecodeBatch, this, &tokens);
  }
  int32_t ToTokenId(const char* spelling) const {
    return OgaDetail::Value<int32_t>(OgaTokenizerToTokenId, this, spelling);
  }
  OgaString Decode(const int32_t* tokens, size_t count) const {
    return OgaDetail::Value<const char*>(OgaTokenizerDecode, this, tokens, count);
  }
#if OGA_USE_SPAN
  OgaString Decode(std::span<const int32_t> tokens) const { return Decode(tokens.data(), tokens.size()); }
#endif
  OgaString ApplyChatTemplate(const char* template_str, const char* messages, const char* tools,
                              bool add_generation_prompt) const {
    return OgaDetail::Value<const char*>(OgaTokenizerApplyChatTemplate, this, template_str, messages, tools,
                                         add_generation_prompt);
  }
  OgaString ApplyChatTemplateWithOptions(const char* template_str, const char* messages, const char* tools,
                                         const char* template_kwargs, bool add_generation_prompt) const {
    return OgaDetail::Value<const char*>(OgaTokenizerApplyChatTemplateWithOptions, this, template_str, messages, tools,
                                         template_kwargs, add_generation_prompt);
  }
  static void operator delete(void* p) { OgaDestroyTokenizer(static_cast<OgaTokenizer*>(p)); }
};

struct OgaTokenizerStream : OgaAbstract {
  static std::unique_ptr<OgaTokenizerStream> Create(const OgaTokenizer& tokenizer) {
    return OgaDetail::Owned<OgaTokenizerStream>(OgaCreateTokenizerStream, &tokenizer);
  }
  static std::unique_ptr<OgaTokenizerStream> Create(const OgaMultiModalProcessor& processor) {
    return OgaDetail::Owned<OgaTokenizerStream>(OgaCreateTokenizerStreamFromProcessor, &processor);
  }
  /* Valid until the next call. */
  const char* Decode(int32_t token) { return OgaDetail::Value<const char*>(OgaTokenizerStreamDecode, this, token); }
  static void operator delete(void* p) { OgaDestroyTokenizerStream(static_cast<OgaTokenizerStream*>(p)); }
};
