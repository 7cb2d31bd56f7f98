"""Requests side by side: each is a generator of its own, and a round takes a step of each."""

from __future__ import annotations

import collections
import threading
from typing import Any

from ._genai import ArgumentError, Error, Generator, GeneratorParams, Model


class Request:
    """A text to be continued by an Engine, one token a step, turn after turn."""

    def __init__(self, params: GeneratorParams) -> None:
        options = params.get_search_options()
        for name in ("batch_size", "num_beams"):
            if options[name] != 1:
                raise ArgumentError(f"a request is one sequence: expected {name} 1, found {options[name]:g}")
        self._params = params
        self._generator: Generator | None = None
        self._prompt: list[int] = []
        self._unseen: collections.deque[int] = collections.deque()
        self._complete = False
        self._engine: Engine | None = None
        self._opaque: Any = None

    def add_tokens(self, tokens: Any) -> None:
        """Adds tokens of the prompt, before the first step."""
        if self._generator is not None:
            raise ArgumentError("tokens are added before a request is run; continue_with() begins a further turn")
        self._prompt.extend(int(t) for t in tokens)

    def continue_with(self, tokens: Any) -> None:
        """Begins a further turn, after one that is complete, with the tokens of its prompt."""
        if not self._complete:
            raise ArgumentError("a further turn follows one that is complete: found one that is not")
        self._prompt.extend(int(t) for t in tokens)
        self._complete = False

    def has_unseen_tokens(self) -> bool:
        """Whether get_unseen_token() has one to give."""
        return bool(self._unseen)

    def get_unseen_token(self) -> int:
        """The next token that was not asked for."""
        if not self._unseen:
            raise ArgumentError("the request has no token that was not asked for")
        return self._unseen.popleft()

    def is_done(self) -> bool:
        """Whether its turn is complete."""
        return self._complete

    def is_turn_complete(self) -> bool:
        """The same as is_done()."""
        return self._complete

    def set_opaque_data(self, opaque_data: Any) -> None:
        """Keeps an object of the caller's with the request."""
        self._opaque = opaque_data

    def get_opaque_data(self) -> Any:
        """That object, or None."""
        return self._opaque

    @property
    def _open(self) -> bool:
        return not self._complete and (self._generator is not None or bool(self._prompt))

    def _step(self, model: Model) -> None:
        try:
            if self._generator is None:
                self._generator = Generator(model, self._params)
            if self._prompt:
                self._generator.append_tokens(self._prompt)
                self._prompt = []
            self._generator.generate_next_token()
            self._unseen.extend(map(int, self._generator.get_next_tokens()))  # forced ones too
            self._complete = self._generator.is_done()
        except Error:
            self._complete = True  # the others go on
            raise


class Engine:
    """Continues any number of requests of a Model side by side. Requests may be added and removed in other threads than
    the one that steps."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._ready: collections.deque[Request] = collections.deque()

    def add_request(self, request: Request) -> None:
        """Adds a request: the next round takes its first step."""
        with self._lock:
            if request._engine is not None:
                raise ArgumentError("a request is added once: found one that an engine has")
            request._engine = self
            self._requests.append(request)

    def remove_request(self, request: Request) -> None:
        """Removes a request, complete or not."""
        with self._lock:
            if request._engine is not self:
                raise ArgumentError("a request is removed from its engine: found one that was not added to it")
            request._engine = None
            self._requests.remove(request)
            self._ready = collections.deque(r for r in self._ready if r is not request)

    def has_pending_requests(self) -> bool:
        """Whether step() has something to do or to hand out."""
        with self._lock:
            return bool(self._ready) or any(r._open for r in self._requests)

    def step(self) -> Request | None:
        """A request with a new token; None when all turns are complete. When all new tokens were handed out, every open
        request takes a step first; an Error of one of them is raised when all have."""
        with self._lock:
            if self._ready:
                return self._ready.popleft()
            now = [r for r in self._requests if r._open]
        failed: Error | None = None
        for request in now:
            try:
                request._step(self._model)
            except Error as e:
                failed = failed or e
                continue
            with self._lock:
                if request._engine is self:
                    self._ready.append(request)
        if failed is not None:
            raise failed
        with self._lock:
            return self._ready.popleft() if self._ready else None
