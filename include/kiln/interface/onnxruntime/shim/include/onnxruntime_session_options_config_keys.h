#ifndef KILN_ONNXRUNTIME_SESSION_OPTIONS_CONFIG_KEYS_H
#define KILN_ONNXRUNTIME_SESSION_OPTIONS_CONFIG_KEYS_H

/* Keys of AddSessionConfigEntry that programs use most. */

static const char* const kOrtSessionOptionsConfigLoadModelFormat = "session.load_model_format";
static const char* const kOrtSessionOptionsConfigSaveModelFormat = "session.save_model_format";
static const char* const kOrtSessionOptionsConfigSetDenormalAsZero = "session.set_denormal_as_zero";
static const char* const kOrtSessionOptionsDisableQuantQDQ = "session.disable_quant_qdq";
static const char* const kOrtSessionOptionsEnableQuantQDQCleanup = "session.enable_quant_qdq_cleanup";
static const char* const kOrtSessionOptionsDisablePrepacking = "session.disable_prepacking";
static const char* const kOrtSessionOptionsUseDeviceAllocatorForInitializers =
    "session.use_device_allocator_for_initializers";
static const char* const kOrtSessionOptionsConfigAllowIntraOpSpinning = "session.intra_op.allow_spinning";
static const char* const kOrtSessionOptionsConfigAllowInterOpSpinning = "session.inter_op.allow_spinning";
static const char* const kOrtSessionOptionsConfigIntraOpThreadAffinities = "session.intra_op_thread_affinities";
static const char* const kOrtSessionOptionsConfigDynamicBlockBase = "session.dynamic_block_base";
static const char* const kOrtSessionOptionsConfigForceSpinningStop = "session.force_spinning_stop";
static const char* const kOrtSessionOptionsConfigStrictShapeTypeInference = "session.strict_shape_type_inference";
static const char* const kOrtSessionOptionsDisableCPUEPFallback = "session.disable_cpu_ep_fallback";
static const char* const kOrtSessionOptionEpContextEnable = "ep.context_enable";
static const char* const kOrtSessionOptionEpContextFilePath = "ep.context_file_path";
static const char* const kOrtSessionOptionEpContextEmbedMode = "ep.context_embed_mode";
static const char* const kOrtSessionOptionEpContextNodeNamePrefix = "ep.context_node_name_prefix";
static const char* const kOrtSessionOptionShareEpContexts = "ep.share_ep_contexts";
static const char* const kOrtSessionOptionStopShareEpContexts = "ep.stop_share_ep_contexts";

#endif
