"use strict";
// Draws the report from the JSON block beside it. Texts of jobs only ever become text nodes.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.querySelector("main");
  const redraw = []; // pictures, drawn again when the width or the theme changes

  // --- building blocks ---
  function make(parent, name, attributes = {}, text = null) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.appendChild(document.createTextNode(text));
    if (parent) parent.appendChild(node);
    return node;
  }
  function section(title, lead, csv) {
    const box = make(main, "section");
    make(box, "h2", {}, title);
    if (lead) make(box, "p", { class: "lead" }, lead);
    if (csv) setTimeout(() => make(box, "p", { class: "csv" }, "Numbers: " + csv), 0);
    return box;
  }
  const known = (x) => x !== null && x !== undefined && isFinite(x);
  function duration(seconds) {
    if (!known(seconds)) return "–";
    const whole = Math.round(seconds);
    if (Math.abs(seconds) < 9.95) return seconds.toFixed(1) + " s";
    if (whole < 600) return whole + " s";
    if (whole < 3600) return Math.floor(whole / 60) + " m " + String(whole % 60).padStart(2, "0") + " s";
    return Math.floor(whole / 3600) + " h " + String(Math.floor((whole % 3600) / 60)).padStart(2, "0") + " m";
  }
  const decimals = (x, digits = 2) => (known(x) ? Number(x).toFixed(digits) : "–");
  const percent = (x, digits = 0) => (known(x) ? (100 * x).toFixed(digits) + "%" : "–");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const hue = (index) => Math.round((212 + index * 137.5) % 360);
  const color = (index) => `hsl(${hue(index)} ${style("--strength")} ${style("--light")})`;
  const modes = ["alone", "temporal", "spatial", "profile"];

  function ticks(low, high, count, time) {
    const span = Math.max(high - low, 1e-12);
    const clock = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800];
    let step = time ? clock.find((s) => span / s <= count) : undefined;
    if (!step) {
      const power = 10 ** Math.floor(Math.log10(span / count));
      step = [1, 2, 5, 10].map((f) => f * power).find((s) => span / s <= count);
    }
    const list = [];
    for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + step * 1e-9; x += step) list.push(x);
    return list;
  }
  function moment(seconds) {
    if (seconds < 120) return Math.round(seconds) + " s";
    if (seconds < 7200) return Math.round(seconds / 60) + " min";
    return Math.round((seconds / 3600) * 10) / 10 + " h";
  }

  // A canvas as wide as its frame, sharp on every screen. `paint(context, width, height)`.
  function picture(parent, title, height, paint) {
    const box = make(parent, "div", { class: "picture" });
    if (title) make(box, "h3", {}, title);
    const canvas = make(box, "canvas", { role: "img", "aria-label": title || "timeline" });
    const draw = () => {
      const width = box.clientWidth || 400, scale = window.devicePixelRatio || 1;
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.height = height + "px";
      const context = canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.font = "12px system-ui, sans-serif";
      paint(context, width, height);
    };
    redraw.push(draw);
    return box;
  }
  function legend(parent, entries) {
    const list = make(parent, "ul", { class: "legend" });
    for (const [name, index, fixed] of entries) {
      const item = make(list, "li");
      const swatch = make(item, "span", { class: "swatch" });
      redraw.push(() => (swatch.style.background = fixed ? style(fixed) : color(index)));
      make(item, "span", {}, name);
    }
  }
  // Axes of a picture; returns the functions from values to pixels.
  function axes(context, width, height, x, y) {
    const left = 52, right = 12, top = 8, bottom = 24;
    const log = x.log && x.low > 0;
    const along = (v) => (log ? Math.log(v / x.low) / Math.log(x.high / x.low) : (v - x.low) / (x.high - x.low || 1));
    const px = (v) => left + along(v) * (width - left - right);
    const py = (v) => height - bottom - ((v - y.low) / (y.high - y.low || 1)) * (height - top - bottom);
    context.strokeStyle = style("--grid");
    context.fillStyle = style("--soft");
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const v of ticks(y.low, y.high, 4)) {
      context.beginPath(); context.moveTo(left, py(v)); context.lineTo(width - right, py(v)); context.stroke();
      context.fillText(y.label ? y.label(v) : String(+v.toPrecision(6)), left - 6, py(v));
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    const marks = log ? decades(x.low, x.high) : ticks(x.low, x.high, Math.max(3, width / 90), x.time);
    for (const v of marks) {
      context.beginPath(); context.moveTo(px(v), top); context.lineTo(px(v), height - bottom); context.stroke();
      context.fillText(x.label ? x.label(v) : String(+v.toPrecision(3)), px(v), height - bottom + 6);
    }
    return [px, py];
  }
  function decades(low, high) {
    const list = [];
    for (let v = 10 ** Math.floor(Math.log10(low)); v <= high; v *= 10) if (v >= low) list.push(v);
    return list.length > 1 ? list : [low, high];
  }

  // --- head ---
  const head = make(main, "header");
  const titles = make(head, "div");
  make(titles, "h1", {}, "Simulation of " + (data.name || "a workload"));
  const first = data.runs[0];
  make(titles, "p", {}, `${first.num_jobs} jobs on ${first.nodes} × ${first.gpus_per_node} GPUs` +
    (known(data.load) ? `, offered load ${decimals(data.load)}` : "") +
    `; ${data.comparison[0].seeds === 1 ? "one seed" : data.comparison[0].seeds + " seeds"}, n = 1 trace; configuration ${data.config_hash.slice(0, 12)} (at the end)`);
  make(head, "div", { class: "grow" });
  const theme = make(head, "button", { type: "button" }, "Dark / light");
  theme.addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    redraw.forEach((draw) => draw());
  });

  if (data.broken.length) {
    const box = section("Broken invariants", "These results must not be used: what must hold of every run does not.");
    for (const [policy, seed, text] of data.broken.slice(0, 50)) make(box, "p", { class: "note bad" }, `${policy}, seed ${seed}: ${text}`);
  }
  const notes = new Set(data.warnings);
  for (const run of data.runs) {
    for (const note of run.notes) notes.add(`${run.policy}: ${note}`);
    if (run.censored) notes.add(`${run.policy}: ${run.censored} jobs censored (target not met, or cut off); means are over the ${run.finished} that finished`);
  }
  if (notes.size) {
    const box = section("To know before reading", null);
    for (const text of notes) make(box, "p", { class: "note" }, text);
  }

  // --- comparison ---
  (() => {
    const box = section("Comparison",
      `Ratios are ${data.baseline} / policy (above 1: better than it), means of ratios paired by seed; ± is the 95% interval over seeds. Times over finished jobs.`,
      "comparison.csv, seeds.csv, compare.csv");
    const columns = [
      ["avg_jct_s", "average JCT", duration], ["p50_jct_s", "p50", duration], ["p99_jct_s", "p99", duration],
      ["max_jct_s", "max", duration], ["avg_queueing_s", "queueing", duration], ["longest_wait_s", "longest wait", duration],
      ["rho_max", "rho max", (x) => decimals(x)], ["rho_unfair_share", "unfair", (x) => percent(x)],
      ["restarts_per_job", "restarts / job", (x) => decimals(x)], ["gpu_use", "GPU use", (x) => percent(x)],
    ];
    const ratios = new Set(["avg_jct_s", "p50_jct_s", "p99_jct_s", "max_jct_s"]);
    const table = make(make(box, "div", { class: "scroll" }), "table");
    const row = make(make(table, "thead"), "tr");
    make(row, "th", {}, "policy");
    for (const [, title] of columns) make(row, "th", { class: "number" }, title);
    const body = make(table, "tbody");
    for (const one of data.comparison) {
      const line = make(body, "tr", one.policy === data.baseline ? { class: "base" } : {});
      make(line, "td", {}, one.policy + (one.policy === data.baseline ? " (baseline)" : ""));
      for (const [key, , show] of columns) {
        const [mean, half, ratio, ratioHalf] = one.numbers[key];
        const cell = make(line, "td", { class: "number" }, show(mean));
        if (known(half) && half > 0) make(cell, "small", {}, "± " + show(half));
        if (ratios.has(key) && one.policy !== data.baseline && known(ratio))
          make(cell, "small", { class: ratio > 1.02 ? "good" : ratio < 0.98 ? "bad" : "" },
            decimals(ratio) + "×" + (known(ratioHalf) && ratioHalf > 0 ? " ± " + decimals(ratioHalf) : ""));
      }
    }
    const jobs = data.comparison.filter((one) => one.policy !== data.baseline && one.jobs);
    if (!jobs.length) return;
    make(box, "h3", { style: "margin-top:18px" }, "Job by job, against " + data.baseline);
    const paired = make(make(box, "div", { class: "scroll" }), "table");
    const top = make(make(paired, "thead"), "tr");
    for (const title of ["policy", "jobs", "geometric mean of ratios", "p25", "median", "p75", "better by > 5%", "worse by > 5%"])
      make(top, "th", title === "policy" ? {} : { class: "number" }, title);
    const rows = make(paired, "tbody");
    for (const one of jobs) {
      const line = make(rows, "tr");
      make(line, "td", {}, one.policy);
      for (const text of [one.jobs, decimals(one.geometric) + "×", decimals(one.p25) + "×", decimals(one.p50) + "×",
        decimals(one.p75) + "×", percent(one.better), percent(one.worse)]) make(line, "td", { class: "number" }, text);
    }
  })();

  // --- distributions ---
  (() => {
    const box = section("Distributions", "Share of jobs at or below a value, first seed.", "cdf.csv");
    const grid = make(box, "div", { class: "grid" });
    for (const [key, title, time] of [["jct", "Completion time", true], ["queueing", "Time without GPUs", true],
      ["slowdown", "Slowdown: JCT / alone on the request", false], ["rho", `Finish-time fairness rho (${first.rho})`, false]]) {
      const all = data.runs.map((run) => run.cdf[key]).filter((list) => list.length);
      if (!all.length) continue;
      picture(grid, title, 220, (context, width, height) => {
        const low = Math.min(...all.map((list) => list[0])), high = Math.max(...all.map((list) => list[list.length - 1]));
        // Times from nothing to days: all below a second stand at the left edge.
        const least = time && low < 1 && high > 50 ? 1 : low;
        const log = least > 0 && high / least > 50;
        const [across, py] = axes(context, width, height,
          { low: log ? least : Math.min(low, 0), high: high || 1, log, time, label: time ? moment : undefined },
          { low: 0, high: 1, label: (v) => Math.round(100 * v) + "%" });
        const px = (v) => across(log ? Math.max(v, least) : v);
        data.runs.forEach((run, index) => {
          const list = run.cdf[key];
          if (!list.length) return;
          context.strokeStyle = color(index);
          context.lineWidth = 1.8;
          context.beginPath();
          list.forEach((v, i) => {
            const y = list.length > 1 ? i / (list.length - 1) : 1;
            if (i) context.lineTo(px(v), py(y)); else context.moveTo(px(v), py(y));
          });
          context.stroke();
        });
      });
    }
    legend(box, data.runs.map((run, index) => [run.policy, index]));
  })();

  // --- over time ---
  (() => {
    const box = section("Over time", "GPUs by use (filled: training, switching, profiling) and jobs that wait (line), first seed. Until 99% of the jobs have ended under every policy; the rest is in the CSV.", "POLICY/timeline.csv, cluster.csv");
    const grid = make(box, "div", { class: "grid" });
    const most = Math.max(1, ...data.runs.map((run) => Math.max(0, ...run.over_time.map((p) => p[4]))));
    const shown = Math.max(1e-6, ...data.runs.map((run) => Math.min(run.end, run.busy_until) - run.begin));
    for (const run of data.runs) {
      const gpus = run.nodes * run.gpus_per_node, last = Math.min(run.end, run.begin + shown);
      picture(grid, `${run.policy} (waiting: full height is ${Math.ceil(most)} jobs)`, 190, (context, width, height) => {
        const [px, py] = axes(context, width, height,
          { low: run.begin, high: run.begin + shown, time: true, label: (v) => moment(v - run.begin) },
          { low: 0, high: Math.max(gpus, 1) });
        const sums = [(p) => p[1], (p) => p[1] + p[2], (p) => p[1] + p[2] + p[3]];
        const fills = [color(0), style("--warn"), style("--wait")];
        for (const k of [2, 1, 0]) {
          context.fillStyle = fills[k];
          context.beginPath();
          context.moveTo(px(run.begin), py(0));
          run.over_time.forEach((p, i) => {
            if (p[0] >= last) return;
            const until = Math.min(last, i + 1 < run.over_time.length ? run.over_time[i + 1][0] : run.end);
            context.lineTo(px(p[0]), py(Math.min(gpus, sums[k](p))));
            context.lineTo(px(until), py(Math.min(gpus, sums[k](p))));
          });
          context.lineTo(px(last), py(0));
          context.fill();
        }
        context.strokeStyle = style("--bad");
        context.lineWidth = 1.4;
        context.beginPath();
        run.over_time.forEach((p, i) => {
          if (p[0] > last) return;
          const y = py((p[4] / most) * gpus);
          if (i) context.lineTo(px(p[0]), y); else context.moveTo(px(p[0]), y);
        });
        context.stroke();
      });
    }
    legend(box, [["training", 0], ["switching", 0, "--warn"], ["profiling", 0, "--wait"], ["waiting jobs", 0, "--bad"]]);
  })();

  // --- where the GPUs' time went ---
  (() => {
    const box = section("GPU time", "Shares of GPUs × makespan, first seed; they add up exactly (invariant R1).", "POLICY/summary.json");
    const parts = [["useful", "useful", 0], ["redone", "lost and done again", 4], ["switch", "switching", null, "--warn"],
      ["profile", "profiling", 2], ["blocked", "held after the end", 5], ["idle_waiting", "idle while jobs wait", null, "--bad"], ["idle_empty", "idle, nobody waits", null, "--wait"]];
    picture(box, null, 30 * data.runs.length + 8, (context, width) => {
      const left = Math.min(190, width * 0.3);
      data.runs.forEach((run, row) => {
        const sum = parts.reduce((total, [key]) => total + run.gpu_seconds[key], 0) || 1;
        context.fillStyle = style("--ink");
        context.textAlign = "right";
        context.textBaseline = "middle";
        context.fillText(run.policy, left - 10, row * 30 + 17, left - 12);
        let x = left;
        for (const [key, , index, fixed] of parts) {
          const size = (run.gpu_seconds[key] / sum) * (width - left - 4);
          context.fillStyle = fixed ? style(fixed) : color(index);
          context.fillRect(x, row * 30 + 6, size, 22);
          if (size > 38) {
            context.fillStyle = style(fixed === "--wait" ? "--ink" : "--card");
            context.textAlign = "center";
            context.fillText(percent(run.gpu_seconds[key] / sum), x + size / 2, row * 30 + 17);
          }
          x += size;
        }
      });
    });
    legend(box, parts.map(([, title, index, fixed]) => [title, index, fixed]));
  })();

  // --- the timeline of one policy ---
  (() => {
    if (!data.runs.some((run) => run.holds.length || run.too_many_holds)) return;
    const box = section("Timeline by GPU",
      "First seed. Colour: backbone; pattern: mode. Arrows: a merge (from the partner's run) and, red, a split. Scroll, or zoom with the buttons or Ctrl and the wheel; point at a run for details.",
      "POLICY/timeline.csv, POLICY/pairs.csv");
    const bar = make(box, "div", { class: "bar" });
    const choose = make(bar, "select", { "aria-label": "policy" });
    data.runs.forEach((run, index) => make(choose, "option", { value: index }, run.policy));
    const buttons = [["–", 1 / 1.6], ["+", 1.6], ["whole", 0]].map(([text, factor]) => {
      const button = make(bar, "button", { type: "button", "aria-label": "zoom " + text }, text);
      button.addEventListener("click", () => zoom(factor));
      return button;
    });
    const told = make(bar, "span", { class: "csv" });
    const frame = make(box, "div", { class: "gantt", tabindex: "0" });
    const space = make(frame, "div", { class: "space" });
    const canvas = make(frame, "canvas");
    const tip = make(document.body, "div", { class: "tip", hidden: "" });
    legend(box, data.backbones.slice(0, 16).map((name, index) => [name || "job", index]));
    let run = null, rows = [], scale = 1, height = 12, patterns = {};
    const label = 54, axis = 22;

    function pick(index) {
      run = data.runs[index];
      const gpus = run.nodes * run.gpus_per_node;
      height = gpus <= 40 ? 14 : gpus <= 256 ? 9 : 4;
      rows = Array.from({ length: gpus }, () => []);
      for (const hold of run.holds) for (const gpu of hold[4]) if (rows[gpu]) rows[gpu].push(hold);
      told.textContent = run.too_many_holds ? "too many runs to draw; see timeline.csv" : `${run.holds.length} runs, ${run.merges.length} merges`;
      zoom(0);
    }
    const wide = () => Math.max(100, frame.clientWidth - label);
    const pixels = () => (wide() * scale) / Math.max(run.end - run.begin, 1e-6); // a second
    function zoom(factor, at = wide() / 2) {
      const moment = (frame.scrollLeft + at) / pixels();
      scale = factor === 0 ? 1 : Math.min(4000, Math.max(1, scale * factor));
      layout();
      frame.scrollLeft = moment * pixels() - at;
      draw();
    }
    function layout() {
      const tall = Math.min(620, rows.length * height + axis + 2);
      frame.style.height = tall + 18 + "px";
      space.style.width = label + wide() * scale + "px";
      space.style.height = rows.length * height + axis + "px";
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(frame.clientWidth * ratio);
      canvas.height = Math.round(frame.clientHeight * ratio);
      canvas.style.width = frame.clientWidth + "px";
      canvas.style.height = frame.clientHeight + "px";
    }
    function stripes(context, mode) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const pen = tile.getContext("2d");
      pen.fillStyle = style("--card");
      pen.globalAlpha = 0.55;
      if (mode === 1) for (let i = 0; i < 6; ++i) pen.fillRect(i, (5 - i), 2, 1);
      else pen.fillRect(1, 1, 3, 3);
      return context.createPattern(tile, "repeat");
    }
    // First run of a row that ends after a moment: rows are sorted and do not overlap.
    function search(row, moment) {
      let low = 0, high = row.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (row[middle][2] < moment) low = middle + 1; else high = middle;
      }
      return low;
    }
    function draw() {
      if (!run) return;
      const context = canvas.getContext("2d"), ratio = window.devicePixelRatio || 1;
      const width = frame.clientWidth, tall = frame.clientHeight, per = pixels();
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = style("--card");
      context.fillRect(0, 0, width, tall);
      context.font = "11px system-ui, sans-serif";
      patterns = { 1: stripes(context, 1), 2: stripes(context, 2) };
      const x = (t) => label + (t - run.begin) * per - frame.scrollLeft;
      const from = run.begin + frame.scrollLeft / per, to = from + (width - label) / per;
      const firstRow = Math.max(0, Math.floor(frame.scrollTop / height)), lastRow = Math.min(rows.length, Math.ceil((frame.scrollTop + tall) / height));
      const y = (gpu) => axis + gpu * height - frame.scrollTop;
      const tints = data.backbones.map((_, index) => color(index)), warn = style("--warn"), wait = style("--wait"), bad = style("--bad");
      for (let gpu = firstRow; gpu < lastRow; ++gpu) {
        const row = rows[gpu];
        let filled = -1; // last pixel column drawn by something thinner than a pixel
        for (let i = search(row, from); i < row.length && row[i][0] <= to; ++i) {
          const hold = row[i], left = x(hold[0]), right = x(hold[2]);
          if (right - left < 1) {
            const column = Math.floor(left);
            if (column === filled) continue;
            filled = column;
          }
          const job = run.jobs[hold[3][0]], size = Math.max(1, right - left);
          context.fillStyle = hold[5] === 3 ? wait : tints[job ? job[1] : 0];
          context.fillRect(left, y(gpu), size, height - 1);
          if ((hold[5] === 1 || hold[5] === 2) && size > 3) {
            context.fillStyle = patterns[hold[5]];
            context.fillRect(left, y(gpu), size, height - 1);
          }
          const start = x(hold[1]) - left;
          if (start > 0.7) { context.fillStyle = warn; context.fillRect(left, y(gpu), start, height - 1); }
          if (hold[7] > 0) { context.fillStyle = bad; context.fillRect(x(hold[2] - hold[7]), y(gpu), Math.max(1, hold[7] * per), height - 1); }
        }
      }
      links(context, x, y, from, to);
      context.fillStyle = style("--card");
      context.fillRect(0, 0, width, axis);
      context.fillRect(0, 0, label, tall);
      context.fillStyle = style("--soft");
      context.textBaseline = "middle";
      context.textAlign = "right";
      for (let node = 0; node < run.nodes; ++node) {
        const middle = y(node * run.gpus_per_node) + (height * run.gpus_per_node) / 2;
        if (middle > axis && middle < tall && height * run.gpus_per_node > 9) context.fillText("node " + node, label - 6, middle);
      }
      context.textAlign = "center";
      for (const t of ticks(from - run.begin, to - run.begin, width / 110, true)) {
        if (x(t + run.begin) < label) continue;
        context.fillText(moment(t), x(t + run.begin), 11);
        context.fillRect(x(t + run.begin), axis - 3, 1, 3);
      }
    }
    // First run of a job that begins at or after a moment.
    function runOf(job, moment) {
      return run.holds.find((hold) => hold[3].includes(job) && hold[5] !== 3 && hold[0] >= moment - 0.002);
    }
    function links(context, x, y, from, to) {
      const shown = run.merges.filter((merge) => merge[3] <= to && (merge[4] ?? merge[3]) >= from);
      if (shown.length > 400) return; // a thicket tells nothing; they come with the zoom
      for (const [job, partner, mode, at, split] of shown) {
        const hold = runOf(job, at);
        if (!hold || !hold[4].length) continue;
        const target = y(hold[4][0]) + height / 2;
        const source = run.holds.filter((h) => h[3].includes(partner) && h[5] !== 3 && h[2] <= at + 0.002 && h !== hold).pop();
        context.strokeStyle = context.fillStyle = style("--ink");
        if (mode === 1 && source && source[4].length) {
          const begin = y(source[4][0]) + height / 2;
          context.beginPath(); context.moveTo(x(source[2]), begin);
          context.globalAlpha = Math.min(1, Math.max(0.15, 25 / shown.length)); // many: the runs stay readable
          context.bezierCurveTo(x(source[2]) + 14, begin, x(at) - 14, target, x(at), target); context.stroke();
          context.globalAlpha = 1;
        }
        context.beginPath(); context.arc(x(at), target, 3, 0, 7); context.fill();
        if (split === null) continue;
        context.strokeStyle = style("--bad");
        context.lineWidth = 2;
        context.beginPath(); context.moveTo(x(split) - 4, target - 4); context.lineTo(x(split) + 4, target + 4);
        context.moveTo(x(split) + 4, target - 4); context.lineTo(x(split) - 4, target + 4); context.stroke();
        context.lineWidth = 1;
      }
    }
    function describe(hold) {
      const names = hold[3].map((job) => run.jobs[job][0]).join(" + ");
      const job = run.jobs[hold[3][0]];
      const lines = [`${names}: ${modes[hold[5]]} on ${hold[4].length} GPU${hold[4].length > 1 ? "s" : ""}`,
        `${data.backbones[job[1]]}${job[2] ? " / " + job[2] : ""}`,
        `${duration(hold[0] - run.begin)} to ${duration(hold[2] - run.begin)}, switch ${duration(hold[1] - hold[0])}`];
      if (hold[6] >= 0 && run.jobs[hold[6]]) lines.push("partner " + run.jobs[hold[6]][0]);
      const merge = run.merges.find((m) => hold[3].includes(m[0]) && m[3] <= hold[2] && m[3] >= hold[0] - 0.002);
      if (merge) {
        lines.push(`gain predicted ${percent(merge[5])}, actual ${percent(merge[6])}, ${merge[7]}`);
        if (merge[8]) lines.push(merge[8]);
      }
      if (hold[8]) lines.push("ended: " + hold[8]);
      if (job[9]) lines.push("waited mostly for: " + job[9]);
      return lines.join("\n");
    }
    let waiting = false;
    frame.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(); });
    });
    frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.25 : 0.8, event.clientX - frame.getBoundingClientRect().left - label);
    }, { passive: false });
    frame.addEventListener("mousemove", (event) => {
      const place = frame.getBoundingClientRect();
      const gpu = Math.floor((event.clientY - place.top - axis + frame.scrollTop) / height);
      const at = run.begin + (event.clientX - place.left - label + frame.scrollLeft) / pixels();
      const row = rows[gpu], hold = row && row[search(row, at)];
      if (!hold || hold[0] > at + 1 / pixels()) { tip.hidden = true; return; }
      tip.textContent = describe(hold);
      tip.hidden = false;
      tip.style.left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8) + "px";
    });
    frame.addEventListener("mouseleave", () => (tip.hidden = true));
    choose.addEventListener("change", () => pick(Number(choose.value)));
    redraw.push(() => { if (!run) pick(0); else { layout(); draw(); } });
  })();

  // --- modes by backbone, transfers ---
  (() => {
    if (!data.runs.some((run) => run.transfer.merges)) return;
    const box = section("Transfers", "What pairings were made, which were wrong by the truth of the simulated world, which were not made although they were worth it. First seed.", "POLICY/pairs.csv");
    const table = make(make(box, "div", { class: "scroll" }), "table");
    const top = make(make(table, "thead"), "tr");
    for (const title of ["policy", "merges", "wrong", "taken back", "cost of those", "missed", "gain missed", "gain: error (MAPE)", "sign right", "modes of jobs by backbone"])
      make(top, "th", title === "policy" || title.startsWith("modes") ? {} : { class: "number" }, title);
    const body = make(table, "tbody");
    for (const run of data.runs) {
      const t = run.transfer, line = make(body, "tr");
      make(line, "td", {}, run.policy);
      for (const text of [t.merges, t.false, t.rollbacks, duration(t.extra_jct_s), t.missed, duration(t.missed_gain_s),
        percent(t.mape) + (t.measured ? ` of ${t.measured}` : ""), percent(t.sign)]) make(line, "td", { class: "number" }, text);
      const cell = make(line, "td");
      run.modes.forEach((counts, index) => {
        const sum = Object.values(counts).reduce((a, b) => a + b, 0);
        if (sum) make(cell, "small", {}, `${data.backbones[index] || "jobs"}: ` + Object.entries(counts).map(([mode, n]) => `${mode} ${percent(n / sum)}`).join(", "));
      });
    }
  })();

  // --- what was said of a merge against what came of it ---
  (() => {
    const runs = data.runs.filter((run) => [...run.transfer.helps, ...run.transfer.kept].some((n) => n > 0));
    if (!runs.length) return;
    const box = section("Right and wrong",
      "Merges of the first seed. Left: predicted to be faster than alone, against the gain measured at the end. Right: kept or taken back, against the true transfer weight (at least 1, or below).",
      "POLICY/summary.json, POLICY/pairs.csv");
    const grid = make(box, "div", { class: "grid" });
    for (const run of runs)
      for (const [key, yes, no, was, was_not] of [["helps", "predicted to help", "predicted to harm", "helped", "harmed"],
        ["kept", "kept", "taken back", "right", "wrong"]]) {
        const [right_yes, wrong_yes, wrong_no, right_no] = run.transfer[key];
        if (!(right_yes + wrong_yes + wrong_no + right_no)) continue;
        const frame = make(grid, "div");
        make(frame, "h3", {}, `${run.policy}: ${yes} or not`);
        const table = make(frame, "table");
        const top = make(make(table, "thead"), "tr");
        for (const title of ["", was, was_not]) make(top, "th", title ? { class: "number" } : {}, title);
        const body = make(table, "tbody");
        for (const [title, first, second, good] of [[yes, right_yes, wrong_yes, true], [no, wrong_no, right_no, false]]) {
          const line = make(body, "tr");
          make(line, "td", {}, title);
          make(line, "td", { class: "number " + (good ? "good" : "bad") }, first);
          make(line, "td", { class: "number " + (good ? "bad" : "good") }, second);
        }
      }
  })();

  // --- one setting swept ---
  (() => {
    if (!data.sweep.length) return;
    const box = section("Sweep of " + data.sweep_key, "Means over seeds at each value.", "sweep.csv");
    const grid = make(box, "div", { class: "grid" });
    for (const [column, title] of [[2, "Average JCT"], [3, "p99 JCT"]])
      picture(grid, title, 220, (context, width, height) => {
        const values = data.sweep.map((p) => p[0]), numbers = data.sweep.map((p) => p[column]).filter(known);
        const low = Math.min(...values), high = Math.max(...values), top = Math.max(1e-9, ...numbers) * 1.05;
        const [px, py] = axes(context, width, height, { low, high: high > low ? high : low + 1 }, { low: 0, high: top, label: moment });
        data.runs.forEach((run, index) => {
          const points = data.sweep.filter((p) => p[1] === run.policy && known(p[column]));
          context.strokeStyle = context.fillStyle = color(index);
          context.lineWidth = 1.8;
          context.beginPath();
          points.forEach((p, i) => (i ? context.lineTo(px(p[0]), py(p[column])) : context.moveTo(px(p[0]), py(p[column]))));
          context.stroke();
          for (const p of points) { context.beginPath(); context.arc(px(p[0]), py(p[column]), 2.5, 0, 7); context.fill(); }
        });
      });
    legend(box, data.runs.map((run, index) => [run.policy, index]));
  })();

  // --- who gained, who paid ---
  (() => {
    const box = section("Who gained, who paid", `Each dot is a job of the first seed: how much faster than under ${data.baseline}, by its completion time there. Above 1× it gained, below it paid.`, "who_paid.csv");
    const grid = make(box, "div", { class: "grid" });
    for (const [index, run] of data.runs.entries()) {
      if (run.policy === data.baseline || !run.paired.length) continue;
      const factors = run.paired.map(([base, own]) => Math.log2(base / own)), times = run.paired.map(([base]) => base);
      const most = Math.min(6, Math.max(1, Math.ceil(Math.max(...factors.map(Math.abs)))));
      const low = Math.max(1, Math.min(...times)), high = Math.max(low * 10, ...times);
      picture(grid, run.policy, 220, (context, width, height) => {
        const [px, py] = axes(context, width, height, { low, high, log: true, label: moment },
          { low: -most, high: most, label: (v) => (v % 1 ? "" : v < 0 ? `1/${2 ** -v}×` : `${2 ** v}×`) });
        context.strokeStyle = style("--soft");
        context.beginPath(); context.moveTo(px(low), py(0)); context.lineTo(px(high), py(0)); context.stroke();
        context.fillStyle = color(index);
        context.globalAlpha = times.length > 400 ? 0.35 : 0.7;
        factors.forEach((factor, i) => {
          context.beginPath();
          context.arc(px(Math.max(low, times[i])), py(Math.max(-most, Math.min(most, factor))), 2.5, 0, 7);
          context.fill();
        });
        context.globalAlpha = 1;
      });
    }
    make(box, "h3", { style: "margin-top:18px" }, "Who paid most");
    make(box, "p", { class: "lead" }, `Jobs that took at least 5% longer than under ${data.baseline}: the ten worst of each policy.`);
    if (!data.paid.length) { make(box, "p", {}, "Nobody."); return; }
    const table = make(make(box, "div", { class: "scroll" }), "table");
    const top = make(make(table, "thead"), "tr");
    for (const title of ["policy", "job", "JCT", "under " + data.baseline, "why"]) make(top, "th", title === "JCT" || title.startsWith("under") ? { class: "number" } : {}, title);
    const body = make(table, "tbody");
    for (const [policy, job, jct, base, why] of data.paid) {
      const line = make(body, "tr");
      make(line, "td", {}, policy);
      make(line, "td", {}, job);
      make(line, "td", { class: "number" }, duration(jct));
      make(line, "td", { class: "number" }, duration(base));
      make(line, "td", {}, why);
    }
  })();

  // --- solver, configuration ---
  (() => {
    const box = section("Decisions", "Time of the solver a round (measured on the machine that simulated).", "POLICY/rounds.csv");
    const table = make(make(box, "div", { class: "scroll" }), "table");
    const top = make(make(table, "thead"), "tr");
    for (const title of ["policy", "rounds", "solved, not proved optimal", "mean", "p99", "max"]) make(top, "th", title === "policy" ? {} : { class: "number" }, title);
    const body = make(table, "tbody");
    for (const run of data.runs) {
      const line = make(body, "tr");
      make(line, "td", {}, run.policy);
      for (const text of [run.rounds, run.unproved, ...run.solver.map((ms) => decimals(ms, 1) + " ms")]) make(line, "td", { class: "number" }, text);
    }
    const config = section("Configuration", null, null);
    for (const run of data.runs) {
      const constants = Object.entries(run.constants);
      if (!constants.length) continue;
      make(config, "h3", {}, run.policy);
      make(config, "p", {}).appendChild(make(null, "code", {}, constants.map(([name, value]) => `${name} = ${value}`).join("   ")));
    }
    make(config, "p", {}).appendChild(make(null, "code", {}, JSON.stringify(data.config)));
    make(config, "p", { class: "csv" }, "config_hash " + data.config_hash + " (of the first run; each summary.json has its own)");
  })();

  const all = () => redraw.forEach((draw) => draw());
  window.addEventListener("resize", all);
  all();
})();
