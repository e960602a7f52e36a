#!/usr/bin/env python3
"""Runs every test program of a build and adds up what they report.

  scripts/run_tests.py build/release [--only REGEX] [--skip REGEX] [--timeout S] [--report FILE]
  scripts/run_tests.py --sum FILE...      adds reports up and prints the closing line

A program that crashes, hangs or reports nothing counts as one failure. Exit 1 when anything failed.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def run(program: pathlib.Path, timeout: float) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        log = pathlib.Path(folder) / "log.txt"
        command = [str(program), f"--gtest_output=json:{out}", "--gtest_brief=1"]
        started = time.monotonic()
        with log.open("wb") as sink:
            try:
                code = subprocess.run(command, stdout=sink, stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL, timeout=timeout).returncode
                ending = f"exit {code}"
            except subprocess.TimeoutExpired:
                code, ending = 124, f"no end after {timeout:.0f} s"
        text = log.read_text(errors="replace")
        result = {"name": program.name, "passed": 0, "failed": 0, "skipped": 0,
                  "seconds": round(time.monotonic() - started, 1), "failures": []}
        try:
            suites = json.loads(out.read_text())["testsuites"]
        except (OSError, ValueError, KeyError):
            suites = []
        for suite in suites:
            for test in suite["testsuite"]:
                name = f"{suite['name']}.{test['name']}"
                if test.get("failures"):
                    result["failed"] += 1
                    result["failures"].append(name)
                elif test["result"] == "SKIPPED":
                    result["skipped"] += 1
                elif test["result"] == "COMPLETED":
                    result["passed"] += 1
        if code != 0 and result["failed"] == 0 or not suites:
            result["failed"] += 1
            result["failures"].append(f"{program.name}: {ending}")
        if result["failed"]:
            result["log"] = text[-20000:]
        return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--report")
    parser.add_argument("--sum", nargs="+", metavar="FILE")
    options = parser.parse_args()
    if options.sum:
        results = [r for f in options.sum for r in json.loads(pathlib.Path(f).read_text())]
    else:
        folder = pathlib.Path(options.build) / "bin/tests"
        programs = [p for p in sorted(folder.glob("*")) if p.is_file() and os.access(p, os.X_OK)
                    and p.name.endswith("_test")]
        programs = [p for p in programs if re.search(options.only, p.name)
                    and not (options.skip and re.search(options.skip, p.name))]
        results = []
        for number, program in enumerate(programs, 1):
            result = run(program, options.timeout)
            results.append(result)
            print(f"[{number}/{len(programs)}] {result['name']:<28} {result['passed']:>5} passed "
                  f"{result['failed']:>3} failed {result['skipped']:>3} skipped "
                  f"{result['seconds']:>7.1f} s", flush=True)
            if result["failed"]:
                print(result["log"], flush=True)
        if options.report:
            pathlib.Path(options.report).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(options.report).write_text(json.dumps(results))
    total = {key: sum(r[key] for r in results) for key in ("passed", "failed", "skipped")}
    for result in results:
        for failure in result["failures"]:
            print(f"FAILED {result['name']}: {failure}")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
