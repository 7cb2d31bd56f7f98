"""Adapters of a model, and tokens that are guessed ahead."""

import importlib.util
import struct
import unittest

import numpy as np
from help import FOLDER, GOLDEN, GenaiCase, folder_like_scripture
from kiln import genai
from test_genai import MODEL, generator, run


def adapter_bytes(values):
    """The bytes of an .onnx_adapter file: a flatbuffer of two kinds of tables with four fields of four bytes each."""
    out = bytearray(b"\0\0\0\0TORT" + struct.pack("<6H", 12, 20, 4, 8, 12, 16))

    def put(at, value):
        out[at : at + 4] = struct.pack("<i", value)

    def table(numbers):
        at = len(out)
        out.extend(struct.pack("<5i", at - 8, *numbers))
        return at

    def vector(count, data, align):
        while (len(out) + 4) % align:
            out.append(0)
        at = len(out)
        out.extend(struct.pack("<I", count) + data)
        while len(out) % 4:
            out.append(0)
        return at

    put(0, table((1, 7, 1, 0)))
    list_at = vector(len(values), bytes(4 * len(values)), 4)
    put(36, list_at - 36)
    for i, (name, value) in enumerate(values.items()):
        at = table((0, 0, 1, 0))
        put(list_at + 4 + 4 * i, at - (list_at + 4 + 4 * i))
        parts = (len(name), name.encode() + b"\0", 4), (value.ndim, np.array(value.shape, np.int64).tobytes(), 8)
        for field, part in zip((4, 8, 16), (*parts, (value.nbytes, value.tobytes(), 8))):
            put(at + field, vector(*part) - at - field)
    return bytes(out)


@unittest.skipIf(importlib.util.find_spec("onnx") is None, "no package onnx, which makes the model")
class AdapterTest(GenaiCase):
    NAME = "norm.weight"

    def setUp(self):
        import onnx
        import onnx.numpy_helper

        model = onnx.load(FOLDER / "model.onnx")
        weight = next(w for w in model.graph.initializer if w.name == self.NAME)
        self.name, self.value = weight.name, onnx.numpy_helper.to_array(weight)
        model.graph.input.append(onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims))
        self.folder = folder_like_scripture(self)
        (self.folder / "model.onnx").unlink()
        onnx.save(model, self.folder / "model.onnx")
        self.model = genai.Model(self.folder, threads=1)

    def test_adapters(self):
        file = self.folder / "turned.onnx_adapter"
        scale = np.where(np.arange(len(self.value)) % 3 == 0, -1, 1).astype(np.float32)
        file.write_bytes(adapter_bytes({self.name: self.value * scale}))
        adapters = genai.Adapters(self.model)
        adapters.load(file, "turned")
        self.refuses("invalid_argument", "turned", adapters.load, file, "turned")

        def made(name):
            g = generator(self.model, max_length=20)
            if name:
                g.set_active_adapter(adapters, name)
            g.append_tokens(GOLDEN[0]["prompt_ids"])
            return run(g)

        self.assertEqual(made(None), GOLDEN[0]["greedy_ids"][:20])
        turned = made("turned")
        self.assertNotEqual(turned, GOLDEN[0]["greedy_ids"][:20])
        file.write_bytes(adapter_bytes({self.name: self.value}))
        adapters.load(str(file), "same")
        self.assertEqual(made("same"), GOLDEN[0]["greedy_ids"][:20])
        self.assertEqual(made("turned"), turned)
        self.refuses("not_found", "other", made, "other")
        adapters.unload("turned")
        self.refuses("not_found", "turned", made, "turned")
        self.refuses("not_found", "", adapters.unload, "turned")

    def test_wrong_files(self):
        adapters = genai.Adapters(self.model)
        with self.assertRaises(genai.Error):
            adapters.load("/nowhere.onnx_adapter", "a")
        file = self.folder / "a.onnx_adapter"
        file.write_bytes(b"TORT" * 5)
        self.refuses("malformed", "", adapters.load, file, "a")
        file.write_bytes(adapter_bytes({"other": self.value}))
        self.refuses("not_found", "other", adapters.load, file, "a")
        file.write_bytes(adapter_bytes({self.name: self.value[:5]}))
        self.refuses("shape_mismatch", self.NAME, adapters.load, file, "a")


class SpeculationTest(GenaiCase):
    def test_lookup_gives_the_same_text(self):
        params = genai.GeneratorParams(MODEL)
        self.assertEqual(params.get_speculative_options()["ngram_size"], 0)
        params.set_search_options(max_length=60)
        params.set_speculative_options(ngram_size=3, max_draft_tokens=6, ngram_chained_lookup=True)
        self.assertEqual(params.get_speculative_options()["max_draft_tokens"], 6)
        g = genai.Generator(MODEL, params)
        g.append_tokens(GOLDEN[0]["prompt_ids"])
        wanted = generator(max_length=60)
        wanted.append_tokens(GOLDEN[0]["prompt_ids"])
        self.assertEqual(run(g), run(wanted))
        stats = g.get_speculative_stats()
        self.assertGreater(stats["draft_tokens_accepted"], 10)
        self.assertIsInstance(stats["rounds"], int)
        self.assertEqual(stats["acceptance_rate"], stats["draft_tokens_accepted"] / stats["draft_tokens_evaluated"])
        self.refuses("not_found", "ngrams", params.set_speculative_options, ngrams=3)
        params.set_search_options(batch_size=2)
        self.refuses("invalid_argument", "", genai.Generator, MODEL, params)


if __name__ == "__main__":
    unittest.main()
