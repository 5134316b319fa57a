"use strict";
// Search, filters, sorting and pages of the node table. Without it, all rows are shown.
const PER_PAGE = 25;
const find = (id) => document.getElementById(id);
const table = find("table");
const body = table.tBodies[0];
const heads = [...table.tHead.rows[0].cells];
const rows = [...body.rows];
const kinds = [...document.querySelectorAll("input[data-kind]")];
const order = new Intl.Collator(undefined, { numeric: true });
let page = 0;

function wanted(row) {
  const words = find("search").value.trim().toLowerCase();
  const ticked = kinds.filter((box) => box.checked).map((box) => box.dataset.kind);
  return (
    (!ticked.length || ticked.includes(row.dataset.kind)) &&
    (!find("wrong").checked || row.classList.contains("wrong")) &&
    (!words || [0, 1, 2].some((i) => row.cells[i].textContent.toLowerCase().includes(words)))
  );
}

function show() {
  const found = rows.filter(wanted);
  const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
  page = Math.min(page, pages - 1);
  const start = page * PER_PAGE;
  const shown = found.slice(start, start + PER_PAGE);
  body.replaceChildren(...shown);
  const count = (n) => n.toLocaleString("en");
  find("where").textContent = found.length
    ? `${count(start + 1)}–${count(start + shown.length)} of ${count(found.length)}`
    : "no node matches";
  find("before").disabled = page === 0;
  find("after").disabled = page === pages - 1;
}

function restart() {
  page = 0;
  show();
}

function sortBy(column) {
  const down = heads[column].ariaSort === "ascending";
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].ariaSort = down ? "descending" : "ascending";
  const text = (row) => row.cells[column].textContent;
  rows.sort((a, b) => (down ? order.compare(text(b), text(a)) : order.compare(text(a), text(b))));
  restart();
}

heads.forEach((head, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  button.addEventListener("click", () => sortBy(column));
  head.replaceChildren(button);
});
for (const box of document.querySelectorAll("#tools input")) box.addEventListener("input", restart);
find("before").addEventListener("click", () => { page -= 1; show(); });
find("after").addEventListener("click", () => { page += 1; show(); });
table.parentElement.classList.remove("tall");
find("tools").hidden = find("pager").hidden = false;
show();
