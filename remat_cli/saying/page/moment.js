// What is in memory during one compute, beside the timeline.
const LISTED = 12;
const USED = [...data.roles.keys()].filter((index) => after.parts[index].some((size) => size > 0));

function tell(step) {
  const node = after.order[step], phase = PHASES[after.phase[step]], held = heldAt(after, step);
  byId("op").replaceChildren(html("i", { class: `chip ${phase}` }), nodes[node]);
  byId("said").replaceChildren(
    `${showBytes(after.memory[step])} in memory; ${phase}, compute ${step + 1} of ${after.order.length}`,
    timed ? `, from ${showTime(after.begins[step])}, takes ${showTime(data.cost[node])}` : "",
    chart.pinned ? "; held fast: click the picture to let go" : "",
  );
  byId("parts").replaceChildren(...USED.map((index) =>
    row(`role${index}`, data.roles[index], after.parts[index][step], after.memory[step])));
  const largest = held.length ? data.sizes[held[0].value] : 1;
  byId("largest").replaceChildren(...held.slice(0, LISTED).map(({ value }) =>
    row(`role${data.kinds[value]}`, values[value], data.sizes[value], largest, value)));
  byId("more").textContent = held.length > LISTED ? `and ${held.length - LISTED} smaller` : "";
}

// When a value is made and last used, and when it is computed again: each a compute that a click goes to.
function trace(value) {
  const go = (step) => {
    const found = html("button", { type: "button" }, `${nodes[after.order[step]]} (compute ${step + 1})`);
    found.addEventListener("click", () => { chart.pinned = true; select(step); showStatement(step); });
    return found;
  };
  const times = after.blocks.filter((block) => block.value === value);
  byId("value").replaceChildren(html("b", {}, values[value]), ...times.flatMap(({ start, end }, i) => [
    i ? "; computed again by " : ", made by ", go(start),
    ...(end < after.order.length ? [", last used by ", go(end - 1)] : [", kept to the end"]),
  ]));
}

function row(kind, name, size, most, value) {
  const bar = svg("svg", { class: "bar", viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: kind, width: (100 * size) / (most || 1), height: 1 }));
  const shown = value === undefined ? name : html("button", { type: "button", class: "value" }, name);
  if (value !== undefined) shown.addEventListener("click", () => trace(value));
  return html("tr", {}, html("td", { class: "name", title: name }, shown), html("td", { class: "number" }, showBytes(size)), html("td", {}, bar));
}
