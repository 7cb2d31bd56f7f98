/* The function of the CPU's provider is declared with the others. */
#include <onnxruntime_c_api.h>
