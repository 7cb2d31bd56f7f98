"""What the examples share: the options of their command lines, and a model made as they say."""

import argparse
import json

import onnxruntime_genai as og

SEARCH = {
    "min_length": int, "max_length": int, "num_beams": int, "num_return_sequences": int, "top_k": int, "top_p": float,
    "temperature": float, "repetition_penalty": float, "random_seed": int,
}  # fmt: skip


def parser_of(about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("-m", "--model_path", required=True, help="a folder with genai_config.json")
    parser.add_argument("-e", "--execution_provider", default="follow_config", choices=["follow_config", "cpu", "migraphx"],
                        help="a provider in place of the folder's")  # fmt: skip
    parser.add_argument("-v", "--verbose", action="store_true", help="say what is done, and how long it takes")
    parser.add_argument("--do_sample", action="store_true", help="draw tokens instead of taking the likeliest")
    for name, kind in SEARCH.items():
        parser.add_argument(f"--{name}", type=kind, help="a search option (docs/genai.md)")
    return parser


def search_of(args: argparse.Namespace) -> dict:
    options = {name: getattr(args, name) for name in SEARCH if getattr(args, name) is not None}
    return dict(options, do_sample=True) if args.do_sample else options


# [provider]
def config_of(args: argparse.Namespace) -> og.Config:
    config = og.Config(args.model_path)
    if args.execution_provider != "follow_config":
        config.clear_providers()
        if args.execution_provider != "cpu":
            config.append_provider(args.execution_provider)
    return config


# [/provider]


def prompt_of(tokenizer: og.Tokenizer, text: str, system: str = "") -> str:
    """A user's message in the form of the tokenizer's chat template; the message itself where there is none."""
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": text})
    try:
        return tokenizer.apply_chat_template(json.dumps(messages), add_generation_prompt=True)
    except RuntimeError as e:
        if getattr(e, "code", "") != "not_found":
            raise
        return text
