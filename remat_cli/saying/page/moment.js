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
    row(`role${data.kinds[value]}`, values[value], data.sizes[value], largest)));
  byId("more").textContent = held.length > LISTED ? `and ${held.length - LISTED} smaller` : "";
}

function row(kind, name, size, most) {
  const bar = svg("svg", { class: "bar", viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: kind, width: (100 * size) / (most || 1), height: 1 }));
  return html("tr", {}, html("td", { class: "name", title: name }, name), html("td", { class: "number" }, showBytes(size)), html("td", {}, bar));
}
