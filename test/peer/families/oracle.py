"""ONNX Runtime through its C API: what the generated models' tokens are compared with."""
import ctypes
import os

import numpy as np

# places in the API's table (onnxruntime_c_api.h: entries are only appended)
MESSAGE, CREATE_ENV, CREATE_SESSION, RUN, CREATE_OPTIONS, LEVEL, THREADS = 2, 3, 7, 9, 10, 23, 24
INPUTS, OUTPUTS, INPUT_NAME, OUTPUT_NAME, TENSOR, DATA, TYPE, RANK, EXTENTS, INFO, MEMORY, ALLOCATOR = (
    30, 31, 36, 37, 49, 51, 60, 61, 62, 65, 69, 78)
RELEASE_VALUE, RELEASE_INFO = 96, 99
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}
ELEMENTS = {np.dtype(t): e for e, t in TYPES.items()}
pointer, size = ctypes.c_void_p, ctypes.c_size_t


def library(root):
    """The library that cmake/peer.sh fetched, or None."""
    for folder, _, files in os.walk(root):
        if "libonnxruntime.so.1" in files and "linux/x64" in folder:
            return os.path.join(folder, "libonnxruntime.so.1")
    return None


class Session:
    """A model on the CPU. Runs take and give numpy arrays by name."""
    table = env = None

    def __init__(self, path, model, threads=1):
        if Session.table is None:
            base = ctypes.CDLL(path).OrtGetApiBase
            base.restype = pointer
            get = ctypes.CFUNCTYPE(pointer, ctypes.c_uint32)(ctypes.cast(base(), ctypes.POINTER(pointer))[0])
            Session.table = ctypes.cast(get(24), ctypes.POINTER(pointer))
            Session.env = self.get(CREATE_ENV, ctypes.c_int(3), b"families")
        options = self.get(CREATE_OPTIONS)
        self.call(THREADS, options, ctypes.c_int(threads))
        self.call(LEVEL, options, ctypes.c_int(99))
        self.memory = self.get(MEMORY, ctypes.c_int(1), ctypes.c_int(0))
        self.session = self.get(CREATE_SESSION, Session.env, model.encode(), options)
        allocator = self.get(ALLOCATOR)

        def names(count, name):
            n = self.get(count, self.session, kind=size).value
            return [ctypes.cast(self.get(name, self.session, size(i), allocator), ctypes.c_char_p).value.decode()
                    for i in range(n)]
        self.inputs, self.outputs = names(INPUTS, INPUT_NAME), names(OUTPUTS, OUTPUT_NAME)

    def call(self, slot, *arguments, result=pointer):
        f = ctypes.CFUNCTYPE(result, *[type(a) if isinstance(a, ctypes._SimpleCData) else pointer for a in arguments])(
            Session.table[slot])
        values = [ctypes.cast(ctypes.c_char_p(a), pointer) if isinstance(a, bytes) else a for a in arguments]
        status = f(*values)
        if result is pointer and status:
            message = ctypes.CFUNCTYPE(ctypes.c_char_p, pointer)(Session.table[MESSAGE])(status)
            raise RuntimeError(message.decode())

    def get(self, slot, *arguments, kind=pointer):
        out = kind()
        self.call(slot, *arguments, ctypes.cast(ctypes.byref(out), pointer))
        return out

    def value(self, array):
        shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        return self.get(TENSOR, self.memory, array.ctypes.data_as(pointer), size(array.nbytes),
                        ctypes.cast(shape, pointer), size(array.ndim), ctypes.c_int(ELEMENTS[array.dtype]))

    def array(self, value):
        info = self.get(INFO, value)
        element = self.get(TYPE, info, kind=ctypes.c_int).value
        rank = self.get(RANK, info, kind=size).value
        shape = (ctypes.c_int64 * max(rank, 1))()
        self.call(EXTENTS, info, ctypes.cast(shape, pointer), size(rank))
        self.call(RELEASE_INFO, info, result=None)
        lens, t = tuple(shape[:rank]), np.dtype(TYPES[element])
        count = int(np.prod(lens, dtype=np.int64)) if rank else 1
        if count == 0:
            return np.zeros(lens, t)
        bytes_ = ctypes.string_at(self.get(DATA, value).value, count * t.itemsize)
        return np.frombuffer(bytes_, t).reshape(lens).copy()

    def prepared(self, given, shared=()):
        """A run whose inputs are there; `shared` outputs are written into the input arrays of (output, input)."""
        return Run(self, given, shared)

    def run(self, given, shared=()):
        """Outputs by name."""
        run = self.prepared(given, shared)
        run.go()
        return run.results()


class Run:
    def __init__(self, session, given, shared):
        self.session, self.shared = session, dict(shared)
        self.arrays = {n: np.ascontiguousarray(given[n]) for n in session.inputs}
        self.values = {n: session.value(a) for n, a in self.arrays.items()}
        strings = lambda names: (ctypes.c_char_p * len(names))(*[n.encode() for n in names])
        self.names = strings(session.inputs), strings(session.outputs)
        self.ins = (pointer * len(session.inputs))(*[self.values[n].value for n in session.inputs])
        self.outs = (pointer * len(session.outputs))(
            *[self.values[self.shared[n]].value if n in self.shared else None for n in session.outputs])

    def go(self):
        cast = lambda a: ctypes.cast(a, pointer)
        self.session.call(RUN, self.session.session, None, cast(self.names[0]), cast(self.ins), size(len(self.ins)),
                          cast(self.names[1]), size(len(self.outs)), cast(self.outs))

    def results(self):
        """Outputs by name; once."""
        made = {}
        for n, v in zip(self.session.outputs, self.outs):
            made[n] = self.arrays[self.shared[n]] if n in self.shared else self.session.array(pointer(v))
            if n not in self.shared:
                self.session.call(RELEASE_VALUE, pointer(v), result=None)
        for v in self.values.values():
            self.session.call(RELEASE_VALUE, v, result=None)
        return made
