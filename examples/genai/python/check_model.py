"""Checks that onnxruntime_genai imports and that a model's folder is complete and makes text. Exit status 0 or 1."""

import json
import pathlib
import sys

failed = False


def say(good: bool, text: str) -> bool:
    global failed
    failed = failed or not good
    print(f"  {'✓' if good else '✗'} {text}")
    return good


def first_line(e: BaseException) -> str:
    return f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"


def check_files(folder: pathlib.Path) -> bool:
    try:
        config = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))
        decoder = config["model"]["decoder"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        return say(False, f"{folder}/genai_config.json: {first_line(e)}")
    whole = say(True, f"{folder}/genai_config.json: type {config['model'].get('type')}")
    providers = decoder.get("session_options", {}).get("provider_options", [])
    say(True, f"providers: {json.dumps(providers) if providers else 'none: the CPU'}")
    name = decoder.get("filename", "model.onnx")
    whole = say((folder / name).is_file(), f"{folder / name}") and whole
    tokens = folder / config["model"].get("tokenizer_dir", "")
    forms = (("tokenizer.json",), ("vocab.json", "merges.txt"), ("vocab.txt",), ("tokenizer.model",))
    found = [form for form in forms if all((tokens / f).is_file() for f in form)]
    text = " and ".join(found[0]) if found else "none of " + ", ".join(" and ".join(form) for form in forms)
    return say(bool(found), f"tokenizer in {tokens}: {text}") and whole


def check_text(path: str) -> None:
    try:
        import onnxruntime_genai as og
    except ImportError as e:
        say(False, f"import onnxruntime_genai: {first_line(e)}")
        return
    say(True, f"onnxruntime_genai {og.__version__} of {og.__file__}")
    try:
        model = og.Model(path)
        say(True, f"device {model.device_type}, {model.vocabulary_size} tokens, context of {model.context_length}")
        for remark in model.remarks:
            print(f"  - {remark}")
        tokenizer = og.Tokenizer(model)
        prompt = tokenizer.encode("In the beginning")
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=len(prompt) + 8, do_sample=False, batch_size=1, num_beams=1)
        generator = og.Generator(model, params)
        generator.append_tokens(prompt)
        while not generator.is_done():
            generator.generate_next_token()
        made = generator.token_count() - len(prompt)
        say(made > 0, f"{made} tokens: {tokenizer.decode(generator.get_sequence(0))!r}")
    except (RuntimeError, ImportError) as e:
        say(False, first_line(e))


if len(sys.argv) != 2:
    sys.exit("usage: check_model.py MODEL_FOLDER")
if check_files(pathlib.Path(sys.argv[1])):
    check_text(sys.argv[1])
sys.exit(1 if failed else 0)
