// The experimenter's page: the survey's figures, read again every few seconds.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "&dark" : "";
const percent = (value) => (value === null ? "–" : `${Math.round(100 * value)} %`);
let seen = -1;

// Rows of text into the body of a table; names of items are other people's text, so never markup.
function fill(body, rows) {
  document.getElementById(body).replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells.map((cell) => Object.assign(document.createElement("td"), { textContent: cell })));
    return row;
  }));
}

async function refresh() {
  try {
    const state = await (await fetch("state")).json();
    const error = state.error === null ? "" : `, error on held-out answers ${state.error.toFixed(3)}`;
    document.getElementById("summary").textContent =
      `${state.answers} answers on ${state.items} items by ${state.raters.length} raters${error}`;
    fill("raters", state.raters.map((rater) => [rater.name, rater.answers, percent(rater.cannot_say),
      rater.seconds.toFixed(1), percent(rater.consistent), percent(rater.catch), percent(rater.agree),
      rater.weight === null ? "–" : rater.weight.toFixed(2)]));
    fill("questions", state.questions.map((question) => [question.items.join(", "),
      question.chosen.map(([what, count]) => `${count} × ${what}`).join(", ")]));
    fill("pairs", state.pairs.map((pair) => [pair.items.join(", "), pair.answers, percent(pair.against)]));
    const failure = document.getElementById("failure");
    failure.hidden = state.failure === null;
    failure.textContent = `The last fit failed (${state.failure}). All answers are saved; more answers start the next fit.`;
    document.getElementById("split").hidden = !state.questions.length;
    document.getElementById("against").hidden = !state.pairs.length;
    if (state.learned !== seen) {
      seen = state.learned;
      for (const name of ["map", "curve"]) document.getElementById(name).src = `${name}.png?n=${seen}${dark}`;
    }
  } catch {
    document.getElementById("summary").textContent = "No connection to the survey.";
  }
}

refresh();
setInterval(refresh, 3000);
