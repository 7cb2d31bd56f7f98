"""kiln in role of Torch-MIGraphX: `torch_migraphx.fx.lower_to_mgx` for scripts that exist. Programs are kiln's."""

from . import _log, dynamo, fx
from ._version import __version__

__all__ = ["__version__", "dynamo", "fx"]

_log.set_up()
