#!/usr/bin/env python3
"""Writes curve_values.json: loss curves and fits of them by scipy.

Run by hand, in a virtual environment with numpy and scipy:
    python make_curve_values.py > curve_values.json
Each case is a curve loss(k) = 1/(a k^2 + b k + c) + d with its true parameters, its points (exact,
or with 1 % noise), and the steps to a target: of the truth, and of the same family fitted by
scipy.optimize.least_squares from several starts.
"""
import json

import numpy as np
from scipy.optimize import least_squares


def curve(p, k):
    a, b, c, d = p
    return 1 / ((a * k + b) * k + c) + d


def steps_to(p, target):
    a, b, c, d = p
    wanted = 1 / (target - d) - c
    return 2 * wanted / (b + np.sqrt(b * b + 4 * a * wanted))


def fit(k, loss):
    unit = k[-1]

    def residuals(x):
        return curve((x[0] ** 2, x[1] ** 2, x[2] ** 2 + 1e-9, x[3] ** 2), k / unit) - loss

    best = None
    for start in ((0.1, 1, 1, 0.3), (1, 0.1, 0.8, 0.1), (1, 1, 1, 0.5), (2, 2, 0.7, 0.01)):
        found = least_squares(residuals, start, xtol=1e-14, ftol=1e-14, gtol=1e-14, max_nfev=5000)
        if best is None or found.cost < best.cost:
            best = found
    a, b, c, d = best.x[0] ** 2, best.x[1] ** 2, best.x[2] ** 2 + 1e-9, best.x[3] ** 2
    return a / unit**2, b / unit, c, d


def main():
    rng = np.random.default_rng(5)
    cases = []
    for i in range(60):
        quadratic, noisy = i % 2 == 1, i % 4 >= 2
        length = float(rng.integers(60, 600))
        start, floor = rng.uniform(0.7, 3), rng.uniform(0.02, 0.4)
        c = 1 / (start - floor)
        b = rng.uniform(2, 12) * c / length
        a = rng.uniform(4, 30) * c / length**2 if quadratic else 0.0
        truth = (a, b, c, floor)
        k = np.round(np.linspace(length / 30, length, 30))
        loss = curve(truth, k)
        if noisy:
            loss = loss * (1 + 0.01 * rng.normal(size=len(k)))
        target = floor + 0.7 * (curve(truth, length) - floor)
        fitted = fit(k, loss)
        cases.append({
            "family": "R1" if quadratic else "R0",
            "noisy": noisy,
            "truth": [float(x) for x in truth],
            "step": [int(x) for x in k],
            "loss": [float(f"{x:.9g}") for x in loss],
            "target": float(f"{target:.9g}"),
            "steps_of_truth": float(steps_to(truth, target)),
            "steps_by_scipy": float(steps_to(fitted, target)) if target > fitted[3] else None,
        })
    print(json.dumps({"cases": cases}))


if __name__ == "__main__":
    main()
