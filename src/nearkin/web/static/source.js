// Where the page's figures come from: the server, or the data inside a single file.
"use strict";

const served = {
  async json(path) {
    const answer = await fetch(path);
    const received = await answer.json();
    if (!answer.ok) throw new Error(received.error);
    return received;
  },
  about() { return this.json("about"); },
  rows(rows) { return this.json(`rows?at=${rows.join()}`); },
  values(name) { return this.json(`values?name=${encodeURIComponent(name)}`); },
  find(text) { return this.json(`find?text=${encodeURIComponent(text)}`); },
  item(row) { return this.json(`item/${row}`); },
  async column(name) {
    const answer = await fetch(`column/${name}`);
    if (!answer.ok) throw new Error("unknown column");
    return answer.arrayBuffer();
  },
  picture(row) { return `picture/${row}`; },
};

function in_file(data) {
  const word = (value) => String(value ?? "").toLowerCase();
  return {
    about: async () => data.about,
    rows: async (rows) => Object.fromEntries(rows.map((row) => [row, data.named[row]])),
    values: async (name) => data.values[name],
    async find(text) {
      const wanted = text.trim().toLowerCase();
      const rank = ({ id, label, text: words, more }) => word(id) === wanted ? 0 : word(id).startsWith(wanted) ? 1
        : word(id).includes(wanted) ? 2 : [words, label, ...Object.values(more)].some((one) => word(one).includes(wanted)) ? 3 : 4;
      return Object.entries(data.named).map(([row, about]) => ({ row: Number(row), ...about, rank: rank(about) }))
        .filter((found) => wanted && found.rank < 4).sort((one, other) => one.rank - other.rank || one.row - other.row)
        .slice(0, 30);
    },
    async item(row) {
      const answer = data.answers[row];
      if (!answer) throw new Error("This file holds no neighbours of that vector; `nearkin explore` without --out shows them.");
      const rows = [row, ...(answer.exact ?? []), ...answer.found.flat(2)];
      return { row, ...answer, about: Object.fromEntries(rows.map((one) => [one, data.named[one]])) };
    },
    async column(name) { return Uint8Array.from(atob(data.columns[name]), (letter) => letter.charCodeAt(0)).buffer; },
    picture: (row) => `data:image/png;base64,${data.pictures[row]}`,
  };
}

const inside = document.getElementById("data");
const source = inside ? in_file(JSON.parse(inside.textContent)) : served;
