"use strict";
// Shared by the map and the table. Text from the data is only ever written as text.
const DATA = JSON.parse(document.getElementById("data").textContent);
const COLUMNS = DATA.columns;
const STATUS = { "1": "ELU", "0": "NELU", "-1": "unreachable" };
const SVG = "http://www.w3.org/2000/svg";

const find = (id) => document.getElementById(id);

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const className = (c) => (c < 0 ? "unknown" : DATA.classes[c]);
const classMark = (c) =>
  c < 0 ? "none" : "k" + (c % 8) + (Math.floor(c / 8) % 2 ? " ring" : "");

// One value of one node, as people read it.
function shown(key, node) {
  const value = COLUMNS[key][node];
  if (key === "label" || key === "prediction") return className(value);
  if (key === "confidence") return (value / 10).toFixed(1) + " %";
  if (key === "utilization") return STATUS[value];
  if (key === "split") return DATA.splits[value];
  return value;
}

// What the controls above the table ask for: true for the nodes that stay.
function wanted() {
  const ticked = (id) => Boolean(find(id) && find(id).checked);
  const words = find("search").value.trim().toLowerCase();
  const kinds = [];
  if (ticked("only-nelu")) kinds.push(0);
  if (ticked("only-unreachable")) kinds.push(-1);
  const low = ticked("only-low");
  const wrong = ticked("only-wrong");
  const active = Boolean(words || kinds.length || low || wrong);
  const test = (node) =>
    (!kinds.length || kinds.includes(COLUMNS.utilization[node])) &&
    (!low || COLUMNS.confidence[node] < 10 * DATA.low) &&
    (!wrong || (COLUMNS.label[node] >= 0 && COLUMNS.label[node] !== COLUMNS.prediction[node])) &&
    (!words ||
      ["id", "label", "prediction"].some((key) =>
        shown(key, node).toLowerCase().includes(words)));
  return { active, test };
}
