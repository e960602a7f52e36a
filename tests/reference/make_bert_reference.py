#!/usr/bin/env python3
"""Writes bert_values.json: what transformers and PEFT compute with the real MiniLM, for
ymir/tune/trainer/reference_test.cc. Run by hand:

    make_bert_reference.py MODEL_DIR HUTTO_DIR [EXPORTED_ADAPTER] > bert_values.json

MODEL_DIR: `ymir fetch minilm`. HUTTO_DIR: the unpacked hutto_ICWSM_2014.tar.gz of vaderSentiment
3.3.2 (MIT), whose sentences give the token ids. EXPORTED_ADAPTER: the folder that
`YMIR_EXPORT_TO=DIR ymir_tune_test --gtest_filter=Reference.PeftReadsOurExport` leaves; without it
that part of the old file is lost. Needs torch 2.15.0, transformers 5.24.0, peft 0.21.2.

Weights that are not the model's come from a formula, the same in the test: value(k) =
scale * sin(0.37 k + phase), k the position in the flat tensor.
"""
import hashlib
import json
import math
import pathlib
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForSequenceClassification, AutoTokenizer

ROWS, STEPS, BATCH = 72, 20, 8


def by_formula(shape, scale, phase):
    count = math.prod(shape)
    values = [scale * math.sin(0.37 * k + phase) for k in range(count)]
    return torch.tensor(values, dtype=torch.float64).to(torch.float32).reshape(shape)


def token_ids(model_dir, hutto):
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    rows = []
    for name in ("tweets", "amazonReviewSnippets", "movieReviewSnippets", "nytEditorialSnippets"):
        path = next(pathlib.Path(hutto).rglob(f"{name}_GroundTruth.txt"))
        for line in path.read_text("latin-1").splitlines()[100:100 + 7 * ROWS // 4:7]:
            rows.append(tokenizer(line.split("\t")[2], truncation=True, max_length=128)["input_ids"])
    assert len(rows) == ROWS
    return rows


def plain_model(model_dir):
    model = AutoModelForSequenceClassification.from_pretrained(
        model_dir, num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        attn_implementation="eager")
    with torch.no_grad():
        model.classifier.weight.copy_(by_formula((2, model.config.hidden_size), 0.1, 1.0))
        model.classifier.bias.copy_(by_formula((2,), 0.1, 2.0))
    return model


def padded(rows):
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": mask}


def logits(model, rows):
    model.eval()
    with torch.no_grad():
        return [model(**padded([row])).logits[0].tolist() for row in rows]


def trained(model_dir, rows):
    """20 steps of PEFT's LoRA, and the gradient norms of the first."""
    model = get_peft_model(plain_model(model_dir), LoraConfig(
        r=8, lora_alpha=16, lora_dropout=0.0, target_modules=["query", "value"],
        modules_to_save=["classifier"], task_type="SEQ_CLS"))
    phase = 0.0
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            with torch.no_grad():
                parameter.copy_(by_formula(parameter.shape, 0.05 if "lora_A" in name else 0.02, phase))
            phase += 1.0
    model.train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.0)
    losses, norms = [], {}
    for step in range(STEPS):
        at = step * BATCH % ROWS
        labels = torch.tensor([row % 2 for row in range(at, at + BATCH)])
        loss = model(**padded(rows[at:at + BATCH]), labels=labels).loss
        loss.backward()
        if step == 0:
            norms = {name.replace(".default", "").replace("modules_to_save.", ""):
                     parameter.grad.norm().item()
                     for name, parameter in model.named_parameters() if parameter.requires_grad}
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, norms


def exported(model_dir, folder, rows):
    model = PeftModel.from_pretrained(plain_model(model_dir), folder)
    data = pathlib.Path(folder, "adapter_model.safetensors").read_bytes()
    return {"sha256": hashlib.sha256(data).hexdigest(), "logits": logits(model, rows)}


def main(model_dir, hutto, folder=None):
    torch.set_num_threads(1)
    rows = token_ids(model_dir, hutto)
    losses, norms = trained(model_dir, rows)
    out = {"ids": rows, "logits": logits(plain_model(model_dir), rows), "losses": losses,
           "gradient_norms": norms}
    if folder:
        out["exported"] = exported(model_dir, folder, rows)
    print(json.dumps(out, separators=(",", ":")))


if __name__ == "__main__":
    main(*sys.argv[1:])
