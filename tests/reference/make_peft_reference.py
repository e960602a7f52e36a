#!/usr/bin/env python3
"""Writes tests/reference/peft/: an adapter folder as PEFT itself saves it, over a tiny random BERT.

    python3 tests/reference/make_peft_reference.py            writes it
    python3 tests/reference/make_peft_reference.py --load DIR loads an adapter of ours with PEFT, over
                                                              the same tiny BERT, and prints its tensors

Needs torch, transformers and peft (their versions go into versions.json). Not run by CI.
"""
import argparse
import json
import pathlib
import shutil

import peft
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import BertConfig, BertForSequenceClassification

HERE = pathlib.Path(__file__).parent / "peft"


def tiny_bert():
    torch.manual_seed(7)
    return BertForSequenceClassification(BertConfig(
        vocab_size=64, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, num_labels=3))


def write():
    shutil.rmtree(HERE, ignore_errors=True)
    model = get_peft_model(tiny_bert(), LoraConfig(
        r=2, lora_alpha=4, target_modules=["query", "value"], task_type="SEQ_CLS"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    model.save_pretrained(HERE)
    for path in HERE.iterdir():  # only what the tests read
        if path.name not in ("adapter_config.json", "adapter_model.safetensors"):
            path.unlink()
    (HERE / "versions.json").write_text(json.dumps(
        {"peft": peft.__version__, "torch": torch.__version__,
         "transformers": transformers.__version__}, indent=1) + "\n")


def load(folder):
    model = PeftModel.from_pretrained(tiny_bert(), folder)
    for name, tensor in sorted(peft.get_peft_model_state_dict(model).items()):
        print(name, list(tensor.shape), float(tensor.double().sum()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    arguments = parser.parse_args()
    if arguments.load:
        load(arguments.load)
    else:
        write()


if __name__ == "__main__":
    main()
