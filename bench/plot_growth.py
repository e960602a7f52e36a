#!/usr/bin/env python3
"""plot_growth.py GROWTH.csv OUT.svg: times of optimize_bench --growth on two logarithmic axes.

Draws the measured points, the line of the slope 1.5 through the middle point, and prints the slope
of the least-squares line.
"""
import csv
import math
import sys

source, target = sys.argv[1:3]
with open(source) as file:
    rows = list(csv.DictReader(file))
jobs = [float(row["jobs"]) for row in rows]
series = {"solve": [float(row["solve_ms"]) for row in rows],
          "candidates": [float(row["build_ms"]) for row in rows]}

LEFT, TOP, WIDTH, HEIGHT = 60, 20, 560, 340
x_low, x_high = math.log10(min(jobs)) - 0.1, math.log10(max(jobs)) + 0.1
positive = [v for values in series.values() for v in values if v > 0]
y_low, y_high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))


def x(value):
    return LEFT + (math.log10(value) - x_low) / (x_high - x_low) * WIDTH


def y(value):
    return TOP + (y_high - math.log10(value)) / (y_high - y_low) * HEIGHT


def slope(values):
    points = [(math.log(j), math.log(v)) for j, v in zip(jobs, values) if v > 0]
    mean_x = sum(p[0] for p in points) / len(points)
    mean_y = sum(p[1] for p in points) / len(points)
    return (sum((p[0] - mean_x) * (p[1] - mean_y) for p in points)
            / sum((p[0] - mean_x) ** 2 for p in points))


out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {TOP + HEIGHT + 50}"'
       ' font-family="sans-serif" font-size="12">',
       '<rect width="100%" height="100%" fill="white"/>']
for power in range(y_low, y_high + 1):
    out.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(10 ** power):.1f}" '
               f'y2="{y(10 ** power):.1f}" stroke="#ddd"/>'
               f'<text x="{LEFT - 6}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">{10.0 ** power:g}</text>')
for value in jobs:
    out.append(f'<text x="{x(value):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{value:g}</text>')
out.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 38}" text-anchor="middle">'
           'jobs (as many GPUs, 10 pairs per job)</text>'
           f'<text x="14" y="{TOP + HEIGHT / 2}" transform="rotate(-90 14 {TOP + HEIGHT / 2})" '
           'text-anchor="middle">CPU ms</text>')
middle = len(jobs) // 2
ends = [series["solve"][middle] * (j / jobs[middle]) ** 1.5 for j in (jobs[0], jobs[-1])]
out.append(f'<line x1="{x(jobs[0]):.1f}" y1="{y(ends[0]):.1f}" x2="{x(jobs[-1]):.1f}" '
           f'y2="{y(ends[1]):.1f}" stroke="#888" stroke-dasharray="5 4"/>')
for (name, values), colour in zip(series.items(), ("#0060c0", "#c06000")):
    points = [(x(j), y(v)) for j, v in zip(jobs, values) if v > 0]
    out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
               + " ".join(f"{a:.1f},{b:.1f}" for a, b in points) + '"/>')
    out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
    print(f"{name}: grows as jobs^{slope(values):.2f}")
out.append(f'<text x="{LEFT + 12}" y="{TOP + 18}" fill="#0060c0">solve</text>'
           f'<text x="{LEFT + 12}" y="{TOP + 34}" fill="#c06000">building the candidates</text>'
           f'<text x="{LEFT + 12}" y="{TOP + 50}" fill="#888">slope 1.5</text></svg>')
with open(target, "w") as file:
    file.write("\n".join(out) + "\n")
