// The experimenter's page: what there is, again every few seconds.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "&dark" : "";
const percent = (value) => (value === null ? "–" : `${Math.round(100 * value)} %`);
let seen = -1;

async function look() {
  try {
    const state = await (await fetch("state")).json();
    const error = state.error === null ? "" : `, error on held-out answers ${state.error.toFixed(3)}`;
    document.getElementById("summary").textContent =
      `${state.answers} answers on ${state.items} items by ${state.raters.length} raters${error}`;
    document.getElementById("raters").replaceChildren(...state.raters.map((rater) => {
      const row = document.createElement("tr");
      const cells = [rater.name, rater.answers, percent(rater.cannot_say), rater.seconds.toFixed(1),
        percent(rater.consistent), percent(rater.catch), percent(rater.agree)];
      row.append(...cells.map((cell) => Object.assign(document.createElement("td"), { textContent: cell })));
      return row;
    }));
    if (state.learned !== seen) {
      seen = state.learned;
      for (const name of ["map", "curve"]) document.getElementById(name).src = `${name}.png?n=${seen}${dark}`;
    }
  } catch {
    document.getElementById("summary").textContent = "No connection to the survey.";
  }
}

look();
setInterval(look, 3000);
