// The curve of a sweep: what a budget costs in time, a line for each method.
function drawCurve() {
  const { points, knee } = data.curve;
  const found = points.filter((point) => point.peak !== null && point.overhead !== null);
  if (!found.length) return;
  const width = Math.max(320, byId("curve").clientWidth || 1000), height = 300;
  const budgets = found.map((point) => point.budget), most = Math.max(...budgets), least = Math.min(...budgets);
  const spread = (most - least || most || 1) * 0.06, top = 1.15 * Math.max(...found.map((point) => point.overhead), 0.01);
  const x = (bytes) => 64 + ((width - 84) * (bytes - least + spread)) / (most - least + 2 * spread);
  const y = (share) => height - 36 - ((height - 56) * Math.max(share, 0)) / top;
  const parts = [];
  for (const share of ticks(0, top, 5)) {
    parts.push(svg("line", { class: "grid", x1: 64, x2: width - 12, y1: y(share), y2: y(share) }));
    parts.push(svg("text", { class: "tick", x: 56, y: y(share) + 4, "text-anchor": "end" }, showShare(share)));
  }
  for (const bytes of ticks(least - spread, most + spread, width / 130))
    parts.push(svg("text", { class: "tick", x: x(bytes), y: height - 16, "text-anchor": "middle" }, showBytes(bytes)));
  const methods = [...new Set(found.map((point) => point.method))];
  methods.forEach((method, index) => {
    const own = found.filter((point) => point.method === method).sort((a, b) => a.budget - b.budget);
    parts.push(svg("path", { class: `method${index % 6}`, d: own.map((point, i) => `${i ? "L" : "M"}${near(x(point.budget))} ${near(y(point.overhead))}`).join("") }));
    for (const point of own) {
      const words = `${method}: ${showBytes(point.budget)}, ${showShare(point.overhead)} time, ${point.status}`;
      const isKnee = knee && knee.budget === point.budget && knee.method === method;
      const dot = svg("circle", { class: `method${index % 6}${isKnee ? " knee" : ""}`, cx: x(point.budget), cy: y(point.overhead), r: isKnee ? 7 : 4 }, svg("title", {}, words));
      dot.addEventListener("pointerenter", () => { byId("point").textContent = words; });
      parts.push(dot);
    }
  });
  if (data.budget !== null) {
    const here = svg("path", { class: "here", d: `M${near(x(data.budget))} 12V${height - 36}` }, svg("title", {}, "this plan's budget"));
    if (data.budget >= least - spread && data.budget <= most + spread) parts.push(here);
  }
  byId("curve").setAttribute("viewBox", `0 0 ${width} ${height}`);
  byId("curve").replaceChildren(...parts);
  byId("methods").replaceChildren(...methods.map((method, index) =>
    html("li", {}, html("i", { class: `chip method${index % 6}` }), method)));
  if (knee) byId("point").textContent = `The knee is at ${showBytes(knee.budget)} (${knee.method}).`;
}
