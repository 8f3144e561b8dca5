// The raters' page: one question at a time. An answer is sent again until the server has acknowledged it.
"use strict";

const $ = (id) => document.getElementById(id);
const parts = location.pathname.split("/");
const home = `/${parts[1]}`;
let key = parts[2] === "r" ? parts[3] : location.search && localStorage.getItem(home + location.search);
let about = null, current = null, shownAt = 0, busy = false, beyond = false;

async function call(path, body) {
  const options = body === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
    let answer;
    try {
      answer = await fetch(`${home}/api/${path}`, options);
    } catch {
      $("status").textContent = "No connection. Trying again.";
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
  for (const id of ["start", "ask", "done"]) $(id).hidden = id !== section;
}

function content(item) {  // texts are other people's: they are set as text, never as HTML
  const box = document.createElement("span");
  box.className = "item";
  if (item.media === "image") {
    const image = document.createElement("img");
    image.src = `${home}/media/${item.number}`;
    image.alt = item.text || `picture ${item.number + 1}`;
    box.append(image);
  } else if (item.media === "sound") {
    const sound = document.createElement("audio");
    sound.controls = true;
    sound.src = `${home}/media/${item.number}`;
    box.append(sound);
  }
  box.dir = "auto";
  if (item.text) box.append(document.createTextNode(item.text));
  if (item.link) {
    const link = document.createElement("a");
    link.href = item.link;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    link.textContent = " (open)";
    box.append(link);
  }
  return box;
}

function choice(number, items) {
  const button = document.createElement("button");
  button.type = "button";
  const inside = document.createElement("span");
  inside.className = "pair";
  inside.append(...items.map(content));
  const hint = document.createElement("kbd");
  hint.textContent = number + 1;
  button.append(inside, hint);
  button.addEventListener("click", (event) => {
    if (!["A", "AUDIO"].includes(event.target.tagName)) answer(number);
  });
  return button;
}

function display(question) {
  current = question;
  if (about.goal && question.answered >= about.goal && !beyond) { finish(question.finish); return; }
  const items = question.items;
  const anchored = about.form === "triplet";
  $("anchor").replaceChildren(...(anchored ? [content(items[0])] : []));
  const groups = anchored ? [[items[1]], [items[2]]]
    : about.form === "pairs" ? [items.slice(0, 2), items.slice(2)] : items.map((item) => [item]);
  $("choices").replaceChildren(...groups.map((group, number) => choice(number, group)));
  $("question").textContent = about.question;
  $("progress").textContent = about.goal ? `${question.answered} of ${about.goal} answered` : `${question.answered} answered`;
  $("undo").disabled = question.answered === 0;
  show("ask");
  shownAt = null;  // keys and the clock begin when all pictures can be seen
  const pictures = [...document.querySelectorAll("#ask img")].map((image) => image.decode().catch(() => null));
  Promise.all(pictures).then(() => { if (current === question) shownAt = performance.now(); });
}

function finish(given) {  // a completion code, or the address to go back to
  show("done");
  if (!given) return;
  const isAddress = /^https?:\/\//.test(given), shown = document.createElement(isAddress ? "a" : "b");
  if (isAddress) shown.href = given;
  shown.textContent = given;
  $("finish").replaceChildren(isAddress ? "Please finish here: " : "Your completion code: ", shown);
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

const answer = (number) => shownAt !== null && act(() => call(`r/${key}/answer`,
  { question: current.question, choice: number, seconds: (performance.now() - shownAt) / 1000 }));
const undo = () => act(() => call(`r/${key}/undo`, {}));

document.addEventListener("keydown", (event) => {
  if ($("ask").hidden || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
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
$("more").addEventListener("click", () => { beyond = true; display(current); });
$("join").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (about.consent && !$("agree").checked) { $("status").textContent = "Please tick the box to begin."; return; }
  try {
    key = (await call("join", { name: $("name").value, parameters: Object.fromEntries(new URLSearchParams(location.search)) })).key;
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
    document.title = $("title").textContent = about.title;
    $("instructions").textContent = about.instructions;
    $("consent").textContent = about.consent;
    $("consent").hidden = $("agree-line").hidden = !about.consent;
    if (key) await act(() => call(`r/${key}/question`));
    else { show("start"); $("name").focus(); }
  } catch (error) {
    $("status").textContent = error.message;
  }
})();
