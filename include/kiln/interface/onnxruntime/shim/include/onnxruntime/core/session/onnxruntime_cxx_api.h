/* The name that some programs include it by. */
#include <onnxruntime_cxx_api.h>
