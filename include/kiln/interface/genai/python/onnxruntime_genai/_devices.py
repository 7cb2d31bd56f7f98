"""What GenAI says of devices and providers: kiln's answers."""

from ._kiln import genai

# By these names programs know a plugin that is kiln itself.
_OWN = {"kilnexecutionprovider", "migraphxexecutionprovider", "amdgpuexecutionprovider", "cpuexecutionprovider"}


def is_cuda_available() -> bool:
    """False: kiln has no CUDA provider."""
    return False


def is_dml_available() -> bool:
    """False: kiln has no DirectML provider."""
    return False


def is_rocm_available() -> bool:
    """False: the GPU is reached by MIGraphX's name."""
    return False


def is_webgpu_available() -> bool:
    """False: kiln has no WebGPU provider."""
    return False


def is_qnn_available() -> bool:
    """False: kiln has no QNN provider."""
    return False


def is_openvino_available() -> bool:
    """False: kiln has no OpenVINO provider."""
    return False


def set_current_gpu_device_id(device_id: int) -> None:
    """The GPU of models that are made later, where their configuration names none."""
    genai.set_current_gpu_device_id(device_id)


def get_current_gpu_device_id() -> int:
    """The number that was set; 0 at first."""
    return genai.get_current_gpu_device_id()


def register_execution_provider_library(provider_name: str, path_str: str) -> None:
    """Accepts kiln's own providers, which need no library; an Error for all others."""
    if provider_name.lower() not in _OWN:
        raise genai.Error(f"not supported: the provider {provider_name} of {path_str}: kiln runs models itself")


def unregister_execution_provider_library(provider_name: str) -> None:
    """Accepts what register_execution_provider_library() does."""
    if provider_name.lower() not in _OWN:
        raise genai.Error(f"not supported: the provider {provider_name}: kiln runs models itself")
