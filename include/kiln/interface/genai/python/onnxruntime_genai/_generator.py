"""A generator that writes to GenAI's log."""

from __future__ import annotations

from typing import Any

from . import _log
from ._kiln import genai


class Generator(genai.Generator):
    """kiln.genai.Generator, with messages as set_log_options() asks for."""

    def append_tokens(self, tokens: Any) -> None:
        """Appends tokens and runs them: an array or a list; of several sequences one of rank 2 or a list for each."""
        super().append_tokens(tokens)
        if _log.flags["enabled"]:
            _log.write("append_next_tokens", f"{self.token_count()} tokens")

    def generate_next_token(self) -> None:
        """Appends a token to every sequence that has not ended, and the padding token to the others."""
        super().generate_next_token()
        if _log.flags["enabled"]:
            self._say()

    def get_logits(self) -> Any:
        """The scores from which the next tokens are chosen, as a numpy array f32[rows, 1, vocabulary]."""
        scores = super().get_logits()
        if _log.wants("model_logits"):
            _log.write("model_logits", str(scores))
        return scores

    def _say(self) -> None:
        _log.write("generate_next_token", " ".join(map(str, self.get_next_tokens())))
        if self.is_done():
            full = self.token_count() >= self._max_length
            _log.write("hit_max_length" if full else "hit_eos", f"{self.token_count()} tokens")

    def __init__(self, model: genai.Model, params: genai.GeneratorParams) -> None:
        super().__init__(model, params)
        self._max_length = params.get_search_options()["max_length"] or model.context_length
