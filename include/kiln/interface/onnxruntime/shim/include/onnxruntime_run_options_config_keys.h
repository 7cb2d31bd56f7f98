#ifndef KILN_ONNXRUNTIME_RUN_OPTIONS_CONFIG_KEYS_H
#define KILN_ONNXRUNTIME_RUN_OPTIONS_CONFIG_KEYS_H

/* Keys of AddRunConfigEntry. */

static const char* const kOrtRunOptionsConfigEnableMemoryArenaShrinkage = "memory.enable_memory_arena_shrinkage";
static const char* const kOrtRunOptionsConfigDisableSynchronizeExecutionProviders =
    "disable_synchronize_execution_providers";

#endif
