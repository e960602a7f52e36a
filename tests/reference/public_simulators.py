#!/usr/bin/env python3
"""Two public simulators again, written from their rules and not from the product's code, and random
workloads on which both must agree to the last job.

    tests/reference/public_simulators.py --ymir build/release/bin/ymir --data ../shared/data --count 50

Rules: tiresias@pollux and optimus@pollux in the world of petuum/adaptdl (osdi21-artifact), srtf@titan
and tiresias@titan in that of gaow0007/TitanSched, and *@events in that of SymbioticLab/Tiresias. Pollux' step times are made up here, of
every look-up that this program makes, and given to the product as profiles.lookups: a look-up that
only the product makes shows as a difference. Plain Python, nothing to install.
"""
import argparse
import csv
import math
import pathlib
import random
import subprocess
import sys
import tempfile


def rotations_least(digits):
    return min(digits[i:] + digits[:i] for i in range(len(digits)))


def interpolate(points, x):
    """points: sorted (x, y); straight between the two nearest, the last beyond the ends."""
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return points[-1][1]


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


# --- petuum/adaptdl -------------------------------------------------------------------------------

class App:
    def __init__(self, folder):
        self.name = folder.name
        self.curves = {int(path.stem.split("-")[1]): [{k: float(v) for k, v in row.items()}
                                                      for row in rows_of(path)]
                       for path in folder.glob("validation-*.csv")}
        self.least, self.most = min(self.curves), max(self.curves)
        local = [int(row["local_bsz"]) for row in rows_of(folder / "placements.csv")]
        self.min_local = min(local)
        self.max_local = 8 if self.name == "yolov3" else max(local)
        self.epochs = min(len(curve) for curve in self.curves.values())

    def between(self, batch, row, column):
        return interpolate(sorted((b, curve[row][column]) for b, curve in self.curves.items()), batch)

    def progress_until(self, epoch):
        return min(curve[epoch]["progress"] for curve in self.curves.values())


class Lookups:
    """Step and sync time of (app, placement, local batch): smooth, made up, remembered."""

    def __init__(self, seed):
        self.seed, self.asked = seed, {}

    def __call__(self, app, placement, local):
        key = (app.name, placement, local)
        if key not in self.asked:
            draw = random.Random(f"{self.seed} {app.name} {placement} {local}")
            gpus, nodes = sum(map(int, placement)), len(placement)
            compute = 0.05 + 0.4 * local / app.max_local
            sync = 1e-8 if gpus == 1 else (0.02 + 0.01 * nodes + 0.001 * gpus) * draw.uniform(0.9, 1.1)
            self.asked[key] = (compute * draw.uniform(0.95, 1.05) + sync, sync)
        return self.asked[key]

    def write(self, path):
        with open(path, "w") as file:
            file.write("app,placement_id,local_bsz,method,step_time,sync_time\n")
            for (app, placement, local), (step, sync) in self.asked.items():
                file.write(f"{app},{placement},{local},made_up,{step!r},{sync!r}\n")


def split_batch(app, gpus, batch, one_gpu_accumulates):
    local = math.ceil(batch / gpus - 1e-8)
    extra = math.ceil(local / app.max_local - 1e-8) - 1
    if gpus == 1 and one_gpu_accumulates:
        extra = max(1, extra)
    atomic = min(math.ceil(local / (extra + 1) - 1e-8), app.most // (gpus * (extra + 1)))
    return atomic, extra


class PolluxJob:
    def __init__(self, row, app, lookups):
        self.name, self.app, self.lookups = row["name"], app, lookups
        self.submitted, self.gpus = int(row["time"]), int(row["num_replicas"])
        self.batch = int(row["batch_size"])
        self.nodes, self.delay, self.epoch, self.progress = [], 0, 0, 0.0
        self.completed = None

    def speed(self):
        lengths, before = [], None
        for node in self.nodes:
            if node == before:
                lengths[-1] += 1
            else:
                lengths.append(1)
            before = node
        gpus = len(self.nodes)
        atomic, extra = split_batch(self.app, gpus, self.batch, self.batch > self.app.least)
        step, sync = self.lookups(self.app, rotations_least("".join(map(str, lengths))), atomic)
        batch = gpus * atomic * (extra + 1)
        scale = batch / self.app.least
        sqr = self.app.between(batch, self.epoch, "grad_sqr")
        var = self.app.between(batch, self.epoch, "grad_var")
        gain = (var + sqr) / (var / scale + sqr)
        return gain / (step + extra * (step - sync))

    def pass_time(self, now, seconds):
        if not self.nodes:
            return
        waits = min(self.delay, seconds)
        self.delay -= waits
        now, seconds = now + waits, seconds - waits
        while seconds > 0 and self.completed is None:
            speed, target = self.speed(), self.app.progress_until(self.epoch)
            if self.progress + speed * seconds < target:
                self.progress += speed * seconds
                return
            takes = round((target - self.progress) / speed)
            self.epoch += 1
            if self.epoch > self.app.epochs - 1:
                self.completed = now + takes
            self.progress = target
            now, seconds = now + takes, seconds - takes


def place_emptiest_first(free, gpus):
    nodes = []
    while len(nodes) < gpus:
        node = max(range(len(free)), key=lambda i: (free[i], -i))
        take = min(free[node], gpus - len(nodes))
        nodes += [node] * take
        free[node] -= take
    return nodes


class TiresiasPollux:
    def __init__(self):
        self.queues, self.running, self.executed, self.checked = ([], []), {}, {}, {}

    def __call__(self, jobs, now, num_nodes, per_node):
        first, second = self.queues
        active = {job.name for job in jobs}
        for queue in self.queues:
            queue[:] = [job for job in queue if job.name in active]
        for job in jobs:
            if job.name not in self.running:
                first.append(job)
                self.running[job.name], self.executed[job.name] = False, 0
                self.checked[job.name] = now
        for job in jobs:
            if self.running[job.name]:
                self.executed[job.name] += now - self.checked[job.name]
                if job in first and self.executed[job.name] * job.gpus >= 57600:
                    first.remove(job)
                    second.append(job)
            self.checked[job.name] = now
        budget, taken = num_nodes * per_node, []
        for job in first + second:
            self.running[job.name] = job.gpus <= budget
            if self.running[job.name]:
                budget -= job.gpus
                taken.append(job)
        held = {job.name: job.nodes for job in taken if job.nodes}
        free = [per_node] * num_nodes
        for nodes in held.values():
            for node in nodes:
                free[node] -= 1
        for job in taken:
            if job.name not in held:
                held[job.name] = place_emptiest_first(free, job.gpus)
        return held


def optimus_pollux(jobs, now, num_nodes, per_node):
    def iteration(job, epoch):
        return job.app.between(job.batch, epoch, "iteration")

    def seconds(job, gpus):
        full, rest = divmod(gpus, 4)
        placement = "4" * full + (str(rest) if rest else "")
        atomic, extra = split_batch(job.app, gpus, job.batch, True)
        step, sync = job.lookups(job.app, rotations_least(placement), atomic)
        return step + extra * (step - sync)

    left = num_nodes * per_node
    counts, gains, caps, works = [], [], [], []
    for job in jobs:
        last = job.app.epochs - 1
        work = 1 if job.epoch >= last else iteration(job, last) - iteration(job, job.epoch)
        cap = 1 if job.app.name == "ncf" else job.batch // job.app.min_local
        count = 1 if left > 0 else 0
        left -= count
        gain = (seconds(job, 1) - seconds(job, 2)) * work if cap >= 2 and left > 0 else 0
        for of, value in ((counts, count), (gains, gain), (caps, cap), (works, work)):
            of.append(value)
    while left > 0 and max(gains, default=0) > 0:
        i = gains.index(max(gains))
        counts[i] += 1
        left -= 1
        more = counts[i] + 1
        gains[i] = 0 if more > caps[i] else (
            seconds(jobs[i], counts[i]) - seconds(jobs[i], more)) * works[i]
    held = {job.name: job.nodes for job, count in zip(jobs, counts)
            if job.nodes and len(job.nodes) == count}
    free = [per_node] * num_nodes
    for nodes in held.values():
        for node in nodes:
            free[node] -= 1
    for job, count in sorted(zip(jobs, counts), key=lambda pair: pair[1]):
        if job.name not in held and count > 0:
            held[job.name] = place_emptiest_first(free, count)
    return held


def run_pollux(jobs, decide, num_nodes, per_node, interval=60):
    now = 0
    while any(job.completed is None for job in jobs):
        for job in jobs:
            if job.completed is None:
                job.pass_time(now, interval)
        now += interval
        active = [job for job in jobs if job.submitted <= now and job.completed is None]
        if not active:
            continue
        held = decide(active, now, num_nodes, per_node)
        for job in active:
            nodes = held.get(job.name, [])
            if nodes != job.nodes:
                job.nodes, job.delay = nodes, 30 if nodes else 0
    return {job.name: job.completed - job.submitted for job in jobs}


# --- gaow0007/TitanSched --------------------------------------------------------------------------

class TitanTables:
    def __init__(self, folder):
        self.effective = {(row["application"], row["target_lr"], row["target_gradient_steps"],
                           row["target_batch_size"]): row
                          for row in rows_of(folder / "jobs_effective.csv")}
        self.wide = {(row["application"], row["target_batch_size"], row["gpus"]): row
                     for row in rows_of(folder / "throughput_per_job.csv")}
        self.placements = {}
        for path in (folder / "lut" / "V100").glob("*_placements.csv"):
            model = path.name.rsplit("_", 1)[0]
            for row in rows_of(path):
                points = self.placements.setdefault((model, row["placement"]), [])
                points.append((int(row["local_bsz"]), float(row["step_time"]), float(row["sync_time"])))
        for points in self.placements.values():
            points.sort()


class TitanJob:
    def __init__(self, row, tables):
        self.row, self.tables, self.name = row, tables, row["name"]
        facts = tables.effective[(row["application"], row["target_lr"], row["target_gradient_steps"],
                                  row["target_batch_size"])]
        self.submitted, self.gpus = int(row["submission_time"]), int(row["num_gpus"])
        self.batch = int(row["target_batch_size"])
        self.whole = float(facts["max_progress"])
        self.min_local, self.max_local = int(facts["min_local_bsz"]), int(facts["max_local_bsz"])
        self.restart = 30 + float(facts["ctx_switch_s"])
        self.done = self.staying = self.run = self.service = self.pending = 0.0
        self.delay, self.nodes, self.completed, self.starts = 0.0, None, None, 0

    def step_times(self, counts):
        gpus = sum(counts)
        local = math.ceil(self.batch / gpus - 1e-8)
        extra = math.ceil(local / self.max_local - 1e-8) - 1
        if gpus == 1 and self.batch > self.max_local:
            extra = max(1, extra)
        atomic = max(min(math.ceil(local / (extra + 1) - 1e-8), self.batch // (gpus * (extra + 1))),
                     self.min_local)
        if len(counts) <= 4:
            model = self.row["application"].split("@")[0]
            points = self.tables.placements[(model, rotations_least("".join(map(str, counts))))]
            step = interpolate([(b, s) for b, s, _ in points], atomic)
            sync = interpolate([(b, s) for b, _, s in points], atomic)
        else:
            row = self.tables.wide[(self.row["application"], self.row["target_batch_size"], str(gpus))]
            step, sync = float(row["step_time"]), float(row["sync_time"])
        samples = gpus * atomic * (extra + 1)
        return samples, step + extra * (step - sync), step + (extra + 1) * (step - sync)

    def predicted_left(self):
        full, rest = divmod(self.gpus, 4)
        samples, _, predicted = self.step_times([4] * full + ([rest] if rest else []))
        return round((self.whole - self.done) / samples * predicted)

    def step(self, seconds):
        waits = min(self.delay, seconds)
        self.delay -= waits
        self.staying += waits
        self.service += waits * self.gpus
        seconds -= waits
        if seconds <= 0:
            return
        samples, true, _ = self.step_times([count for count in self.nodes if count])
        progress = min(seconds / true * samples, self.whole - self.done)
        took = round(progress / samples * true)
        self.done += progress
        if abs(self.whole - self.done) <= 0.1:
            self.completed = self.submitted + self.staying + took
        self.service += took * self.gpus
        self.staying += took
        self.run += took


def place_fewest_nodes(free, gpus):
    if sum(free) < gpus:
        return None
    if gpus <= 4:
        order = sorted(range(len(free)), key=lambda i: free[i] if free[i] >= gpus else 1000)
    else:
        order = sorted(range(len(free)), key=lambda i: -free[i])
    counts, left = [0] * len(free), gpus
    for node in order:
        counts[node] = min(free[node], left)
        left -= counts[node]
        if left == 0:
            break
    used = sum(1 for count in counts if count)
    return None if left or (used - 1) * 4 >= gpus else counts


def walk(jobs, budget):
    taken = []
    for job in jobs:
        if job.gpus <= budget:
            budget -= job.gpus
            taken.append(job)
    return taken


def srtf_titan(world):
    pending = sorted(world.pending, key=lambda job: (job.predicted_left(), job.submitted))
    return [], walk(pending, sum(world.free))


class TiresiasTitan:
    """Queues are lists in the order of insertion: a moved job goes to the end, sorts are stable."""

    def __init__(self):
        self.high, self.low = [], []

    def __call__(self, world):
        self.high = [job for job in self.high if job.completed is None]
        self.low = [job for job in self.low if job.completed is None]
        for job in world.running:
            if job.service >= 14400 and job in self.high:
                self.high.remove(job)
                self.low.append(job)
        self.high += [job for job in world.pending if job not in self.high + self.low]
        for queue in (self.high, self.low):
            queue.sort(key=lambda job: job.submitted)
        taken = walk(self.high + self.low, world.num_gpus)
        stops = [job for job in self.high + self.low if job in world.running and job not in taken]
        return stops, [job for job in taken if job in world.pending]


class TitanWorld:
    def __init__(self, jobs, num_nodes, per_node):
        self.jobs, self.pending, self.running = jobs, [], []
        self.free, self.num_gpus = [per_node] * num_nodes, num_nodes * per_node

    def give_back(self, job):
        self.free = [free + count for free, count in zip(self.free, job.nodes)]

    def run(self, decide, interval=300):
        now, admitted = 0, 0
        while any(job.completed is None for job in self.jobs):
            before = max(0, now - interval)
            for job in list(self.running):
                job.step(now - max(before, job.submitted))
                if job.completed is not None:
                    self.running.remove(job)
                    self.give_back(job)
            while admitted < len(self.jobs) and self.jobs[admitted].submitted <= now:
                self.pending.append(self.jobs[admitted])
                admitted += 1
            for job in self.pending:
                job.staying += now - max(before, job.submitted)
                job.pending += now - max(before, job.submitted)
            stops, starts = decide(self)
            for job in stops:
                self.running.remove(job)
                self.pending.append(job)
                self.give_back(job)
                job.nodes = None
            for job in sorted(starts, key=lambda job: -job.gpus):
                counts = place_fewest_nodes(self.free, job.gpus)
                if counts is None:
                    continue
                self.free = [free - count for free, count in zip(self.free, counts)]
                job.nodes, job.delay = counts, job.restart
                job.starts += 1
            for job in starts:  # placed by size, listed in the order of the queues
                if job.nodes:
                    self.pending.remove(job)
                    self.running.append(job)
            now += interval
        return {job.name: job.completed - job.submitted for job in self.jobs}


# --- SymbioticLab/Tiresias ------------------------------------------------------------------------

class EventJob:
    def __init__(self, row):
        self.name, self.gpus = row["job_id"], int(row["num_gpu"])
        self.submitted, self.length = int(row["submit_time"]), int(row["duration"])
        self.executed = self.total = self.waited = 0  # executed: since the last promotion
        self.running, self.queue, self.completed = False, 0, None

    def left(self):
        return self.length - self.total


def run_events(jobs, num_gpus, order, *, preempts=True, backfill=True, limits=(), knob=0, fixed=False):
    """`order(active)`: the list to walk down; with `limits` it is that of the queues."""
    waiting, active, queues = list(jobs), [], [[] for _ in range(len(limits) + 1)]
    now, jump = 0, None
    while waiting or active:
        ends = [now_end(job, now) for job in active if job.running]
        moments = ends + ([waiting[0].submitted] if waiting else [])
        moment = min(moments) if moments else jump
        if jump is not None and (not moments or jump < moment):
            moment = jump
        passed, now = moment - now, moment
        for job in active:
            if job.running:
                job.total += passed
        for job in [job for job in active if job.running and job.left() == 0]:
            job.completed, job.running = now, False
            active.remove(job)
            for queue in queues:
                if job in queue:
                    queue.remove(job)
        while waiting and waiting[0].submitted == now:
            active.append(waiting[0])
            queues[0].append(waiting.pop(0))
        for job in active:  # behind the arrivals of this instant, which have neither run nor waited
            if job.running:
                job.executed += passed
                while_in = job.queue
                if while_in < len(limits) and job.executed * job.gpus >= limits[while_in]:
                    queues[while_in].remove(job)
                    job.queue += 1
                    queues[job.queue].append(job)
            elif job.executed > 0:
                job.waited += passed
                if knob and job.queue > 0 and job.waited >= int(job.executed * knob):
                    queues[job.queue].remove(job)
                    queues[0].append(job)
                    job.queue = job.executed = job.waited = 0
        listed = [job for queue in queues for job in queue] if limits else order(active)
        budget, blocked = num_gpus, False
        if not preempts:
            budget -= sum(job.gpus for job in active if job.running)
            listed = [job for job in listed if not job.running]
        for job in listed:
            runs = job.gpus <= budget and not (blocked and not backfill)
            blocked = blocked or not runs
            job.running = runs
            budget -= job.gpus if runs else 0
        for queue in queues:
            queue.sort(key=lambda job: not job.running)
        jump = None
        if limits:
            jumps = []
            for job in active:
                if job.running and job.queue < len(limits):
                    limit = limits[job.queue]
                    jumps.append(now + (math.ceil(limit / job.gpus) - job.executed if fixed else
                                        math.ceil((limit - job.executed) / job.gpus)))
                elif not job.running and knob and job.queue > 0 and job.executed > 0:
                    wait = int(job.executed * knob - job.waited)
                    if wait > 0:
                        jumps.append(now + wait)
            jump = min(jumps) if jumps else None
    return {job.name: job.completed - job.submitted for job in jobs}


def now_end(job, now):
    return now + job.left()


def in_place(key):
    def order(active):
        active.sort(key=key)
        return active
    return order


EVENT_POLICIES = {
    "fifo@events": dict(order=list, preempts=False, backfill=False),
    "fit@events": dict(order=list, preempts=False),
    "srtf@events": dict(order=in_place(lambda job: job.left())),
    "srsf@events": dict(order=in_place(lambda job: job.left() * job.gpus)),
    "fewest-gpus@events": dict(order=in_place(lambda job: job.gpus)),
    "tiresias@events": dict(order=list, limits=(3250, 7200)),
    "tiresias@events-fixed": dict(order=list, limits=(3250, 7200), fixed=True),
}


# --- random workloads -----------------------------------------------------------------------------

def arrivals(draw, count, most):
    """Bursts, ties and long gaps, in order."""
    style = draw.choice(["even", "bursts", "rounds", "first"])
    if style == "even":
        times = [draw.randint(0, most) for _ in range(count)]
    elif style == "bursts":
        hearts = [draw.randint(0, most) for _ in range(3)]
        times = [draw.choice(hearts) + draw.randint(0, 3) for _ in range(count)]
    elif style == "rounds":  # exactly at rounds
        times = [300 * draw.randint(0, most // 300) for _ in range(count)]
    else:
        times = [0] * count
    return sorted(times)


def pollux_rows(draw, apps):
    rows = []
    for i, time in enumerate(arrivals(draw, draw.randint(5, 60), 8 * 3600)):
        app = draw.choice([a for a in apps if a.name != "imagenet" or draw.random() < 0.2])
        batch = draw.choice(sorted(app.curves))
        if draw.random() < 0.3:  # between two that were validated
            batch = draw.randint(app.least, app.most)
        gpus = draw.choice([1, 1, 1, 2, 3, 4, 4, 6, 8, 12, 16])
        gpus = max(1, min(gpus, batch // app.min_local))
        rows.append({"name": f"{app.name}-{i}", "time": time, "application": app.name,
                     "num_replicas": gpus, "batch_size": batch})
    return rows


def titan_rows(draw, tables):
    rows, types = [], sorted(tables.effective)
    few = draw.sample(types, draw.choice([1, 3, 9, len(types)]))
    for i, time in enumerate(arrivals(draw, draw.randint(5, 120), 6 * 3600)):
        application, lr, steps, batch = draw.choice(few)
        facts = tables.effective[(application, lr, steps, batch)]
        gpus = min(draw.choice([1, 1, 2, 4, 4, 8, 12, 16]), int(facts["max_gpus"]))
        rows.append({"name": f"{application}-{i}", "submission_time": time,
                     "application": application, "num_gpus": gpus, "target_batch_size": batch,
                     "target_lr": lr, "target_gradient_steps": steps,
                     "target_metric": facts["target_metric_csv"]})
    return rows


def events_rows(draw):
    rows = []
    for i, time in enumerate(arrivals(draw, draw.randint(3, 80), 20000)):
        rows.append({"job_id": i, "num_gpu": draw.choice([1, 1, 2, 3, 4, 8, 16]), "submit_time": time,
                     "iterations": 9, "model_name": "m", "interval": 0,
                     "duration": draw.choice([draw.randint(1, 60), draw.randint(1, 3000),
                                              100 * draw.randint(1, 60), draw.randint(3000, 40000)])})
    return rows


def write_rows(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def product(args, folder, workload, kind, policies, nodes, sets):
    command = [args.ymir, "simulate", "--workload", str(workload), "--format", kind, "--policy",
               ",".join(policies), "--nodes", str(nodes), "--gpus-per-node", "4", "--out",
               str(folder / "out")]
    if (args.data / "profiles" / kind).exists():
        command += ["--profiles", str(args.data / "profiles" / kind)]
    for word in sets:
        command += ["--set", word]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode == 2:
        raise SystemExit(f"{' '.join(command)}\n{answer.stderr}")
    return {policy: {row["job"]: row for row in rows_of(folder / "out" / policy / "jobs.csv")}
            for policy in policies}


def differences(policy, expected, rows):
    found = []
    for job, jct in expected.items():
        got = float(rows[job]["jct_s"]) if rows[job]["jct_s"] else math.nan
        if not abs(got - jct) <= 1e-6:
            found.append(f"  {policy} {job}: {got} where the rules give {jct}")
    return found


def compare_pollux(args, folder, seed):
    draw = random.Random(f"pollux {seed}")
    apps = {path.name: App(path) for path in (args.data / "profiles/pollux").iterdir() if path.is_dir()}
    rows, nodes = pollux_rows(draw, sorted(apps.values(), key=lambda app: app.name)), draw.choice([4, 8, 16])
    lookups = Lookups(seed)
    expected = {}
    for policy, decide in (("tiresias@pollux", TiresiasPollux()), ("optimus@pollux", optimus_pollux)):
        jobs = [PolluxJob(row, apps[row["application"]], lookups) for row in rows]
        expected[policy] = run_pollux(jobs, decide, nodes, 4)
    write_rows(folder / "workload.csv", rows)
    lookups.write(folder / "lookups.csv")
    got = product(args, folder, folder / "workload.csv", "pollux", list(expected), nodes,
                  [f"profiles.lookups={folder / 'lookups.csv'}"])
    return [line for policy in expected for line in differences(policy, expected[policy], got[policy])]


def compare_titan(args, folder, seed):
    draw = random.Random(f"titan {seed}")
    tables = TitanTables(args.data / "profiles/titan")
    rows, nodes = titan_rows(draw, tables), draw.choice([4, 8])
    expected = {}
    for policy, decide in (("srtf@titan", srtf_titan), ("tiresias@titan", TiresiasTitan())):
        expected[policy] = TitanWorld([TitanJob(row, tables) for row in rows], nodes, 4).run(decide)
    write_rows(folder / "workload.csv", rows)
    got = product(args, folder, folder / "workload.csv", "titan", list(expected), nodes, [])
    return [line for policy in expected for line in differences(policy, expected[policy], got[policy])]


def compare_events(args, folder, seed):
    draw = random.Random(f"events {seed}")
    rows, found = events_rows(draw), []
    write_rows(folder / "workload.csv", rows)
    expected = {}
    for policy, rule in EVENT_POLICIES.items():
        expected[policy] = run_events([EventJob(row) for row in rows], 16, **rule)
    got = product(args, folder, folder / "workload.csv", "tiresias", list(expected), 4, [])
    for policy in expected:
        found += differences(policy, {str(job): jct for job, jct in expected[policy].items()},
                             got[policy])
    for knob in (1, 8):
        jobs = [EventJob(row) for row in rows]
        jct = run_events(jobs, 16, list, limits=(3250, 7200), knob=knob)
        got = product(args, folder, folder / "workload.csv", "tiresias", ["tiresias@events"], 4,
                      [f"tiresias.promote={knob}"])
        found += differences(f"tiresias@events promote={knob}",
                             {str(job): value for job, value in jct.items()}, got["tiresias@events"])
    return found


WORLDS = (("pollux", compare_pollux), ("titan", compare_titan), ("events", compare_events))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ymir", required=True, help="the program")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder with profiles/")
    parser.add_argument("--count", type=int, default=50, help="workloads of each world")
    parser.add_argument("--from-seed", type=int, default=1)
    parser.add_argument("--only", choices=[name for name, _ in WORLDS])
    args = parser.parse_args()
    bad, done = 0, 0
    for seed in range(args.from_seed, args.from_seed + args.count):
        for name, compare in WORLDS:
            if args.only not in (None, name):
                continue
            with tempfile.TemporaryDirectory() as folder:
                found = compare(args, pathlib.Path(folder), seed)
            done += 1
            if found:
                bad += 1
                print(f"{name} seed {seed}: {len(found)} jobs differ", *found[:5], sep="\n", flush=True)
    print(f"{done - bad} of {done} workloads agree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
