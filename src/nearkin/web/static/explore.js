// The page of `nearkin explore`: a map, a chosen row, and its neighbours before and after compression.
"use strict";

const $ = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
// Paul Tol's schemes "muted" (on light) and "light" (on dark): nine hues that differ with any colour vision. No more do.
const MORE = ["#909090", "#9c5a2c", "#5566dd", "#b08f1a", "#d0607a", "#3f8f5f", "#7f7fbf", "#c97f4f", "#6aa0c0", "#a05fb0", "#777788"];
const HUES = {
  light: ["#332288", "#ddcc77", "#117733", "#cc6677", "#88ccee", "#882255", "#44aa99", "#999933", "#aa4499", ...MORE],
  dark: ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00", "#dddddd", ...MORE],
};
const RAMP = [[59, 111, 212], [31, 158, 140], [214, 164, 36], [209, 56, 31]];  // small to large
const UNKNOWN = "#8a93a3";
const GLYPHS = { kept: "●", lost: "▲", gained: "■", unknown: "○" };
let about = null, rows = new Int32Array(0), pointOf = new Map(), current = null, drawn = {};

const map = new PointMap($("map"), (point) => choose(rows[point]));
const number = (value) => (value === null || value === undefined ? "–" : Number(value.toPrecision(4)).toLocaleString("en"));
const count = (value) => value.toLocaleString("en");
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
    const scheme = HUES[dark.matches ? "dark" : "light"];
    const hues = column.names.map((_, i) => scheme[i] ?? UNKNOWN), pixels = hues.map((hue) => pixel(...hex(hue)));
    for (let i = 0; i < values.length; i++) colours[i] = pixels[values[i]] ?? colours[i];
    legend.push(...column.names.map((name, i) => {
      const swatch = element("i", { className: "swatch" });
      swatch.style.background = hues[i];
      return element("span", { title: name, dir: "auto" }, swatch, name || "(none)");
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
  const state = colour ? `${colour.name} ${colour.version} ${dark.matches}` : "";
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
  const marked = [...new Set([...(answer.exact ?? []), ...found])].map((row) => [row, kind(answer, row, found)]);
  map.halo = colour("card");
  map.marks = [...marked.map(([row, what]) => [row, colour(what), what, 7]), [answer.row, colour("ink"), "row", 11]]
    .filter(([row]) => pointOf.has(row)).map(([row, ...rest]) => [pointOf.get(row), ...rest]);
  map.draw();
  const used = Object.keys(GLYPHS).filter((name) => marked.some(([, what]) => what === name));
  $("marks").replaceChildren(...used.map((name) => element("span", { className: name },
    element("span", { className: "mark", textContent: GLYPHS[name] }), ` ${name}`)), element("span", {}, "◯ this row"));
}

// ---- a row and its neighbours ---------------------------------------------------------------------------------------

function words(thing, row) {
  const one = (name, text, className = "") => element(name, { textContent: text, title: text, className, dir: "auto" });
  const inner = element("span", { className: "words" }, one("b", thing.id));
  if (thing.label !== null) inner.append(one("span", thing.label));
  if (thing.text) inner.append(one("span", thing.text, "text"));
  if (!thing.picture) return [inner];
  const image = element("img", { className: "thing", src: source.picture(row), alt: "", loading: "lazy" });
  image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 33));
  return [image, inner];
}

function entry(thing, row, figures, className = "", ...before) {
  const button = element("button", { type: "button", className }, ...before, ...words(thing, row),
    element("span", { className: "figures", textContent: figures }));
  button.title = [thing.id, thing.label, thing.text, figures].filter(Boolean).join("\n");
  button.addEventListener("click", () => choose(row));
  return element("li", {}, button);
}

function list(title, answer, listed, kindOf, figuresOf) {
  return element("section", {}, element("h2", { textContent: title, title }), element("ol", {}, ...listed.map((row, i) => {
    const what = kindOf(row), mark = element("span", { className: "mark", textContent: GLYPHS[what] });
    if (what === "lost" || what === "gained") mark.append(element("i", { textContent: ` ${what}` }));
    return entry(answer.about[row], row, figuresOf(row), what, element("span", { className: "rank", textContent: i + 1 }), mark);
  })));
}

function history_of(answer) {
  const things = answer.history.map((thing) => [thing.id, thing.label, thing.text].filter(Boolean).join(" "));
  const some = `${things.slice(0, 40).join(", ")}${things.length > 40 ? ", ..." : ""}`;
  return [element("span", { className: "words" }, element("b", { textContent: answer.left }), element("span", { className: "text",
    textContent: `${things.length} known, left out below: ${some}` }))];
}

function show() {
  const answer = current, at = Number($("oversample").value), several = about.indexes.length > 1;
  const finds = answer.found.map((lists) => lists[at]);
  $("chosen").replaceChildren(...(answer.left === undefined ? words(answer.about[answer.row], answer.row) : history_of(answer)));
  $("depth").textContent = at ? `${about.oversamples[at - 1]} times as many candidates, ranked again by exact vectors` : "codes alone";
  const coded = (i, row) => number(answer.coded[i][row]);
  const scores = (i, row) => (answer.exact ? `${number(answer.true[row])} → ${coded(i, row)}` : coded(i, row));
  const columns = finds.map((found, i) => list(several ? about.indexes[i].name : "Codes", answer, found,
    (row) => kind(answer, row, found), (row) => scores(i, row)));
  if (answer.exact) {
    columns.unshift(list("Exact", answer, answer.exact, (row) => (finds.every((found) => found.includes(row)) ? "kept" : "lost"),
      (row) => scores(0, row)));
  }
  $("lists").replaceChildren(...columns);
  const kept = finds.map((found, i) => {
    const share = `${answer.exact?.filter((row) => found.includes(row)).length} of ${answer.exact?.length} exact neighbours found`;
    return several ? `${about.indexes[i].name}: ${share}` : share;
  });
  $("outcome").textContent = answer.exact ? `${kept.join("; ")}. ${SCORES[about.metric]}, exact → by code.`
    : "No exact vectors: what the codes keep and lose is unknown. Give the vectors with --vectors.";
  mark(answer, finds[0]);
}
const SCORES = { l2: "Squared distances (smaller is nearer)", ip: "Inner products (larger is nearer)", cosine: "Cosines (larger is nearer)" };

function display(answer) {
  current = answer;
  $("hint").hidden = true;
  $("item").hidden = false;
  show();
}

const choose = (row) => guarded(() => open_row(row));
async function open_row(row) {
  display(await source.item(row));
  if (location.protocol !== "about:") history.replaceState(null, "", `#${row}`);  // a notebook's frame has no address
}

$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(async () => {
    const found = await source.find($("text").value);
    $("hits").hidden = false;
    $("hits").replaceChildren(...(found.length ? found.map((one) => entry({ ...one, picture: false }, one.row, ""))
      : [element("li", { textContent: "Nothing found." })]));
    if (found.length) await open_row(found[0].row);
  });
});
$("ask-left").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(async () => display(await source.left($("left").value)));
});
$("oversample").addEventListener("input", () => current && show());
for (const id of ["layout", "colour"]) $(id).addEventListener("change", () => guarded(redraw));
$("worst-part").addEventListener("toggle", () => guarded(worst));
dark.addEventListener("change", () => { guarded(redraw); if (current) show(); });

async function worst() {
  if (!$("worst-part").open) return;
  const found = await source.worst();
  const figures = (one) => [one.lost === undefined || one.lost === null ? "" : `${one.lost} of ${about.k} lost`,
    one.error === undefined ? "" : `error ${number(one.error)}`].filter(Boolean).join(", ");
  $("worst").replaceChildren(...found.map((one) => entry({ ...one, text: null }, one.row, figures(one))));
  if (!found.length) $("worst").replaceChildren(element("li", { textContent: "Not measured yet, or no exact vectors to compare with." }));
}

// ---- what is known so far -------------------------------------------------------------------------------------------

function summary() {
  const parts = [`${count(about.rows)} rows${about.shown < about.rows ? `, ${count(about.shown)} of them, drawn at random, on the map` : ""}`];
  for (const index of about.indexes) {
    const kept = index.recall === null ? "" : `: keeps ${percent(index.recall)} of the ${about.k} nearest other rows by codes alone`;
    const measured = index.recall === null || index.rows === about.rows ? "" : ` (measured on ${count(index.rows)} rows)`;
    parts.push(`${about.indexes.length > 1 ? `${index.name}, ` : ""}${index.codec}${kept}${measured}`);
  }
  if (about.busy) parts.push(about.busy);
  $("summary").textContent = `${parts.join(". ")}.`;
}

async function refresh() {
  about = await source.about();
  fill($("layout"), about.layouts);
  fill($("colour"), about.colours, "label");
  summary();
  await redraw();
  await worst();
  if (about.busy) setTimeout(() => guarded(refresh), 2000);
}

guarded(async () => {
  rows = new Int32Array(await source.column("rows"));
  pointOf = new Map(Array.from(rows, (row, point) => [row, point]));
  await refresh();
  document.title = $("title").textContent = about.title;
  $("oversample").max = about.oversamples.length;
  $("rescore").hidden = !about.oversamples.length;
  $("ask-left").hidden = !about.left;
  const row = Number.parseInt(location.hash.slice(1), 10);
  if (row >= 0) await open_row(row);
});
