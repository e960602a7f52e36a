#!/usr/bin/env python3
"""Writes ymir/tune/data/unicode_changes.h: code points whose general category in the regular
expressions of Hugging Face's tokenizers differs from the one that this Python's unicodedata knows.

    python3 tests/reference/make_unicode_changes.py

Needs tokenizers, and a unicodedata that is older than what the installed ICU knows. By hand only.
"""
import pathlib
import unicodedata

from tokenizers import Regex, normalizers

TARGET = pathlib.Path(__file__).parents[2] / "ymir/tune/data/unicode_changes.h"
NAMES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
TEXT = """// Made by tests/reference/make_unicode_changes.py: code points whose general category in Unicode 16 is
// not that of Unicode {version} (most were assigned since).
#pragma once

namespace ymir {{

struct CategoryChange {{
  char32_t first = 0, last = 0;
  char category[3] = "";
}};

inline constexpr CategoryChange kCategoryChanges[] = {{
{rows}}};

}}  // namespace ymir
"""


def members(name):
    remover = normalizers.Replace(Regex(r"\p{%s}" % name), "")
    found = set()
    for i in range(0, len(POINTS), 4096):
        chunk = POINTS[i:i + 4096]
        found |= set(chunk) - set(map(ord, remover.normalize_str("".join(map(chr, chunk)))))
    return found


def main():
    category = {c: name for name in NAMES for c in members(name)}
    rows = []
    for c in sorted(category):
        if unicodedata.category(chr(c)) == category[c]:
            continue
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == category[c]:
            rows[-1][1] = c
        else:
            rows.append([c, c, category[c]])
    lines = "".join('    {0x%X, 0x%X, "%s"},\n' % tuple(row) for row in rows)
    version = ".".join(unicodedata.unidata_version.split(".")[:2])
    TARGET.write_text(TEXT.format(version=version, rows=lines))


if __name__ == "__main__":
    main()
