/* The name that some programs include it by. */
#include <onnxruntime_session_options_config_keys.h>
