/* ONNX Runtime GenAI's C interface, declared here from its documented names, types and rules, over kiln.
 *
 * Functions that can fail return null, or a result that holds the error's text and is freed by OgaDestroyResult. What
 * an `out` parameter hands out is the caller's to destroy, unless a comment says who owns it. Destroying null does
 * nothing. Objects keep what they were made from: a model may be destroyed before its generators. One thread at a time
 * for an object; objects of one model may be used by as many threads as there are. Texts are UTF-8.
 */
#pragma once
#include <stdint.h>
#ifdef __cplusplus
#include <cstddef>
#else
#include <stdbool.h>
#include <stddef.h>
#endif

#define OGA_EXPORT __attribute__((visibility("default")))
#define OGA_API_CALL

#ifdef __cplusplus
extern "C" {
#endif

/** Types of a tensor's elements, with the numbers that ONNX gives them. */
typedef enum OgaElementType {
  OgaElementType_undefined,
  OgaElementType_float32,
  OgaElementType_uint8,
  OgaElementType_int8,
  OgaElementType_uint16,
  OgaElementType_int16,
  OgaElementType_int32,
  OgaElementType_int64,
  OgaElementType_string, /**< a tensor can't have it */
  OgaElementType_bool,
  OgaElementType_float16,
  OgaElementType_float64,
  OgaElementType_uint32,
  OgaElementType_uint64,
  OgaElementType_complex64,
  OgaElementType_complex128,
  OgaElementType_bfloat16
} OgaElementType;

typedef struct OgaAdapters OgaAdapters;
typedef struct OgaAudios OgaAudios;
typedef struct OgaConfig OgaConfig;
typedef struct OgaEngine OgaEngine;
typedef struct OgaGenerator OgaGenerator;
typedef struct OgaGeneratorParams OgaGeneratorParams;
typedef struct OgaImages OgaImages;
typedef struct OgaModel OgaModel;
typedef struct OgaMtpGenerator OgaMtpGenerator;
typedef struct OgaMultiModalProcessor OgaMultiModalProcessor;
typedef struct OgaNamedTensors OgaNamedTensors;
typedef struct OgaRequest OgaRequest;
typedef struct OgaResult OgaResult;
typedef struct OgaRuntimeSettings OgaRuntimeSettings;
typedef struct OgaSequences OgaSequences; /**< lists of tokens */
typedef struct OgaSpeculativeStats OgaSpeculativeStats;
typedef struct OgaStreamingProcessor OgaStreamingProcessor;
typedef struct OgaStringArray OgaStringArray;
typedef struct OgaTensor OgaTensor;
typedef struct OgaTokenizer OgaTokenizer;
typedef struct OgaTokenizerStream OgaTokenizerStream;

/* ---- the library ---- */

/** To be called once at the end of a process. */
OGA_EXPORT void OGA_API_CALL OgaShutdown(void);
/** The text of an error, owned by the result. */
OGA_EXPORT const char* OGA_API_CALL OgaResultGetError(const OgaResult* result);
OGA_EXPORT void OGA_API_CALL OgaDestroyResult(OgaResult* result);
/** Frees a text that a function handed out. */
OGA_EXPORT void OGA_API_CALL OgaDestroyString(const char* text);
/** Switches a kind of message on or off; `enabled` is all of them. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaSetLogBool(const char* name, bool value);
/** `filename`: the file that messages are appended to; null or empty: standard error. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaSetLogString(const char* name, const char* value);
/** Gives messages to a function in place of a file; null: to standard error again. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaSetLogCallback(void (*callback)(const char* string, size_t length));
/** kiln reports nothing to anybody: this changes nothing. */
OGA_EXPORT void OGA_API_CALL OgaSetTelemetryEnabled(bool enabled);
/** The GPU of models that are made afterwards and whose configuration names none. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaSetCurrentGpuDeviceId(int device_id);
OGA_EXPORT OgaResult* OGA_API_CALL OgaGetCurrentGpuDeviceId(int* device_id);
/** kiln runs models itself and loads no providers of ONNX Runtime: a warning in the log. */
OGA_EXPORT void OGA_API_CALL OgaRegisterExecutionProviderLibrary(const char* registration_name,
                                                                 const char* library_path);
OGA_EXPORT void OGA_API_CALL OgaUnregisterExecutionProviderLibrary(const char* registration_name);

/* ---- lists of tokens and of texts ---- */

OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateSequences(OgaSequences** out);
OGA_EXPORT void OGA_API_CALL OgaDestroySequences(OgaSequences* sequences);
OGA_EXPORT size_t OGA_API_CALL OgaSequencesCount(const OgaSequences* sequences);
/** Appends a list of tokens. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaAppendTokenSequence(const int32_t* token_ptr, size_t token_cnt,
                                                          OgaSequences* sequences);
/** Appends a token to a list; an index equal to the count makes a new list. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaAppendTokenToSequence(int32_t token, OgaSequences* sequences,
                                                            size_t sequence_index);
/** Tokens of a list; 0 for an index beyond the last one. */
OGA_EXPORT size_t OGA_API_CALL OgaSequencesGetSequenceCount(const OgaSequences* sequences, size_t sequence_index);
/** The tokens of a list, owned by the sequences and valid until they change; null beyond the last one. */
OGA_EXPORT const int32_t* OGA_API_CALL OgaSequencesGetSequenceData(const OgaSequences* sequences,
                                                                   size_t sequence_index);
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateStringArray(OgaStringArray** out);
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateStringArrayFromStrings(const char* const* strs, size_t count,
                                                                   OgaStringArray** out);
OGA_EXPORT void OGA_API_CALL OgaDestroyStringArray(OgaStringArray* string_array);
OGA_EXPORT OgaResult* OGA_API_CALL OgaStringArrayAddString(OgaStringArray* string_array, const char* str);
OGA_EXPORT OgaResult* OGA_API_CALL OgaStringArrayGetCount(const OgaStringArray* string_array, size_t* out);
/** A text, owned by the array and valid until it changes. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaStringArrayGetString(const OgaStringArray* string_array, size_t index,
                                                           const char** out);

/* ---- tensors ---- */

/** A row-major tensor over `data`, which must outlive it; null: over memory of its own. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateTensorFromBuffer(void* data, const int64_t* shape_dims,
                                                             size_t shape_dims_count, OgaElementType element_type,
                                                             OgaTensor** out);
OGA_EXPORT void OGA_API_CALL OgaDestroyTensor(OgaTensor* tensor);
OGA_EXPORT OgaResult* OGA_API_CALL OgaTensorGetType(OgaTensor* tensor, OgaElementType* out);
OGA_EXPORT OgaResult* OGA_API_CALL OgaTensorGetShapeRank(OgaTensor* tensor, size_t* out);
/** Writes the extents; `shape_dims_count` is the rank. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaTensorGetShape(OgaTensor* tensor, int64_t* shape_dims, size_t shape_dims_count);
OGA_EXPORT OgaResult* OGA_API_CALL OgaTensorGetData(OgaTensor* tensor, void** out);
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateNamedTensors(OgaNamedTensors** out);
OGA_EXPORT void OGA_API_CALL OgaDestroyNamedTensors(OgaNamedTensors* named_tensors);
/** A further handle of the tensor with this name, the caller's to destroy. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaNamedTensorsGet(OgaNamedTensors* named_tensors, const char* name,
                                                      OgaTensor** out);
OGA_EXPORT OgaResult* OGA_API_CALL OgaNamedTensorsSet(OgaNamedTensors* named_tensors, const char* name,
                                                      OgaTensor* tensor);
OGA_EXPORT OgaResult* OGA_API_CALL OgaNamedTensorsDelete(OgaNamedTensors* named_tensors, const char* name);
OGA_EXPORT OgaResult* OGA_API_CALL OgaNamedTensorsCount(const OgaNamedTensors* named_tensors, size_t* out);
OGA_EXPORT OgaResult* OGA_API_CALL OgaNamedTensorsGetNames(const OgaNamedTensors* named_tensors, OgaStringArray** out);

/* ---- configurations and models ---- */

/** Reads genai_config.json of a folder. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateConfig(const char* config_path, OgaConfig** out);
/** Not supported: kiln reads folders, no packages of models. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateConfigFromPackageEp(const char* config_path, const char* ep,
                                                                OgaConfig** out);
OGA_EXPORT void OGA_API_CALL OgaDestroyConfig(OgaConfig* config);
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigClearProviders(OgaConfig* config);
/** Adds a provider that is not there yet. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigAppendProvider(OgaConfig* config, const char* provider);
/** Sets an option of a provider, which is added where it is not there. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigSetProviderOption(OgaConfig* config, const char* provider, const char* key,
                                                              const char* value);
/** Gives a file of the model from memory; the bytes are the caller's until the model is made. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigAddModelData(OgaConfig* config, const char* model_filename,
                                                         const void* model_data, size_t model_data_length);
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigRemoveModelData(OgaConfig* config, const char* model_filename);
/** The hardware that a provider runs on: `cpu` or `gpu`; its number, and its vendor's. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigSetDecoderProviderOptionsHardwareDeviceType(
    OgaConfig* config, const char* provider, const char* hardware_device_type);
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigSetDecoderProviderOptionsHardwareDeviceId(OgaConfig* config,
                                                                                      const char* provider,
                                                                                      uint32_t hardware_device_id);
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigSetDecoderProviderOptionsHardwareVendorId(OgaConfig* config,
                                                                                      const char* provider,
                                                                                      uint32_t hardware_vendor_id);
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigClearDecoderProviderOptionsHardwareDeviceType(OgaConfig* config,
                                                                                          const char* provider);
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigClearDecoderProviderOptionsHardwareDeviceId(OgaConfig* config,
                                                                                        const char* provider);
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigClearDecoderProviderOptionsHardwareVendorId(OgaConfig* config,
                                                                                        const char* provider);
/** Merges JSON of genai_config.json's form over the configuration. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaConfigOverlay(OgaConfig* config, const char* json);

OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateRuntimeSettings(OgaRuntimeSettings** out);
OGA_EXPORT void OGA_API_CALL OgaDestroyRuntimeSettings(OgaRuntimeSettings* settings);
/** kiln takes no handles: null alone is accepted. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaRuntimeSettingsSetHandle(OgaRuntimeSettings* settings, const char* handle_name,
                                                               void* handle);
/** Reads a folder's configuration and model, and compiles it. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateModel(const char* config_path, OgaModel** out);
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateModelFromConfig(const OgaConfig* config, OgaModel** out);
/** `settings` may be null. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateModelWithRuntimeSettings(const char* config_path,
                                                                     const OgaRuntimeSettings* settings,
                                                                     OgaModel** out);
OGA_EXPORT void OGA_API_CALL OgaDestroyModel(OgaModel* model);
/** `model.type` of the configuration. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaModelGetType(const OgaModel* model, const char** out);
/** "CPU", or "MIGraphX" where it runs on a GPU. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaModelGetDeviceType(const OgaModel* model, const char** out);

#ifdef __cplusplus
}
#endif

#include <ort_genai_c_generate.h>
#include <ort_genai_c_media.h>
#include <ort_genai_c_text.h>
