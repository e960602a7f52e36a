#!/usr/bin/env python3
"""Writes tests/reference/metric_values.json: metrics of generated cases by scikit-learn, SciPy,
sacrebleu, rouge-score and SQuAD's rules, for the tests to equal.

    python3 tests/reference/make_metric_values.py

Needs numpy, scipy, scikit-learn, sacrebleu and rouge-score. By hand only.
"""
import collections
import importlib.metadata
import json
import math
import pathlib
import random
import re
import string

import numpy as np
import scipy.stats
import sklearn.metrics as skm
from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

TARGET = pathlib.Path(__file__).parent / "metric_values.json"
WORDS = ("the a an of cat dog house runs quickly over under red blue it's don't U.S. 3.14 1,000 10-year well-known "
         "straße naïve Éclair İstanbul K ΑΣ 漢字 e-mail &amp; &lt;b&gt; \"quoted\" (yes) [no] {x} a/b end. why? "
         "no! ... -- $5 50% #1 @me ~ ^ _under_ The A An THE anthem a-the").split()


def sentence(r, low=0, high=14):
    words = [r.choice(WORDS) for _ in range(r.randint(low, high))]
    text = r.choice([" ", " ", "  ", "\t", "\n"]).join(words)
    return text + r.choice(["", "", " ", ".", "-\n", "\u00a0"])


def changed(r, text):
    words = text.split(" ")
    for _ in range(r.randint(0, 3)):
        if words:
            words[r.randrange(len(words))] = r.choice(WORDS)
    return " ".join(words)


def classification(r):
    cases = []
    for classes, rows, keep in ((2, 50, 0.8), (2, 1, 1), (3, 40, 0.6), (5, 200, 0.4), (2, 30, 1), (4, 12, 0), (7, 9, .5)):
        actual = [r.randrange(classes) for _ in range(rows)]
        predicted = [a if r.random() < keep else r.randrange(classes) for a in actual]
        cases.append((classes, actual, predicted))
    cases += [(2, [1] * 6, [1] * 6), (2, [0, 1, 0, 1], [1] * 4), (3, [2, 2, 2], [0, 1, 0])]
    result = []
    for classes, actual, predicted in cases:
        f1 = {a: skm.f1_score(actual, predicted, average=a, zero_division=0) for a in ("macro", "micro", "weighted")}
        result.append({"classes": classes, "actual": actual, "predicted": predicted, **f1,
                       "accuracy": skm.accuracy_score(actual, predicted),
                       "f1_of_1": skm.f1_score(actual, predicted, labels=[1], average="macro", zero_division=0),
                       "precision_of_1": skm.precision_score(actual, predicted, labels=[1], average="macro", zero_division=0),
                       "recall_of_1": skm.recall_score(actual, predicted, labels=[1], average="macro", zero_division=0),
                       "mcc": skm.matthews_corrcoef(actual, predicted)})
    return result


def multi_label(r):
    result = []
    for labels, rows in ((3, 30), (6, 50), (2, 1)):
        actual = [[r.random() < 0.4 for _ in range(labels)] for _ in range(rows)]
        predicted = [[v if r.random() < 0.7 else not v for v in row] for row in actual]
        a, p = np.array(actual, int), np.array(predicted, int)
        f1 = {k: skm.f1_score(a, p, average=k, zero_division=0) for k in ("macro", "micro", "weighted")}
        result.append({"actual": actual, "predicted": predicted, "exact": skm.accuracy_score(a, p), **f1})
    return result


def regression(r):
    result = []
    for rows, ties in ((2, 0), (10, 0), (50, 3), (200, 5), (30, 1)):
        x = [round(r.gauss(0, 2), ties) if ties else r.gauss(0, 2) for _ in range(rows)]
        y = [float(round(v + r.gauss(0, 1))) if ties else v * 1e6 + r.gauss(0, 1e6) for v in x]
        result.append({"x": x, "y": y, "pearson": scipy.stats.pearsonr(x, y).statistic,
                       "spearman": scipy.stats.spearmanr(x, y).statistic,
                       "mse": skm.mean_squared_error(y, x)})
    return result


def bleu(r):
    result = []
    for rows, references in ((1, 1), (1, 2), (10, 1), (40, 3), (5, 1), (200, 1)):
        wanted = [[sentence(r, 1) for _ in range(rows)] for _ in range(references)]
        guessed = [changed(r, wanted[r.randrange(references)][i]) for i in range(rows)]
        result.append({"hypotheses": guessed, "references": [list(row) for row in zip(*wanted)],
                       "score": BLEU().corpus_score(guessed, wanted).score})
    for guess, want in (("", "a cat"), ("dog", "a cat"), ("a cat", "a cat"), ("a b c d", "a b c d"), ("a b x d e", "a b c d e"),
                        ("one two three", "three two one zero"), ("the the the the the", "the cat sat")):
        result.append({"hypotheses": [guess], "references": [[want]],
                       "score": BLEU().corpus_score([guess], [[want]]).score})
    return result


def rouge(r):
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"])
    pairs = [(changed(r, text), text) for text in (sentence(r) for _ in range(60))]
    pairs += [("", ""), ("", "a"), ("the cat", "cat the"), ("a b c d e f", "a x c y e z"), ("Kelvin K", "kelvin k")]
    return [{"hypothesis": h, "reference": t,
             **{k: v.fmeasure for k, v in scorer.score(t, h).items()}} for h, t in pairs]


def normalized(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def squad_f1(guess, want):
    g, w = normalized(guess).split(), normalized(want).split()
    if not g or not w:
        return float(g == w)
    common = sum((collections.Counter(g) & collections.Counter(w)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(g), common / len(w)
    return 2 * precision * recall / (precision + recall)


def squad(r):
    pairs = [(changed(r, text), text) for text in (sentence(r, 0, 5) for _ in range(60))]
    return [{"hypothesis": h, "reference": t, "normalized": normalized(h), "f1": squad_f1(h, t)} for h, t in pairs]


def sums(r):
    cases = [[r.uniform(-1, 1) * 10 ** r.randint(-20, 20) for _ in range(50)] for _ in range(20)]
    cases += [[1e308, 1.0, -1e308], [0.1] * 10, [1e16, 1.0, 1.0], [], [1.0, 2**-53, 2**-105]]
    return [[case, math.fsum(case)] for case in cases]


def main():
    r = random.Random(20)
    names = ("scikit-learn", "scipy", "sacrebleu", "rouge-score", "numpy")
    values = {"made_with": {name: importlib.metadata.version(name) for name in names},
              "classification": classification(r), "multi_label": multi_label(r), "regression": regression(r),
              "tokens_13a": [[t, Tokenizer13a()(t.rstrip())] for t in (sentence(r) for _ in range(60))],
              "bleu": bleu(r), "rouge": rouge(r), "squad": squad(r), "sums": sums(r)}
    TARGET.write_text(json.dumps(values, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
