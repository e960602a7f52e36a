#!/usr/bin/env python3
"""How long a warm ymir-worker takes to change jobs: from the order to the first step's begin.

    swap.py --model MODEL --worker build/release/bin/ymir-worker --rows CSV(text,label) [--swaps 40]

Two jobs of one backbone take turns of a few steps; each turn ends with a stop (checkpoint with
fsync) and the next begins from the other's checkpoint.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time


class Worker:
    def __init__(self, program, cache):
        mine, theirs = socket.socketpair()
        self.process = subprocess.Popen([program, "--fd", str(theirs.fileno()), "--cache", cache],
                                        pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL)
        theirs.close()
        self.socket, self.lines = mine, mine.makefile("r")

    def order(self, kind, body):
        line = json.dumps({"kind": kind, "v": 1, "body": body}) + "\n"
        self.socket.sendall(line.encode())

    def until(self, *kinds):
        for line in self.lines:
            report = json.loads(line)
            if report["kind"] in kinds:
                return report["body"]
        raise SystemExit("the worker ended")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--rows", required=True)
    parser.add_argument("--swaps", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(args.worker, folder + "/cache")
        checkpoints, starts, stops = {}, [], []
        for turn in range(args.swaps):
            job = 1 + turn % 2
            spec = {"name": f"j{job}", "model": args.model, "kind": "classify",
                    "data": {"train": [args.rows], "val_fraction": 0.2, "format": "csv"},
                    "method": {"kind": "lora", "rank": 8, "targets": ["query", "value"]},
                    "train": {"batch": 16}, "stop": {"max_epochs": 1000}, "seed": job}
            task = {"job": f"j{job}", "spec": spec, "folder": f"{folder}/j{job}",
                    **checkpoints.get(job, {})}
            worker.order("StartRun", {"run": f"r0.{turn + 1}", "tasks": [task], "num_threads": 1})
            started = worker.until("RunStarted", "RunLost")
            if "how" not in started:
                raise SystemExit("the run was lost: " + started["why"])
            worker.until("StepReport")
            stop = time.perf_counter()
            worker.order("StopRun", {"run": f"r0.{turn + 1}"})
            saved = worker.until("CheckpointCommitted")
            worker.until("RunStopped")
            stops.append((time.perf_counter() - stop) * 1e3)
            checkpoints[job] = {"checkpoint": saved["path"], "checkpoint_hash": saved["hash"]}
            starts.append((started["how"], started["milliseconds"]))
        swaps = sorted(ms for how, ms in starts[4:])
        print(f"first start {starts[0][1]:.0f} ms ({starts[0][0]}); swap of {len(swaps)}: median "
              f"{statistics.median(swaps):.1f} ms, p99 {swaps[int(len(swaps) * 0.99)]:.1f} ms, best "
              f"{swaps[0]:.1f} ms; stop (rest of a step, checkpoint) median "
              f"{statistics.median(stops):.0f} ms; load {os.getloadavg()[0]:.1f}")
        worker.process.kill()


if __name__ == "__main__":
    main()
