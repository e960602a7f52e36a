"use strict";
// Draws the report from the JSON block beside it. Texts of jobs only ever become text nodes.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const jobs = new Map(data.jobs.map((job) => [job.id, job]));
  const SVG = "http://www.w3.org/2000/svg";

  // --- building blocks ---
  function make(parent, name, attributes = {}, text = null, space = null) {
    const node = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.appendChild(document.createTextNode(text));
    if (parent) parent.appendChild(node);
    return node;
  }
  const draw = (parent, name, attributes, text) => make(parent, name, attributes, text ?? null, SVG);
  function section(id, title, lead) {
    const box = make(document.querySelector("main"), "section", { "aria-labelledby": id });
    make(box, "h2", { id }, title);
    if (lead) make(box, "p", { class: "lead" }, lead);
    return box;
  }
  function duration(seconds) {
    if (seconds === null || seconds === undefined || !isFinite(seconds)) return "–";
    if (seconds < 9.95) return seconds.toFixed(1) + " s";
    const whole = Math.round(seconds);
    if (whole < 60) return whole + " s";
    if (whole < 3600) return Math.floor(whole / 60) + " m " + String(whole % 60).padStart(2, "0") + " s";
    return Math.floor(whole / 3600) + " h " + String(Math.floor((whole % 3600) / 60)).padStart(2, "0") + " m";
  }
  const plain = (x, digits = 3) => (x === null || x === undefined ? "–" : Number(x).toFixed(digits));
  const times = (x) => (x === null || x === undefined ? "–" : Number(x).toFixed(2) + "×");

  // Colours go round the circle by the golden angle: neighbours in the list differ most.
  const hue = (index) => Math.round((212 + index * 137.5) % 360);
  const color = (job) => `hsl(${hue(job.index)} var(--strength) var(--light))`;
  const names = { normal: "alone", temporal: "temporal", spatial: "spatial", profile: "profile" };

  // Ticks at 1, 2, 5 x 10^n (seconds: also minutes and hours).
  function ticks(low, high, count, steps) {
    const span = Math.max(high - low, 1e-12);
    let step = steps ? steps.find((s) => span / s <= count) : undefined;
    if (!step) {
      const power = 10 ** Math.floor(Math.log10(span / count));
      step = [1, 2, 5, 10].map((f) => f * power).find((s) => span / s <= count);
    }
    const list = [];
    for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + step * 1e-9; x += step) list.push(x);
    return { list, step };
  }
  const timeSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

  // --- patterns: the mode is told by pattern and label, never by colour alone ---
  function patterns(svg) {
    const defs = draw(svg, "defs");
    const hatch = draw(defs, "pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    draw(hatch, "rect", { width: 2.4, height: 7, fill: "var(--card)", "fill-opacity": 0.38 });
    const dots = draw(defs, "pattern", { id: "dots", width: 7, height: 7, patternUnits: "userSpaceOnUse" });
    draw(dots, "circle", { cx: 3.5, cy: 3.5, r: 1.5, fill: "var(--card)", "fill-opacity": 0.55 });
    const tip = draw(defs, "marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
    draw(tip, "path", { d: "M0 0 L8 4 L0 8 z", fill: "var(--ink)" });
  }
  function bar(parent, x, y, width, height, fill, mode, title) {
    const group = draw(parent, "g", { tabindex: 0, role: "img", "aria-label": title });
    draw(group, "title", {}, title);
    const thin = mode === "profile";
    const box = { x, y: thin ? y + height * 0.28 : y, width: Math.max(width, 1.5), height: thin ? height * 0.44 : height, rx: 4 };
    draw(group, "rect", { ...box, fill, "fill-opacity": thin ? 0.55 : 1 });
    if (mode === "temporal") draw(group, "rect", { ...box, fill: "url(#hatch)" });
    if (mode === "spatial") draw(group, "rect", { ...box, fill: "url(#dots)" });
    return group;
  }
  function label(group, text, x, y, width) {
    if (text.length * 6.6 + 8 <= width) draw(group, "text", { x: x + 6, y, class: "inbar" }, text);
  }
  const tag = (run) => (run.mode === "temporal" ? " ←" + run.partner : run.mode === "spatial" ? " ⇄" : "");

  // --- head and numbers ---
  function head() {
    const box = document.querySelector("header.top");
    const words = make(box, "div", { class: "grow" });
    make(words, "h1", {}, data.title);
    make(words, "p", {}, `${data.summary.jobs} jobs on ${data.slots.length} slots, ${duration(data.end)}; ${data.generated}`);
    const button = make(box, "button", { type: "button" }, "");
    const root = document.documentElement;
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const show = (theme) => {
      root.dataset.theme = theme;
      button.textContent = theme === "dark" ? "Light theme" : "Dark theme";
    };
    show(dark.matches ? "dark" : "light");
    dark.addEventListener("change", () => show(dark.matches ? "dark" : "light"));
    button.addEventListener("click", () => show(root.dataset.theme === "dark" ? "light" : "dark"));
  }
  function tiles() {
    const s = data.summary;
    const box = make(document.querySelector("main"), "div", { class: "tiles" });
    const tile = (number, text, note) => {
      const one = make(box, "div", { class: "tile" });
      make(one, "div", { class: "number" }, number);
      make(one, "div", { class: "label" }, text);
      if (note) make(one, "div", { class: "note" }, note);
    };
    tile(`${s.succeeded} / ${s.jobs}`, "jobs succeeded", s.failed ? `${s.failed} failed` : s.with_target ? `${s.targets_reached} of ${s.with_target} targets reached` : "");
    const ended = s.succeeded + s.failed > 0;
    tile(ended ? duration(s.makespan_s) : "–", "until the last job ended", "");
    tile(ended ? duration(s.mean_completion_s) : "–", "mean completion", ended ? `worst ${duration(s.worst_completion_s)}` : "no job has ended");
    tile(`${Math.round(100 * s.busy)} %`, "of slot time used", `profiles ${Math.round(100 * s.profile_share)} %`);
    tile(String(s.merges), s.merges === 1 ? "merge" : "merges", `${s.kept} kept, ${s.split} split`);
    tile(String(s.rounds), "rounds", s.round_ms === null ? "" : `solved in ${s.round_ms.toFixed(1)} ms (mean)`);
  }

  // --- timeline ---
  const left = 150, right = 26, top = 26;
  function frame(box, rows, rowHeight, summary) {
    const width = Math.max(760, Math.min(1192, document.documentElement.clientWidth - 88));
    const height = top + rows * rowHeight + 30;
    const holder = make(box, "div", { class: "scroll" });
    const svg = draw(holder, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": summary });
    patterns(svg);
    const x = (t) => left + ((width - left - right) * t) / Math.max(data.end, 1e-9);
    for (const t of ticks(0, data.end, 10, timeSteps).list) {
      draw(svg, "line", { x1: x(t), x2: x(t), y1: top, y2: height - 26, class: "grid" });
      draw(svg, "text", { x: x(t), y: height - 10, "text-anchor": "middle", class: "soft" }, t === 0 ? "0" : duration(t));
    }
    draw(svg, "line", { x1: left, x2: width - right, y1: height - 26, y2: height - 26, class: "axis" });
    return { svg, x, width };
  }
  function runTitle(run) {
    const who = run.jobs.map((id) => `${id} ${jobs.get(id)?.name ?? ""}`).join(" and ");
    const how = run.mode === "temporal" ? `temporal, from ${run.strength} × ${run.partner}` : names[run.mode] ?? run.mode;
    return `${who}: ${how}; ${duration(run.start)} to ${run.open ? "now" : duration(run.end)}${run.why ? "; ended: " + run.why : ""}`;
  }
  function marks(svg, x, place) {
    for (const mark of data.splits.concat(data.keeps)) {  // on the upper edge: the label stays readable
      const middle = place(mark);
      if (middle === null) continue;
      const y = middle - 9;
      const text = mark.kind === "split"
        ? `${mark.job} split from ${mark.partner}: ${mark.why}${mark.restart ? "; went back to its own checkpoint" : "; went on from where it was"}`
        : `${mark.job} kept its merge: ${mark.why}`;
      const group = draw(svg, "g", { tabindex: 0, role: "img", "aria-label": text });
      draw(group, "title", {}, text);
      const cx = x(mark.t);
      if (mark.kind === "split") draw(group, "path", { class: "split", d: `M${cx} ${y - 8} l8 8 l-8 8 l-8 -8 z` });
      else draw(group, "circle", { class: "keep", cx, cy: y, r: 6.5 });
      draw(group, "text", { x: cx, y: y + 4, "text-anchor": "middle", class: "inbar" }, mark.kind === "split" ? "×" : "✓");
    }
  }
  // From where the source ended (or stood last) to where the target began.
  function arrows(svg, x, place) {
    for (const run of data.runs) {
      if (run.mode !== "temporal" || run.profile || run.from_step > run.first_step) continue;
      const before = data.runs.filter((r) => r.jobs.includes(run.partner) && r.start < run.start && !r.profile);
      if (before.length === 0) continue;
      const source = before.reduce((a, b) => (a.end > b.end ? a : b));
      // A source that still runs is left a little before the target begins.
      const x1 = Math.min(x(source.end), x(run.start) - 14), y1 = place(source, run.partner);
      const x2 = x(run.start), y2 = place(run, run.jobs[0]);
      if (y1 === null || y2 === null) continue;
      const reach = Math.max(18, Math.min(70, (x2 - x1) / 2));
      const path = `M${x1} ${y1} C${x1 + reach} ${y1} ${x2 - reach} ${y2} ${x2} ${y2}`;
      draw(svg, "path", { d: path, class: "halo" });
      const line = draw(svg, "path", { d: path, class: "arrow", "marker-end": "url(#tip)" });
      draw(line, "title", {}, `${run.jobs[0]} starts from ${run.strength} × the adapter of ${run.partner}`);
    }
  }
  function bySlot(box) {
    const height = 46;
    const { svg, x, width } = frame(box, data.slots.length, height, "one row a slot, one bar a run");
    data.slots.forEach((slot, i) => {
      const y = top + i * height;
      draw(svg, "text", { x: 4, y: y + height / 2 + 4 }, slot.name);
      draw(svg, "line", { x1: left, x2: width - right, y1: y + height, y2: y + height, class: "grid" });
    });
    const middle = (run) => top + Math.min(...run.slots) * height + height / 2;
    for (const run of data.runs)
      for (const slot of run.slots) {
        const y = top + slot * height + 6, h = height - 12;
        const x1 = x(run.start), w = x(run.end) - x1;
        const title = runTitle(run);
        if (run.jobs.length === 2 && !run.profile) {
          run.jobs.forEach((id, k) => {
            const group = bar(svg, x1, y + (k * h) / 2, w, h / 2 - 0.5, color(jobs.get(id)), "spatial", title);
            label(group, id + tag(run), x1, y + (k * h) / 2 + h / 4 + 4, w);
          });
        } else {
          const group = bar(svg, x1, y, w, h, color(jobs.get(run.jobs[0])), run.mode, title);
          if (run.mode !== "profile") label(group, run.jobs[0] + tag(run), x1, y + h / 2 + 4, w);
        }
      }
    arrows(svg, x, (run) => middle(run));
    marks(svg, x, (mark) => {
      const run = data.runs.find((r) => r.run === mark.run);
      return run ? middle(run) : null;
    });
  }
  function byJob(box) {
    const height = 30;
    const { svg, x, width } = frame(box, data.jobs.length, height, "one row a job: waiting pale, running in colour");
    const row = new Map(data.jobs.map((job, i) => [job.id, top + i * height]));
    for (const job of data.jobs) {
      const y = row.get(job.id);
      const text = draw(svg, "text", { x: 4, y: y + height / 2 + 4 }, `${job.id} ${job.name}`.slice(0, 21));
      draw(text, "title", {}, `${job.id} ${job.name}`);
      const until = job.finished ?? data.end;
      const title = `${job.id} ${job.name}: submitted ${duration(job.submitted)}, ${job.finished === null ? "not ended" : "ended " + duration(job.finished)}, waited ${duration(job.waited_s)}`;
      const group = draw(svg, "g", { tabindex: 0, role: "img", "aria-label": title });
      draw(group, "title", {}, title);
      draw(group, "rect", { x: x(job.submitted), y: y + height / 2 - 2, width: Math.max(x(until) - x(job.submitted), 1), height: 4, rx: 2, fill: "var(--wait)" });
      draw(svg, "line", { x1: left, x2: width - right, y1: y + height, y2: y + height, class: "grid" });
    }
    for (const run of data.runs)
      for (const id of run.jobs) {
        const y = row.get(id) + 5, h = height - 10, x1 = x(run.start), w = x(run.end) - x1;
        const group = bar(svg, x1, y, w, h, color(jobs.get(id)), run.mode, runTitle(run));
        const partner = run.jobs.length === 2 ? run.jobs.find((other) => other !== id) : run.partner;
        if (run.mode !== "profile") label(group, run.mode === "normal" ? "alone" : run.mode === "temporal" ? "← " + partner : "⇄ " + partner, x1, y + h / 2 + 4, w);
      }
    arrows(svg, x, (run, id) => (row.has(id) ? row.get(id) + height / 2 : null));
    marks(svg, x, (mark) => (row.has(mark.job) ? row.get(mark.job) + height / 2 : null));
    for (const job of data.jobs) {
      if (job.finished === null) continue;
      const good = job.state === "succeeded";
      const cx = x(job.finished) + 11, cy = row.get(job.id) + height / 2;
      const text = `${job.state}: ${job.code || job.reason}`;
      const group = draw(svg, "text", { x: cx, y: cy + 4.5, "text-anchor": "middle", style: `fill: var(--${good ? "good" : "bad"}); font-weight: 700` }, good ? "✓" : "×");
      draw(group, "title", {}, text);
    }
  }
  function legend(box) {
    const list = make(box, "ul", { class: "legend" });
    const item = (paint, text) => {
      const li = make(list, "li");
      const svg = draw(li, "svg", { width: 26, height: 14, "aria-hidden": "true" });
      paint(svg);
      make(li, "span", {}, text);
    };
    const fill = "hsl(212 var(--strength) var(--light))";
    const swatch = (mode) => (svg) => {
      const h = mode === "profile" ? 6 : 14;
      draw(svg, "rect", { width: 26, height: h, y: (14 - h) / 2, rx: 3, fill, "fill-opacity": mode === "profile" ? 0.55 : 1 });
      if (mode === "temporal") draw(svg, "rect", { width: 26, height: 14, fill: "url(#hatch)" });
      if (mode === "spatial") draw(svg, "rect", { width: 26, height: 14, fill: "url(#dots)" });
    };
    item(swatch("normal"), "alone");
    item(swatch("temporal"), "temporal: starts from another job's adapter");
    item(swatch("spatial"), "spatial: two jobs train together");
    item(swatch("profile"), "profile");
    item((svg) => draw(svg, "path", { d: "M1 7 H20", class: "arrow", "marker-end": "url(#tip)" }), "from source to target");
    item((svg) => draw(svg, "path", { d: "M13 0 l7 7 l-7 7 l-7 -7 z", class: "split" }), "split");
    item((svg) => draw(svg, "circle", { cx: 13, cy: 7, r: 6, class: "keep" }), "kept");
  }
  function timeline() {
    const box = section("timeline", "Timeline", "Every run, where it ran and what it learnt from. The colour is the job; the pattern is the mode.");
    const tools = make(box, "div", { class: "bar", role: "group", "aria-label": "rows of the timeline" });
    const holder = make(box, "div");
    const choices = [["By job", byJob], ["By slot", bySlot]];
    const buttons = choices.map(([text, paint]) => {
      const button = make(tools, "button", { type: "button", "aria-pressed": "false" }, text);
      button.addEventListener("click", () => {
        buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        holder.replaceChildren();
        paint(holder);
      });
      return button;
    });
    buttons[0].click();
    legend(box);
    const rest = make(box, "details");
    make(rest, "summary", {}, "Runs as a table");
    table(rest, ["run", "jobs", "mode", "slots", "start", "end", "ended by"], data.runs.map((run) => [
      run.run, run.jobs.join(" + "), names[run.mode] + (run.mode === "temporal" ? " from " + run.partner : ""),
      run.slots.map((i) => data.slots[i].name).join(", "), duration(run.start), run.open ? "–" : duration(run.end), run.why]));
    window.addEventListener("resize", () => buttons.find((b) => b.getAttribute("aria-pressed") === "true").click());
  }

  // --- tables ---
  function table(parent, titles, rows, numbers = []) {
    const scroll = make(parent, "div", { class: "scroll" });
    const element = make(scroll, "table");
    const first = make(make(element, "thead"), "tr");
    titles.forEach((title, i) => make(first, "th", { scope: "col", class: numbers.includes(i) ? "number" : "" }, title));
    const body = make(element, "tbody");
    for (const row of rows) {
      const line = make(body, "tr");
      row.forEach((cell, i) => {
        const td = make(line, "td", { class: numbers.includes(i) ? "number" : titles[i] === "why" ? "why" : "" });
        if (typeof cell === "function") cell(td);
        else td.appendChild(document.createTextNode(cell));
      });
    }
    return element;
  }
  const chip = (kind, text) => (td) => make(td, "span", { class: "chip " + kind }, text);
  const best = (transfers) => (transfers.length ? transfers[transfers.length - 1] : null);
  function outcome(job) {
    if (job.state === "succeeded") return job.target && !job.target_reached ? chip("warn", job.reason) : chip("good", job.reason || "succeeded");
    if (job.state === "failed") return chip("bad", job.code || "failed");
    return chip("softly", job.state);
  }
  function story(job) {
    const merge = best(job.transfers);
    if (!merge) return "";
    if (merge.verdict === "split") return `taken back: ${merge.why || "no gain seen"}`;
    return merge.why || "";
  }
  function results() {
    const box = section("results", "Results", "Predicted gain: how many times sooner the target was expected, with its 10th to 90th percentile. Actual: against the named baseline.");
    const rows = data.jobs.map((job) => {
      const merge = best(job.transfers);
      return [
        (td) => { make(td, "span", { class: "swatch", style: `background: ${color(job)}` }); td.appendChild(document.createTextNode(`${job.id} ${job.name}`)); },
        outcome(job),
        merge ? `${merge.mode} ${merge.mode === "spatial" ? "with" : "after"} ${merge.partner}` : "alone",
        merge ? chip(merge.verdict === "kept" ? "good" : merge.verdict === "split" ? "bad" : "softly", merge.verdict) : "",
        merge ? `${times(merge.predicted.p50)} (${plain(merge.predicted.p10, 2)}–${plain(merge.predicted.p90, 2)})` : "",
        merge && merge.actual !== null ? (merge.censored ? "≤ " : "") + times(merge.actual) + (merge.baseline ? `, ${merge.baseline}` : "") : "",
        job.metric ? `${plain(job.value)}${job.target ? " / " + plain(job.target.value) : ""} ${job.metric}` : "",
        String(job.step ?? "–"),
        duration(job.waited_s),
        duration(job.busy_s),
        job.finished === null ? "–" : duration(job.finished - job.submitted),
        story(job),
      ];
    });
    table(box, ["job", "ended by", "mode", "verdict", "predicted gain", "actual gain", "result / target", "step", "waited", "slot time", "completion", "why"], rows, [7, 8, 9, 10]);
  }

  // --- curves ---
  function curve(parent, title, points, options) {
    const width = 360, height = 150, l = 42, r = 10, t = 16, b = 24;
    const svg = draw(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
    draw(svg, "text", { x: l, y: 11, class: "soft" }, options.name);
    const all = points.flat();
    if (all.length === 0) {
      draw(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle", class: "soft" }, "no points");
      return;
    }
    const ys = all.map((p) => p[1]).concat(options.target === null ? [] : [options.target]);
    let low = Math.min(...ys), high = Math.max(...ys);
    const margin = (high - low) * 0.08 || Math.abs(high) * 0.1 || 0.1;
    low -= margin; high += margin;
    const last = Math.max(...all.map((p) => p[0]), options.last, 1);
    const x = (step) => l + ((width - l - r) * step) / last;
    const y = (value) => t + ((height - t - b) * (high - value)) / (high - low);
    for (const band of options.bands) {
      if (band.mode === "normal" || band.mode === "profile") continue;
      const one = draw(svg, "rect", { x: x(band.from), width: Math.max(x(band.to) - x(band.from), 1), y: t, height: height - t - b, fill: options.color, "fill-opacity": 0.13 });
      draw(one, "title", {}, `${band.mode} with ${band.partner}, steps ${band.from} to ${band.to}`);
      if (x(band.to) - x(band.from) > 60) draw(svg, "text", { x: x(band.from) + 4, y: height - b - 5, class: "soft" }, `${band.mode} ${band.partner}`);
    }
    const grid = ticks(low, high, 4);
    const digits = Math.max(0, Math.min(4, -Math.floor(Math.log10(grid.step) + 1e-9)));
    for (const value of grid.list) {
      draw(svg, "line", { x1: l, x2: width - r, y1: y(value), y2: y(value), class: "grid" });
      draw(svg, "text", { x: l - 6, y: y(value) + 4, "text-anchor": "end", class: "soft" }, value.toFixed(digits));
    }
    for (const step of ticks(0, last, 5).list)
      draw(svg, "text", { x: x(step), y: height - 7, "text-anchor": "middle", class: "soft" }, String(Math.round(step)));
    if (options.target !== null) {
      draw(svg, "line", { x1: l, x2: width - r, y1: y(options.target), y2: y(options.target), class: "target" });
      draw(svg, "text", { x: width - r, y: y(options.target) - 4, "text-anchor": "end", style: "fill: var(--good)" }, `target ${plain(options.target)}`);
    }
    points.forEach((piece, i) => {
      const d = piece.map((p, k) => `${k ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join(" ");
      draw(svg, "path", { d, fill: "none", stroke: options.color, "stroke-width": 2, "stroke-opacity": i < points.length - 1 ? 0.4 : 1, "stroke-linejoin": "round" });
      if (options.dots) for (const p of piece) {
        const dot = draw(svg, "circle", { cx: x(p[0]), cy: y(p[1]), r: 2.8, fill: options.color });
        draw(dot, "title", {}, `step ${p[0]}: ${plain(p[1], 4)}`);
      }
    });
  }
  function curves() {
    const box = section("curves", "Curves", "Metric on the job's own validation rows and training loss, by optimizer step. Shaded: trained with a partner. Faded: given up by going back.");
    const grid = make(box, "div", { class: "curves" });
    for (const job of data.jobs) {
      const card = make(grid, "article", { class: "curve" });
      const title = make(card, "h3");
      make(title, "span", { class: "swatch", style: `background: ${color(job)}` });
      title.appendChild(document.createTextNode(`${job.id} ${job.name}`));
      const merge = best(job.transfers);
      const reached = job.target ? (job.target_reached ? `target reached at step ${job.step}` : "target not reached") : "no target";
      make(card, "p", {}, `${merge ? `${merge.mode} ${merge.partner}, ${merge.verdict}; ` : ""}${reached}`);
      const all = job.evals.flat().concat(job.losses.flat());
      const last = all.length ? Math.max(...all.map((p) => p[0])) : 1;
      const common = { bands: job.bands, color: color(job), last };
      curve(card, `${job.metric} of ${job.id}: last ${plain(job.value)}`, job.evals, { ...common, name: job.metric, target: job.target ? job.target.value : null, dots: true });
      curve(card, `training loss of ${job.id}`, job.losses, { ...common, name: "training loss", target: null, dots: false });
      const rest = make(card, "details");
      make(rest, "summary", {}, "Points as a table");
      table(rest, ["step", job.metric], job.evals.flat().map((p) => [String(p[0]), plain(p[1], 4)]), [0, 1]);
    }
  }

  // --- shared against one after another ---
  function comparison() {
    const c = data.comparison;
    if (!c) return;
    const box = section("comparison", "Against one after another", `The same ${c.jobs.length} jobs, ${c.baseline}. Measured on this machine, not predicted.`);
    const measures = [["until the last job ended", "makespan_s"], ["mean completion", "mean_s"], ["worst completion", "worst_s"]];
    const width = 900, l = 190, high = Math.max(...measures.flatMap(([, key]) => [c.shared[key], c.sequential[key]]));
    const svg = draw(make(box, "div", { class: "scroll" }), "svg", { width, height: measures.length * 64 + 6, role: "img", "aria-label": "makespan, mean and worst completion of both" });
    measures.forEach(([text, key], i) => {
      const y = i * 64 + 4, x = (s) => ((width - l - 210) * s) / high;
      draw(svg, "text", { x: 0, y: y + 29 }, text);
      [["Ymir", c.shared[key], "hsl(212 var(--strength) var(--light))"], ["one by one", c.sequential[key], "var(--wait)"]].forEach(([who, value, fill], k) => {
        draw(svg, "rect", { x: l, y: y + k * 24, width: Math.max(x(value), 1), height: 20, rx: 4, fill });
        const gain = k === 0 && c.shared[key] > 0 ? `, ${(c.sequential[key] / c.shared[key]).toFixed(2)}× sooner` : "";
        draw(svg, "text", { x: l + x(value) + 8, y: y + k * 24 + 15 }, `${who}: ${duration(value)}${gain}`);
      });
    });
    const rest = make(box, "details");
    make(rest, "summary", {}, "Completion of each job");
    table(rest, ["job", "Ymir", "one by one", "ratio"], c.jobs.map((job) => [job.name, duration(job.shared_s), duration(job.sequential_s), job.shared_s > 0 ? times(job.sequential_s / job.shared_s) : "–"]), [1, 2, 3]);
  }

  head();
  tiles();
  timeline();
  results();
  comparison();
  curves();
  make(document.querySelector("main"), "footer", {}, `Made by Ymir ${data.version} from ${data.events} events of the log. Self-contained: nothing is loaded from elsewhere.`);
})();
