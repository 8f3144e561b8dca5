// The page of `nearkin explore`: a map, a chosen row, and its neighbours before and after compression.
"use strict";

const $ = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
// Paul Tol's schemes "muted" (on light) and "light" (on dark): nine hues that differ with any colour vision. No more do.
const MORE = ["#1f6f8b", "#9c5a2c", "#5566dd", "#b08f1a", "#e0479e", "#3f8f5f", "#7f7fbf", "#c97f4f", "#6aa0c0", "#a05fb0", "#7a5c3e"];
const HUES = {
  light: ["#332288", "#ddcc77", "#117733", "#cc6677", "#88ccee", "#882255", "#44aa99", "#999933", "#aa4499", ...MORE],
  dark: ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00", "#dddddd", ...MORE],
};
const RAMP = [[59, 111, 212], [31, 158, 140], [214, 164, 36], [209, 56, 31]];  // small to large
const UNKNOWN = "#8a93a3";
const GLYPHS = { kept: "●", lost: "▲", gained: "■", unknown: "○" };
const GRID = 60;  // pictures of a selection
const LINES = 100;  // of its table
const BARS = 30;  // of a histogram
let about = null, rows = new Int32Array(0), pointOf = new Map(), current = null, drawn = {};
let values = new Float32Array(0), names = null;  // of the colour's column: numbers, or places in the names of categories
let wanted = new Set(), picked = null;  // categories that get a colour; points selected by a box or a line
const facets = new Map();  // filters by the names of their columns
const texts = new Map(), things = new Map();              // columns and rows that were read

const map = new PointMap($("map"), { choose: (point) => choose(rows[point]), hover, select: (points) => pick(points), moved: later(remember, 250) });
const number = (value) => (value === null || value === undefined ? "–" : Number(value.toPrecision(4)).toLocaleString("en"));
const count = (value) => value.toLocaleString("en");
const percent = (value) => `${(100 * value).toFixed(1)} %`;

function element(name, properties = {}, ...children) {  // texts are other people's: they are set as text, never as HTML
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function later(work, wait) {  // once nothing has asked for it for a while
  let timer = null;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => work(...given), wait); };
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

// The menu of colours: the table's columns, then what was measured.
function colours() {
  const two = about.colours.filter((column) => column.name.startsWith("lost"));
  const more = two.length < 2 ? [] : [{ name: "more", title: "lost more by the second", version: two[0].version + two[1].version,
    note: `Neighbours lost by ${about.indexes[1].name} less those lost by ${about.indexes[0].name}.` }];
  const columns = about.columns.map((name) => ({ name: `column:${name}`, title: name, note: "", version: 0 }));
  const isText = (column) => column.title === "text";  // it rarely repeats
  return [...columns.filter((one) => !isText(one)), ...about.colours, ...more, ...columns.filter(isText)];
}

async function read(name) {  // the texts of a table's column
  if (!texts.has(name)) texts.set(name, await source.values(name));
  return texts.get(name);
}

const numeric = async (name) => new Float32Array(await source.column(name));

async function load(column) {  // sets `values` and `names`
  names = null;
  if (!column) { values = new Float32Array(0); return; }
  if (column.name === "more") {
    const [one, other] = [await numeric("lost0"), await numeric("lost1")];
    values = other.map((lost, i) => lost - one[i]);
    return;
  }
  if (!column.name.startsWith("column:")) { values = await numeric(column.name); return; }
  const known = await read(column.title), given = column.title === "label" ? null : numbers(known);
  if (given) { values = Float32Array.from(given); return; }
  const frequent = [...tally(known).keys()];
  const most = SHOWN - (frequent.length > SHOWN), asked = frequent.filter((text) => wanted.has(text)).slice(0, most);
  const common = [...asked, ...frequent.filter((text) => !wanted.has(text)).slice(0, most - asked.length)]
    .sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const place = new Map(common.map((text, i) => [text, i])), others = frequent.filter((text) => !place.has(text));
  names = others.length ? [...common, `${count(others.length)} others`] : common;
  names.others = others;
  values = Float32Array.from(known, (text) => place.get(text) ?? common.length);
}

function hue(scheme, i) { return names.others.length && i === names.length - 1 ? UNKNOWN : scheme[i] ?? UNKNOWN; }

function categories(scheme) {
  const chosen = facets.get($("colour").value)?.chosen, kept = new Array(names.length).fill(0);
  values.forEach((place, i) => { kept[place] += Number(!map.faded?.[i]); });
  const keys = names.map((name, i) => {
    const texts = i === names.length - 1 && names.others.length ? names.others : [name];
    const swatch = element("i", { className: "swatch" });
    swatch.style.background = hue(scheme, i);
    const key = element("button", { type: "button", title: name, dir: "auto" }, swatch, element("span", { textContent: name || "(none)" }), element("span", { className: "faint", textContent: `\u00a0${count(kept[i])}` }));
    key.setAttribute("aria-pressed", Boolean(chosen?.has(texts[0])));
    key.addEventListener("click", () => guarded(async () => {
      toggle(await opened($("colour").value), texts);
      $("legend").querySelectorAll("button")[i].focus();
    }));
    return key;
  });
  if (!names.others.length) return keys;
  const more = element("select", { title: "Give another category a colour" }, element("option", { value: "", textContent: "colour another ..." }),
    ...names.others.slice(0, 500).map((text) => element("option", { value: text, textContent: text || "(none)" })));
  more.setAttribute("aria-label", "Give another category a colour");
  more.addEventListener("change", () => { wanted.add(more.value); guarded(recolour); });
  return [...keys, more];
}

function unit(title) { return /[(\[]([^)\]]{1,12})[)\]]\s*$/.exec(title)?.[1] ?? ""; }  // "price (EUR)"

function legend() {
  const column = colours().find((one) => one.name === $("colour").value);
  const colour = new Uint32Array(rows.length).fill(pixel(...hex(UNKNOWN)));
  let made = [];
  if (names) {
    const scheme = HUES[dark.matches ? "dark" : "light"], pixels = names.map((_, i) => pixel(...hex(hue(scheme, i))));
    for (let i = 0; i < values.length; i++) colour[i] = pixels[values[i]] ?? colour[i];
    made = categories(scheme);
  } else if (column) {
    const [low, high] = range(values), table = Array.from({ length: 256 }, (_, i) => pixel(...shade(i / 255)));
    for (let i = 0; i < values.length; i++) {
      if (!Number.isNaN(values[i])) colour[i] = table[Math.min(255, Math.max(0, Math.round(255 * (values[i] - low) / ((high - low) || 1))))];
    }
    const ramp = element("i", { className: "ramp" }), of = unit(column.title);
    ramp.style.background = `linear-gradient(to right, ${RAMP.map((stop) => `rgb(${stop})`).join(",")})`;
    made = [element("b", { textContent: column.title, title: column.title, dir: "auto" }), number(low), ramp, `${number(high)} ${of}`];
    if (values.some(Number.isNaN)) made.push(element("span", {}, column.name.startsWith("column:") ? "grey: missing" : "grey: not measured yet"));
  }
  $("legend").replaceChildren(...made);
  [map.halo, map.line] = ["card", "ink"].map((name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`));
  map.colours = colour;
  map.groups = names && { names: names.others.length ? names.slice(0, -1) : names, of: values };
  map.draw();
}

async function recolour() {
  await load(colours().find((one) => one.name === $("colour").value));
  fade();
}

function fade() {  // rows outside of the selection and of any filter: map, histograms, legend, pictures and table follow
  const masks = [...facets.values()].map((facet) => outside(facet)), several = [...facets.values()].some(isActive);
  if (picked) { const out = new Uint8Array(rows.length).fill(1); for (const point of picked) out[point] = 0; masks.push(out); }
  const out = combined(masks, rows.length);
  map.faded = picked || several ? out : null;
  map.faint = pixel(...hex(dark.matches ? "#3a4250" : "#dfe3ea"));
  let left = 0;
  for (const one of out) left += Number(!one);
  $("picked").hidden = !map.faded;
  $("how-many").textContent = `${count(left)} of ${count(rows.length)} vectors`;
  [...facets.values()].forEach((facet, i) => facet.show(out.map((sum, row) => sum - masks[i][row])));  // what others keep
  legend();
  guarded(gallery);
  guarded(tabulate);
}

// ---- filters --------------------------------------------------------------------------------------------------------

async function opened(name) {  // the facet of a column, a new one if there is none
  if (facets.has(name)) return facets.get(name);
  const column = colours().find((one) => one.name === name), isText = name.startsWith("column:");
  const texts = isText ? await read(column.title) : null, measured = isText ? numbers(texts) : await numeric(name);
  const facet = { column, texts, values: measured, version: column.version, chosen: new Set(), low: null, high: null };
  const close = element("button", { type: "button", textContent: "×", ariaLabel: `Remove the filter by ${column.title}` });
  close.addEventListener("click", () => { facets.delete(name); facet.box.remove(); fade(); $("facet").focus(); });
  facet.box = element("fieldset", { className: "facet" }, element("legend", {}, element("span", { textContent: column.title, title: column.title, dir: "auto" }), close));
  (measured ? histogram : options)(facet);
  facets.set(name, facet);
  $("facets").append(facet.box);
  return facet;
}

function toggle(facet, texts) {
  const has = facet.chosen.has(texts[0]);
  for (const text of texts) facet.chosen[has ? "delete" : "add"](text);
  fade();
}

function options(facet) {  // a button for each category, with how many of its rows the other filters keep
  const made = [...tally(facet.texts).keys()].slice(0, 200).map((text) => {
    const button = element("button", { type: "button", dir: "auto", title: text }, element("span", { textContent: text || "(none)" }), element("span", { className: "faint" }));
    button.addEventListener("click", () => toggle(facet, [text]));
    return [text, button];
  });
  facet.box.append(element("div", { className: "options" }, ...made.map(([, button]) => button)));
  facet.show = (out) => {
    const counts = tally(facet.texts, out);
    for (const [text, button] of made) {
      button.lastChild.textContent = count(counts.get(text)[1]);
      button.setAttribute("aria-pressed", facet.chosen.has(text));
    }
  };
}

function histogram(facet) {  // drag across it, or type the ends of the range
  const known = range(facet.values), { ends, count: n, whole } = parts(facet.values, known, BARS), [low, high] = ends;
  const svg = (name, attributes) => { const made = document.createElementNS($("svg").content.firstElementChild.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value); return made; };
  const picture = svg("svg", { viewBox: `0 0 ${n} 20`, preserveAspectRatio: "none", "aria-hidden": "true" }), explained = svg("title", {});
  explained.textContent = "Grey: all vectors; coloured: those that the filters keep, drawn to their own largest bar. Drag to choose a range.";
  const drawn = ["all", "kept"].map((name) => Array.from({ length: n }, (_, i) => svg("rect", { x: i + 0.05, width: 0.9, class: name })));
  const span = svg("rect", { y: 0, height: 20, class: "span" });
  picture.append(explained, span, ...drawn.flat());
  const told = (value) => String(whole ? value : Number(value.toPrecision(4)));
  const inputs = ["low", "high"].map((end, i) => {
    const input = element("input", { inputMode: "decimal", autocomplete: "off", placeholder: told(known[i]), ariaLabel: `${facet.column.title}, ${i ? "to" : "from"}` });
    input.addEventListener("change", () => {
      facet[end] = input.value.trim() && Number.isFinite(Number(input.value)) ? Number(input.value) : null;
      fade();
    });
    return input;
  });
  let from = null;
  const share = (event) => event.offsetX / picture.clientWidth, value = (at) => (whole ? Math.floor : Number)(low + (high - low) * at);
  picture.addEventListener("pointerdown", (event) => { picture.setPointerCapture(event.pointerId); from = share(event); });
  picture.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const [left, right] = [from, share(event)].sort((one, other) => one - other);
    [facet.low, facet.high] = [left <= 0.01 ? null : value(left), right >= 0.99 ? null : value(right)];  // open at an edge
    soon();
  });
  picture.addEventListener("pointerup", () => { from = null; });
  facet.box.append(picture, element("div", { className: "ends" }, inputs[0], "to", inputs[1]));
  facet.show = (out) => {
    const own = outside(facet), heights = bars(facet.values, ends, n, out.map((others, i) => others + own[i]));
    const at = (end, otherwise) => (end === null ? otherwise : Math.min(n, Math.max(0, n * (end - low) / ((high - low) || 1))));
    const [x, right] = [at(facet.low, 0), at(facet.high === null ? null : facet.high + Number(Boolean(whole)), n)];
    span.setAttribute("x", x);
    span.setAttribute("width", isActive(facet) ? Math.max(0, right - x) : 0);
    ["all", "kept"].forEach((name, kind) => {
      const most = Math.max(1, ...heights[name]);
      drawn[kind].forEach((rect, i) => {
        rect.setAttribute("y", 20 - 20 * heights[name][i] / most);
        rect.setAttribute("height", 20 * heights[name][i] / most);
      });
    });
    inputs.forEach((input, i) => { const end = facet[i ? "high" : "low"]; input.value = end === null ? "" : told(end); });
  };
}

let waiting = false;
function soon() {  // once for each frame, however often the mouse moves
  if (!waiting) requestAnimationFrame(() => { waiting = false; fade(); });
  waiting = true;
}

function reset() {
  for (const facet of facets.values()) facet.box.remove();
  facets.clear();
  picked = null;
  fade();
}

async function tabulate() {  // the first selected rows with the table's columns
  if (!$("table-part").open || !about) return;
  const shown = selected().slice(0, LINES), columns = ["id", ...about.columns], cells = await Promise.all(columns.map(read));
  $("heads").replaceChildren(...columns.map((name) => element("th", { scope: "col", textContent: name, dir: "auto" })));
  $("lines").replaceChildren(...shown.map((i) => {
    const link = element("button", { type: "button", textContent: cells[0][i] });
    link.addEventListener("click", () => choose(rows[i]));
    return element("tr", {}, element("td", { dir: "auto" }, link), ...cells.slice(1).map((column) => element("td", { textContent: column[i], dir: "auto" })));
  }));
}

async function gallery() {  // pictures of the first selected vectors
  const shown = map.faded && about ? selected().slice(0, GRID) : [], known = shown.length ? await source.rows(shown.map((i) => rows[i])) : {};
  $("grid").replaceChildren(...shown.filter((i) => known[rows[i]]?.picture).map((i) => {
    const button = element("button", { type: "button", title: known[rows[i]].id }, element("img", { src: source.picture(rows[i]), alt: known[rows[i]].id, loading: "lazy" }));
    button.addEventListener("click", () => choose(rows[i]));
    return button;
  }));
}

function pick(points) { picked = points?.length ? points : null; fade(); }
const selected = () => [...rows.keys()].filter((i) => !map.faded?.[i]);

async function exported(asked) {  // the selected rows as CSV
  const columns = await Promise.all(asked.map(async (column) => (
    column.name === "id" || column.name.startsWith("column:") ? read(column.title) : numeric(column.name))));
  return csv([asked.map((column) => column.title), ...selected().map((i) => columns.map((column) => column[i]))]);
}

async function download(name, asked) {
  const link = element("a", { href: URL.createObjectURL(new Blob([await exported(asked)], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
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
  const colour = colours().find((column) => column.name === $("colour").value);
  if (layout && drawn.layout !== layout.name) {
    map.set(await numeric(layout.name));
    drawn.layout = layout.name;
  }
  const state = colour ? `${colour.name} ${colour.version} ${dark.matches}` : "";
  if (drawn.colour !== state) {
    if (drawn.named !== colour?.name) wanted.clear();
    drawn.named = colour?.name;
    await recolour();
    drawn.colour = state;
  }
  $("note").textContent = [layout?.note, colour?.note].filter(Boolean).join(" ");
}

// ---- the card of the row under the mouse ----------------------------------------------------------------------------

let over = -1;
function hover(point, x = 0, y = 0) {
  if (point === over) return;
  over = point;
  if (point < 0) { $("card").hidden = true; return; }
  setTimeout(() => point === over && guarded(() => card(point, x, y)), 60);
}

async function card(point, x, y) {
  const row = rows[point];
  if (!things.has(row)) Object.entries(await source.rows([row])).forEach(([one, thing]) => things.set(Number(one), thing));
  if (point !== over) return;
  const column = colours().find((one) => one.name === $("colour").value), value = names ? names[values[point]] : number(values[point]);
  const lines = column && column.title !== "label" ? [element("span", { className: "faint", textContent: `${column.title}: ${Number.isNaN(values[point]) ? "–" : value}` })] : [];
  $("card").replaceChildren(...words(things.get(row), row), ...lines);
  $("card").hidden = false;
  const { clientWidth: w, clientHeight: h } = $("frame"), { offsetWidth: width, offsetHeight: height } = $("card");
  $("card").style.left = `${Math.max(0, x + 16 + width > w ? x - 16 - width : x + 16)}px`;
  $("card").style.top = `${Math.max(0, Math.min(y + 12, h - height))}px`;
}

function kind(answer, row, found) {  // without exact neighbours nobody knows what is lost
  return !answer.exact ? "unknown" : !answer.exact.includes(row) ? "gained" : found.includes(row) ? "kept" : "lost";
}

function mark(answer, found) {
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`);
  const marked = [...new Set([...(answer.exact ?? []), ...found])].map((row) => [row, kind(answer, row, found)]);
  map.marks = [...marked.map(([row, what]) => [row, colour(what), what, 7]), [answer.row, colour("ink"), "row", 11]]
    .filter(([row]) => pointOf.has(row)).map(([row, ...rest]) => [pointOf.get(row), ...rest]);
  map.draw();
  const used = Object.keys(GLYPHS).filter((name) => marked.some(([, what]) => what === name));
  $("marks").replaceChildren(...used.map((name) => element("span", { className: name },
    element("span", { className: "mark", textContent: GLYPHS[name] }), ` ${name}`)), element("span", {}, "◯ this vector"));
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

function entry(thing, row, figures, full = figures, className = "", ...before) {
  const button = element("button", { type: "button", className }, ...before, ...words(thing, row),
    element("span", { className: "figures", textContent: figures }));
  button.title = [thing.id, thing.label, thing.text, full].filter(Boolean).join("\n");
  button.addEventListener("click", () => choose(row));
  return element("li", {}, button);
}

function list(title, answer, listed, kindOf, figuresOf) {
  return element("section", {}, element("h2", { textContent: title, title }), element("ol", {}, ...listed.map((row, i) => {
    const what = kindOf(row), mark = element("span", { className: "mark", textContent: GLYPHS[what] });
    if (what === "lost" || what === "gained") mark.append(element("i", { textContent: ` ${what}` }));
    return entry(answer.about[row], row, ...figuresOf(row), what, element("span", { className: "rank", textContent: i + 1 }), mark);
  })));
}

function show() {
  const answer = current, at = Number($("oversample").value), several = about.indexes.length > 1;
  const finds = answer.found.map((lists) => lists[at]);
  $("chosen").replaceChildren(...words(answer.about[answer.row], answer.row));
  $("depth").textContent = at ? `${about.oversamples[at - 1]} times as many candidates, rescored by exact vectors` : "without rescoring";
  const coded = (i, row) => number(answer.coded[i][row]);
  const both = (i, row) => (answer.exact ? `${number(answer.true[row])} exactly, ${coded(i, row)} by code` : `${coded(i, row)} by code`);
  const columns = finds.map((found, i) => list(several ? about.indexes[i].name : "Codes", answer, found,
    (row) => kind(answer, row, found), (row) => [coded(i, row), both(i, row)]));
  if (answer.exact) {
    columns.unshift(list("Exact", answer, answer.exact, (row) => (finds.every((found) => found.includes(row)) ? "kept" : "lost"),
      (row) => [number(answer.true[row]), both(0, row)]));
  }
  $("lists").replaceChildren(...columns);
  const kept = finds.map((found, i) => {
    const share = `${answer.exact?.filter((row) => found.includes(row)).length} of ${answer.exact?.length} exact neighbours found`;
    return several ? `${about.indexes[i].name}: ${share}` : share;
  });
  $("outcome").textContent = answer.exact ? `${kept.join("; ")}. ${SCORES[about.metric]}: exact ones in the first list.`
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
async function open_row(row, known = false) {
  display(await source.item(row));
  remember(!known);
}

// ---- the link: row, map, colour, view -------------------------------------------------------------------------------

function remember(step = false) {  // in the address; with `step` the back button returns to what was before
  if (location.protocol === "about:" || !map.view || !about || restoring) return;  // a notebook's frame has no address
  const { x, y, scale } = map.view, at = [x, y, scale].map((value) => Number(value.toPrecision(5))).join();
  const parts = { row: current?.row >= 0 ? current.row : "", map: $("layout").value, colour: $("colour").value, at: scale === 1 && x === map.home?.x ? "" : at };
  const hash = `#${new URLSearchParams(Object.entries(parts).filter(([, value]) => value !== ""))}`;
  if (hash !== location.hash) history[step === true ? "pushState" : "replaceState"](null, "", hash);
}

let restoring = 0;  // while an address is read, the page's state is not yet what it names
async function restore() {
  restoring += 1;
  try { await follow(); } finally { restoring -= 1; }
  remember();
}

async function follow() {
  const hash = location.hash.slice(1), given = new URLSearchParams(/^\d+$/.test(hash) ? `row=${hash}` : hash);
  for (const [id, name] of [["layout", "map"], ["colour", "colour"]]) {
    if ([...$(id).options].some((option) => option.value === given.get(name))) $(id).value = given.get(name);
  }
  await redraw();
  const [x, y, scale] = (given.get("at") ?? "").split(",").map(Number);
  if (scale > 0 && Number.isFinite(x) && Number.isFinite(y)) { map.view = { x, y, scale }; map.draw(); } else if (map.home) map.reset();
  const row = Number.parseInt(given.get("row"), 10);
  if (row >= 0 && current?.row !== row) await open_row(row, true);
}
addEventListener("popstate", () => guarded(restore));

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
$("oversample").addEventListener("input", () => current && show());
for (const id of ["layout", "colour"]) $(id).addEventListener("change", () => guarded(async () => { await redraw(); remember(true); }));
for (const button of document.querySelectorAll("#modes button")) button.addEventListener("click", () => {
  map.mode = button.dataset.mode;
  for (const one of document.querySelectorAll("#modes button")) one.setAttribute("aria-pressed", one === button);
});
const ID = { name: "id", title: "id" };
$("csv").addEventListener("click", () => guarded(() => download("vectors.csv", [ID, ...colours().filter((column) => column.name !== "more")])));
$("ids").addEventListener("click", () => guarded(() => download("ids.csv", [ID])));
$("clear").addEventListener("click", reset);
$("facet").addEventListener("change", () => guarded(async () => { await opened($("facet").value); $("facet").value = ""; fade(); }));
$("table-part").addEventListener("toggle", () => guarded(tabulate));
$("worst-part").addEventListener("toggle", () => guarded(worst));
dark.addEventListener("change", () => { guarded(redraw); fade(); if (current) show(); });

async function worst() {  // the rows that lose most neighbours, of equal ones those with the largest error
  if (!$("worst-part").open) return;
  const [lost, error] = await Promise.all(["lost0", "error0"].map(async (name) => (
    about.colours.some((column) => column.name === name) ? numeric(name) : null)));
  const key = (column, i) => (column === null || Number.isNaN(column[i]) ? -1 : column[i]);
  const first = [...rows.keys()].sort((i, j) => key(lost, j) - key(lost, i) || key(error, j) - key(error, i)).slice(0, lost || error ? 100 : 0);
  const known = first.length ? await source.rows(first.map((i) => rows[i])) : {};
  const figures = (i) => [key(lost, i) < 0 ? "" : `${lost[i]} of ${about.k} lost`, key(error, i) < 0 ? "" : `error ${number(error[i])}`];
  $("worst").replaceChildren(...first.map((i) => entry({ ...known[rows[i]], text: null }, rows[i], figures(i).filter(Boolean).join(", "))));
  if (!first.length) $("worst").replaceChildren(element("li", { textContent: "Not measured yet, or no exact vectors to compare with." }));
}

// ---- what is known so far -------------------------------------------------------------------------------------------

function summary() {
  const parts = [`${count(about.rows)} vectors${about.shown < about.rows ? `, ${count(about.shown)} of them, drawn at random, on the map` : ""}`];
  for (const index of about.indexes) {
    const kept = index.recall === null ? "" : `: recall@${about.k} without rescoring ${percent(index.recall)}`;
    const measured = index.recall === null || index.rows === about.rows ? "" : ` (measured on ${count(index.rows)} vectors)`;
    parts.push(`${about.indexes.length > 1 ? `${index.name}, ` : ""}${index.codec}${kept}${measured}`);
  }
  if (about.busy !== drawn.busy) Object.assign(drawn, { busy: about.busy, since: Date.now() });
  const seconds = Math.round((Date.now() - drawn.since) / 1000);
  if (about.busy) parts.push(`Now ${about.busy}${seconds > 3 ? `, ${seconds} s` : ""}`);
  $("summary").textContent = `${parts.join(". ")}.`;
}

async function refresh() {
  about = await source.about();
  fill($("layout"), about.layouts);
  fill($("colour"), colours(), "column:label");
  $("facet").replaceChildren(element("option", { value: "", textContent: "a column ..." }), ...colours().filter((one) => one.name !== "more")
    .map((column) => element("option", { value: column.name, textContent: column.title })));
  $("facet").parentElement.hidden = !colours().length;
  for (const [name, facet] of facets) {  // what is still being measured
    const now = colours().find((one) => one.name === name);
    if (now.version !== facet.version) [facet.values, facet.version] = [await numeric(name), now.version];
  }
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
  await restore();
});
