"""A language model from an ONNX file continues prompts token by token, its key-value cache growing by one each time, and
is checked against the continuations that PyTorch found."""

from __future__ import annotations

import json
from typing import Any

import kiln
import numpy as np

FOLDER = "examples/models/scripture/"


def read_json(name: str) -> Any:
    with open(FOLDER + name, encoding="utf-8") as file:
        return json.load(file)


class Generator:
    """Feeds tokens behind those fed before."""

    def __init__(self, model: kiln.Executable, decoder: dict[str, Any]) -> None:
        self.model, self.names, self.length = model, decoder["inputs"], 0
        self.logits = decoder["outputs"]["logits"]
        empty = np.zeros((1, decoder["num_key_value_heads"], 0, decoder["head_size"]), np.float32)
        self.past_of: dict[str, str] = {}
        self.feeds: dict[str, Any] = {}
        for layer in range(decoder["num_hidden_layers"]):
            for part in ("key_names", "value_names"):
                past = self.names["past_" + part] % layer
                self.past_of[decoder["outputs"]["present_" + part] % layer] = past
                self.feeds[past] = empty

    def feed(self, tokens: list[int]) -> int:
        """The likeliest next token."""
        start, self.length = self.length, self.length + len(tokens)
        self.feeds[self.names["input_ids"]] = np.array([tokens])
        self.feeds[self.names["position_ids"]] = np.arange(start, self.length).reshape(1, -1)
        self.feeds[self.names["attention_mask"]] = np.ones((1, self.length), np.int64)
        made = self.model.run(self.feeds)
        self.feeds.update({past: made[present] for present, past in self.past_of.items()})
        return int(made[self.logits].numpy()[0, -1].argmax())


decoder = read_json("genai_config.json")["model"]["decoder"]
model = kiln.compile(FOLDER + decoder["filename"])
vocabulary = {id: word for word, id in read_json("tokenizer.json")["model"]["vocab"].items()}
for golden in read_json("golden.json"):
    tokens, expected = list(golden["prompt_ids"]), golden["greedy_ids"]
    generator = Generator(model, decoder)
    tokens.append(generator.feed(tokens))
    while len(tokens) < len(expected):
        tokens.append(generator.feed(tokens[-1:]))
    # byte-level BPE writes a space and a newline as these two letters
    print("".join(vocabulary[t] for t in tokens).replace("\u0120", " ").replace("\u010a", "\n"))
    print(f"[{len(tokens)} tokens]")
    assert tokens == expected
