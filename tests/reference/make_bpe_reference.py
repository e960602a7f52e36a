#!/usr/bin/env python3
"""Writes tests/reference/bpe/: small BPE tokenizers of every kind that is supported, and what Hugging
Face's libraries give for generated texts, for the tests to equal.

    python3 tests/reference/make_bpe_reference.py

Needs transformers and tokenizers (their versions go into the file). Not run by CI.
"""
import hashlib
import json
import pathlib
import shutil
import tempfile

import tokenizers
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers
from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent / "bpe"
# What the generated texts are made of; the test reads the same lists.
PIECES = {
    "words": """the of and to in a is that for it as was with be by on not he his but at are this have
        from or had an they which one you were all her she there would their we him been has when who
        will no more if out so up said what its about than into them can only other time new some
        could these two may first then do any like my now over such our man me even most made after
        straße naïve café señor Ελλάδα κόσμε привет мир שלום عالم नमस्ते 你好 世界 こんにちは 한국어 ไทย
        ing tion ness able ment""".split(),
    "blanks": [" ", "  ", "   ", "\n", "\r\n", "\t", "\n\n", " \n", "\u00a0", "\u3000", "\u2003", "\u200b",
               "\u0085", "\u2028", "\r", "\v", "\f", "\ufeff", " \t ", "\u001c"],
    "endings": ["'s", "'t", "'re", "'VE", "'m", "'LL", "'d", "'S", "\u2019s", "'\u017f", "''", "'x"],
    "emoji": ["👍", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "❤️", "🇩🇪", "1️⃣", "😀😀", "👨🏿‍🚀", "©", "™", "🫠"],
    "marks": list(".,;:!?-_()[]{}<>@#$%^&*+=/\\|~`\"") + ["...", "--", "!!!", "?!", "->", "«", "»", "…", "—", "▁"],
    "special": ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "<|endoftext|>", "<|eot|>", "[UNK]",
                "<0x41>", "<|", "<mas", "Word", "of the", "Ġ", "▁the"],
    "broken": ["ff", "c328", "e28228", "f09f98", "eda080", "f5808080", "c0af", "80", "e2", "f0908d"],
    "ranges": [[0x00, 0x20], [0x7F, 0x100], [0x100, 0x250], [0x300, 0x370], [0x370, 0x600], [0x600, 0x1200],
               [0x1E00, 0x2100], [0x2100, 0x2C00], [0x3000, 0x3100], [0x4E00, 0x5000], [0xAC00, 0xAD00],
               [0xF900, 0xFB50], [0xFF00, 0xFFF0], [0x1D400, 0x1D800], [0x1F300, 0x1F700],
               [0x80, 0xD800], [0xE000, 0x110000]],
}
NUM_TEXTS, NUM_BLOCKS, BLOCK = 2500, 10, 1000
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll"
         r"|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m"
         r"|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MASK = (1 << 64) - 1


class Random:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return (z ^ z >> 31) % n

    def of(self, values):
        return values[self.below(len(values))]


def generated_bytes(number, broken=True):
    r = Random(number * 7919 + 17)
    out = bytearray()
    length = 400 if number % 250 == 249 else r.below(14)
    for _ in range(length):
        kind = r.below(14)
        if kind <= 3:
            out += r.of(PIECES["words"]).encode()
        elif kind == 4:
            word = r.of(PIECES["words"])
            out += (word.upper() if word.isascii() else word).encode()
        elif kind == 5:
            low, high = r.of(PIECES["ranges"])
            for _ in range(1 + r.below(5)):
                c = low + r.below(high - low)
                out += chr(c).encode() if not 0xD800 <= c < 0xE000 else b"?"
        elif kind == 6:
            out += r.of(PIECES["special"]).encode()
        elif kind == 7:
            out += bytes([ord("a") + r.below(26)]) * (1 + r.below(60))
        elif kind == 8:
            out += r.of(PIECES["blanks"]).encode()
        elif kind == 9:
            out += str(r.below(10 ** (1 + r.below(7)))).encode()
        elif kind == 10:
            out += r.of(PIECES["endings"]).encode()
        elif kind == 11:
            out += r.of(PIECES["emoji"]).encode()
        elif kind == 12:
            out += r.of(PIECES["marks"]).encode()
        else:
            piece = bytes.fromhex(r.of(PIECES["broken"]))
            out += piece if broken else b""
        if r.below(2):
            out += b" "
    return bytes(out)


def generated_text(number):
    return generated_bytes(number).decode("utf-8", errors="replace")


def corpus():
    return [generated_bytes(i, broken=False).decode() for i in range(1_000_000, 1_004_000)]


def trained(model, pre=None, normal=None, post=None, special=(), size=700, added=(), **options):
    tokenizer = Tokenizer(model)
    if normal:
        tokenizer.normalizer = normal
    if pre:
        tokenizer.pre_tokenizer = pre
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False, **options)
    tokenizer.train_from_iterator(corpus(), trainer)
    if added:
        tokenizer.add_tokens(list(added))
    if post:
        tokenizer.post_processor = post(tokenizer)
    return tokenizer


def with_byte_pieces(tokenizer):
    """The same with <0x00> to <0xFF> behind the special tokens, as converters of SentencePiece do."""
    data = json.loads(tokenizer.to_str())
    vocabulary = data["model"]["vocab"]
    names = [f"<0x{b:02X}>" for b in range(256)]
    order = sorted((t for t in vocabulary if t not in names), key=vocabulary.get)
    order = order[:3] + names + order[3:]
    data["model"]["vocab"] = {t: i for i, t in enumerate(order)}
    data["model"]["byte_fallback"] = True
    return data


def template(tokenizer, before, after=""):
    ids = [(t, tokenizer.token_to_id(t)) for t in (before + " " + after).split()]
    single = f"{before} $A {after}".strip()
    pair = f"{before} $A {after} {before}:1 $B:1" + (f" {after}:1" if after else "")
    return processors.TemplateProcessing(single=single, pair=" ".join(pair.split()), special_tokens=ids)


def tokenizers_by_name():
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    byte_level = {"initial_alphabet": alphabet}
    result = {}
    result["gpt2"] = json.loads(trained(
        models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), special=["<|endoftext|>"],
        post=lambda t: processors.ByteLevel(trim_offsets=False), **byte_level).to_str())
    mask = AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    result["roberta"] = json.loads(trained(
        models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=True),
        special=["<s>", "<pad>", "</s>", "<unk>", mask],
        post=lambda t: processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, True),
        added=[AddedToken("Word", single_word=True, normalized=True)], **byte_level).to_str())
    for name, pattern in (("llama3", PATTERN), ("cased", CASED)):
        data = json.loads(trained(
            models.BPE(ignore_merges=True),
            pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
            special=["<s>", "</s>", "<|eot|>"],
            post=lambda t: processors.Sequence([processors.ByteLevel(trim_offsets=True, add_prefix_space=False),
                                                template(t, "<s>")]), **byte_level).to_str())
        # A whole word that no merge makes is still taken whole.
        data["model"]["vocab"]["Ġworldwide"] = len(data["model"]["vocab"])
        result[name] = data
    prepend = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    llama2 = {"special": ["<unk>", "<s>", "</s>"], "size": 900, "max_token_length": 12, "limit_alphabet": 300}
    result["llama2"] = with_byte_pieces(trained(
        models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), normal=prepend,
        pre=pre_tokenizers.Split(Regex("▁"), "merged_with_next"), **llama2))
    result["llama2"]["pre_tokenizer"] = None
    result["llama2"]["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "<s>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    metaspace = json.loads(json.dumps(result["llama2"]))
    metaspace["normalizer"] = None
    metaspace["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    metaspace["model"]["byte_fallback"] = False
    result["metaspace"] = metaspace
    result["folded"] = json.loads(trained(
        models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>", fuse_unk=False),
        pre=pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True),
                                     pre_tokenizers.Punctuation("contiguous")]),
        normal=normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(), normalizers.Replace(Regex(r"\s+"), " "),
                                     normalizers.Lowercase(), normalizers.NFD(), normalizers.StripAccents(),
                                     normalizers.NFC()]),
        special=["[UNK]"], added=[AddedToken("Word", normalized=True), AddedToken("of the", rstrip=True)],
        limit_alphabet=200, end_of_word_suffix="</w>").to_str())
    result["prefixed"] = json.loads(trained(
        models.BPE(unk_token="[UNK]", continuing_subword_prefix="##", fuse_unk=True),
        pre=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous"),
                                     pre_tokenizers.Digits()]),
        normal=normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD()]), special=["[UNK]"],
        limit_alphabet=200, continuing_subword_prefix="##").to_str())
    return result


def line(ids, offsets):
    return ",".join(map(str, ids)) + "|" + ",".join(f"{b}-{e}" for b, e in offsets) + "\n"


def reference_of(data):
    """Of the tokenizers library: ids and offsets."""
    tokenizer = Tokenizer.from_str(json.dumps(data))
    texts = [generated_text(i) for i in range(NUM_TEXTS)]
    lines = [line(e.ids, e.offsets) for e in tokenizer.encode_batch(texts)]
    blocks = []
    for block in range(NUM_BLOCKS):
        total = hashlib.sha256()
        first = 100_000 + block * BLOCK
        for e in tokenizer.encode_batch([generated_text(i) for i in range(first, first + BLOCK)]):
            total.update(line(e.ids, e.offsets).encode())
        blocks.append(total.hexdigest())
    pairs = hashlib.sha256()
    for i in range(0, 200, 2):
        both = tokenizer.encode(texts[i], texts[i + 1])
        pairs.update((",".join(map(str, both.ids)) + "|" + ",".join(map(str, both.type_ids)) + "\n").encode())
    return {"texts": "".join(hashlib.sha256(one.encode()).hexdigest()[:6] for one in lines), "blocks": blocks,
            "pairs": pairs.hexdigest(), "first": [lines[i].strip() for i in range(20)]}


def reference_of_class(data, config):
    """Of AutoTokenizer with a tokenizer_config.json: ids alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "tokenizer.json").write_text(json.dumps(data))
        (path / "tokenizer_config.json").write_text(json.dumps(config))
        tokenizer = AutoTokenizer.from_pretrained(folder)
        total = hashlib.sha256()
        for i in range(NUM_TEXTS):
            cut = {"truncation": True, "max_length": 12} if i % 2 else {}
            total.update((",".join(map(str, tokenizer(generated_text(i), **cut)["input_ids"])) + "\n").encode())
    return total.hexdigest()


CLASSES = {
    "gpt2": [{"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "bos_token": "<|endoftext|>",
              "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}],
    "roberta": [{"tokenizer_class": "RobertaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
                 "sep_token": "</s>", "cls_token": "<s>", "pad_token": "<pad>", "mask_token": "<mask>"}],
    "llama2": [{"tokenizer_class": "LlamaTokenizer", "legacy": False, "add_bos_token": True, "add_eos_token": True,
                "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
               {"tokenizer_class": "LlamaTokenizerFast", "legacy": True, "bos_token": "<s>", "eos_token": "</s>",
                "unk_token": "<unk>"}],
    "llama3": [{"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "<|eot|>"}],
}


def points():
    """Every code point of the planes that hold characters, in runs of 4,096."""
    starts = list(range(0, 0x40000, 4096)) + [0xE0000, 0xF0000, 0x10F000]
    return [[c for c in range(start, start + 4096) if not 0xD800 <= c < 0xE000] for start in starts]


def class_sets():
    """For each property and class of characters a hash over what is left without its members."""
    sets = {}
    names = "L M N P S Z Lu Ll Lt Lm Lo Mn Nd Pc".split()
    for expression in [r"\p{%s}" % name for name in names] + [r"\s", r"\S", r"\d", r"\w", r"[^\s\p{L}\p{N}]"]:
        remover = normalizers.Replace(Regex(expression), "")
        total = hashlib.sha256()
        for run in points():
            total.update(remover.normalize_str("".join(map(chr, run))).encode())
        sets[expression] = total.hexdigest()
    return sets


def normal_forms():
    """For each normalizer a hash over what every code point becomes after a letter and before marks."""
    result = {}
    for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        normalizer = getattr(normalizers, name)()
        total = hashlib.sha256()
        for run in points():
            text = "".join("a" + chr(c) + "\u0323\u0301" + chr(c) + "\n" for c in run)
            total.update(normalizer.normalize_str(text).encode())
        result[name] = total.hexdigest()
    return result


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    reference = {"made_with": {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__},
                 "pieces": PIECES, "num_texts": NUM_TEXTS, "block": BLOCK, "tokenizers": {}, "classes": {}}
    for name, data in tokenizers_by_name().items():
        (HERE / f"{name}.json").write_text(json.dumps(data, ensure_ascii=False) + "\n")
        reference["tokenizers"][name] = reference_of(data)
        reference["classes"][name] = [[config, reference_of_class(data, config)] for config in CLASSES.get(name, [])]
        print(name, len(data["model"]["vocab"]), flush=True)
    reference["sets"] = class_sets()
    reference["normal_forms"] = normal_forms()
    (HERE / "reference.json").write_text(json.dumps(reference, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
