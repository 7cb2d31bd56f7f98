#!/usr/bin/env python3
"""shapes.py OUT: writes a tokenizer folder for each of the shapes that language models' files have, with vocabularies
trained here from a made-up text, and OUT/lines.txt with odd lines to encode. The same files come out every time."""
import base64
import collections
import json
import pathlib
import random
import struct
import sys
import unicodedata

out = pathlib.Path(sys.argv[1])
root = pathlib.Path(__file__).resolve().parents[3]
words = [w for page in ("README.md", "CONTRIBUTING.md", "docs/architecture.md")
         for w in (root / page).read_text(encoding="utf8").split()]
extra = "中文 字符 日本語 カタカナ ひらがな 한국어 العربية हिन्दी naïve café Übergröße 🙂🙂 I'll they're 1234 2026 don’t".split()

printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
alphabet = {b: chr(b) for b in printable}
alphabet.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in printable)})
to_bytes = lambda text: "".join(alphabet[b] for b in text.encode())


def train(texts, merges, start, prefix=""):
    """Byte-pair encoding: the most frequent pair becomes a token, again and again."""
    counts = collections.Counter(texts)
    split = {w: [*start(w)] for w in counts}
    made = []
    while len(made) < merges:
        pairs = collections.Counter()
        for w, n in counts.items():
            for pair in zip(split[w], split[w][1:]):
                pairs[pair] += n
        if not pairs:
            break
        a, b = max(pairs, key=lambda p: (pairs[p], p))
        made.append((a, b))
        joined = a + b[len(prefix):]
        for w, s in split.items():
            i = 0
            while i + 1 < len(s):
                if s[i] == a and s[i + 1] == b:
                    s[i:i + 2] = [joined]
                i += 1
    return made, [x for s in split.values() for x in s]


def numbered(spellings):
    return {s: i for i, s in enumerate(dict.fromkeys(spellings))}


def added(spelling, number, special=True, **flags):
    return {"id": number, "content": spelling, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": not special, "special": special, **flags}


def write(name, model, normalizer=None, pre=None, post=None, decoder=None, tokens=(), config=None):
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(tokens), "normalizer": normalizer,
            "pre_tokenizer": pre, "post_processor": post, "decoder": decoder, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(file, ensure_ascii=False), encoding="utf8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config or {}), encoding="utf8")


def bpe(vocab, merges, **options):
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": vocab, "merges": [[*m] for m in merges], **options}


def sequence(key, *steps):
    return {"type": "Sequence", key: list(steps)}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def around(before, behind, ids):
    part = lambda s: {"SpecialToken": {"id": s, "type_id": 0}}
    return {"type": "TemplateProcessing",
            "single": [*map(part, before), {"Sequence": {"id": "A", "type_id": 0}}, *map(part, behind)],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {s: {"id": s, "ids": [ids[s]], "tokens": [s]} for s in {*before, *behind}}}


byte_level = lambda prefix=False, regex=True: {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True,
                                               "use_regex": regex}
corpus = [" " + w for w in words + extra * 20]
made, _ = train(corpus, 700, to_bytes)
vocab = numbered([*alphabet.values(), *(a + b for a, b in made)])
n = len(vocab)
write("gpt2", bpe(vocab, made), None, byte_level(), byte_level(True), byte_level(True), [added("<|endoftext|>", n)])
write("roberta", bpe(vocab, made), None, byte_level(True),
      {"type": "RobertaProcessing", "sep": ["</s>", n + 1], "cls": ["<s>", n], "trim_offsets": True,
       "add_prefix_space": True}, byte_level(True),
      [added("<s>", n), added("</s>", n + 1), added("<mask>", n + 2, lstrip=True), added("kiln", n + 3, False, single_word=True)])
qwen = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
write("qwen2", bpe(vocab, made), {"type": "NFC"}, sequence("pretokenizers", split(qwen), byte_level(regex=False)),
      byte_level(), byte_level(), [added("<|im_start|>", n), added("<|im_end|>", n + 1), added("<tool>", n + 2, False, rstrip=True)])
llama3 = qwen.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
write("llama3", bpe(vocab, made, ignore_merges=True), None,
      sequence("pretokenizers", split(llama3), byte_level(regex=False)),
      sequence("processors", byte_level(True), around(["<|begin_of_text|>"], [], {"<|begin_of_text|>": n})),
      byte_level(True), [added("<|begin_of_text|>", n), added("<|eot_id|>", n + 1)])
write("falcon", bpe(vocab, made), None,
      sequence("pretokenizers", {"type": "Punctuation", "behavior": "Contiguous"}, byte_level(),
               {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]")),
      None, byte_level(), [added("<|endoftext|>", n)])
made_clip, _ = train([w.lower() for w in words], 500, lambda w: [*to_bytes(w)[:-1], to_bytes(w)[-1] + "</w>"])
clip = numbered([*alphabet.values(), *(c + "</w>" for c in alphabet.values()), *(a + b for a, b in made_clip)])
write("clip", bpe(clip, made_clip, end_of_word_suffix="</w>", unk_token="<|endoftext|>"),
      sequence("normalizers", {"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
               {"type": "Lowercase"}),
      sequence("pretokenizers", split(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", "Removed", True),
               byte_level()),
      None, byte_level(True), [added("<|startoftext|>", len(clip)), added("<|endoftext|>", len(clip) + 1)])

marked = ["▁" + w for w in words + [w for w in extra for _ in range(20)]]
made_spm, _ = train(marked, 700, list)
made_spm += [("▁", "▁"), ("▁▁", "▁▁")]
fallback = [f"<0x{b:02X}>" for b in range(256)]
spm = numbered(["<unk>", "<s>", "</s>", *fallback, *sorted({c for w in marked for c in w}), *(a + b for a, b in made_spm)])
ends = [added(s, spm[s]) for s in ("<unk>", "<s>", "</s>")]
space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
unspace = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
write("llama2", bpe(spm, made_spm, unk_token="<unk>", fuse_unk=True, byte_fallback=True),
      sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, space), None, around(["<s>"], [], spm),
      sequence("decoders", unspace, {"type": "ByteFallback"}, {"type": "Fuse"},
               {"type": "Strip", "content": " ", "start": 1, "stop": 0}),
      [*ends, added("<|user|>", len(spm), rstrip=True), added("kiln", len(spm) + 1, False)])
write("mistral", bpe(spm, made_spm, unk_token="<unk>", fuse_unk=True, byte_fallback=True), None,
      {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}, around(["<s>"], [], spm),
      sequence("decoders", unspace, {"type": "ByteFallback"}, {"type": "Fuse"},
               {"type": "Strip", "content": " ", "start": 1, "stop": 0}), ends)
write("gemma", bpe(spm, made_spm, unk_token="<unk>", fuse_unk=True, byte_fallback=True), space,
      split(" ", "MergedWithPrevious", kind="String"), around(["<s>"], [], spm),
      sequence("decoders", unspace, {"type": "ByteFallback"}, {"type": "Fuse"}),
      [*ends, added("<start_of_turn>", len(spm)), added("▁▁▁", len(spm) + 1, False, normalized=False)])
write("unknowns", bpe({s: i for i, s in enumerate(s for s in spm if s not in fallback)},
                      made_spm, unk_token="<unk>", fuse_unk=False), space, None, None,
      sequence("decoders", unspace, {"type": "Fuse"}))


def charsmap(rules):
    """SentencePiece's rules as a darts-clone array: every unit's children lie at its offset exclusive-or their label."""
    texts, values = b"", {}
    for key, becomes in sorted(rules.items()):
        values[key.encode()] = len(texts)
        texts += becomes.encode() + b"\0"
    units, used = {0: 0}, {0}
    queue = [(b"", 0)]
    while queue:
        prefix, at = queue.pop(0)
        labels = sorted({k[len(prefix)] for k in values if k.startswith(prefix) and len(k) > len(prefix)})
        ends_here = prefix in values
        base = next(b for b in range(1, 1 << 20) if b not in used and all((b ^ c) not in used for c in labels)
                    and (b ^ at) < 1 << 21)
        used.update([base] if ends_here else [], (base ^ c for c in labels))
        units[at] |= (base ^ at) << 10 | (256 if ends_here else 0)
        if ends_here:
            units[base] = values[prefix] | 1 << 31
        for c in labels:
            units[base ^ c] = c
            queue.append((prefix + bytes([c]), base ^ c))
    array = b"".join(struct.pack("<I", units.get(i, 0xFF)) for i in range((max(units) | 255) + 1))
    return base64.b64encode(struct.pack("<I", len(array)) + array + texts).decode()


rules = charsmap({"ﬁ": "fi", "①": "1", "½": "1⁄2", "\u3000": " ", "\u00a0": " ", "\t": " ", "e\u0301": "é", "Ⅷ": "VIII",
                  "…": "...", "\u200b": " ", "K": "K", "ｶ\u3099": "ガ"})
pieces = collections.Counter()
for w in marked:
    for a in range(len(w)):
        for b in range(a + 1, min(len(w), a + 6) + 1):
            pieces[w[a:b]] += (b - a) ** 2
total = sum(pieces.values())
best = sorted(pieces, key=lambda p: (-pieces[p], p))[:1500] + sorted({c for w in marked for c in w})
import math
scored = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]]
scored += [[p, round(math.log(pieces[p] / total), 6)] for p in dict.fromkeys(best)]
t5_tokens = [added("<pad>", 0), added("</s>", 1), added("<unk>", 2), added("<extra_id_0>", len(scored), lstrip=True, rstrip=True)]
metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
write("t5", {"type": "Unigram", "unk_id": 2, "vocab": scored, "byte_fallback": False},
      {"type": "Precompiled", "precompiled_charsmap": rules},
      sequence("pretokenizers", {"type": "WhitespaceSplit"}, metaspace), around([], ["</s>"], {"</s>": 1}), metaspace, t5_tokens)
bytes_scored = scored + [[b, -20.0] for b in fallback]
write("unigram_bytes", {"type": "Unigram", "unk_id": 2, "vocab": bytes_scored, "byte_fallback": True},
      sequence("normalizers", {"type": "Nmt"}, {"type": "NFKC"},
               {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, {"type": "Strip", "strip_left": True, "strip_right": True}),
      metaspace, None, sequence("decoders", {"type": "ByteFallback"}, metaspace), t5_tokens[:3])

made_wp, left = train([w.lower() for w in words + extra * 10], 900, lambda w: [w[0], *("##" + c for c in w[1:])], "##")
wp = numbered(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(left) | {c for m in made_wp for c in m}),
               *(a + b[2:] for a, b in made_wp)])
bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
word_piece = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100, "vocab": wp}
special = [added(s, wp[s]) for s in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
write("bert", word_piece, bert, {"type": "BertPreTokenizer"}, around(["[CLS]"], ["[SEP]"], wp),
      {"type": "WordPiece", "prefix": "##", "cleanup": True}, special)
write("bert_steps", word_piece,
      sequence("normalizers", {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}),
      sequence("pretokenizers", {"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}, {"type": "UnicodeScripts"}),
      {"type": "BertProcessing", "sep": ["[SEP]", wp["[SEP]"]], "cls": ["[CLS]", wp["[CLS]"]]},
      {"type": "WordPiece", "prefix": "##", "cleanup": False}, special)
levels = numbered(["[UNK]", *sorted({w.lower() for w in words})])
for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
    for invert in (False, True):
        write(f"level_{behavior}_{invert}", {"type": "WordLevel", "vocab": levels, "unk_token": "[UNK]"},
              {"type": "Lowercase"}, split(r"\w+", behavior, invert), None, None)

r = random.Random(5)
odd = list("éüñßøİıſKﬁﬀ①²½Ⅷ…—’“”「」、。中文字符日本語カタカナひらがな한국어العربيةहिन्दी🙂👨‍👩‍👧🇩🇪🏽\u0301\u0308\u200b\u200d\ufeff\u00a0"
           "\u3000\u2028\x01\x07\x1b\x7f\ufffd▁Ġ<>[]")
named = ["<s>", "</s>", "<mask>", "kiln", "<|endoftext|>", "<|im_end|>", "<tool>", "<extra_id_0>", "[MASK]", "<|user|>",
         "<0x41>", "<unk>", "▁▁▁", "I'LL", "they're", "'s"]
# characters of early versions of Unicode: the tables of tokenizers' libraries are of several
known = [[c for c in range(first, last + 1) if unicodedata.ucd_3_2_0.category(chr(c)) != "Cn" or c >= 0x1f300]
         for first, last in ((0xa0, 0x2ff), (0x370, 0x52f), (0x900, 0x939), (0x1e00, 0x1eff), (0x3041, 0x9fa5), (0x1f300, 0x1f5ff))]
lines = ["", " ", "  ", "▁", "a" * 300, "\r", "e\u0301" * 40, " a" * 200, "🙂" * 100, "中" * 150]
while len(lines) < 10000:
    line = ""
    for _ in range(r.randint(0, 14)):
        kind = r.random()
        if kind < .5: line += r.choice(["", " "]) + r.choice(words)
        elif kind < .7: line += "".join(r.choice(odd) for _ in range(r.randint(1, 4)))
        elif kind < .78: line += str(r.randint(0, 10 ** r.randint(1, 9)))
        elif kind < .86: line += " " * r.randint(1, 6) + r.choice(["", "\t", "\r"])
        elif kind < .92: line += r.choice(named) + r.choice(["", " "])
        else: line += chr(r.choice(r.choice(known)))
    lines.append(line)
(out / "lines.txt").write_bytes("".join(s + "\n" for s in lines).encode())
