"""ModelCompiler: writes a model whose partitions are compiled."""

from __future__ import annotations

import ctypes
import enum
import os

from ._api import allocator, api, compile_api, pointer_from
from ._enums import GraphOptimizationLevel
from ._environment import environment
from ._session_options import SessionOptions


class OrtCompileApiFlags(enum.IntFlag):
    """What is an error: a model of which nothing was compiled, and a file that exists."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtExternalInitializerInfo:
    """Where an initializer's data is: a file, the first byte in it and the bytes' count."""

    def __init__(self, filepath: str, file_offset: int, byte_size: int) -> None:
        self.filepath, self.file_offset, self.byte_size = filepath, file_offset, byte_size


class ModelCompiler:
    """Compiles a model for the providers of a session's options into one with EPContext nodes."""

    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: str | bytes | os.PathLike[str],
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
    ) -> None:
        """Without embedding, the compiled programs are a file beside the model; large initializers may be in another."""
        self._release = compile_api.release_compilation
        options = sess_options._clone()
        try:
            for step in sess_options._providers:
                step.apply(options)
            self._handle = pointer_from(compile_api.create_compilation, environment, options)
        finally:
            api.release_session_options(options)
        model = input_model_path_or_bytes
        if isinstance(model, bytes):
            self._kept = model
            compile_api.set_input_bytes(self._handle, model, len(model))
        else:
            compile_api.set_input_path(self._handle, os.fsencode(model))
        compile_api.set_embedded(self._handle, embed_compiled_data_into_model)
        compile_api.set_flags(self._handle, int(flags))
        compile_api.set_optimization(self._handle, int(graph_optimization_level))
        if external_initializers_file_path is not None:
            path = os.fsencode(external_initializers_file_path)
            compile_api.set_output_initializers(self._handle, path, external_initializers_size_threshold)

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            self._release(self._handle)

    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Writes the model; without a path beside the input, with "_ctx" after its name."""
        if output_model_path is not None:
            compile_api.set_output_path(self._handle, os.fsencode(output_model_path))
        compile_api.compile_model(environment, self._handle)

    def compile_to_bytes(self) -> bytes:
        """The model's bytes."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        compile_api.set_output_bytes(self._handle, allocator, ctypes.byref(data), ctypes.byref(size))
        compile_api.compile_model(environment, self._handle)
        try:
            return ctypes.string_at(data, size.value)
        finally:
            api.free(allocator, data)
