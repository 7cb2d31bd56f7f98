"""GenAI's names for what kiln does not have: each raises an Error that says so."""

from __future__ import annotations

from typing import Any, NoReturn

from ._kiln import genai


def _refuse(what: str) -> NoReturn:
    raise genai.Error(f"not supported: {what}; kiln runs models over text")


class Images:
    """Not supported."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("images")

    @staticmethod
    def open(*image_paths: str) -> Any:
        """Raises an Error."""
        _refuse("images")

    @staticmethod
    def open_bytes(*image_datas: bytes) -> Any:
        """Raises an Error."""
        _refuse("images")


class Audios:
    """Not supported."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("audio")

    @staticmethod
    def open(*audio_paths: str) -> Any:
        """Raises an Error."""
        _refuse("audio")

    @staticmethod
    def open_bytes(*audio_datas: bytes) -> Any:
        """Raises an Error."""
        _refuse("audio")


class MultiModalProcessor:
    """Not supported."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("models over images and audio")


class StreamingProcessor:
    """Not supported."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("models over audio")


class MtpGenerator:
    """Not supported."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("decoders that guess several tokens with heads of their own")
