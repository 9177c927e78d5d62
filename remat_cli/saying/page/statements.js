// The program, one statement a line: only the lines in sight are in the page, however many there are.
const [FULL, EMPTY, SHARED, COMPUTE, FREE] = [0, 1, 2, 3, 4];
const LINE = 20, SPARE = 8;
const statements = [], lineOf = [];
{
  const flat = data.statements;
  let latest = 0, step = 0;
  for (let at = 0; at < flat.length; ) {
    const kind = flat[at++];
    let text;
    if (kind === COMPUTE) {
      const node = flat[at++], count = flat[at++], registers = flat.slice(at, (at += count));
      text = `compute ${nodes[node]} -> ${registers.map((ago) => (ago === null ? "_" : `%${latest - ago}`)).join(", ")}`;
      lineOf.push(statements.length);
    } else if (kind === FREE) {
      text = `deallocate %${latest - flat[at++]}`;
    } else {
      const value = flat[at++];
      latest += flat[at++];
      const place = kind === SHARED ? `in the place of %${latest - flat[at++]}` : `${kind === FULL ? data.sizes[value] : 0} bytes`;
      text = `%${latest} = allocate ${values[value]}  # ${place}`;
    }
    statements.push({ text, kind, step });
    if (kind === COMPUTE) step++;
  }
}
let listed = statements.map((_, line) => line);

function list() {
  const box = byId("lines");
  const first = Math.max(0, Math.floor((box.scrollTop || 0) / LINE) - SPARE);
  const count = Math.ceil((box.clientHeight || 400) / LINE) + 2 * SPARE;
  byId("room").style.height = `${listed.length * LINE}px`;
  const shown = listed.slice(first, first + count).map((line) => {
    const { text, kind, step } = statements[line];
    const phase = kind === COMPUTE ? PHASES[after.phase[step]] : "quiet";
    const found = html("button", { type: "button", class: `line ${phase}${step === chart.step ? " here" : ""}` }, text);
    found.addEventListener("click", () => { chart.pinned = true; select(step); list(); });
    return found;
  });
  byId("sight").style.transform = `translateY(${first * LINE}px)`;
  byId("sight").replaceChildren(...shown);
}

function filter(words) {
  const wanted = words.toLowerCase();
  listed = statements.flatMap(({ text }, line) => (text.toLowerCase().includes(wanted) ? [line] : []));
  byId("count").textContent = `${listed.length} of ${statements.length}`;
  byId("lines").scrollTop = 0;
  list();
}

function showStatement(step) {
  byId("lines").scrollTop = Math.max(0, listed.findIndex((line) => line >= lineOf[step]) - 4) * LINE;
  list();
}
