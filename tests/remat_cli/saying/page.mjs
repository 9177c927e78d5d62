// Runs the script of a page without a browser: a document that remembers, and nothing else. Prints what came of it.
import { readFileSync } from "node:fs";

const page = readFileSync(process.argv[2], "utf8");
const inside = (name) => page.split(new RegExp(`<script id="${name}"[^>]*>`))[1].split("</script>")[0];
const script = page.slice(page.lastIndexOf("<script>") + 8, page.lastIndexOf("</script>"));

class Element {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], heard: {}, style: {}, own: "", scrollTop: 0, hidden: false });
  }
  set textContent(text) { this.own = text; this.children = []; }
  get textContent() { return this.own + this.children.map((child) => (typeof child === "string" ? child : child.textContent)).join(""); }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  append(...children) { this.children.push(...children); children.forEach((child) => child.attributes?.id && (known[child.attributes.id] = child)); }
  replaceChildren(...children) { this.children = []; this.append(...children); }
  addEventListener(kind, heard) { this.heard[kind] = heard; }
  getBoundingClientRect() { return { left: 0, top: 0, width: 1000, height: 360 }; }
  get clientWidth() { return 1000; }
  get clientHeight() { return 400; }
}
const known = { data: new Element("script") };
known.data.textContent = inside("data");
for (const [, id] of page.matchAll(/ id="([\w-]+)"/g)) known[id] ??= new Element("x");
globalThis.document = {
  getElementById: (id) => known[id],
  createElement: (tag) => new Element(tag),
  createElementNS: (_, tag) => new Element(tag),
  documentElement: new Element("html"),
  addEventListener() {},
};
globalThis.window = { addEventListener() {}, matchMedia: () => ({ matches: false }) };
(0, eval)(script);

const lines = [];
const box = known.lines;
for (box.scrollTop = 0; lines.length < +known.count.textContent.split(" of ")[1]; box.scrollTop += 20) {
  box.heard.scroll();
  lines.push(known.sight.children[Math.min(lines.length, 8)].textContent);
}
const told = [];
for (const clientX of [100, 400, 700]) {
  known.picture.heard.pointermove({ clientX });
  told.push([known.op.textContent, known.said.textContent, known.largest.children.map((row) => row.children[0].textContent)]);
}
const [clicked] = known.largest.children[0].children[0].children;
clicked.heard.click();
const traced = [known.value.textContent, known.value.children.filter((child) => child.tag === "button").length];
const goes = known.value.children.find((child) => child.tag === "button");
goes.heard.click();
const gone = known.op.textContent;
const paths = (element) => element.children.flatMap((child) =>
  typeof child === "string" ? [] : [...(child.tag === "path" ? [child.attributes] : []), ...paths(child)]);
const byPhase = paths(known.picture).map((path) => path.class);
known.by.heard.change({ target: { value: "role" } });
console.log(JSON.stringify({ lines, told, traced, gone, byPhase, byRole: paths(known.picture).map((path) => path.class),
  broken: paths(known.picture).filter((path) => /NaN|undefined|Infinity/.test(path.d)).length }));
