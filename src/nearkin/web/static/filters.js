// Filters by columns, and CSV: functions of arrays alone, without a page.
"use strict";

const MISSING = new Set(["", "nan", "None", "NaT", "<NA>"]);
const SHOWN = 20;  // categories with a colour; the others share one. With more, a column of numbers is one of numbers.

function numbers(texts) {  // of a column of texts, null where they are categories
  const given = [...new Set(texts)].filter((text) => !MISSING.has(text));
  if (given.length <= SHOWN || !given.every((text) => Number.isFinite(Number(text)))) return null;
  return Float64Array.from(texts, (text) => (MISSING.has(text) ? NaN : Number(text)));
}

// A facet is a column with what is chosen in it: `chosen` of its texts, or `low` to `high` of its values; null is open.
const isActive = (facet) => Boolean(facet.chosen.size) || facet.low !== null || facet.high !== null;

function outside(facet) {  // 1 for each row that the facet leaves out
  if (!isActive(facet)) return new Uint8Array((facet.values ?? facet.texts).length);
  if (!facet.values) return Uint8Array.from(facet.texts, (text) => Number(!facet.chosen.has(text)));
  const low = facet.low ?? -Infinity, high = facet.high ?? Infinity;
  return Uint8Array.from(facet.values, (value) => Number(!(value >= low && value <= high)));  // a missing value is out
}

function combined(masks, n) {  // how many masks leave out each row
  const out = new Uint8Array(n);
  for (const mask of masks) for (let i = 0; i < n; i++) out[i] += mask[i];
  return out;
}

function parts(values, [low, high], most) {  // at most `most` equal parts of a range: ends and number; of integers, whole ones
  if (!values.every((value) => Number.isNaN(value) || Number.isInteger(value))) return { ends: [low, high], count: most };
  const step = Math.ceil((high - low + 1) / most), count = Math.ceil((high - low + 1) / step);
  return { ends: [low, low + step * count], count, whole: true };
}

function bars(values, [low, high], count, out) {  // rows in each of `count` equal parts, those beyond the ends too: all, and those kept
  const all = new Array(count).fill(0), kept = new Array(count).fill(0), scale = count / ((high - low) || 1);
  values.forEach((value, i) => {
    if (Number.isNaN(value)) return;
    const at = Math.min(count - 1, Math.max(0, Math.floor((value - low) * scale)));
    all[at] += 1;
    if (!out[i]) kept[at] += 1;
  });
  return { all, kept };
}

function tally(texts, out) {  // {text: [all rows, those kept]}, frequent ones first
  const counts = new Map();
  texts.forEach((text, i) => {
    const found = counts.get(text) ?? counts.set(text, [0, 0]).get(text);
    found[0] += 1;
    if (!out?.[i]) found[1] += 1;
  });
  return new Map([...counts].sort(([, one], [, other]) => other[0] - one[0]));
}

function cell(value) {  // of a CSV file; a spreadsheet would run a text that begins with = + - @ as a formula
  const text = String(value), safe = /^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const csv = (lines) => lines.map((cells) => `${cells.map(cell).join(",")}\r\n`).join("");

if (typeof module !== "undefined") module.exports = { numbers, outside, combined, parts, bars, tally, csv };
