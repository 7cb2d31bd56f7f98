"""The trained model of the examples, and folders made of it."""

import json
import pathlib
import tempfile
import unittest

FOLDER = pathlib.Path("examples/models/scripture").resolve()
GOLDEN = json.loads((FOLDER / "golden.json").read_text())
CHATML = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if tools %}[{{ tools | length }} tools]{% endif %}{{ note }}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def folder_like_scripture(test, config=None, **files):
    """A folder with scripture's files, other keys of its configuration, and other files by name."""
    made = tempfile.TemporaryDirectory()
    test.addCleanup(made.cleanup)
    to = pathlib.Path(made.name)
    for name in ("model.onnx", "tokenizer.json"):
        (to / name).symlink_to(FOLDER / name)
    whole = json.loads((FOLDER / "genai_config.json").read_text())
    for section, keys in (config or {}).items():
        part = whole
        for name in section.split("."):
            part = part.setdefault(name, {})
        part.update(keys)
    (to / "genai_config.json").write_text(json.dumps(whole))
    for name, content in files.items():
        (to / name.replace("__", ".")).write_text(json.dumps(content))
    return to


class GenaiCase(unittest.TestCase):
    def refuses(self, code, text, call, *args, **named):
        from kiln import genai

        with self.assertRaisesRegex(genai.Error, text) as caught:
            call(*args, **named)
        self.assertEqual(caught.exception.code, code)
        return caught.exception
