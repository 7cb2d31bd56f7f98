/* Generators, adapters and engines of GenAI's C++ interface; ort_genai.h includes it. */
#pragma once
#include <ort_genai_model.h>

struct OgaGeneratorParams : OgaAbstract {
  static std::unique_ptr<OgaGeneratorParams> Create(const OgaModel& model) {
    return OgaDetail::Owned<OgaGeneratorParams>(OgaCreateGeneratorParams, &model);
  }
  void SetSearchOption(const char* name, double value) {
    OgaCheckResult(OgaGeneratorParamsSetSearchNumber(this, name, value));
  }
  void SetSearchOptionBool(const char* name, bool value) {
    OgaCheckResult(OgaGeneratorParamsSetSearchBool(this, name, value));
  }
  double GetSearchNumber(const char* name) const {
    return OgaDetail::Value<double>(OgaGeneratorParamsGetSearchNumber, this, name);
  }
  bool GetSearchBool(const char* name) const {
    return OgaDetail::Value<bool>(OgaGeneratorParamsGetSearchBool, this, name);
  }
  void SetSpeculativeNumber(const char* name, double value) {
    OgaCheckResult(OgaGeneratorParamsSetSpeculativeNumber(this, name, value));
  }
  void SetSpeculativeBool(const char* name, bool value) {
    OgaCheckResult(OgaGeneratorParamsSetSpeculativeBool(this, name, value));
  }
  double GetSpeculativeNumber(const char* name) const {
    return OgaDetail::Value<double>(OgaGeneratorParamsGetSpeculativeNumber, this, name);
  }
  bool GetSpeculativeBool(const char* name) const {
    return OgaDetail::Value<bool>(OgaGeneratorParamsGetSpeculativeBool, this, name);
  }
  void SetGuidance(const char* type, const char* data, bool enable_ff_tokens = false) {
    OgaCheckResult(OgaGeneratorParamsSetGuidance(this, type, data, enable_ff_tokens));
  }
  void TryGraphCaptureWithMaxBatchSize(int32_t max_batch_size) {
    OgaCheckResult(OgaGeneratorParamsTryGraphCaptureWithMaxBatchSize(this, max_batch_size));
  }
  static void operator delete(void* p) { OgaDestroyGeneratorParams(static_cast<OgaGeneratorParams*>(p)); }
};

struct OgaSpeculativeStats : OgaAbstract {
  uint64_t GetCount(const char* name) const {
    return OgaDetail::Value<uint64_t>(OgaSpeculativeStatsGetCount, this, name);
  }
  double GetNumber(const char* name) const {
    return OgaDetail::Value<double>(OgaSpeculativeStatsGetNumber, this, name);
  }
  bool GetBool(const char* name) const { return OgaDetail::Value<bool>(OgaSpeculativeStatsGetBool, this, name); }
  static void operator delete(void* p) { OgaDestroySpeculativeStats(static_cast<OgaSpeculativeStats*>(p)); }
};

struct OgaAdapters : OgaAbstract {
  static std::unique_ptr<OgaAdapters> Create(const OgaModel& model) {
    return OgaDetail::Owned<OgaAdapters>(OgaCreateAdapters, &model);
  }
  void LoadAdapter(const char* file, const char* name) { OgaCheckResult(OgaLoadAdapter(this, file, name)); }
  void UnloadAdapter(const char* name) { OgaCheckResult(OgaUnloadAdapter(this, name)); }
  static void operator delete(void* p) { OgaDestroyAdapters(static_cast<OgaAdapters*>(p)); }
};

struct OgaGenerator : OgaAbstract {
  static std::unique_ptr<OgaGenerator> Create(const OgaModel& model, const OgaGeneratorParams& params) {
    return OgaDetail::Owned<OgaGenerator>(OgaCreateGenerator, &model, &params);
  }
  bool IsDone() { return OgaGenerator_IsDone(this); }
  bool IsSessionTerminated() const { return OgaGenerator_IsSessionTerminated(this); }
  void SetModelInput(const char* name, OgaTensor& tensor) {
    OgaCheckResult(OgaGenerator_SetModelInput(this, name, &tensor));
  }
  void SetInputs(OgaNamedTensors& inputs) { OgaCheckResult(OgaGenerator_SetInputs(this, &inputs)); }
  void AppendTokenSequences(const OgaSequences& sequences) {
    OgaCheckResult(OgaGenerator_AppendTokenSequences(this, &sequences));
  }
  void AppendTokens(const int32_t* tokens, size_t count) {
    OgaCheckResult(OgaGenerator_AppendTokens(this, tokens, count));
  }
#if OGA_USE_SPAN
  void AppendTokens(std::span<const int32_t> tokens) { AppendTokens(tokens.data(), tokens.size()); }
#endif
  size_t TokenCount() const { return OgaGenerator_TokenCount(this); }
  void GenerateNextToken() { OgaCheckResult(OgaGenerator_GenerateNextToken(this)); }
#if OGA_USE_SPAN
  std::span<const int32_t> GetNextTokens() {
#else
  std::vector<int32_t> GetNextTokens() {
#endif
    const int32_t* tokens = nullptr;
    size_t count = 0;
    OgaCheckResult(OgaGenerator_GetNextTokens(this, &tokens, &count));
    return {tokens, tokens + count};
  }
  void SetRuntimeOption(const char* key, const char* value) {
    OgaCheckResult(OgaGenerator_SetRuntimeOption(this, key, value));
  }
  void RewindTo(size_t length) { OgaCheckResult(OgaGenerator_RewindTo(this, length)); }
  void SnapshotState() { OgaCheckResult(OgaGenerator_SnapshotState(this)); }
  void SetHiddenStates(OgaTensor& states) { OgaCheckResult(OgaGenerator_SetHiddenStates(this, &states)); }
  size_t GetSequenceCount(size_t index) const { return OgaGenerator_GetSequenceCount(this, index); }
  const int32_t* GetSequenceData(size_t index) const { return OgaGenerator_GetSequenceData(this, index); }
#if OGA_USE_SPAN
  std::span<const int32_t> GetSequence(size_t index) const { return {GetSequenceData(index), GetSequenceCount(index)}; }
#endif
  std::unique_ptr<OgaTensor> GetInput(const char* name) {
    return OgaDetail::Owned<OgaTensor>(OgaGenerator_GetInput, this, name);
  }
  std::unique_ptr<OgaTensor> GetOutput(const char* name) {
    return OgaDetail::Owned<OgaTensor>(OgaGenerator_GetOutput, this, name);
  }
  std::unique_ptr<OgaTensor> GetLogits() { return OgaDetail::Owned<OgaTensor>(OgaGenerator_GetLogits, this); }
  void SetLogits(OgaTensor& scores) { OgaCheckResult(OgaGenerator_SetLogits(this, &scores)); }
  void SetActiveAdapter(OgaAdapters& adapters, const char* name) {
    OgaCheckResult(OgaSetActiveAdapter(this, &adapters, name));
  }
  std::unique_ptr<OgaSpeculativeStats> GetSpeculativeStats() const {
    return OgaDetail::Owned<OgaSpeculativeStats>(OgaGenerator_GetSpeculativeStats, this);
  }
  static void operator delete(void* p) { OgaDestroyGenerator(static_cast<OgaGenerator*>(p)); }
};

struct OgaRequest : OgaAbstract {
  static std::unique_ptr<OgaRequest> Create(OgaGeneratorParams& params) {
    return OgaDetail::Owned<OgaRequest>(OgaCreateRequest, &params);
  }
  void AddTokens(const OgaSequences& tokens) { OgaCheckResult(OgaRequestAddTokens(this, &tokens)); }
  void Continue(const OgaSequences& tokens) { OgaCheckResult(OgaRequestContinue(this, &tokens)); }
  void SetOpaqueData(void* data) { OgaCheckResult(OgaRequestSetOpaqueData(this, data)); }
  void* GetOpaqueData() { return OgaDetail::Value<void*>(OgaRequestGetOpaqueData, this); }
  bool HasUnseenTokens() const { return OgaDetail::Value<bool>(OgaRequestHasUnseenTokens, this); }
  int32_t GetUnseenToken() { return OgaDetail::Value<int32_t>(OgaRequestGetUnseenToken, this); }
  bool IsDone() const { return OgaDetail::Value<bool>(OgaRequestIsDone, this); }
  bool IsTurnComplete() const { return OgaDetail::Value<bool>(OgaRequestIsTurnComplete, this); }
  static void operator delete(void* p) { OgaDestroyRequest(static_cast<OgaRequest*>(p)); }
};

struct OgaEngine : OgaAbstract {
  static std::unique_ptr<OgaEngine> Create(OgaModel& model) {
    return OgaDetail::Owned<OgaEngine>(OgaCreateEngine, &model);
  }
  /* Owned by who made it; null where no request is open. */
  OgaRequest* Step() { return OgaDetail::Value<OgaRequest*>(OgaEngineStep, this); }
  /* GenAI's name of the same. */
  OgaRequest* ReadyRequest() { return Step(); }
  bool HasPendingRequests() { return OgaDetail::Value<bool>(OgaEngineHasPendingRequests, this); }
  void Add(OgaRequest& request) { OgaCheckResult(OgaEngineAddRequest(this, &request)); }
  void Remove(OgaRequest& request) { OgaCheckResult(OgaEngineRemoveRequest(this, &request)); }
  static void operator delete(void* p) { OgaDestroyEngine(static_cast<OgaEngine*>(p)); }
};
