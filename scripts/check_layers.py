#!/usr/bin/env python3
"""Fails if a folder of ymir/ includes one it may not, if a torch header stands where none may, or if
two files of one program define the same name (a type with linkage, or a test suite).

The table is the architecture: folder -> the folders it may include besides itself.
"""
import collections
import pathlib
import re
import sys

ALLOWED = {
    "base": "",
    "core": "base",
    "optimize": "base",
    "estimate": "base core",
    "schedule": "base core optimize",
    "store": "base core",
    "tune": "base core",
    "control": "base core estimate schedule store",
    "cluster": "base core control",
    "sim": "base core control",
    "api": "base core store control",
}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]ymir/(\w+)/')
TORCH = re.compile(r'^\s*#\s*include\s+["<](torch|ATen|c10|caffe2)/')
PRIVATE = re.compile(r'^\s*#\s*include\s+"ymir/tune/.*_torch\.h"')
APPS = re.compile(r'^\s*#\s*include\s+"apps/')
HEAVY = re.compile(r'^\s*#\s*include\s+["<](nlohmann/|ymir/base/json\.h|yaml-cpp/|httplib\.h)')


def faults(root: pathlib.Path):
    for path in sorted((root / "ymir").rglob("*.[hc]*")):
        if path.suffix not in (".h", ".cc"):
            continue
        folder = path.relative_to(root / "ymir").parts[0]
        if folder not in ALLOWED:
            yield f"{path}: no such layer: {folder}"
            continue
        may = {folder, *ALLOWED[folder].split()}
        if path.stem.endswith("_test"):
            may |= set(ALLOWED)  # a test may reach for any fake
        torch_may = folder == "tune" and (path.suffix == ".cc" or path.stem.endswith("_torch"))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{path.relative_to(root)}:{number}"
            found = INCLUDE.match(line)
            if found and found[1] not in may:
                yield f"{where}: {folder}/ must not include {found[1]}/"
            if TORCH.match(line) and not torch_may:
                yield f"{where}: torch headers belong in .cc files and *_torch.h of ymir/tune/"
            if PRIVATE.match(line) and folder != "tune":
                yield f"{where}: a *_torch.h header is private to ymir/tune/"
            if APPS.match(line):
                yield f"{where}: nothing in ymir/ may include apps/"
            if path.suffix == ".h" and HEAVY.match(line) and str(path.relative_to(root)) != "ymir/base/json.h":
                yield f"{where}: JSON, YAML and HTTP headers belong in .cc files"
    if any(re.search(r"\bdouble\b", line.split("//")[0]) and "relative_gap" not in line
           for path in (root / "ymir/optimize").glob("*.cc") if not path.stem.endswith("_test")
           and path.stem not in ("instance_json", "generate", "explain")
           for line in path.read_text().splitlines()):
        yield "ymir/optimize/: the solver computes in integers, no double but relative_gap"


TYPE = re.compile(r"(?:struct|class|union|enum(?: class| struct)?) (?:\w+\(.*?\) )?(\w+)(?: final)?(?: :(?!:).*)? ?\{")
SUITE = re.compile(r"(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*(\w+)")
OPENS = re.compile(r"namespace ?([\w:]*) ?\{")


def names(path: pathlib.Path):
    """Types that have linkage, with their namespace, and test suites, as (kind, name, line)."""
    spaces = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("}  // namespace"):
            spaces = spaces[:-1]
        elif opened := OPENS.match(line):
            if "}" not in line:
                spaces.append(opened[1] or "(anonymous)")
        elif suite := SUITE.match(line):
            yield "test suite", suite[1], number
        elif (found := TYPE.match(line)) and "(anonymous)" not in spaces:
            yield "type", "::".join([*spaces, found[1]]), number


def doubled(root: pathlib.Path):
    """Names that two files of one program define: all of ymir/ links together, tests by folder."""
    seen = collections.defaultdict(dict)
    for top in ("ymir", "apps", "tests/e2e"):
        for path in sorted((root / top).rglob("*.[hc]*")):
            if path.suffix not in (".h", ".cc"):
                continue
            parts = path.relative_to(root).parts
            folder = "/".join(parts[:2])
            if parts[:2] == ("ymir", "tune"):  # two libraries, so two test programs
                with_torch = parts[2] in ("petl", "trainer") or parts[2:] == ("model",)
                folder += " with torch" if with_torch else ""
            for kind, name, number in names(path):
                program = folder if kind == "test suite" or path.stem.endswith("_test") else top
                where = f"{path.relative_to(root)}:{number}"
                first = seen[program, kind].setdefault(name, where)
                if first.rsplit(":", 1)[0] != where.rsplit(":", 1)[0]:
                    yield f"{where}: {kind} {name} is also in {first}"


def main(root: pathlib.Path) -> int:
    found = [*faults(root), *doubled(root)]
    print("\n".join(found) if found else "layers: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
