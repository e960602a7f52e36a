#!/usr/bin/env python3
"""The speed table: Ymir beside transformers + PEFT, one markdown row a comparison.

    VENV/bin/python table.py --model MODEL --worker ymir-worker [--sentences CSV] [--row NAME ...]

The programs take turns, each repeat in a process of its own; figures are medians over the repeats.
See README.md.
"""
import argparse
import contextlib
import csv
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROWS, TOKENS, BATCH = 320, 64, 16
TOP_TWO = [f"layer.{layer}.attention.self.{site}" for layer in (4, 5) for site in ("query", "value")]


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.fixed, self.sentences = work / "fixed.csv", work / "sentences.csv"
        write_fixed(self.fixed, args.model, ROWS)
        write_sentences(self.sentences, args.sentences, args.model)
        write_few(self.few(self.fixed), self.fixed)
        write_few(self.few(self.sentences), self.sentences)

    def few(self, rows):
        """Validation of a job on these rows; a speed needs none, a job file does."""
        return self.work / ("few.csv" if rows == self.fixed else "few-sentences.csv")

    def spec(self, rows=None, dropout=0.0, precision="f32", steps=0, epochs=0, targets=None,
             method="lora", seed=1, max_length=TOKENS, schedule="constant", lr=1e-3):
        rows = rows or self.fixed
        kind = {"kind": "full"} if method == "full" else {
            "kind": "lora", "rank": 8, "alpha": 16, "targets": targets or ["query", "value"]}
        train = {"batch": BATCH, "lr": lr, "schedule": schedule, "precision": precision}
        if dropout is not None:
            train["dropout"] = dropout
        return {"name": "bench", "model": str(self.args.model), "kind": "classify",
                "data": {"train": [str(rows)], "validation": [str(self.few(rows))], "format": "csv",
                         "max_length": max_length},
                "method": kind, "train": train, "seed": seed,
                "stop": {"max_epochs": epochs, "max_steps": steps},
                "evaluate_steps": 1000000, "checkpoint_every": 0}

    def worker(self, threads):
        return Worker(self.args.worker, str(self.work / "cache"), threads)

    def ymir(self, specs, threads, name="out"):
        """Runs the specs as one order; the reports of its steps, in order."""
        with self.worker(threads) as worker:
            return worker.train(specs, self.work / name, threads)

    def peft(self, mode="steps", rows=None, dropout=0.0, precision="f32", steps=20, threads=1,
             attention="sdpa", **more):
        setting = {"mode": mode, "model": str(self.args.model), "max_length": TOKENS,
                   "rows": str(rows or self.fixed), "dropout": dropout,
                   "precision": precision, "steps": steps, "threads": threads, "batch": BATCH,
                   "attention": attention, "method": "lora", "lr": 1e-3,
                   "out": str(self.work / "trainer"), **more}
        command = [sys.executable, str(HERE / "peft_side.py"), json.dumps(setting)]
        return command, environment(threads)

    def peft_result(self, **setting):
        command, env = self.peft(**setting)
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
        return json.loads(done.stdout.splitlines()[-1])


class Worker:
    def __init__(self, program, cache, threads):
        mine, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [program, "--fd", str(theirs.fileno()), "--cache", cache, "--threads", str(threads)],
            pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL, env=environment(threads))
        theirs.close()
        self.socket, self.lines, self.runs = mine, mine.makefile("r"), 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def start(self, specs, folder, threads):
        self.runs += 1
        tasks = [{"job": f"j{self.runs * 100 + i}", "spec": spec,
                  "folder": f"{folder}-{self.process.pid}-{self.runs}-{i}"}
                 for i, spec in enumerate(specs)]
        body = {"run": f"r0.{self.runs}", "tasks": tasks, "num_threads": threads}
        line = json.dumps({"kind": "StartRun", "v": 1, "body": body}) + "\n"
        self.socket.sendall(line.encode())

    def reports(self):
        for line in self.lines:
            report = json.loads(line)
            if report["kind"] == "RunLost":
                raise SystemExit("the run was lost: " + report["body"]["why"])
            yield report["kind"], report["body"]
            if report["kind"] == "RunStopped":
                return

    def train(self, specs, folder, threads):
        self.start(specs, folder, threads)
        steps = {}  # a worker that is busy otherwise tells its newest step again
        for kind, body in self.reports():
            if kind == "StepReport":
                steps[body["job"], body["step"]] = body
        return list(steps.values())


def environment(threads):
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1"}


def write_fixed(path, model, rows):
    """Rows of single-token words, longer than 64 tokens, so that every row is cut to exactly 64."""
    vocabulary = pathlib.Path(model, "vocab.txt").read_text("utf-8").splitlines()
    words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 2]
    rng = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        file.write("text,label\n")
        for row in range(rows):
            file.write(" ".join(rng.choices(words, k=80)) + f",{'ab'[row % 2]}\n")


def write_sentences(path, source, model, most=1600):
    """`source` as text,label; without one, rows with the lengths of short reviews."""
    if source:
        with open(source, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        random.Random(1).shuffle(rows)
        rows = [(row["text"], row["label"]) for row in rows[:most]]
    else:
        vocabulary = pathlib.Path(model, "vocab.txt").read_text("utf-8").splitlines()
        words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 2]
        rng = random.Random(1)
        rows = []
        for row in range(most):
            length = max(3, min(60, int(rng.lognormvariate(2.9, 0.55))))
            text = rng.choices(words, k=length)
            text[rng.randrange(length)] = "good" if row % 2 else "bad"
            rows.append((" ".join(text), "ab"[row % 2]))
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])


def write_few(path, rows):
    """Two rows of each label."""
    with open(rows, encoding="utf-8", newline="") as file:
        by_label = {}
        for row in csv.DictReader(file):
            by_label.setdefault(row["label"], []).append(("a " + row["text"], row["label"]))
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label")] + [r for l in by_label.values() for r in l[:2]])


def turns(args, programs):
    """name -> what it returned, `repeats` times, in turns."""
    results = {name: [] for name in programs}
    for repeat in range(args.repeats):
        for name, run in programs.items():
            results[name].append(run())
            print(f"  {name} {repeat}: {results[name][-1]:.4g}  load {os.getloadavg()[0]:.1f}",
                  file=sys.stderr, flush=True)
    return {name: statistics.median(values) for name, values in results.items()}


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def rate(steps, skip=3):
    """Tokens a second of the median step."""
    return statistics.median(s["tokens"] / s["seconds"] for s in steps[skip:])


def peft_rate(result, skip=3):
    return statistics.median(t / s for t, s in list(zip(result["tokens"], result["seconds"]))[skip:])


def fixed(bench, precision, label, method="lora", goal=1.5, dropouts=(0.0, 0.1), threads=(1, 2)):
    for count in threads:
        for dropout in dropouts:
            steps = bench.args.steps
            spec = bench.spec(dropout=dropout, precision=precision, steps=steps, method=method,
                              lr=1e-3 if method == "lora" else 5e-5)
            middle = turns(bench.args, {
                "ymir": lambda: rate(bench.ymir([spec], count)),
                **{f"peft {attention}": lambda attention=attention: peft_rate(bench.peft_result(
                    dropout=dropout, precision=precision, threads=count, attention=attention,
                    steps=steps, method=method)) for attention in ("eager", "sdpa")}})
            peer = max(middle["peft eager"], middle["peft sdpa"])
            row(f"{label}, {precision}, dropout {dropout:g}, {count} thread{'s' * (count > 1)}",
                f"{middle['ymir']:,.0f} tok/s", f"{peer:,.0f} tok/s",
                f"{middle['ymir'] / peer:.2f}", goal)


def sentences(bench):
    for group in (False, True):
        def ymir():
            spec = bench.spec(rows=bench.sentences, dropout=None, epochs=1, schedule="linear")
            steps = bench.ymir([spec], 1)
            ymir.loss = statistics.fmean(s["loss"] for s in steps)
            return sum(s["seconds"] for s in steps)

        def peer():
            result = bench.peft_result(mode="trainer", rows=bench.sentences, dropout=None,
                                       group=group)
            peer.loss = result["loss"]
            return result["seconds"]

        middle = turns(bench.args, {"ymir": ymir, "peft": peer})
        name = "group_by_length" if group else "Trainer's defaults"
        row(f"sentences, one epoch, batch 16, f32, 1 thread, against {name}",
            f"{middle['ymir']:.1f} s, mean loss {ymir.loss:.3f}",
            f"{middle['peft']:.1f} s, mean loss {peer.loss:.3f}",
            f"{middle['peft'] / middle['ymir']:.2f}", 2 if group else 3)


def top_two(bench):
    epoch = ROWS // BATCH
    spec = bench.spec(dropout=0.1, steps=3 * epoch, targets=TOP_TWO)
    middle = turns(bench.args, {
        "ymir": lambda: rate(bench.ymir([spec], 1), skip=epoch),
        **{f"peft {attention}": lambda attention=attention: peft_rate(bench.peft_result(
            dropout=0.1, layers=[4, 5], attention=attention, steps=epoch)) for attention in ("eager", "sdpa")}})
    peer = max(middle["peft eager"], middle["peft sdpa"])
    row("LoRA in the top 2 of 6 layers, 16 x 64, f32, dropout 0.1, epochs 2.., 1 thread",
        f"{middle['ymir']:,.0f} tok/s", f"{peer:,.0f} tok/s", f"{middle['ymir'] / peer:.2f}", 4)


def four(bench):
    for rows, label in ((bench.sentences, "sentences, batch 16"), (bench.fixed, "16 x 64")):
        specs = [bench.spec(rows=rows, dropout=0.1, steps=bench.args.steps, seed=seed) for seed in (1, 2, 3, 4)]

        def together():
            steps = bench.ymir(specs, 1)[12:]
            return sum(s["tokens"] for s in steps) / sum(s["seconds"] for s in steps)

        def in_turns():
            with bench.worker(1) as worker:
                steps = [step for spec in specs
                         for step in worker.train([spec], bench.work / "turn", 1)[3:]]
            return sum(s["tokens"] for s in steps) / sum(s["seconds"] for s in steps)

        def peer(attention):
            tokens = seconds = 0
            for _ in specs:
                result = bench.peft_result(rows=rows, dropout=0.1, steps=bench.args.steps, attention=attention)
                tokens += sum(result["tokens"][3:])
                seconds += sum(result["seconds"][3:])
            return tokens / seconds

        middle = turns(bench.args, {"ymir": together, "ymir in turns": in_turns,
                                    "peft": lambda: peer("eager")})
        row(f"4 adapters in one batch, {label}, f32, dropout 0.1, 1 thread (one after another: "
            f"{middle['ymir in turns']:,.0f} tok/s)", f"{middle['ymir']:,.0f} tok/s",
            f"{middle['peft']:,.0f} tok/s", f"{middle['ymir'] / middle['peft']:.2f}", 2)


def first_step(bench):
    """From the order to the first step's begin, and to its end, of a job with rows of its own."""
    with bench.worker(1) as worker:
        worker.train([bench.spec(steps=2)], bench.work / "warm", 1)
        number = iter(range(1000))

        def ymir():
            rows = bench.work / f"new{next(number)}.csv"
            rows.write_text(bench.sentences.read_text("utf-8") + f"row {rows.name},{label_of(bench)}\n")
            spec = bench.spec(rows=rows, steps=1, seed=7)
            begin = time.perf_counter()
            worker.start([spec], bench.work / "further", 1)
            first = None
            for kind, body in worker.reports():
                if kind == "StepReport" and first is None:
                    first = time.perf_counter() - begin
                    ymir.begin.append(first - body["seconds"])
            return first
        ymir.begin = []

        def peer():
            command, env = bench.peft(mode="first_step", rows=bench.sentences)
            begin = time.perf_counter()
            result = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
            whole = time.perf_counter() - begin
            peer.begin.append(whole - json.loads(result.stdout.splitlines()[-1])["seconds"][0])
            return whole
        peer.begin = []

        middle = turns(bench.args, {"ymir": ymir, "peft": peer})
    mine, theirs = statistics.median(ymir.begin), statistics.median(peer.begin)
    row("order of a further job (1,600 new rows, tokenised) to its first step's begin, warm worker "
        "against a new process", f"{mine * 1e3:.0f} ms", f"{theirs * 1e3:,.0f} ms",
        f"{theirs / mine:.0f}", 100)
    row("the same to its first step's end", f"{middle['ymir'] * 1e3:.0f} ms",
        f"{middle['peft'] * 1e3:,.0f} ms", f"{middle['peft'] / middle['ymir']:.0f}", "-")


def label_of(bench):
    with open(bench.sentences, encoding="utf-8", newline="") as file:
        return next(csv.DictReader(file))["label"]


def resident(pids):
    """Bytes that these processes hold, shared pages by their share."""
    total = 0
    for pid in pids:
        for line in open(f"/proc/{pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def memory(bench):
    def ymir():
        specs = [bench.spec(steps=100000, seed=seed) for seed in (1, 2, 3, 4)]
        with bench.worker(1) as worker:
            worker.start(specs, bench.work / "held", 1)
            seen = 0
            for kind, _ in worker.reports():
                seen += kind == "StepReport"
                if seen == 12:
                    return resident([worker.process.pid]) / 1e6

    def peer():
        with contextlib.ExitStack() as stack:
            processes = []
            for _ in range(4):
                command, env = bench.peft(mode="hold", steps=3)
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL, env=env, text=True)
                stack.callback(process.wait)
                stack.callback(process.kill)
                processes.append(process)
            for process in processes:
                process.stdout.readline()
            return resident([process.pid for process in processes]) / 1e6

    middle = turns(bench.args, {"ymir": ymir, "peft": peer})
    row("resident memory (Pss) of 4 jobs on one backbone against 4 processes",
        f"{middle['ymir']:,.0f} MB", f"{middle['peft']:,.0f} MB",
        f"{middle['peft'] / middle['ymir']:.1f}x less", "3x less")


TABLE = {
    "f32": lambda bench: fixed(bench, "f32", "LoRA r=8 q,v, 16 x 64"),
    "bf16": lambda bench: fixed(bench, "bf16", "LoRA r=8 q,v, 16 x 64", goal=2),
    "sentences": sentences,
    "top-two": top_two,
    "four": four,
    "full": lambda bench: fixed(bench, "f32", "full fine-tuning, 16 x 64", method="full", goal=1.3,
                                dropouts=(0.1,), threads=(1,)),
    "first-step": first_step,
    "memory": memory,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--sentences", help="CSV with columns text and label")
    parser.add_argument("--row", action="append", choices=TABLE, help="default: all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    row("work", "Ymir", "transformers + PEFT", "ratio", "goal")
    row("---", "---", "---", "---", "---")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, pathlib.Path(folder))
        for name in args.row or TABLE:
            TABLE[name](bench)


if __name__ == "__main__":
    main()
