/* The name that some programs include it by. */
#include <onnxruntime_run_options_config_keys.h>
