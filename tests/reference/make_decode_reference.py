#!/usr/bin/env python3
"""Writes tests/reference/decode_values.json: what AutoTokenizer.decode gives for lists of ids, for the
tokenizers of tests/reference/bpe, for the tests to equal.

    python3 tests/reference/make_decode_reference.py

Needs transformers (its version goes into the file). Not run by CI.
"""
import hashlib
import json
import pathlib
import tempfile

import transformers
from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
# The configuration that is in force, and a decoder where the file of the tests has none of its own
# and the class brings none.
CASES = {
    "gpt2": ({"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>"}, None),
    "roberta": ({"tokenizer_class": "RobertaTokenizer"}, None),
    "llama3": ({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|eot|>"}, BYTE_LEVEL),
    "llama2": ({"tokenizer_class": "LlamaTokenizer", "legacy": False, "bos_token": "<s>", "eos_token": "</s>",
                "unk_token": "<unk>"}, None),
}
MASK = (1 << 64) - 1


def lists(vocabulary, count):
    """Lists of up to 24 ids by splitmix64, as the test makes them."""
    state = 5
    def below(n):
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return (z ^ z >> 31) % n
    return [[below(vocabulary) for _ in range(below(25))] for _ in range(count)]


def main():
    values = {"made_with": {"transformers": transformers.__version__}, "count": 2000, "cases": {}}
    for name, (config, decoder) in CASES.items():
        data = json.loads((HERE / "bpe" / f"{name}.json").read_text())
        if decoder:
            data["decoder"] = decoder
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "tokenizer.json").write_text(json.dumps(data))
            (path / "tokenizer_config.json").write_text(json.dumps(config))
            tokenizer = AutoTokenizer.from_pretrained(folder)
        size = len(data["model"]["vocab"])
        texts = [tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
                 for ids in lists(size, values["count"])]
        total = hashlib.sha256()
        for text in texts:
            total.update(text.encode() + b"\n")
        values["cases"][name] = {"config": config, "vocabulary": size, "sha256": total.hexdigest(), "first": texts[:40]}
    (HERE / "decode_values.json").write_text(json.dumps(values, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
