// Begin: everything is drawn once, and again where the reader asks for something else.
function theme() {
  const now = document.documentElement.getAttribute("data-theme");
  const dark = now ? now === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.setAttribute("data-theme", dark ? "light" : "dark");
}

listen();
draw();
tell(chart.step);
filter("");
byId("filter").addEventListener("input", (event) => filter(event.target.value));
byId("lines").addEventListener("scroll", list);
byId("theme").addEventListener("click", theme);
byId("copy").addEventListener("click", () => {
  window.getSelection().selectAllChildren(byId("command"));
  document.execCommand("copy");  // the clipboard's newer door is closed to a page that is a file
  byId("copy").textContent = "copied";
});
if (data.curve) {
  drawCurve();
  window.addEventListener("resize", drawCurve);
}
document.documentElement.setAttribute("data-ready", "yes");
