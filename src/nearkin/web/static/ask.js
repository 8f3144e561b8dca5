// The raters' page: one question at a time. An answer is sent again until the server has acknowledged it.
"use strict";

const $ = (id) => document.getElementById(id);
const parts = location.pathname.split("/");
const home = `/${parts[1]}`;
const parameters = Object.fromEntries(new URLSearchParams(location.search));
let key = parts[2] === "r" ? parts[3] : location.search && localStorage.getItem(home + location.search);
let about = null, current = null, shownAt = null, busy = false, beyond = false, rested = 0;
let hiddenAt = null, hidden = 0;  // since when the page is out of sight, and for how long it was in this question
const loaded = new Map();         // pictures of the next question, loaded before it comes

const FOCUS = { start: "title", ask: "question", pause: "resume", done: "thanks" };  // where reading goes on

const say = (name, values = {}) => about.words[name].replace(/\{(\w+)\}/g, (all, word) => values[word] ?? all);

async function call(path, body) {
  const options = body === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
    let answer;
    try {
      answer = await fetch(`${home}/api/${path}`, options);
    } catch {
      $("status").textContent = about ? say("offline") : "No connection. Trying again.";
      await new Promise((resolve) => setTimeout(resolve, wait));
      continue;
    }
    const received = await answer.json().catch(() => ({ error: "the server sent no answer" }));
    if (!answer.ok) throw new Error(received.error);
    $("status").textContent = "";
    return received;
  }
}

function show(section) {
  for (const id of Object.keys(FOCUS)) $(id).hidden = id !== section;
  $(FOCUS[section]).focus({ preventScroll: true });
}

function made(name, properties = {}, ...children) {  // texts are other people's: they are set as text, never as HTML
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

// ---- a question -----------------------------------------------------------------------------------------------------

function picture(item) {
  const known = loaded.get(item.number), image = known && !known.isConnected ? known : new Image();
  if (image !== known) image.src = `${home}/media/${item.number}`;
  image.alt = item.text ? "" : nameOf(item);  // the text stands next to it
  return image;
}

function content(item) {
  const box = made("span", { className: "item", dir: "auto" });
  if (item.media === "image") box.append(picture(item));
  if (item.media === "sound") box.append(made("audio", { controls: true, preload: "auto", src: `${home}/media/${item.number}`, ariaLabel: nameOf(item) }));
  if (item.text) box.append(made("span", { textContent: item.text }));
  if (item.link) box.append(made("a", { href: item.link, target: "_blank", rel: "noopener noreferrer", textContent: `(${say("open")})` }));
  return box;
}

const nameOf = (item) => item.text || (item.media === "image" ? say("picture", { n: item.number + 1 }) : String(item.number + 1));

function choice(number, items) {
  const outer = items.some((item) => item.media === "sound" || item.link) ? "div" : "button";  // no control in a button
  const inside = made("span", { className: "pair" }, ...items.map(content)), hint = made("kbd", { textContent: number + 1, ariaHidden: "true" });
  if (outer === "button") {
    const button = made("button", { type: "button", className: "choice", ariaKeyShortcuts: number + 1 }, inside, hint);
    button.addEventListener("click", () => answer(number));
    return button;
  }
  const label = `${say("choose")} ${items.map(nameOf).join(", ")}`;
  const button = made("button", { type: "button", textContent: `${say("choose")} `, ariaLabel: label }, hint);
  button.addEventListener("click", () => answer(number));
  return made("div", { className: "choice" }, inside, button);
}

function display(question) {
  if (question.begin) { begin(); return; }
  current = question;
  if (about.goal && question.answered >= about.goal && !beyond) { finish(question.finish); return; }
  const items = question.items, anchored = about.form === "triplet";
  $("anchor").replaceChildren(...(anchored ? [content(items[0])] : []));
  const groups = anchored ? [[items[1]], [items[2]]]
    : about.form === "pairs" ? [items.slice(0, 2), items.slice(2)] : items.map((item) => [item]);
  $("choices").replaceChildren(...groups.map((group, number) => choice(number, group)));
  $("question").textContent = say(about.form);
  $("hint").textContent = question.practice ? say("practice") : "";
  $("progress").textContent = say(about.goal ? "progress_goal" : "progress", { n: question.answered, goal: about.goal });
  $("bar").hidden = !about.goal;
  $("bar").value = about.goal ? Math.min(1, question.answered / about.goal) : 0;
  $("undo").disabled = !question.undo;
  const due = about.break_every && !question.practice && question.answered % about.break_every === 0 && question.answered;
  if (due && rested !== question.answered) { rested = question.answered; show("pause"); return; }
  start();
}

async function start() {  // keys and the clock begin when all pictures can be seen and all sounds were played
  const question = current, choices = [...$("choices").querySelectorAll("button")];
  show("ask");
  shownAt = null;
  for (const button of choices) button.disabled = true;
  const sounds = [...document.querySelectorAll("#ask audio")];
  if (sounds.length && !$("hint").textContent) $("hint").textContent = say("play");
  const pictures = [...document.querySelectorAll("#ask img")].map((image) => image.decode().catch(() => null));
  const played = sounds.map((sound) => new Promise((resolve) => {
    for (const event of ["play", "error"]) sound.addEventListener(event, resolve, { once: true });
  }));
  await Promise.all([...pictures, ...played]);
  if (current !== question) return;
  arrange();
  shownAt = performance.now();
  [hidden, hiddenAt] = [0, document.hidden ? shownAt : null];
  for (const item of question.next.filter((one) => one.media === "image" && !loaded.has(one.number))) {
    loaded.set(item.number, Object.assign(new Image(), { src: `${home}/media/${item.number}` }));
    if (loaded.size > 24) loaded.delete(loaded.keys().next().value);
  }
  if (about.min_seconds) await new Promise((resolve) => setTimeout(resolve, 1000 * about.min_seconds));
  for (const button of choices) button.disabled = false;
}

function arrange() {  // side by side, or below each other: whichever makes the pictures larger
  const shapes = [...document.querySelectorAll("#choices img")].map((image) => image.naturalWidth / (image.naturalHeight || 1));
  const { clientWidth: w, clientHeight: h } = $("ask"), n = $("choices").children.length, first = $("anchor").childElementCount;
  const ratio = shapes.reduce((sum, one) => sum + one, 0) / shapes.length || 1, room = h - 110;
  const beside = Math.min(w / n, ratio * room / (1 + first)), below = Math.min(w, ratio * room / (n + first));
  $("ask").classList.toggle("stacked", about.form !== "pairs" && w < h && shapes.length > 0 && below > 1.1 * beside);
}
addEventListener("resize", () => $("ask").hidden || arrange());

function finish(given) {  // a completion code, or the address to go back to
  show("done");
  if (!given) return;
  const isAddress = /^https?:\/\//.test(given);
  const shown = made(isAddress ? "a" : "b", { textContent: given });
  $("finish").replaceChildren(`${say(isAddress ? "address" : "code")} `, shown);
  $("more").hidden = isAddress;
  if (!isAddress) return;
  shown.href = given;
  setTimeout(() => location.assign(given), 3000);
}

async function act(work) {
  if (busy) return;
  busy = true;
  try {
    display(await work());
  } catch (error) {
    try { display(await call(`r/${key}/question`)); } catch { /* the first error is shown */ }
    $("status").textContent = error.message;
  } finally {
    busy = false;
  }
}

function answer(number) {
  const now = performance.now(), seconds = (now - shownAt) / 1000;
  if (shownAt === null || (number >= 0 && seconds < about.min_seconds)) return;
  const unseen = (hidden + (hiddenAt === null ? 0 : now - hiddenAt)) / 1000;
  act(() => call(`r/${key}/answer`, { question: current.question, choice: number, seconds, hidden: unseen }));
}
const undo = () => act(() => call(`r/${key}/undo`, {}));

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { hiddenAt = performance.now(); return; }
  hidden += hiddenAt === null ? 0 : performance.now() - hiddenAt;
  hiddenAt = null;
});
document.addEventListener("keydown", (event) => {
  if ($("ask").hidden || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.tagName === "AUDIO") return;
  const count = $("choices").children.length;
  const side = { ArrowLeft: 0, ArrowRight: count - 1 }[event.key] ?? Number.parseInt(event.key, 10) - 1;
  if (side >= 0 && side < count) answer(side);
  else if (event.key === "0" || event.key === "ArrowDown") answer(-1);
  else if (event.key.toLowerCase() === "u" || event.key === "Backspace") undo();
  else return;
  event.preventDefault();
});
$("skip").addEventListener("click", () => answer(-1));
$("undo").addEventListener("click", undo);
$("resume").addEventListener("click", start);
$("more").addEventListener("click", () => { beyond = true; display(current); });

// ---- before the first question --------------------------------------------------------------------------------------

function field(one, number) {
  const id = `field-${number}`, label = made("label", { textContent: one.label || one.name });
  label.htmlFor = id;
  const input = one.options ? made("select", { id }, made("option", { value: "", textContent: "" }),
    ...one.options.map((text) => made("option", { value: text, textContent: text })))
    : made("input", { id, maxLength: 200, autocomplete: "off", inputMode: one.number ? "decimal" : "text" });
  input.required = Boolean(one.required);
  input.dir = "auto";
  return made("div", {}, label, input);
}

function begin() {
  show("start");
  $("who").hidden = Boolean(key);  // invited by name
}

const fits = (one, text) => (text ? !one.number || Number.isFinite(Number(text.replace(",", "."))) : !one.required);

$("join").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries(about.fields.map((one, number) => [one.name, $(`field-${number}`).value.trim()]));
  const wrong = about.fields.findIndex((one) => !fits(one, given[one.name]));
  if (wrong >= 0) {
    $("status").textContent = say("missing", { field: about.fields[wrong].label || about.fields[wrong].name });
    $(`field-${wrong}`).focus();
    return;
  }
  if (about.words.consent && !$("agree").checked) { $("status").textContent = say("tick"); $("agree").focus(); return; }
  try {
    const sent = { key: key || "", name: $("name").value, parameters, fields: given, agreed: $("agree").checked };
    key = (await call("join", sent)).key;
    if (location.search) localStorage.setItem(home + location.search, key);  // the same person by the same link goes on
    history.replaceState(null, "", `${home}/r/${key}`);  // a reload, or the same address later, goes on here
    await act(() => call(`r/${key}/question`));
  } catch (error) {
    $("status").textContent = error.message;
  }
});

(async () => {
  try {
    about = await call("about");
    document.documentElement.lang = about.words.lang;
    const told = { question: say(about.form), skip: say("skip"), goal: about.goal, minutes: about.minutes };
    told.length = say(about.goal ? "length_goal" : "length", told);
    document.title = $("title").textContent = say("title", told) || told.question;
    for (const element of document.querySelectorAll("[data-text]")) element.textContent = say(element.dataset.text);
    for (const name of ["instructions", "consent"]) {
      $(name).textContent = say(name, told);
      $(name).hidden = !about.words[name];
    }
    $("agree-line").hidden = !about.words.consent;
    $("fields").replaceChildren(...about.fields.map(field));
    if (key) await act(() => call(`r/${key}/question`));
    else begin();
  } catch (error) {
    $("status").textContent = error.message;
  }
})();
