#!/usr/bin/env python3
"""One transformers + PEFT process of a comparison: reads its setting as JSON, prints JSON.

Modes: steps (a plain loop over given batches), trainer (transformers' Trainer over one epoch),
first_step (ends after one step), hold (steps, then waits with its memory). See README.md.
"""
import csv
import json
import sys
import time


def load(setting):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    torch.set_num_threads(setting["threads"])
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(setting["model"])
    with open(setting["rows"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = sorted({row["label"] for row in rows})
    labels = [names.index(row["label"]) for row in rows]
    ids = tokenizer([row["text"] for row in rows], truncation=True,
                    max_length=setting["max_length"])["input_ids"]
    options = {}
    if setting["dropout"] is not None:
        options = {"hidden_dropout_prob": setting["dropout"],
                   "attention_probs_dropout_prob": setting["dropout"]}
    model = AutoModelForSequenceClassification.from_pretrained(
        setting["model"], num_labels=len(names), attn_implementation=setting["attention"], **options)
    if setting["method"] == "lora":
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(
            r=8, lora_alpha=16, target_modules=["query", "value"],
            layers_to_transform=setting.get("layers"), modules_to_save=["classifier"],
            task_type="SEQ_CLS"))
    model.train()
    return model, tokenizer, ids, labels


def steps(setting, hold=False):
    import torch
    model, tokenizer, ids, labels = load(setting)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=setting["lr"], weight_decay=0.0)
    batch, seconds, tokens, losses = setting["batch"], [], [], []
    for step in range(setting["steps"]):
        at = step * batch % (len(ids) - batch + 1)
        part = ids[at:at + batch]
        longest = max(map(len, part))
        start = time.perf_counter()
        padded = torch.tensor([row + [tokenizer.pad_token_id] * (longest - len(row)) for row in part])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in part])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=setting["precision"] == "bf16"):
            loss = model(input_ids=padded, attention_mask=mask,
                         labels=torch.tensor(labels[at:at + batch])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
        tokens.append(sum(map(len, part)))
    print(json.dumps({"seconds": seconds, "tokens": tokens, "losses": losses}), flush=True)
    if hold:
        sys.stdin.read()


def trainer(setting):
    import torch
    from transformers import DataCollatorWithPadding, Trainer, TrainingArguments
    model, tokenizer, ids, labels = load(setting)
    data = [{"input_ids": row, "attention_mask": [1] * len(row), "labels": label}
            for row, label in zip(ids, labels)]
    strategy = "group_by_length" if setting["group"] else "random"
    arguments = TrainingArguments(
        output_dir=setting["out"], num_train_epochs=1, per_device_train_batch_size=setting["batch"],
        learning_rate=setting["lr"], report_to=[], save_strategy="no", logging_strategy="no",
        disable_tqdm=True, use_cpu=True, train_sampling_strategy=strategy,
        bf16=setting["precision"] == "bf16", dataloader_pin_memory=False)
    run = Trainer(model=model, args=arguments, train_dataset=data,
                  data_collator=DataCollatorWithPadding(tokenizer))
    torch.set_num_threads(setting["threads"])
    start = time.perf_counter()
    result = run.train()
    print(json.dumps({"seconds": time.perf_counter() - start, "loss": result.training_loss,
                      "tokens": sum(map(len, ids))}), flush=True)


def main():
    setting = json.loads(sys.argv[1])
    mode = setting["mode"]
    if mode == "trainer":
        trainer(setting)
    else:
        steps({**setting, "steps": 1} if mode == "first_step" else setting, hold=mode == "hold")


if __name__ == "__main__":
    main()
