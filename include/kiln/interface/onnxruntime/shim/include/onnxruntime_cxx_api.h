#ifndef KILN_ONNXRUNTIME_CXX_API_H
#define KILN_ONNXRUNTIME_CXX_API_H

/* kiln's declaration of ONNX Runtime's interface for C++17, for programs that have not its own headers: what a program
   needs to run models. Custom ops, sparse tensors and the editing of models are left out. */

#include <onnxruntime_cxx_base.h>
#include <onnxruntime_cxx_env.h>
#include <onnxruntime_cxx_session.h>
#include <onnxruntime_cxx_values.h>

#endif
