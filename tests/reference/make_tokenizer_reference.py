#!/usr/bin/env python3
"""Writes tests/reference/tokenizer/: what Hugging Face's tokenizers give, for the tests to equal.

    python3 tests/reference/make_tokenizer_reference.py [--minilm DIR] [--text DIR]

Needs transformers (its version goes into the file). DIR of --minilm: as `ymir fetch minilm` writes
it; of --text: a folder of text files, of which only hashes are kept. Not run by CI.
"""
import argparse
import hashlib
import json
import pathlib
import shutil
import string

import tokenizers
import transformers
from tokenizers import normalizers, pre_tokenizers
from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent / "tokenizer"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = """the of and to in a is that for it as was with be by on not he his but at are this have from
or had an they which one you were all her she there would their we him been has when who will no more
if out so up said what its about than into them can only other time new some could these two may first
then do any like my now over such our man me even most made after also did many off before must well
back through years where much your way down should because long each just state people those too mister
little good world make very year still see work life men day between under""".split()
PIECES = "ing ed er est ly ness able tion s es al ic ous ive ment un re dis able ful less".split()
NASTY = [
    "", " ", "\t\n\r", "Hello, World!", "héllo wörld", "HÉLLO WÖRLD", "naïve café", "ﬁancé ﬂuent",
    "Ångström", "İstanbul ISTANBUL ıi", "ΣΊΣΥΦΟΣ", "straße STRASSE ẞ", "ǅ ǆ Ǆ", "各国語 テスト 한국어",
    "漢字kana漢字", "a\u0301e\u0300\u0323", "\u1E9B\u0323", "q\u0307\u0323", "Ω\u2126", "\ufb03",
    "don't can't it's", "e-mail@host.example", "100,000.50$", "3.14 -> 2^10", "[MASK] and [CLS]",
    "x[SEP]y", "[mask] [ MASK ]", "##ing", "a##b", "!!!???...", "«quoted» “curly” ‘single’ —dash–",
    "tab\tand\u00a0nbsp\u2003em\u3000wide", "zero\u200bwidth\u200djoin\ufeffbom", "soft\u00adhyphen",
    "null\x00byte", "bell\x07 escape\x1b", "c1\x85next\x9fend", "repl\ufffdace", "private\ue000use",
    "unassigned\u0378\U000e0080", "tag\U000e0041x", "👍🏽 👩‍👩‍👧‍👦 🇩🇪 😀", "🂡♠♣", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒯ℯ𝓍𝓉", "１２３ ＡＢＣ",
    "x" * 100, "x" * 101, "ü" * 100, "ü" * 101, "y" * 1000, "the" * 30, " ".join(["the"] * 600),
    "अनुच्छेद १", "ไทยไม่มีช่องว่าง", "עִבְרִית", "العَرَبِيَّة", "Tiếng Việt", "Ελληνικά", "русский Ёлка й",
    "\u0344\u0390\u1fd3", "\uac00\u1100\u1161\u11a8", "\u2e55\u061d\u1b7d", "\u166d \u1734 \u1885",
    "\u0300alone \u20e3", "\U00011938x", "\U0001e943\U0001e921 \u1c89\ua7cb\ua7dc", "\u2028line\u2029par",
]


class Random:
    """splitmix64; the C++ test has the same one."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return (z ^ (z >> 31)) % n


def generated_line(number):
    """Line `number` of the generated corpus: pieces of many kinds, random code points among them."""
    random = Random(number)
    ranges = [(0x20, 0x7F), (0x00, 0x20), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x600),
              (0x600, 0x1200), (0x2000, 0x2100), (0x3000, 0x3100), (0x4E00, 0x5000),
              (0x1E00, 0x1F00), (0xAC00, 0xAD00), (0xFF00, 0xFFF0), (0x1F300, 0x1F700),
              (0x80, 0xD800), (0xE000, 0x110000)]
    line = ""
    for _ in range(random.below(16)):
        kind = random.below(6)
        if kind <= 1:
            line += WORDS[random.below(len(WORDS))]
            if random.below(3) == 0:
                line += PIECES[random.below(len(PIECES))]
        elif kind == 2:
            line += WORDS[random.below(len(WORDS))].upper()
        elif kind == 3:
            low, high = ranges[random.below(len(ranges))]
            for _ in range(1 + random.below(6)):
                line += chr(low + random.below(high - low))
        elif kind == 4:
            line += SPECIAL[random.below(len(SPECIAL))]
        else:
            line += chr(0x61 + random.below(26)) * (1 + random.below(120))
        if random.below(3):
            line += " "
    return line


def digest(tokenizer, lines, max_length=None):
    """sha256 over each line's ids, written as "1,2,3\\n"."""
    total = hashlib.sha256()
    cut = {"truncation": True, "max_length": max_length} if max_length else {}
    for begin in range(0, len(lines), 1000):
        for ids in tokenizer(lines[begin:begin + 1000], **cut)["input_ids"]:
            total.update((",".join(map(str, ids)) + "\n").encode())
    return total.hexdigest()


def lines_of(path):
    """A file's lines: UTF-8, or Latin-1 where the file is not."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.split("\n")


def write_small_tokenizers():
    """Three tokenizers over one small vocabulary: every kind of piece that the lines need."""
    singles = list(string.digits + string.ascii_letters + string.punctuation)
    singles += list("äöüéàçñßσςωабвйёאבاعกขअक漢字国語한각ㄱテスト")
    tokens = SPECIAL + singles + ["##" + c for c in singles] + ["#", "##"] + WORDS
    tokens += PIECES + ["##" + p for p in PIECES] + ["the" * n for n in range(2, 5)] + ["👍", "😀", "##👩"]
    tokens = list(dict.fromkeys(tokens))
    vocabulary = {token: i for i, token in enumerate(tokens)}

    def added(content, i, **how):
        base = {"id": i, "content": content, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True}
        return {**base, **how}

    specials = [added(t, i) for i, t in enumerate(SPECIAL)]
    n = len(tokens)
    extra = [
        added("<left>", n, lstrip=True), added("<right>", n + 1, rstrip=True),
        added("Word", n + 2, single_word=True, normalized=True, special=False),
        added("ÉTÉ", n + 3, normalized=True, special=False), added("<l", n + 4),
        added("of the", n + 5, normalized=True, special=False, lstrip=True, rstrip=True),
    ]
    for name, lower, tokens_added, template in (
            ("uncased", True, specials, True), ("cased", False, specials, False),
            ("added", True, specials + extra, True)):
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        post = {"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                           {"Sequence": {"id": "A", "type_id": 0}},
                           {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                         {"Sequence": {"id": "A", "type_id": 0}},
                         {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
                         {"Sequence": {"id": "B", "type_id": 1}},
                         {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
                "special_tokens": {t: {"id": t, "ids": [vocabulary[t]], "tokens": [t]}
                                   for t in ("[CLS]", "[SEP]")}}
        if not template:
            post = {"type": "BertProcessing", "sep": ["[SEP]", vocabulary["[SEP]"]],
                    "cls": ["[CLS]", vocabulary["[CLS]"]]}
        (folder / "tokenizer.json").write_text(json.dumps({
            "version": "1.0",
            "truncation": {"max_length": 7, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
            "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None,
                        "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
            "added_tokens": tokens_added,
            "normalizer": {"type": "BertNormalizer", "clean_text": True,
                           "handle_chinese_chars": True, "strip_accents": None, "lowercase": lower},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": post,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": vocabulary},
        }, ensure_ascii=False, indent=0) + "\n")
        kind = "TokenizersBackend" if name == "added" else "BertTokenizer"
        (folder / "tokenizer_config.json").write_text(json.dumps({
            "tokenizer_class": kind, "do_lower_case": lower, "unk_token": "[UNK]",
            "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
            "mask_token": "[MASK]", "model_max_length": 512}, indent=1) + "\n")


def every_code_point():
    """Per plane: sha256 over what each code point becomes between two letters, words by spaces."""
    split = pre_tokenizers.BertPreTokenizer()
    planes = {}
    for lower in (True, False):
        normal = normalizers.BertNormalizer(lowercase=lower)
        hashes = []
        for plane in range(17):
            total = hashlib.sha256()
            for c in range(plane << 16, (plane + 1) << 16):
                if 0xD800 <= c < 0xE000:
                    continue
                text = normal.normalize_str("A" + chr(c) + "b")
                total.update((" ".join(w for w, _ in split.pre_tokenize_str(text)) + "\n").encode())
            hashes.append(total.hexdigest())
        planes["uncased" if lower else "cased"] = hashes
    return planes


def reference_of(tokenizer, texts, generated):
    pairs = [(a, b) for a in (NASTY[3], NASTY[4], NASTY[52], "the " * 9)
             for b in (NASTY[24], NASTY[5], "a " * 14)]  # an empty second text is no pair there
    result = {
        "lines": [[t, tokenizer(t)["input_ids"]] for t in texts],
        "truncated": [[t, n, tokenizer(t, truncation=True, max_length=n)["input_ids"]]
                      for t in (NASTY[3], NASTY[55], "of the world") for n in (2, 3, 4, 5, 16)],
        "pairs": [],
        "generated": [digest(tokenizer, generated[i:i + 10_000])
                      for i in range(0, len(generated), 10_000)],
    }
    for a, b in pairs:
        for n in (None, 3, 8, 11, 12, 17):
            cut = {"truncation": True, "max_length": n} if n else {}
            both = tokenizer(a, b, return_token_type_ids=True, **cut)
            result["pairs"].append([a, b, n or 0, both["input_ids"], both["token_type_ids"]])
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minilm")
    parser.add_argument("--text")
    arguments = parser.parse_args()
    write_small_tokenizers()
    generated = [generated_line(i) for i in range(100_000)]
    made_with = {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__}
    reference = {"made_with": made_with, "code_points": every_code_point(), "tokenizers": {}}
    texts = NASTY + generated[:100]
    for name in ("uncased", "cased", "added"):
        tokenizer = AutoTokenizer.from_pretrained(HERE / name)
        extra = ["Word word swords word's", "x <left> y <right> z <l <left", "été ÉTÉ ete",
                 "of the end", "end  of the  ", "<right>\u3000\t<left>", "Word<right> Word"]
        reference["tokenizers"][name] = reference_of(tokenizer, texts + extra, generated)
    if arguments.minilm:
        tokenizer = AutoTokenizer.from_pretrained(arguments.minilm)
        minilm = reference_of(tokenizer, texts, generated)
        minilm["tokenizer_sha256"] = hashlib.sha256(
            (pathlib.Path(arguments.minilm) / "tokenizer.json").read_bytes()).hexdigest()
        if arguments.text:
            root = pathlib.Path(arguments.text)
            minilm["corpora"] = {}
            for path in sorted(p for p in root.rglob("*") if p.is_file()):
                lines = lines_of(path)
                minilm["corpora"][str(path.relative_to(root))] = {
                    "lines": len(lines), "whole": digest(tokenizer, lines),
                    "cut_to_32": digest(tokenizer, lines, 32)}
        reference["tokenizers"]["minilm"] = minilm
    (HERE / "reference.json").write_text(json.dumps(reference, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
