// The slice explorer: two inputs on the axes, sliders for the others, mean and standard deviation drawn from the model.
(function () {
  "use strict";
  const FINE = 60, COARSE = 20, TURN_MS = 24;
  const box = document.getElementById("explorer");
  if (!box) return;
  const read = (id) => document.getElementById(id).textContent;
  const page = JSON.parse(read("explorer-data"));
  const model = window.pdedklModel(page.model, read("explorer-arrays"));
  const { names, lower, upper } = page, dim = names.length, flat = dim === 1;
  const state = { q: page.start.slice(), a: page.axes[0], b: page.axes[1] };
  const find = (name) => box.querySelector(`[data-role="${name}"]`);
  const panels = [
    { key: "mean", canvas: find("mean"), colours: page.viridis },
    { key: "std", canvas: find("std"), colours: page.cividis },
  ];
  let drawn = null, run = 0, idle = false, waiting = null;

  const tidy = (x) => x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(2) : String(+x.toPrecision(4));

  // ── controls ──
  function controls() {
    for (const [name, key] of [["across", "a"], ["up", "b"]]) {
      const select = find(name);
      names.forEach((label, i) => select.add(new Option(label, i, false, i === state[key])));
      select.addEventListener("change", () => choose(key, Number(select.value)));
    }
    if (flat) for (const name of ["up", "centre", "random", "sliders"]) (find(name).closest("label") || find(name)).hidden = true;
    const list = find("sliders");
    names.forEach((label, i) => {
      const row = document.createElement("label");
      row.className = "slider";
      const name = document.createElement("span"), input = document.createElement("input");
      const value = document.createElement("output");
      name.textContent = label;
      Object.assign(input, { type: "range", min: lower[i], max: upper[i], step: "any", value: state.q[i] });
      input.setAttribute("aria-label", label);
      input.addEventListener("input", () => { state.q[i] = Number(input.value); value.textContent = tidy(state.q[i]); draw(); });
      row.append(name, input, value);
      list.append(row);
    });
    const fields = page.model.fields, select = find("field");
    if (fields.length > 1) {
      select.closest("label").hidden = false;
      fields.forEach((label, i) => select.add(new Option(label, i)));
      select.addEventListener("change", () => show(Number(select.value)));
    }
    find("centre").addEventListener("click", () => move(lower.map((low, i) => 0.5 * (low + upper[i]))));
    find("random").addEventListener("click", () => move(lower.map((low, i) => low + Math.random() * (upper[i] - low))));
    showControls();
  }

  // Choosing the input of the other axis exchanges the two.
  function choose(key, i) {
    const other = key === "a" ? "b" : "a";
    if (state[other] === i && !flat) state[other] = state[key];
    state[key] = i;
    showControls();
    draw();
  }

  function show(field) {
    model.show(field);
    const name = page.model.fields[field];
    find("name").textContent = name;
    for (const { key, canvas } of panels) {
      canvas.setAttribute("aria-label", `Map of the ${key === "mean" ? "mean" : "standard deviation"} of ${name} over the chosen inputs`);
    }
    draw();
  }

  function move(q) { state.q = q; showControls(); draw(); }

  function showControls() {
    find("across").value = state.a;
    find("up").value = state.b;
    [...find("sliders").children].forEach((row, i) => {
      const onAxis = i === state.a || (!flat && i === state.b), [, input, value] = row.children;
      row.classList.toggle("on-axis", onAxis);
      input.disabled = onAxis;
      input.value = state.q[i];
      value.textContent = onAxis ? (i === state.a ? "across" : "up") : tidy(state.q[i]);
    });
  }

  // ── computing ──
  const at = (i, k, count) => lower[i] + (upper[i] - lower[i]) * (k + 0.5) / count;

  function pointOf(column, line, columns, lines) {
    const q = state.q.slice();
    q[state.a] = at(state.a, column, columns);
    if (!flat) q[state.b] = at(state.b, line, lines);
    return q;
  }

  // Draw a coarse picture at once, and a fine one when nothing has moved for a moment. Both are computed in short
  // turns, so that the page stays responsive.
  function draw() {
    idle = false;
    clearTimeout(waiting);
    const number = ++run;
    compute(COARSE, number, () => { waiting = setTimeout(() => compute(FINE, number, () => { idle = true; }), 120); });
  }

  function compute(count, number, done) {
    const columns = count, lines = flat ? 1 : count, total = columns * lines;
    const moving = flat ? [state.a] : [state.a, state.b], covariances = model.covariances(state.q, moving);
    const next = { columns, lines, a: state.a, b: state.b, q: state.q.slice(),
      mean: new Float64Array(total), std: new Float64Array(total) };
    const k = new Float64Array(model.rows), blocks = [];
    let point = 0;

    function means(until) {
      for (; point < total && performance.now() < until; point++) {
        const q = pointOf(point % columns, Math.floor(point / columns), columns, lines);
        covariances(q, k);
        next.mean[point] = model.meanFrom(k, q);
      }
    }
    function block(from) {
      const size = Math.min(model.block, total - from), held = new Float64Array(model.rows * model.block);
      const priors = new Float64Array(model.block);
      for (let p = 0; p < size; p++) {
        const q = pointOf((from + p) % columns, Math.floor((from + p) / columns), columns, lines);
        priors[p] = model.priorAt(q);
        covariances(q, k);
        for (let j = 0; j < model.rows; j++) held[j * model.block + p] = k[j];
      }
      next.std.set(model.deviations(held, priors).subarray(0, size), from);
    }
    for (let from = 0; from < total; from += model.block) blocks.push(from);

    function turn() {
      if (number !== run) return;
      const until = performance.now() + TURN_MS;
      if (point < total) {
        means(count === COARSE ? Infinity : until);
        if (point === total) { drawn = { ...next, std: null }; paint(0, next); }
      }
      while (blocks.length && point === total && performance.now() < until) block(blocks.shift());
      if (blocks.length) { setTimeout(turn, 0); return; }
      drawn = next;
      paint(1, next);
      done();
    }
    turn();
  }

  // ── drawing ──
  function range(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
    return high > low ? [low, high] : [low, low + (Math.abs(low) || 1) * 1e-6];
  }

  function colour(colours, part) {
    const x = Math.min(Math.max(part, 0), 1) * (colours.length - 1), i = Math.min(Math.floor(x), colours.length - 2);
    return colours[i].map((value, channel) => value + (x - i) * (colours[i + 1][channel] - value));
  }

  function picture(values, columns, lines, colours, [low, high]) {
    const canvas = document.createElement("canvas");
    canvas.width = columns; canvas.height = lines;
    const context = canvas.getContext("2d"), image = context.createImageData(columns, lines);
    for (let i = 0; i < values.length; i++) {
      const line = lines - 1 - Math.floor(i / columns), to = 4 * (line * columns + i % columns);
      const [r, g, b] = colour(colours, (values[i] - low) / (high - low));
      image.data.set([r, g, b, 255], to);
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  function ticks(low, high, count) {
    const raw = (high - low) / count, size = 10 ** Math.floor(Math.log10(raw));
    const step = size * [1, 2, 5, 10].find((factor) => factor * size >= raw), found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    return { found, step };
  }

  // Enough digits to tell neighbouring ticks apart.
  function label(value, step) {
    if (Math.abs(value) < 1e-9 * step) return "0";
    const size = Math.floor(Math.log10(Math.abs(value))), digits = Math.max(0, size - Math.floor(Math.log10(step) + 1e-9));
    return size >= 5 || size < -3 ? value.toExponential(Math.min(digits, 12)) : value.toFixed(Math.min(Math.max(0, digits - size), 12));
  }

  function paint(which, grid) {
    const { key, canvas, colours } = panels[which];
    const width = canvas.clientWidth, height = flat ? 150 : Math.round(width * 0.78), ratio = window.devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    const c = canvas.getContext("2d"), ink = getComputedStyle(box).color, limits = range(grid[key]);
    c.scale(ratio, ratio);
    c.font = "12px system-ui, sans-serif";
    const bar = ticks(limits[0], limits[1], flat ? 2 : 5), labels = bar.found.map((value) => label(value, bar.step));
    const beside = Math.max(...labels.map((text) => c.measureText(text).width), 10);
    const frame = { x: 52, y: 8, w: width - 52 - 34 - beside, h: height - 48 };
    canvas.frame = frame;
    c.imageSmoothingEnabled = true;
    c.drawImage(picture(grid[key], grid.columns, grid.lines, colours, limits), frame.x, frame.y, frame.w, frame.h);
    c.fillStyle = c.strokeStyle = ink;
    c.strokeRect(frame.x, frame.y, frame.w, frame.h);
    const { a, b } = grid, across = ticks(lower[a], upper[a], Math.max(2, frame.w / 70));
    c.textAlign = "center"; c.textBaseline = "top";
    for (const value of across.found) {
      const x = frame.x + frame.w * (value - lower[a]) / (upper[a] - lower[a]);
      c.fillRect(x - 0.5, frame.y + frame.h, 1, 4);
      c.fillText(label(value, across.step), x, frame.y + frame.h + 6);
    }
    c.fillText(names[a], frame.x + frame.w / 2, frame.y + frame.h + 22);
    if (!flat) {
      const up = ticks(lower[b], upper[b], Math.max(2, frame.h / 45));
      c.textAlign = "right"; c.textBaseline = "middle";
      for (const value of up.found) {
        const y = frame.y + frame.h * (1 - (value - lower[b]) / (upper[b] - lower[b]));
        c.fillRect(frame.x - 4, y - 0.5, 4, 1);
        c.fillText(label(value, up.step), frame.x - 7, y);
      }
      c.save();
      c.translate(10, frame.y + frame.h / 2); c.rotate(-Math.PI / 2); c.textAlign = "center";
      c.fillText(names[b], 0, 0);
      c.restore();
    }
    const x = frame.x + frame.w + 12;
    for (let i = 0; i < frame.h; i++) {
      c.fillStyle = `rgb(${colour(colours, 1 - i / frame.h).map(Math.round).join(",")})`;
      c.fillRect(x, frame.y + i, 12, 1.5);
    }
    c.fillStyle = ink; c.textAlign = "left"; c.textBaseline = "middle";
    c.strokeRect(x, frame.y, 12, frame.h);
    bar.found.forEach((value, i) => {
      c.fillText(labels[i], x + 17, frame.y + frame.h * (1 - (value - limits[0]) / (limits[1] - limits[0])));
    });
  }

  // ── what is under the pointer ──
  function readOut(event) {
    const canvas = event.currentTarget, frame = canvas.frame, place = canvas.getBoundingClientRect();
    if (!frame) return;
    const across = (event.clientX - place.left - frame.x) / frame.w, up = 1 - (event.clientY - place.top - frame.y) / frame.h;
    if (across < 0 || across > 1 || up < 0 || up > 1) return;
    const q = state.q.slice(), place2 = [`${names[state.a]} = `];
    q[state.a] = lower[state.a] + across * (upper[state.a] - lower[state.a]);
    place2[0] += tidy(q[state.a]);
    if (!flat) {
      q[state.b] = lower[state.b] + up * (upper[state.b] - lower[state.b]);
      place2.push(`${names[state.b]} = ${tidy(q[state.b])}`);
    }
    find("read-out").textContent =
      `${place2.join(", ")}:  mean ${model.mean(q).toPrecision(7)},  standard deviation ${model.std(q).toPrecision(3)}`;
  }

  controls();
  for (const { canvas } of panels) {
    canvas.addEventListener("pointermove", readOut);
    canvas.addEventListener("pointerdown", readOut);
  }
  const again = () => { if (drawn) { paint(0, drawn); if (drawn.std) paint(1, drawn); } };
  window.addEventListener("resize", again);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  window.pdedkl = { mean: model.mean, std: model.std, drawn: () => drawn, idle: () => idle, choose, move, show };
  draw();
})();
