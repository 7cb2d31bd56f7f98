#!/usr/bin/env python3
"""compare.py COMPARE OUT: trains SentencePiece's models of each type with Debian's spm_train on kiln's own pages, in the
folder OUT, and compares kiln's ids and texts of odd lines with spm_encode's and spm_decode's by the program COMPARE
(compare_tokenizer). The same files come out every time. Exit status 77 without these programs."""
import json
import pathlib
import random
import shutil
import subprocess
import sys

compare, out = sys.argv[1], pathlib.Path(sys.argv[2])
root = pathlib.Path(__file__).resolve().parents[3]
if shutil.which("spm_train") is None:
    print("skipped: there is no spm_train here (Debian's package sentencepiece)")
    sys.exit(77)

pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]
lines = [line for page in pages for line in page.read_text(encoding="utf8").split("\n") if line.strip()]
foreign = "中文 字符 日本語の文 カタカナ ひらがな 한국어 العربية हिन्दी naïve café Übergröße ﬁne ① Å … don’t 🙂🙂 👩‍👩‍👧 🇩🇪".split()

# name: options. Large vocabularies merge whole words, small ones leave parts of them.
common = "--num_threads=1 --minloglevel=2 --character_coverage=0.998 --input_sentence_size=0"
symbols = "--user_defined_symbols=<sep>,the,▁▁▁,kiln,中文 --control_symbols=<mask>,<cls>"
llama = ("--normalization_rule_name=identity --remove_extra_whitespaces=false --split_digits "
         "--allow_whitespace_only_pieces --byte_fallback")
models = {
    "unigram": "--model_type=unigram --vocab_size=2000",
    "unigram_bytes": f"--model_type=unigram --vocab_size=3000 --byte_fallback {symbols}",
    "unigram_no_prefix": "--model_type=unigram --vocab_size=1500 --add_dummy_prefix=false --normalization_rule_name=nfkc_cf",
    "unigram_suffix": "--model_type=unigram --vocab_size=1500 --treat_whitespace_as_suffix",
    "unigram_gemma": f"--model_type=unigram --vocab_size=3000 --add_dummy_prefix=false {llama} {symbols}",
    "bpe": "--model_type=bpe --vocab_size=2000",
    "bpe_llama": f"--model_type=bpe --vocab_size=3000 {llama} --pad_id=3 --unk_surface=?",
    "bpe_symbols": f"--model_type=bpe --vocab_size=1200 --split_by_whitespace=false {symbols}",
    "bpe_suffix": "--model_type=bpe --vocab_size=1200 --treat_whitespace_as_suffix --byte_fallback",
    "unigram_unused": "--model_type=unigram --vocab_size=2000",
    "bpe_unused": "--model_type=bpe --vocab_size=3000 --byte_fallback",
    "bpe_phrases_unused": "--model_type=bpe --vocab_size=4000 --split_by_whitespace=false",
    "character": f"--model_type=char --vocab_size=400 --use_all_vocab {symbols}",
    "character_bytes": "--model_type=char --vocab_size=500 --use_all_vocab --byte_fallback",
    "word": f"--model_type=word --vocab_size=1000 {symbols}",
    "word_bytes": "--model_type=word --vocab_size=1500 --byte_fallback",
}


def odd_lines(n):
    """Lines of the pages and what pages have not: other scripts, spaces, control characters, symbols side by side."""
    rng = random.Random(11)
    marks = ["  ", "   ", "\t", "\u00a0", "\u3000", "▁", "\u200b", "\u200d", "\0", "\x01", "\x1b", "\x7f", "\u0085", "\r", "\ufffd",
             "<s>", "</s>", "<unk>", "<sep>", "<mask>", "<0x0A>", "0", "1234567890", "e\u0301", "\u0301", "\U0001f468\u200d"]
    made = []
    for i in range(n):
        if i % 5 == 0:
            made.append(lines[i // 5 % len(lines)])
            continue
        words = []
        for _ in range(rng.randrange(0, 14)):
            kind = rng.random()
            if kind < 0.6:
                words.append(rng.choice(rng.choice(lines).split()))
            elif kind < 0.75:
                words.append(rng.choice(foreign))
            elif kind < 0.95:
                words.append(rng.choice(marks))
            else:
                words.append("".join(chr(rng.choice([rng.randrange(1, 0xD800), rng.randrange(0xE000, 0x20000)]))
                                     for _ in range(rng.randrange(1, 4))).replace("\n", ""))
        made.append(rng.choice(["", " ", " "]).join(words))
    return made


def with_unused(model):
    """The model's bytes with every fifth of its longer pieces of type unused."""
    made, at, number = b"", 0, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = model[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def as_varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + as_varint(value >> 7)

    while at < len(model):
        tag = varint()
        size = varint()
        field = model[at:at + size]
        at += size
        if tag == 10:  # a piece: its text has a tag and a length, its score 5 bytes
            number += 1
            if number > 300 and number % 5 == 0 and field[1] > 3 and b"\x18" not in field[2 + field[1]:]:
                field += b"\x18\x05"
        made += as_varint(tag) + as_varint(len(field)) + field
    return made


def run(*command, text=None):
    return subprocess.run(command, input=text, check=True, capture_output=True).stdout


shutil.rmtree(out, ignore_errors=True)
out.mkdir(parents=True)
(out / "corpus.txt").write_text("\n".join(lines + [" ".join(foreign)] * 20), encoding="utf8")
text = "".join(line + "\n" for line in odd_lines(10000)).encode()
(out / "lines.txt").write_bytes(text)
bad = 0
for name, options in models.items():
    folder = out / name
    folder.mkdir()
    run("spm_train", f"--input={out / 'corpus.txt'}", f"--model_prefix={folder / 'tokenizer'}", *common.split(), *options.split())
    if name.endswith("unused"):
        path = folder / "tokenizer.model"
        path.write_bytes(with_unused(path.read_bytes()))
    model = f"--model={folder / 'tokenizer.model'}"
    ids = run("spm_encode", model, "--output_format=id", text=text)
    texts = run("spm_decode", model, "--input_format=id", text=ids)
    with open(folder / "answers", "w", encoding="utf8") as answers:
        for numbers, line in zip(ids.split(b"\n")[:-1], texts.split(b"\n")[:-1], strict=True):
            numbers = [int(x) for x in numbers.split()]
            print(json.dumps([numbers, numbers, line.decode()]), file=answers)
    print(f"{name}: ", end="", flush=True)
    bad += subprocess.run([compare, folder, out / "lines.txt", folder / "answers"]).returncode != 0
sys.exit(bad != 0)
