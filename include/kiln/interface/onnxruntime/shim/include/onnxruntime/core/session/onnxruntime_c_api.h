/* The name that some programs include it by. */
#include <onnxruntime_c_api.h>
