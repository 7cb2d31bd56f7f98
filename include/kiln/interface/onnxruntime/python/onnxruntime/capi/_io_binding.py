"""IOBinding: memory for a session's inputs and outputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from . import _values
from ._api import api, cpu_memory
from ._devices import need_cpu
from ._element_types import dtype_of, number_of
from ._ort_value import OrtValue
from ._run_options import RunOptions
from ._session import Binding
from ._values import Spans

if TYPE_CHECKING:
    from .onnxruntime_inference_collection import Session


class IOBinding:
    """Binds inputs and outputs to memory, so that runs neither make nor copy them."""

    def __init__(self, session: Session) -> None:
        self._iobinding = Binding(session._raw)
        # The program's memory by the names of what is bound, and that of the last run, which its outputs may be in.
        self._inputs: dict[str, Spans] = {}
        self._outputs: dict[str, Spans] = {}
        self._ran: Spans = []

    def _bind_input(self, name: str, value: int, keep: Spans) -> None:
        api.bind_input(self._iobinding._handle, name.encode(), value)  # takes a reference of its own
        self._inputs[name] = keep

    def _bind_output(self, name: str, value: int, keep: Spans) -> None:
        api.bind_output(self._iobinding._handle, name.encode(), value)
        self._outputs[name] = keep

    def _run(self, options: RunOptions | None) -> None:
        bound = [*self._inputs.values(), *self._outputs.values()]
        now = [span for spans in bound for span in spans]
        self._ran += now  # a run that fails leaves the outputs of the one before
        self._iobinding.run(options)
        self._ran = now

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray[Any, Any]) -> None:
        """Binds an input to an array's memory."""
        value = OrtValue.ortvalue_from_numpy(np.asarray(arr_on_cpu))
        self._bind_input(name, value._handle, value._kept)

    def _over(self, what: str, device_type: str, element_type: Any, shape: Sequence[int], address: int) -> OrtValue:
        need_cpu(device_type, what)
        number = number_of(element_type)
        nbytes = math.prod(shape) * dtype_of(number, what).itemsize
        return OrtValue(_values.tensor_over(address, nbytes, tuple(shape), number))

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds an input to memory at an address, which the caller keeps."""
        value = self._over(f"input '{name}'", device_type, element_type, shape, buffer_ptr)
        self._bind_input(name, value._handle, [])

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an input to a value."""
        self._bind_input(name, ortvalue._handle, ortvalue._kept)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Binds an output to memory at an address, which the caller keeps, or to memory that each run makes."""
        if buffer_ptr is None:
            need_cpu(device_type, f"output '{name}'")
            api.bind_output_to_device(self._iobinding._handle, name.encode(), cpu_memory)
            self._outputs[name] = []
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        value = self._over(f"output '{name}'", device_type, element_type, shape, buffer_ptr)
        self._bind_output(name, value._handle, [])

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an output to a value."""
        self._bind_output(name, ortvalue._handle, ortvalue._kept)

    def synchronize_inputs(self) -> None:
        """Waits until inputs are where their device needs them."""
        api.synchronize_inputs(self._iobinding._handle)

    def synchronize_outputs(self) -> None:
        """Waits until outputs are written."""
        api.synchronize_outputs(self._iobinding._handle)

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run."""
        kept = [*self._ran, *(span for spans in self._outputs.values() for span in spans)]
        return self._iobinding.session.values(list(self._outputs), self._iobinding.outputs(), kept)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """The outputs of the last run."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Copies of the outputs of the last run, as Python's objects."""
        out = []
        for value in self.get_outputs():
            if value.is_tensor():
                out.append(value.numpy())
            else:
                handle, value._handle = value._handle, 0
                out.append(_values.to_python(handle, "an output"))
        return out

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        api.clear_bound_inputs(self._iobinding._handle)
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        api.clear_bound_outputs(self._iobinding._handle)
        self._outputs.clear()
        self._ran = []
