#pragma once
#include "kiln/interface/migraphx/argument.hpp"

// Arguments in a GPU's memory. Where there is no GPU every function is an `unsupported` error.
namespace kiln::migraphx {

/// Uninitialized memory of the GPU; `host`: the host's memory, which the GPU's copies read and write.
argument allocate_gpu(const shape& s, bool host = false);
/// Copies that wait.
argument to_gpu(const argument& a, bool host = false);
argument from_gpu(const argument& a);
/// Notes a stream of the caller's that a program was given to run on.
void note_stream(void* stream);
/// Returns when the work on the noted streams is done. Runs without a stream wait by themselves.
void gpu_sync();

}  // namespace kiln::migraphx
