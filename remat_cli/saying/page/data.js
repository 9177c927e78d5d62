// What packing.py packed, unpacked: ops, values, and for either plan what is in memory during each compute.
const data = JSON.parse(document.getElementById("data").textContent);
const nodes = [], values = [];
{
  let last = "";
  const names = data.names.rests.map((rest, i) => (last = last.slice(0, data.names.shared[i]) + rest));
  let at = 0;
  for (const count of data.writes) {
    nodes.push(names[at++]);
    for (let i = 0; i < count; i++) values.push(names[at++]);
  }
}
const PHASES = ["forward", "recomputed", "backward"];
const WORKSPACE = data.roles.indexOf("workspace");
const timed = data.cost.some((cost) => cost > 0);

function unpack(packed) {
  const order = packed.order || nodes.map((_, node) => node);
  const count = order.length;
  const parts = data.roles.map((_, role) => new Float64Array(count + 1).fill(data.fixed[role]));
  const blocks = [];
  let start = 0;
  const change = data.roles.map(() => new Float64Array(count + 1));
  packed.values.forEach((value, i) => {
    start += packed.begins[i];
    const end = start + packed.lasts[i], role = +data.kinds[value];
    blocks.push({ value, start, end });
    change[role][start] += data.sizes[value];
    change[role][end] -= data.sizes[value];
  });
  const memory = new Float64Array(count), begins = new Float64Array(count + 1), phase = new Uint8Array(count);
  const ran = new Set(), held = data.roles.map(() => 0);
  for (let step = 0; step < count; step++) {
    const node = order[step];
    parts.forEach((sizes, role) => {
      held[role] += change[role][step];
      sizes[step] += held[role] + (role === WORKSPACE ? data.work[node] : 0);
      memory[step] += sizes[step];
    });
    begins[step + 1] = begins[step] + (timed ? data.cost[node] : 1);
    phase[step] = ran.has(node) && data.views[node] === "0" ? 1 : data.backward[node] === "1" ? 2 : 0;
    ran.add(node);
  }
  let peak = 0;
  memory.forEach((bytes, step) => { if (bytes > memory[peak]) peak = step; });
  return { order, blocks, parts, memory, begins, phase, peak, end: begins[count] };
}

const after = unpack(data.after);
const before = data.before && unpack(data.before);

// What is in memory during one compute, the largest first.
const heldAt = (line, step) =>
  line.blocks.filter((block) => block.start <= step && step < block.end)
    .sort((a, b) => data.sizes[b.value] - data.sizes[a.value] || a.value - b.value || a.start - b.start);

function inUnit(amount, units) {
  let [name, scale] = units[0];
  for (const [next, size] of units) if (Math.abs(amount) >= size) [name, scale] = [next, size];
  return `${Number((amount / scale).toPrecision(4))}${name}`;
}
const showBytes = (bytes) => inUnit(bytes, [["B", 1], ["KB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]]);
const showTime = (time) =>
  timed && data.timed ? inUnit(time, [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]]) : `${Number(time.toPrecision(6))}`;
const short = (name, most) => (name.length > most ? `${name.slice(0, Math.floor(most / 2) - 1)}…${name.slice(-Math.floor(most / 2))}` : name);
const showShare = (share) => `${share < 0 ? "−" : "+"}${Math.abs(share * 100).toFixed(1)}%`;

// Elements of the page; a child that is a string becomes text, never markup.
function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
const html = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  put(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const byId = (id) => document.getElementById(id);

// About `many` round numbers from 0 (or `from`) up to `to`.
function ticks(from, to, many) {
  const rough = (to - from) / many, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((size) => size * power >= rough) * power;
  const found = [];
  for (let i = Math.ceil(from / step); i * step <= to * (1 + 1e-9); i++) found.push(i * step);
  return found;
}
