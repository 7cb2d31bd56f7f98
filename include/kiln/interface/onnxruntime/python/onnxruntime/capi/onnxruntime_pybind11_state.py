"""The names of ONNX Runtime's compiled module that programs use: exceptions, classes and functions."""

from ._errors import EngineError as EngineError
from ._errors import EPFail as EPFail
from ._errors import Fail as Fail
from ._errors import InvalidArgument as InvalidArgument
from ._errors import InvalidGraph as InvalidGraph
from ._errors import InvalidProtobuf as InvalidProtobuf
from ._errors import ModelLoadCanceled as ModelLoadCanceled
from ._errors import ModelLoaded as ModelLoaded
from ._errors import ModelRequiresCompilation as ModelRequiresCompilation
from ._errors import NoModel as NoModel
from ._errors import NoSuchFile as NoSuchFile
from ._errors import NotFound as NotFound
from ._errors import NotImplemented as NotImplemented
from ._errors import RuntimeException as RuntimeException
from ._public import *  # noqa: F403
