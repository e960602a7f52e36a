#!/usr/bin/env python3
"""Trains a LoRA adapter on a LLaMA-2-7B-sized model with generated bf16 weights, a few steps of one
row of 64 tokens, and prints what that took: time to the first step with and without the backbone
image at hand, seconds a step, and memory apart from the mapped weights.

    python3 bench/large/large.py --bin build/release/bin --work DIR [--layers 32] [--threads 2]

Needs twice the weights' size (2 x 13.5 GB) on disk below DIR and about their size of memory; removes
what it wrote. Numbers of a run depend on what of the files lies in the page cache: --cold drops ours
from it between the starts.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import time

HIDDEN, FFN, HEADS, WORDS = 4096, 11008, 32, 32000
ROOT = pathlib.Path(__file__).resolve().parents[2]


def shapes(layers):
    yield "model.embed_tokens.weight", (WORDS, HIDDEN)
    for layer in range(layers):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (HIDDEN,)
        for name in "qkvo":
            yield f"{at}self_attn.{name}_proj.weight", (HIDDEN, HIDDEN)
        yield at + "post_attention_layernorm.weight", (HIDDEN,)
        yield at + "mlp.gate_proj.weight", (FFN, HIDDEN)
        yield at + "mlp.up_proj.weight", (FFN, HIDDEN)
        yield at + "mlp.down_proj.weight", (HIDDEN, FFN)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (WORDS, HIDDEN)


def bf16(value):
    return struct.pack("<f", value)[2:]


def write_weights(path, layers):
    """Every matrix from one block of normal numbers, begun at another place each time."""
    rng = random.Random(7)
    block = b"".join(bf16(rng.gauss(0, 0.02)) for _ in range(1 << 20)) * 16
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes(layers):
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes(layers):
            if len(shape) == 1:
                out.write(bf16(1.0) * shape[0])
                continue
            left, at = 2 * shape[0] * shape[1], 2 * rng.randrange(1 << 20)
            while left > 0:
                piece = block[at:at + left]
                out.write(piece)
                left, at = left - len(piece), 0
    return offset


def prepare(work, layers):
    model = work / "model"
    model.mkdir(parents=True)
    size = write_weights(model / "model.safetensors", layers)
    (model / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FFN, "num_hidden_layers": layers,
        "num_attention_heads": HEADS, "vocab_size": WORDS, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5}))
    shutil.copy(ROOT / "tests/reference/bpe/llama2.json", model / "tokenizer.json")
    (model / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "LlamaTokenizer", "eos_token": "</s>", "bos_token": "<s>"}')
    words = "the of and to in a is that for it as was with be by on not he his but at are this have".split()
    rng = random.Random(3)
    for name, rows in (("train", 8), ("validation", 1)):
        (work / f"{name}.jsonl").write_text("".join(
            json.dumps({"text": " ".join(rng.choices(words, k=80))}) + "\n" for _ in range(rows)))
    (work / "job.yaml").write_text(
        "backbone: {model: model}\ntask: {kind: lm}\n"
        "data: {train: train.jsonl, validation: validation.jsonl, format: jsonl, max_length: 64}\n"
        "method: {rank: 8, targets: [q_proj, v_proj]}\n"
        "train: {batch: 1, lr: 1.0e-4, precision: bf16}\nstop: {max_steps: 3}\n"
        "evaluate: {every: 3 steps}\n")
    return size


def memory(pid):
    fields = {}
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith(("RssAnon", "RssFile")):
                fields[line.split(":")[0]] = int(line.split()[1]) * 1024
    except OSError:
        pass
    return fields.get("RssAnon", 0), fields.get("RssFile", 0)


def worker_of(parent):
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = open(f"/proc/{entry}/stat").read()
            except OSError:
                continue
            if stat.split(")")[1].split()[1] == str(parent):
                return int(entry)
    return None


def train(arguments, out):
    """Seconds to the first step, of each step, and the largest memory: private, of files."""
    begin = time.monotonic()
    process = subprocess.Popen(
        [f"{arguments.bin}/ymir", "--json", "train", str(arguments.work / "job.yaml"), "--out", str(out),
         "--threads", str(arguments.threads)],
        stdout=subprocess.PIPE, env=dict(os.environ, YMIR_CACHE=str(arguments.work / "cache")))
    os.set_blocking(process.stdout.fileno(), False)
    text, steps, private, mapped, worker = "", [], 0, 0, None
    while process.poll() is None:
        worker = worker or worker_of(process.pid)
        if worker:
            now = memory(worker)
            private, mapped = max(private, now[0]), max(mapped, now[1])
        text += (process.stdout.read() or b"").decode()
        while "\n" in text:
            line, text = text.split("\n", 1)
            if '"loss"' in line and '"lr"' in line:
                steps.append((time.monotonic() - begin, line))
        time.sleep(0.02)
    if process.returncode != 0 or not steps:
        sys.exit("training failed")
    times = [at for at, _ in steps]
    return times[0], [b - a for a, b in zip(times, times[1:])], private, mapped


def drop_from_cache(folder):
    for path in folder.rglob("*.safetensors"):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cold", action="store_true")
    arguments = parser.parse_args()
    if arguments.work.exists():
        sys.exit(f"{arguments.work} exists")
    try:
        size = prepare(arguments.work, arguments.layers)
        print(f"weights: {size / 1e9:.2f} GB in bf16, {arguments.layers} layers")
        for start in ("first start", "second start"):
            if arguments.cold:
                drop_from_cache(arguments.work)
            first, rest, private, mapped = train(arguments, arguments.work / start.replace(" ", "-"))
            print(f"{start}: first step done after {first:.1f} s, then {min(rest):.2f} s a step at best "
                  f"({', '.join(f'{s:.2f}' for s in rest)}); private memory {private / 1e9:.2f} GB, "
                  f"of files {mapped / 1e9:.2f} GB", flush=True)
    finally:
        shutil.rmtree(arguments.work, ignore_errors=True)


if __name__ == "__main__":
    main()
