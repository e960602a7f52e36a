#!/usr/bin/env python3
"""Training tokens/s of Ymir and of transformers + PEFT, side by side. See README.md."""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROWS, TOKENS, BATCH = 320, 64, 16


def write_rows(path, model):
    """Rows of single-token words, longer than 64 tokens, so that every row is cut to exactly 64."""
    vocabulary = pathlib.Path(model, "vocab.txt").read_text("utf-8").splitlines()
    words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 2]
    rng = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        file.write("text,label\n")
        for row in range(ROWS):
            file.write(" ".join(rng.choices(words, k=80)) + f",{'ab'[row % 2]}\n")


def ymir(args, work, dropout):
    out = work / "ymir"
    shutil.rmtree(out, ignore_errors=True)
    spec = {"name": "bench", "model": str(args.model), "kind": "classify",
            "data": {"train": [str(work / "rows.csv")], "validation": [str(work / "few.csv")],
                     "format": "csv", "max_length": TOKENS},
            "method": {"kind": "lora", "rank": 8, "alpha": 16, "targets": ["query", "value"]},
            "train": {"batch": BATCH, "lr": 1e-3, "dropout": dropout, "schedule": "constant",
                      "precision": args.precision},
            "stop": {"max_epochs": 0, "max_steps": args.steps}, "evaluate_steps": 10 * args.steps,
            "checkpoint_every": 0}
    (work / "spec.json").write_text(json.dumps(spec))
    subprocess.run([args.worker, "--train", work / "spec.json", "--out", out, "--cache",
                    work / "cache", "--threads", str(args.threads)], check=True,
                   stderr=subprocess.DEVNULL, env=environment(args))
    times = [json.loads(line)["time_s"] for line in open(out / "metrics.jsonl") if "loss" in line
             and "time_s" in line]
    return [b - a for a, b in zip(times, times[1:])][2:] or [0.0]


def ymir_cpu(args, work, dropout):
    """CPU seconds a step: the difference of two runs, so that start and end cancel."""
    import resource
    spent = []
    for steps in (3, 3 + args.steps):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ymir(argparse.Namespace(**{**vars(args), "steps": steps}), work, dropout)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return [(spent[1] - spent[0]) / args.steps]


def environment(args):
    return {**os.environ, "OMP_NUM_THREADS": str(args.threads)}


def peft(args, work, dropout, attention):
    command = [sys.executable, __file__, "--model", args.model, "--worker", args.worker,
               "--steps", str(args.steps), "--threads", str(args.threads), "--precision",
               args.precision, *(["--cpu"] if args.cpu else []), "--peer", f"{work / 'rows.csv'},{dropout},{attention}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment(args))
    return json.loads(done.stdout.splitlines()[-1])


def peft_process(args):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    rows, dropout, attention = args.peer.split(",")
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    lines = open(rows, encoding="utf-8").read().splitlines()[1:]
    texts, labels = zip(*(line.rsplit(",", 1) for line in lines))
    ids = torch.tensor(tokenizer(list(texts), truncation=True, max_length=TOKENS)["input_ids"])
    assert ids.shape == (ROWS, TOKENS)
    labels = torch.tensor(["ab".index(label) for label in labels])
    model = get_peft_model(
        AutoModelForSequenceClassification.from_pretrained(
            args.model, num_labels=2, attn_implementation=attention,
            hidden_dropout_prob=float(dropout), attention_probs_dropout_prob=float(dropout)),
        LoraConfig(r=8, lora_alpha=16, target_modules=["query", "value"],
                   modules_to_save=["classifier"], task_type="SEQ_CLS"))
    model.train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.0)
    clock = time.process_time if args.cpu else time.perf_counter
    mask, seconds = torch.ones(BATCH, TOKENS, dtype=torch.long), []
    for step in range(args.steps):
        at = step * BATCH % ROWS
        start = clock()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            loss = model(input_ids=ids[at:at + BATCH], attention_mask=mask,
                         labels=labels[at:at + BATCH]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        seconds.append(clock() - start)
    print(json.dumps(seconds[3:]))


def compare(args, work, dropout):
    settings = {"ymir": lambda: (ymir_cpu if args.cpu else ymir)(args, work, dropout),
                "peft eager": lambda: peft(args, work, dropout, "eager"),
                "peft sdpa": lambda: peft(args, work, dropout, "sdpa")}
    steps = {name: [] for name in settings}
    for repeat in range(args.repeats):
        for name, run in settings.items():
            seconds = run()
            steps[name].append(seconds)
            print(f"  dropout {dropout} repeat {repeat} {name:10}: "
                  f"median {BATCH * TOKENS / statistics.median(seconds):6.0f}  "
                  f"best {BATCH * TOKENS / min(seconds):6.0f} tokens/s  "
                  f"load {os.getloadavg()[0]:.1f}", flush=True)
    best = {name: BATCH * TOKENS / min(min(s) for s in runs) for name, runs in steps.items()}
    middle = {name: BATCH * TOKENS / statistics.median(statistics.median(s) for s in runs)
              for name, runs in steps.items()}
    for label, figures in (("best", best), ("median", middle)):
        peer = max(figures["peft eager"], figures["peft sdpa"])
        print(f"dropout {dropout} {label}: ymir {figures['ymir']:.0f}, peft eager "
              f"{figures['peft eager']:.0f}, sdpa {figures['peft sdpa']:.0f} tokens/s; ratio "
              f"{figures['ymir'] / peer:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--cpu", action="store_true",
                        help="tokens per CPU-second: for a machine that others use, too")
    parser.add_argument("--dropout", type=float, action="append", help="default: 0 and 0.1")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peft_process(args)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        write_rows(work / "rows.csv", args.model)
        (work / "few.csv").write_text("text,label\ngood,a\nbad,b\nold,a\nnew,b\n")
        for dropout in args.dropout or (0.0, 0.1):
            compare(args, work, dropout)


if __name__ == "__main__":
    main()
