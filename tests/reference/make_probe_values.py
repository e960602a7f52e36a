#!/usr/bin/env python3
"""Writes probe_values.json: evidence and fitted heads of small feature matrices, by other programs.

Run by hand, in a virtual environment with numpy, scipy and scikit-learn:
    python make_probe_values.py > probe_values.json
The evidence is the marginal likelihood log N(y; 0, I/beta + F F^T/alpha), maximised numerically by
scipy over (alpha, beta) from several starts: no eigenvalues, no fixed point. The heads are
scikit-learn's LogisticRegression and Ridge.
"""
import json

import numpy as np
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression, Ridge

L2 = 1e-2


def evidence(features, y):
    n = len(y)
    gram = features @ features.T

    def negative(log_parameters):
        alpha, beta = np.exp(log_parameters)
        covariance = np.eye(n) / beta + gram / alpha
        return -multivariate_normal.logpdf(y, np.zeros(n), covariance)

    starts = [(a, b) for a in (-3, 0, 3) for b in (-1, 2)]
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 10000, "maxfev": 10000}
    return max(-minimize(negative, s, method="Nelder-Mead", options=options).fun
               for s in starts) / n


def case(name, features, labels, targets, classes):
    features = np.float32(np.round(features, 4)).astype(float)
    targets = np.float32(np.round(targets, 4)).astype(float)
    standard = (targets - targets.mean()) / targets.std()
    one_hot = [(labels == k).astype(float) for k in range(classes) if (labels == k).any()]
    logistic = LogisticRegression(C=1 / (len(labels) * L2), tol=1e-12, max_iter=100000)
    logistic.fit(features, labels)
    ridge = Ridge(alpha=len(labels) * L2).fit(features, targets)
    return {
        "name": name,
        "rows": features.shape[0],
        "columns": features.shape[1],
        "classes": classes,
        "features": [round(float(x), 4) for x in features.ravel()],
        "labels": [int(x) for x in labels],
        "targets": [round(float(x), 4) for x in targets],
        "evidence": float(np.mean([evidence(features, y) for y in one_hot])),
        "regression_evidence": float(evidence(features, standard)),
        "l2": L2,
        "logistic_weight": logistic.coef_.ravel().tolist(),
        "logistic_bias": (logistic.intercept_ - logistic.intercept_.mean()).tolist(),
        "ridge_weight": ridge.coef_.ravel().tolist(),
        "ridge_bias": float(ridge.intercept_),
    }


def main():
    rng = np.random.default_rng(11)
    cases = []
    for name, rows, columns, rank in (("tall", 40, 6, 6), ("wide", 18, 30, 18),
                                      ("rank deficient", 36, 9, 4)):
        features = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns)) / rank**0.5
        features = features + 0.5 * rng.normal(size=columns)  # a mean, as pooled features have
        score = features @ rng.normal(size=(columns, 3))
        labels = np.argmax(score + 0.5 * rng.normal(size=score.shape), axis=1)
        labels[:3] = [0, 1, 2]
        targets = 5 + score[:, 0] + 0.3 * rng.normal(size=rows)
        cases.append(case(name, features, labels, targets, 3))
    print(json.dumps({"cases": cases}, indent=1))


if __name__ == "__main__":
    main()
