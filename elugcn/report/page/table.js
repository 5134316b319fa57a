// The table: filtered, sorted, one page of it in the document at a time.
const TABLE = { key: "confidence", down: false, page: 0, rows: [] };
const PER_PAGE = window.matchMedia("(max-width: 700px)").matches ? 10 : 25;
const ORDER = new Intl.Collator(undefined, { numeric: true });
const KEYS = [...document.querySelectorAll("#table th")].map((th) => th.dataset.key);

function compare(a, b) {
  const key = TABLE.key;
  const values = COLUMNS[key];
  const numbers = key === "confidence" || key === "utilization" || key === "split";
  const first = numbers
    ? values[a] - values[b]
    : ORDER.compare(shown(key, a), shown(key, b));
  return (TABLE.down ? -first : first) || a - b;
}

function filterTable() {
  const { test } = wanted();
  TABLE.rows = DATA.table.filter(test).sort(compare);
  TABLE.page = 0;
  drawTable();
}

function drawTable() {
  const pages = Math.max(1, Math.ceil(TABLE.rows.length / PER_PAGE));
  const start = TABLE.page * PER_PAGE;
  const body = document.querySelector("#table tbody");
  body.replaceChildren();
  for (const node of TABLE.rows.slice(start, start + PER_PAGE)) {
    const row = element("tr");
    for (const key of KEYS) {
      const cell = element("td", shown(key, node), key);
      cell.dataset.title = key === "label" ? "class" : key;
      row.append(cell);
    }
    const label = COLUMNS.label[node];
    if (label >= 0 && label !== COLUMNS.prediction[node]) row.className = "wrong";
    body.append(row);
  }
  const last = Math.min(start + PER_PAGE, TABLE.rows.length);
  const count = TABLE.rows.length.toLocaleString("en");
  find("where").textContent = TABLE.rows.length
    ? `${(start + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ${count}`
    : "no node fits";
  find("before").disabled = TABLE.page === 0;
  find("after").disabled = TABLE.page >= pages - 1;
  for (const th of document.querySelectorAll("#table th")) {
    const sorted = th.dataset.key === TABLE.key;
    const way = TABLE.down ? "descending" : "ascending";
    th.setAttribute("aria-sort", sorted ? way : "none");
  }
}

// Quotes as RFC 4180 has them, so that any id survives.
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function exportTable() {
  const lines = [KEYS.join(",")];
  for (const node of TABLE.rows)
    lines.push(
      KEYS.map((key) => {
        if (key === "confidence") return (COLUMNS.confidence[node] / 1000).toFixed(3);
        if (key === "label" && COLUMNS.label[node] < 0) return "";
        return quoted(shown(key, node));
      }).join(","));
  const file = new Blob([lines.join("\n") + "\n"], { type: "text/csv" });
  const link = element("a");
  link.href = URL.createObjectURL(file);
  link.download = DATA.file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function filterAll() {
  filterTable();
  colourMap();
}

for (const th of document.querySelectorAll("#table th"))
  th.querySelector("button").addEventListener("click", () => {
    TABLE.down = TABLE.key === th.dataset.key && !TABLE.down;
    TABLE.key = th.dataset.key;
    filterTable();
  });
for (const box of document.querySelectorAll("#nodes input[type=checkbox]"))
  box.addEventListener("change", filterAll);
find("search").addEventListener("input", filterAll);
find("export").addEventListener("click", exportTable);
for (const [id, step] of [["before", -1], ["after", 1]])
  find(id).addEventListener("click", () => {
    TABLE.page += step;
    drawTable();
  });
// Browsers keep what was typed when a page is reloaded.
filterAll();
