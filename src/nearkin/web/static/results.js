// The experimenter's page: the survey's figures, read again every few seconds.
"use strict";

const $ = (id) => document.getElementById(id);
const percent = (value) => (value === null ? "–" : `${Math.round(100 * value)} %`);
const ROWS = 10, FEWEST = 4;  // rows of a table; votes about a pair before its share is shown
let seen = "";

// Rows of text into the body of a table; names of items are other people's text, so never markup.
function fill(body, rows, classes = []) {
  $(body).replaceChildren(...rows.map((cells, number) => {
    const row = document.createElement("tr");
    row.className = classes[number] ?? "";
    row.append(...cells.map((cell) => Object.assign(document.createElement("td"), { textContent: cell, dir: "auto" })));
    return row;
  }));
}

// ---- counts in words -------------------------------------------------------------------------------------------------

const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

function summary(state) {
  const by = state.raters.filter((rater) => !rater.left_out).length;
  const error = state.error === null ? "" : `, triplet error ${state.error.toFixed(3)} (${state.wrong} wrong of ${counted(state.held_out, "held-out comparison")})`;
  return `${counted(state.answers, "answer")} on ${counted(state.items, "item")} by ${counted(by, "rater")}${error}`;
}

function rule(state) {
  if (state.max_wrong === null) return "No rater is left out.";
  const out = state.left_out.length ? `${state.left_out.length} of ${counted(state.raters.length, "rater")}: ${state.left_out.slice(0, 20).join(", ")}` : "none";
  return `Left out: raters with more than ${counted(state.max_wrong, "catch question")} answered wrong. So far ${out}.`;
}

// ---- where answers disagree -----------------------------------------------------------------------------------------

const ascending = (numbers) => [...numbers].sort((one, other) => one - other);

function key_of(form, line) {  // equal for the same question, whichever side its items are on
  if (form === "triplet") return [line[0], ...ascending(line.slice(1))].join();
  if (form === "odd-one-out") return ascending(line).join();
  return [ascending(line.slice(0, 2)).join(), ascending(line.slice(2)).join()].sort().join();
}

function last_votes(told) {  // of each question, each rater's last answer: one vote a rater
  const votes = new Map();
  for (const [rater, ...line] of told.answers) {
    const key = key_of(told.form, line);
    if (!votes.has(key)) votes.set(key, new Map());
    votes.get(key).set(rater, line);
  }
  return votes;
}

function split_questions(told) {  // on which raters differ most: the items, and how many chose what
  const rows = [];
  for (const [key, given] of last_votes(told)) {
    const counts = new Map();
    for (const line of given.values()) {
      const chosen = ascending(told.chosen.map((place) => line[place])).map((item) => told.names[item]).join(" and ");
      counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
    }
    const ordered = [...counts].sort((one, other) => other[1] - one[1]), against = given.size - ordered[0][1];
    if (against) rows.push({ items: key.split(",").map((item) => told.names[item]), chosen: ordered, against, votes: given.size });
  }
  return rows.sort((one, other) => other.against - one.against || one.votes - other.votes).slice(0, ROWS);
}

function pairs_against_map(told) {  // the pairs whose votes contradict the map most, beyond the share of all that do
  const pairs = new Map(), far = (i, j) => told.places[i].reduce((sum, x, axis) => sum + (x - told.places[j][axis]) ** 2, 0);
  let all = 0, wrong = 0;
  for (const given of last_votes(told).values()) for (const line of given.values()) {
    for (const [i, j, l, k] of told.comparisons.map((places) => places.map((place) => line[place]))) {
      const broken = far(i, j) >= far(l, k);
      all += 1;
      wrong += broken;
      for (const pair of [[i, j], [l, k]]) {
        const key = ascending(pair).join(), [against, total] = pairs.get(key) ?? [0, 0];
        pairs.set(key, [against + broken, total + 1]);
      }
    }
  }
  return [...pairs].map(([key, [against, total]]) => ({
    items: key.split(",").map((item) => told.names[item]), answers: total, against: against / total,
    excess: total >= FEWEST ? against - (wrong / all) * total : 0,
  })).filter((pair) => pair.excess > 0).sort((one, other) => other.excess - one.excess).slice(0, ROWS);
}

// ---- figures --------------------------------------------------------------------------------------------------------

function drawn(name, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.textContent = text;
  return made;
}

function frame(id, width, height, pieces, empty) {
  $(id).setAttribute("viewBox", `0 0 ${width} ${height}`);
  $(id).replaceChildren(...(pieces.length ? pieces : [drawn("text", { x: width / 2, y: height / 2, "text-anchor": "middle", class: "axis" }, empty)]));
}

function steps(most) {  // from 0 to at least `most`, at round numbers
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough) * power;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, n) => Number((n * step).toPrecision(3)));
}

function draw_map(told, width = $("map").clientWidth || 640, height = Math.round(0.7 * width), margin = 30) {
  const places = (told.places ?? []).map(([x, y = 0]) => [x, y]), axis = (at) => places.map((place) => place[at]);
  const low = [0, 1].map((at) => Math.min(...axis(at))), high = [0, 1].map((at) => Math.max(...axis(at)));
  const scale = Math.min((width - 2 * margin) / ((high[0] - low[0]) || 1), (height - 2 * margin) / ((high[1] - low[1]) || 1));
  const at = places.map(([x, y]) => [width / 2 + scale * (x - (low[0] + high[0]) / 2), height / 2 - scale * (y - (low[1] + high[1]) / 2)]);
  const taken = at.map(([x, y]) => [x - 4, y - 4, x + 4, y + 4]), free = (box) => box[0] >= 2 && box[2] <= width - 2
    && box[1] >= 2 && box[3] <= height - 2 && !taken.some((one) => one[0] < box[2] && box[0] < one[2] && one[1] < box[3] && box[1] < one[3]);
  const pieces = [];
  at.forEach(([x, y], number) => {
    const dot = drawn("circle", { cx: x, cy: y, r: 4 });
    dot.append(drawn("title", {}, told.names[number]));
    pieces.push(dot);
    const name = told.names[number].length > 24 ? `${told.names[number].slice(0, 23)}…` : told.names[number], long = 7.4 * name.length;
    const boxes = [[x + 7, y - 8], [x - 7 - long, y - 8], [x - long / 2, y - 23], [x - long / 2, y + 7]].map(([l, t]) => [l, t, l + long, t + 16]);
    const box = boxes.find(free);  // a name for which there is no room is in the point's title
    if (box) { taken.push(box); pieces.push(drawn("text", { x: box[0], y: box[1] + 12 }, name)); }
  });
  frame("map", width, height, pieces, "the map appears after the first answers");
}

function interval(share, n) {  // Wilson's 95 % interval of a share of n
  const z = 1.96, middle = share + z * z / (2 * n), half = z * Math.sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return [middle - half, middle + half].map((end) => end / (1 + z * z / n));
}

function draw_curve(all, width = $("curve").clientWidth || 640, height = Math.round(0.7 * width), left = 50, bottom = 50) {
  if (!all.length) { frame("curve", width, height, [], "the error appears with the first random questions"); return; }
  const curve = [];  // a rater who was left out takes answers back: the errors of fits with more answers are dropped
  for (const point of [...all].reverse()) if (!curve.length || point[0] < curve[0][0]) curve.unshift(point);
  const across = steps(curve.at(-1)[0]), up = steps(Math.max(0.1, ...curve.slice(-60).map(([, ...of]) => interval(...of)[1])));
  const x = (n) => left + (width - left - 30) * n / across.at(-1), y = (error) => height - bottom - (height - bottom - 34) * error / up.at(-1);
  const pieces = [
    ...up.flatMap((error) => [drawn("line", { x1: left, x2: width - 30, y1: y(error), y2: y(error) }),
      drawn("text", { x: left - 8, y: y(error) + 4, "text-anchor": "end", class: "axis" }, error)]),
    ...across.map((n) => drawn("text", { x: x(n), y: height - bottom + 20, "text-anchor": "middle", class: "axis" }, n.toLocaleString("en"))),
  ];
  pieces.push(drawn("text", { x: width / 2, y: height - 10, "text-anchor": "middle", class: "axis" }, "comparisons trained on"),
    drawn("polyline", { points: curve.map(([n, error]) => `${x(n)},${y(error)}`).join(" ") }),
    ...curve.slice(-60).flatMap(([n, error, held_out]) => {
      const [low, high] = interval(error, held_out);
      return [drawn("line", { x1: x(n), x2: x(n), y1: y(low), y2: y(high), class: "interval" }), drawn("circle", { cx: x(n), cy: y(error), r: 3 })];
    }), drawn("text", { x: left, y: 14, class: "axis" }, "triplet error"));
  frame("curve", width, height, pieces, "");
}

// ---- what is known so far -------------------------------------------------------------------------------------------

async function refresh() {
  try {
    const state = await (await fetch("state")).json();
    $("summary").textContent = summary(state);
    $("rule").textContent = rule(state);
    fill("raters", state.raters.map((rater) => [rater.name, rater.left_out ? "left out" : "yes", rater.answers, percent(rater.cannot_say),
      rater.seconds.toFixed(1), percent(rater.consistent), rater.n_catch ? `${percent(rater.catch)} of ${rater.n_catch}` : "–", percent(rater.agree),
      rater.weight === null ? "–" : rater.weight.toFixed(2)]),
    state.raters.map((rater) => (rater.left_out ? "out" : "")));
    $("failure").hidden = state.failure === null;
    $("failure").textContent = `The last fit failed (${state.failure}). All answers are saved; more answers start the next fit.`;
    const now = `${state.answers} ${state.learned} ${state.left_out.length}`;
    if (now === seen) return;
    const told = await (await fetch("votes")).json(), differ = split_questions(told), against = told.places ? pairs_against_map(told) : [];
    fill("questions", differ.map((one) => [one.items.join(", "), one.chosen.map(([what, count]) => `${count} × ${what}`).join(", ")]));
    fill("pairs", against.map((pair) => [pair.items.join(", "), pair.answers, percent(pair.against)]));
    $("split").hidden = !differ.length;
    $("against").hidden = !against.length;
    draw_map(told);
    draw_curve(state.curve);
    seen = now;
  } catch {
    $("summary").textContent = "No connection to the survey.";
  }
}

refresh();
setInterval(refresh, 3000);
addEventListener("resize", () => { seen = ""; refresh(); });
