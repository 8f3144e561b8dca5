// The page of `nearkin explore`: a map, a chosen row, and its neighbours before and after compression.
"use strict";

const $ = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const HUES = ["#4477aa", "#ee7733", "#228833", "#cc3377", "#8866bb", "#a07000", "#33aacc", "#dd4444", "#669922", "#777788",
  "#9c5a2c", "#1fa08a", "#c060c0", "#5566dd", "#b08f1a", "#d0607a", "#3f8f5f", "#7f7fbf", "#c97f4f", "#909090"];
const RAMP = [[59, 111, 212], [31, 158, 140], [214, 164, 36], [209, 56, 31]];  // small to large
const UNKNOWN = "#8a93a3";
let about = null, rows = new Int32Array(0), pointOf = new Map(), current = null, drawn = {};

const map = new PointMap($("map"), (point) => choose(rows[point]));
const number = (value) => (value === null || value === undefined ? "–" : Number(value.toPrecision(4)).toLocaleString("en"));
const percent = (value) => `${(100 * value).toFixed(1)} %`;

function element(name, properties = {}, ...children) {  // texts are other people's: they are set as text, never as HTML
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

async function guarded(work) {
  try {
    await work();
    $("status").textContent = "";
  } catch (error) {
    $("status").textContent = error instanceof TypeError ? "No connection. Is nearkin explore still running?" : error.message;
  }
}

// ---- the map --------------------------------------------------------------------------------------------------------

function pixel(r, g, b) { return (255 << 24) | (b << 16) | (g << 8) | r; }
function hex(colour) { return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)); }
function shade(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1), low = Math.min(Math.floor(at), RAMP.length - 2);
  return RAMP[low].map((value, i) => Math.round(value + (at - low) * (RAMP[low + 1][i] - value)));
}

function range(values) {  // of 98 % of the values, so that one row does not take the whole scale
  const known = values.filter((value) => !Number.isNaN(value)).sort();
  if (!known.length) return [0, 1];
  const [low, high] = [known[Math.floor(0.01 * known.length)], known[Math.ceil(0.99 * (known.length - 1))]];
  return low < high ? [low, high] : [known[0], known[known.length - 1]];
}

function paint(column, values) {
  const colours = new Uint32Array(rows.length).fill(pixel(...hex(UNKNOWN)));
  const legend = [];
  if (column?.names) {
    const hues = column.names.map((_, i) => (i < HUES.length ? HUES[i] : UNKNOWN)), pixels = hues.map((hue) => pixel(...hex(hue)));
    for (let i = 0; i < values.length; i++) colours[i] = pixels[values[i]] ?? colours[i];
    legend.push(...column.names.map((name, i) => {
      const swatch = element("i", { className: "swatch" });
      swatch.style.background = hues[i];
      return element("span", {}, swatch, name || "(none)");
    }));
  } else if (column) {
    const [low, high] = range(values), table = Array.from({ length: 256 }, (_, i) => pixel(...shade(i / 255)));
    for (let i = 0; i < values.length; i++) {
      if (!Number.isNaN(values[i])) colours[i] = table[Math.min(255, Math.max(0, Math.round(255 * (values[i] - low) / ((high - low) || 1))))];
    }
    const ramp = element("i", { className: "ramp" });
    ramp.style.background = `linear-gradient(to right, ${RAMP.map((stop) => `rgb(${stop})`).join(",")})`;
    legend.push(number(low), ramp, number(high));
    if (values.some(Number.isNaN)) legend.push(element("span", {}, "grey: not measured yet"));
  }
  $("legend").replaceChildren(...legend);
  map.colours = colours;
  map.draw();
}

function fill(select, columns, wanted) {
  const before = select.value || wanted;
  select.replaceChildren(...columns.map((column) => element("option", { value: column.name, textContent: column.title })));
  if (columns.some((column) => column.name === before)) select.value = before;
  select.disabled = columns.length < 2;
  select.parentElement.hidden = !columns.length;  // nothing to choose from
}

async function redraw() {
  const layout = about.layouts.find((column) => column.name === $("layout").value);
  const colour = about.colours.find((column) => column.name === $("colour").value);
  if (layout && drawn.layout !== layout.name) {
    map.set(new Float32Array(await source.column(layout.name)));
    drawn.layout = layout.name;
  }
  const state = colour ? `${colour.name} ${colour.version}` : "";
  if (drawn.colour !== state) {
    paint(colour, colour ? new Float32Array(await source.column(colour.name)) : []);
    drawn.colour = state;
  }
  $("note").textContent = [layout?.note, colour?.note].filter(Boolean).join(" ");
}

function kind(answer, row, found) {  // without exact neighbours nobody knows what is lost
  return !answer.exact ? "unknown" : !answer.exact.includes(row) ? "gained" : found.includes(row) ? "kept" : "lost";
}

function mark(answer, found) {
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`);
  const marks = [...new Set([...(answer.exact ?? []), ...found])].map((row) => [row, colour(kind(answer, row, found)), 7]);
  map.marks = [...marks, [answer.row, colour("accent"), 10]].filter(([row]) => pointOf.has(row))
    .map(([row, ...rest]) => [pointOf.get(row), ...rest]);
  map.draw();
}

// ---- a row and its neighbours ---------------------------------------------------------------------------------------

function words(thing, row, ...more) {
  const inner = element("span", { className: "words" }, element("b", { textContent: thing.id }));
  if (thing.label !== null) inner.append(element("span", { textContent: thing.label }));
  if (thing.text) inner.append(element("span", { className: "text", textContent: thing.text }));
  inner.append(...more);
  if (!thing.picture) return [inner];
  const image = element("img", { className: "thing", src: source.picture(row), alt: "", loading: "lazy" });
  image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 33));
  return [image, inner];
}

function entry(answer, row, kind, figures) {
  const said = { lost: "lost", gained: "gained" }[kind] ?? "";
  const button = element("button", { type: "button", className: kind },
    ...words(answer.about[row], row, element("span", { className: "figures", textContent: figures }),
      element("span", { className: "mark", textContent: said })));
  button.addEventListener("click", () => choose(row));
  return element("li", {}, button);
}

function list(title, answer, rowsOf, kindOf, figuresOf) {
  return element("section", {}, element("h2", { textContent: title }),
    element("ol", {}, ...rowsOf.map((row) => entry(answer, row, kindOf(row), figuresOf(row)))));
}

function history_of(answer) {
  const things = answer.history.map((thing) => [thing.id, thing.label, thing.text].filter(Boolean).join(" "));
  return [element("span", { className: "words" }, element("b", { textContent: answer.left }), element("span", { className: "text",
    textContent: `${things.length} known, left out below: ${things.slice(0, 40).join(", ")}${things.length > 40 ? ", ..." : ""}` }))];
}

function show() {
  const answer = current, at = Number($("oversample").value);
  const finds = answer.found.map((lists) => lists[at]);
  $("chosen").replaceChildren(...(answer.left === undefined ? words(answer.about[answer.row], answer.row) : history_of(answer)));
  $("depth").textContent = at ? `${about.oversamples[at - 1]} times as many candidates, ranked again by exact vectors` : "codes alone";
  const score = (index, row) => `true ${number(answer.true[row])}, coded ${number(answer.coded[index][row])}`;
  const columns = [];
  if (answer.exact) {
    columns.push(list("Exact", answer, answer.exact, (row) => (finds.every((found) => found.includes(row)) ? "kept" : "lost"),
      (row) => score(0, row)));
  }
  finds.forEach((found, i) => columns.push(list(about.indexes.length > 1 ? about.indexes[i].name : "By the codes", answer, found,
    (row) => kind(answer, row, found),
    (row) => (answer.exact ? score(i, row) : `coded ${number(answer.coded[i][row])}`))));
  $("lists").replaceChildren(...columns);
  const kept = (found) => answer.exact.filter((row) => found.includes(row)).length;
  $("outcome").textContent = !answer.exact
    ? "By the codes. The index keeps no exact vectors: give them (--vectors) to see what the codes lose."
    : `${finds.map((found, i) => `${about.indexes.length > 1 ? `${about.indexes[i].name}: ` : ""}${kept(found)} of ${answer.exact.length} exact neighbours found`).join("; ")}. ${SCORES[about.metric]}`;
  mark(answer, finds[0]);
}
const SCORES = { l2: "Squared distances: smaller is nearer.", ip: "Inner products: larger is nearer.", cosine: "Cosines: larger is nearer." };

function display(answer) {
  current = answer;
  $("hint").hidden = true;
  $("item").hidden = false;
  show();
}

const choose = (row) => guarded(() => look_at(row));
async function look_at(row) {
  display(await source.item(row));
  if (location.protocol !== "about:") history.replaceState(null, "", `#${row}`);  // a notebook's frame has no address
}

function hit(found, figures = "") {
  const button = element("button", { type: "button" }, ...words(found, found.row, element("span", { className: "figures", textContent: figures })));
  button.addEventListener("click", () => choose(found.row));
  return element("li", {}, button);
}

$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(async () => {
    const found = await source.find($("text").value);
    $("hits").hidden = false;
    $("hits").replaceChildren(...(found.length ? found.map((one) => hit({ ...one, picture: false })) : [element("li", { textContent: "Nothing found." })]));
    if (found.length) await look_at(found[0].row);
  });
});
$("ask-left").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(async () => display(await source.left($("left").value)));
});
$("oversample").addEventListener("input", () => current && show());
$("layout").addEventListener("change", () => guarded(redraw));
$("colour").addEventListener("change", () => guarded(redraw));
$("worst-part").addEventListener("toggle", () => $("worst-part").open && guarded(async () => {
  const worst = await source.worst();
  $("worst").replaceChildren(...worst.map((one) => hit({ ...one, text: null },
    [one.lost === undefined || one.lost === null ? "" : `${one.lost} of ${about.k} lost`, one.error === undefined ? "" : `error ${number(one.error)}`].filter(Boolean).join(", "))));
  if (!worst.length) $("worst").replaceChildren(element("li", { textContent: "Nothing is measured yet, or there are no exact vectors to compare with." }));
}));
dark.addEventListener("change", () => { if (current) show(); });

// ---- what is known so far -------------------------------------------------------------------------------------------

function summary() {
  const parts = [`${about.rows.toLocaleString("en")} rows${about.shown < about.rows ? `, ${about.shown.toLocaleString("en")} of them, drawn at random, on the map` : ""}`];
  for (const index of about.indexes) {
    const kept = index.recall === null ? "" : `: keeps ${percent(index.recall)} of the ${about.k} nearest other rows by codes alone (measured on ${index.rows.toLocaleString("en")} rows)`;
    parts.push(`${about.indexes.length > 1 ? `${index.name}, ` : ""}${index.codec}${kept}`);
  }
  if (about.busy) parts.push(about.busy);
  $("summary").textContent = `${parts.join(". ")}.`;
}

async function look() {
  about = await source.about();
  fill($("layout"), about.layouts);
  fill($("colour"), about.colours, "label");
  summary();
  await redraw();
  if (about.busy) setTimeout(() => guarded(look), 2000);
}

guarded(async () => {
  rows = new Int32Array(await source.column("rows"));
  pointOf = new Map(Array.from(rows, (row, point) => [row, point]));
  await look();
  document.title = $("title").textContent = about.title;
  $("oversample").max = about.oversamples.length;
  $("rescore").hidden = !about.oversamples.length;
  $("ask-left").hidden = !about.left;
  const row = Number.parseInt(location.hash.slice(1), 10);
  if (row >= 0) await look_at(row);
});
