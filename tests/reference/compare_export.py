#!/usr/bin/env python3
"""Loads an adapter that `ymir train` exported with PEFT and compares the loss on rows of text with what
`ymir eval` gives: the check that the files mean the same to both.

    python3 tests/reference/compare_export.py --bin build/release/bin [--family llama|vit|roberta|distilbert]

Makes a small random model, trains it with the program and prints both losses. Needs transformers, peft
and torch. Not run by CI.
"""
import argparse
import json
import pathlib
import random
import shutil
import subprocess
import tempfile

import numpy
import torch
import transformers as hf
from peft import PeftModel

HERE = pathlib.Path(__file__).parent
WORDS = "the of and to in that for people time with was be by on not he his but at are this have".split()


def model_of(family):
    small = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)
    if family == "llama":
        return hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=1155, num_key_value_heads=2,
                                                  max_position_embeddings=128, **small))
    if family == "roberta":
        return hf.RobertaForSequenceClassification(hf.RobertaConfig(
            vocab_size=700, max_position_embeddings=66, type_vocab_size=1, num_labels=2, **small))
    if family == "distilbert":
        return hf.DistilBertForSequenceClassification(hf.DistilBertConfig(
            vocab_size=700, dim=64, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=64, num_labels=2))
    return hf.ViTForImageClassification(hf.ViTConfig(image_size=16, patch_size=4, num_labels=2, **small))


def write_rows(family, path, count, seed):
    rng = random.Random(seed)
    if family == "vit":
        rows = []
        for _ in range(count):
            right = rng.random() < 0.5
            rows.append(",".join(str(rng.randrange(120, 256) if (x >= 8) == right else rng.randrange(130))
                                 for _ in range(16) for x in range(16)) + (",1" if right else ",0"))
        path.write_text("\n".join(rows) + "\n")
        return
    lines = []
    for _ in range(count):
        words = [rng.choice(WORDS[9:]) for _ in range(rng.randrange(4, 12))]
        label = rng.randrange(2)
        words[rng.randrange(len(words))] = ["people", "time"][label]
        lines.append(json.dumps({"text": " ".join(words), "label": label}))
    path.write_text("\n".join(lines) + "\n")


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def peft_loss(family, folder, rows):
    if family == "vit":
        table = numpy.loadtxt(rows, delimiter=",")
        pixels = torch.tensor(table[:, :-1].reshape(-1, 1, 16, 16) / 255).float().repeat(1, 3, 1, 1)
        model = hf.ViTForImageClassification.from_pretrained(folder / "model", num_labels=2)
        model = PeftModel.from_pretrained(model, folder / "run/adapter").eval()
        with torch.no_grad():
            logits = model(pixel_values=(pixels - 0.5) / 0.5).logits
        return torch.nn.functional.cross_entropy(logits, torch.tensor(table[:, -1]).long()).item()
    tokenizer = hf.AutoTokenizer.from_pretrained(folder / "model")
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    kind = hf.AutoModelForCausalLM if family == "llama" else hf.AutoModelForSequenceClassification
    model = PeftModel.from_pretrained(kind.from_pretrained(folder / "model"), folder / "run/adapter").eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for line in lines:
            if family == "llama":
                ids = torch.tensor([tokenizer(line["text"] + tokenizer.eos_token)["input_ids"]])
                logits = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
                total -= logits.gather(1, ids[0, 1:, None]).sum().item()
                count += ids.shape[1] - 1
            else:
                ids = torch.tensor([tokenizer(line["text"])["input_ids"]])
                logits = model(input_ids=ids).logits
                total += torch.nn.functional.cross_entropy(logits, torch.tensor([line["label"]])).item()
                count += 1
    return total / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--family", default="llama", choices=["llama", "vit", "roberta", "distilbert"])
    options = parser.parse_args()
    family, program = options.family, options.bin + "/ymir"
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = model_of(family)
        model.save_pretrained(folder / "model")
        if family != "vit":
            shutil.copy(HERE / "bpe" / ("llama2.json" if family == "llama" else "roberta.json"),
                        folder / "model/tokenizer.json")
            (folder / "model/tokenizer_config.json").write_text(json.dumps(
                {"tokenizer_class": "LlamaTokenizer", "eos_token": "</s>", "bos_token": "<s>"} if family == "llama"
                else {"tokenizer_class": "RobertaTokenizer"}))
        for part, count in (("train", 160), ("validation", 40)):
            write_rows(family, folder / part, count, len(part))
        format = "pixels" if family == "vit" else "jsonl"
        columns = "" if family == "vit" else ", columns: {text: text}" if family == "llama" else ""
        (folder / "job.yaml").write_text(
            f"backbone: {{model: model}}\ntask: {{kind: {'lm' if family == 'llama' else 'classify'}}}\n"
            f"data: {{train: train, validation: validation, format: {format}{columns}}}\n"
            "train: {batch: 16, lr: 3.0e-3}\nstop: {max_epochs: 4}\nevaluate: {metrics: [loss]}\n")
        run(program, "train", str(folder / "job.yaml"), "--out", str(folder / "run"))
        ours = json.loads(run(program, "eval", "--model", str(folder / "model"), "--adapter",
                              str(folder / "run/adapter"), "--data", str(folder / "validation"), "--format", format))
        theirs = peft_loss(family, folder, folder / "validation")
        print(f"{family}: ymir eval {ours['loss']:.6f}, PEFT {theirs:.6f}, apart {abs(ours['loss'] - theirs):.1e}")


if __name__ == "__main__":
    main()
