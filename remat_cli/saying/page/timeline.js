// The timeline: memory over time, by what runs or by what it is for; hover, keys, a drag to zoom in.
const chart = { step: after.peak, pinned: false, byRole: false, from: 0, to: Math.max(after.end, before ? before.end : 0) };
const WHOLE = chart.to;
const BOX = { left: 64, right: 12, top: 30, bottom: 34, height: 374 };  // what is said of the peak stands above the top
const TOP = 1.1 * Math.max(after.memory[after.peak], before ? before.memory[before.peak] : 0, data.budget || 0, 1);

const LETTER = 8.5;  // as wide as one is at most, on the average, in what is said of the peak

const widthOf = () => Math.max(320, byId("timeline").clientWidth || 1000);
const inner = () => widthOf() - BOX.left - BOX.right;
const xOf = (time) => BOX.left + (inner() * (time - chart.from)) / (chart.to - chart.from);
const yOf = (bytes) => BOX.height - BOX.bottom - ((BOX.height - BOX.top - BOX.bottom) * bytes) / TOP;
const near = (number) => Number(number.toFixed(1));

// The outline of what lies between two heights during some computes: along the upper, back along the lower.
function area(line, steps, upper, lower) {
  let path = "";
  for (let i = 0; i < steps.length; ) {
    let last = i;
    while (last + 1 < steps.length && steps[last + 1] === steps[last] + 1) last++;
    path += `M${near(xOf(line.begins[steps[i]]))} ${near(yOf(lower(steps[i])))}`;
    for (let k = i; k <= last; k++) path += `V${near(yOf(upper(steps[k])))}H${near(xOf(line.begins[steps[k] + 1]))}`;
    for (let k = last; k >= i; k--) path += `V${near(yOf(lower(steps[k])))}H${near(xOf(line.begins[steps[k]]))}`;
    path += "Z";
    i = last + 1;
  }
  return path;
}

function outline(line, steps) {
  return steps.map((step, i) =>
    `${i ? "" : `M${near(xOf(line.begins[step]))} ${near(yOf(line.memory[step]))}`}` +
    `V${near(yOf(line.memory[step]))}H${near(xOf(line.begins[step + 1]))}`).join("");
}

const visible = (line) => {
  const found = [];
  for (let step = 0; step < line.order.length; step++)
    if (line.begins[step + 1] >= chart.from && line.begins[step] <= chart.to) found.push(step);
  return found;
};

function layers() {
  const steps = visible(after), found = [];
  const floors = new Float64Array(after.order.length);
  data.roles.forEach((role, index) => {
    const fixed = data.fixed[index] > 0 || chart.byRole;
    const sizes = after.parts[index];
    if (!fixed || !sizes.some((size) => size > 0)) return;
    const height = (step) => (chart.byRole ? sizes[step] : data.fixed[index]);
    found.push(svg("path", { class: `role${index}`, d: area(after, steps, (s) => floors[s] + height(s), (s) => floors[s]) }));
    floors.forEach((_, step) => { floors[step] += height(step); });
  });
  if (!chart.byRole)
    PHASES.forEach((name, phase) => {
      const own = steps.filter((step) => after.phase[step] === phase);
      found.push(svg("path", { class: name, d: area(after, own, (s) => after.memory[s], (s) => floors[s]) }));
    });
  found.push(svg("path", { class: "outline", d: outline(after, steps) }));
  if (before) found.push(svg("path", { class: "before", d: outline(before, visible(before)) }));
  return found;
}

function axes() {
  const width = widthOf(), found = [];
  for (const bytes of ticks(0, TOP, 6)) {
    found.push(svg("line", { class: "grid", x1: BOX.left, x2: width - BOX.right, y1: yOf(bytes), y2: yOf(bytes) }));
    found.push(svg("text", { class: "tick", x: BOX.left - 8, y: yOf(bytes) + 4, "text-anchor": "end" }, showBytes(bytes)));
  }
  for (const time of ticks(chart.from, chart.to, width / 130))
    found.push(svg("text", { class: "tick", x: xOf(time), y: BOX.height - BOX.bottom + 18, "text-anchor": "middle" }, showTime(time)));
  return found;
}

function marks() {
  const found = [], right = widthOf() - BOX.right, { peak } = after, x = xOf((after.begins[peak] + after.begins[peak + 1]) / 2);
  if (data.budget !== null) {
    const y = yOf(data.budget);
    found.push(svg("line", { class: "budget", x1: BOX.left, x2: right, y1: y, y2: y }));
    found.push(svg("text", { class: "budget", x: right - 4, y: y - 5, "text-anchor": "end" }, `budget ${showBytes(data.budget)}`));
  }
  if (x >= BOX.left && x <= right) {
    const y = yOf(after.memory[peak]), room = Math.floor(widthOf() / LETTER);
    const said = `peak ${showBytes(after.memory[peak])} at `, words = said + short(nodes[after.order[peak]], Math.min(40, room - said.length));
    const half = (words.length * LETTER) / 2;
    found.push(svg("line", { class: "peak", x1: x, x2: x, y1: 18, y2: y }), svg("circle", { class: "peak", cx: x, cy: y, r: 4 }));
    found.push(svg("text", { class: "peak", x: Math.max(half, Math.min(widthOf() - half, x)), y: 13, "text-anchor": "middle" }, words));
  }
  return found;
}

function draw() {
  const picture = byId("picture");
  picture.setAttribute("viewBox", `0 0 ${widthOf()} ${BOX.height}`);
  picture.setAttribute("height", BOX.height);
  const clip = svg("clipPath", { id: "inside" }, svg("rect", { x: BOX.left, y: 0, width: inner(), height: BOX.height }));
  picture.replaceChildren(clip, ...axes(), svg("g", { "clip-path": "url(#inside)" }, ...layers()), ...marks(), svg("g", { id: "cursor" }));
  byId("legend").replaceChildren(...legend());
  point();
}

function legend() {
  const item = (name, words) => html("li", {}, html("i", { class: `chip ${name}` }), words);
  const found = data.roles.flatMap((role, index) =>
    after.parts[index].some((size) => size > 0) && (chart.byRole || data.fixed[index]) ? [item(`role${index}`, role)] : []);
  if (!chart.byRole) found.push(...PHASES.filter((_, phase) => after.phase.includes(phase)).map((name) => item(name, name)));
  if (before) found.push(item("before", "as it stands"));
  return found;
}

// The cursor, and what is said of the compute that it stands at.
function point() {
  const { step } = chart, x = xOf((after.begins[step] + after.begins[step + 1]) / 2), y = yOf(after.memory[step]);
  const inside = x >= BOX.left && x <= widthOf() - BOX.right;
  const line = { x1: x, x2: x, y1: BOX.top, y2: BOX.height - BOX.bottom };
  byId("cursor").replaceChildren(...(inside ? [svg("line", line), svg("circle", { cx: x, cy: y, r: 4 })] : []));
}

function select(step) {
  chart.step = Math.max(0, Math.min(after.order.length - 1, step));
  point();
  tell(chart.step);
}

// The compute under a place on the screen: of several under one dot, the one that holds most.
function stepAt(clientX) {
  const box = byId("picture").getBoundingClientRect();
  const place = ((clientX - box.left) * widthOf()) / (box.width || 1);
  const span = (chart.to - chart.from) / inner(), time = chart.from + (place - BOX.left) * span;
  let low = 0, high = after.order.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (after.begins[middle + 1] < time - span) low = middle + 1; else high = middle;
  }
  let best = low;
  for (let step = low; step < after.order.length && after.begins[step] <= time + span; step++)
    if (after.memory[step] > after.memory[best]) best = step;
  return { step: best, time: Math.max(chart.from, Math.min(chart.to, time)) };
}

function zoom(from, to) {
  [chart.from, chart.to] = to > from ? [from, to] : [0, WHOLE];
  byId("whole").hidden = chart.from === 0 && chart.to === WHOLE;
  draw();
}

function listen() {
  const picture = byId("picture");
  let pressed = null;
  picture.addEventListener("pointermove", (event) => { if (!chart.pinned) select(stepAt(event.clientX).step); });
  picture.addEventListener("pointerdown", (event) => { pressed = event.clientX; });
  picture.addEventListener("pointerup", (event) => {
    if (pressed === null) return;
    const far = Math.abs(event.clientX - pressed) > 6;
    const [one, two] = [stepAt(pressed).time, stepAt(event.clientX).time];
    pressed = null;
    if (far) return zoom(Math.min(one, two), Math.max(one, two));
    chart.pinned = !chart.pinned;
    select(stepAt(event.clientX).step);
    showStatement(chart.step);
  });
  document.addEventListener("dblclick", (event) => {
    if (!event.target.closest("button, select, input, #lines, table")) zoom(0, 0);  // where it takes a word, it takes a word
  });
  picture.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: chart.step - 1, ArrowRight: chart.step + 1, Home: 0, End: after.order.length - 1, p: after.peak };
    if (event.key === "Escape") zoom(0, 0);
    else if (event.key in moves) select(moves[event.key]);
    else return;
    event.preventDefault();
  });
  byId("whole").addEventListener("click", () => zoom(0, 0));
  byId("peak").addEventListener("click", () => { chart.pinned = true; select(after.peak); });
  byId("by").addEventListener("change", (event) => { chart.byRole = event.target.value === "role"; draw(); });
  window.addEventListener("resize", draw);
}
