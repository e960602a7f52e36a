#!/usr/bin/env python3
"""Fails when README.md or docs/ name a file, a script or a verb of `ymir` that does not exist."""
import pathlib
import re
import subprocess
import sys


def main(root: pathlib.Path) -> int:
    ymir = root / "build/release/bin/ymir"
    verbs = set()
    if ymir.exists():
        text = subprocess.run([ymir, "--help"], capture_output=True, text=True, check=True).stdout
        verbs = set(re.findall(r"^  (\w[\w-]*) ", text.split("Subcommands:")[1], re.M))
    faults = []
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        text = page.read_text()
        name = page.relative_to(root)
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            if "://" not in link and not (page.parent / link).exists():
                faults.append(f"{name}: link to {link}, which is not there")
        for path in re.findall(r"`((?:scripts|ymir|apps|docs|tests|bench)/[\w./-]+)`", text):
            if not (root / path.rstrip("/")).exists():
                faults.append(f"{name}: names {path}, which is not there")
        if page.name == "README.md" and verbs:
            for verb in re.findall(r"\bymir ([a-z][a-z-]+)\b(?=[^\n]*`|[^\n]*$)", text):
                if f"ymir {verb}" in re.findall(r"ymir [a-z-]+", " ".join(re.findall(r"`[^`]+`", text))) \
                        and verb not in verbs:
                    faults.append(f"{name}: `ymir {verb}` is no verb")
    print("\n".join(faults) if faults else "readme: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
