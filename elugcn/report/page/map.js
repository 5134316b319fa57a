// The map: points in SVG, so that colours follow the page's style on screen and paper.
const MAP = { plot: find("plot"), tip: find("tip"), points: [], hot: null };
const MARGIN = 120; // beside the square of 1000 that the points fill
const TOP = 80; // above and below it
const NAMED = 16; // more names would cover each other
const LINE = 12; // by how much a name moves that would lie upon another
const NEAR = 40; // how far from a point, in its units, a finger may be
const MANY = 24;

function drawMap() {
  // Few nodes can afford to be large.
  MAP.plot.setAttribute("class", DATA.map.length < 300 ? "few" : "many");
  for (const node of DATA.map) {
    const point = shape("circle", { cx: COLUMNS.x[node] + MARGIN, cy: COLUMNS.y[node] + TOP });
    MAP.plot.append(point);
    MAP.points.push({ node, point });
  }
  nameCorners();
  MAP.ring = shape("circle", { class: "focus", visibility: "hidden" });
  MAP.plot.append(MAP.ring);
}

// Names stand above or below the nodes of their class, never out of the drawing and, where
// a model is unsure and the classes lie upon each other, not upon each other.
function nameCorners() {
  if (DATA.corners.length > NAMED) return;
  const taken = [];
  DATA.corners.forEach((corner, c) => {
    const mine = DATA.map.filter((node) => COLUMNS.prediction[node] === c);
    if (!mine.length) return;
    const rank = (key, share) => {
      const sorted = mine.map((node) => COLUMNS[key][node]).sort((a, b) => a - b);
      return sorted[Math.round(share * (sorted.length - 1))];
    };
    const x = rank("x", 0.5);
    const top = rank("y", 0.02) + TOP - 20;
    const bottom = rank("y", 0.98) + TOP + 42;
    const at = corner[1] > 500 ? Math.min(bottom, 1148) : Math.max(top, 32);
    const name = DATA.classes[c];
    const text = name.length > 24 ? name.slice(0, 23) + "…" : name;
    const label = shape("text", { x: x + MARGIN, y: at, "text-anchor": "middle" }, text);
    MAP.plot.append(label);
    const half = label.getBBox().width / 2 + 4;
    const inside = Math.min(Math.max(x + MARGIN, half), 2 * MARGIN + 1000 - half);
    label.setAttribute("x", inside);
    taken.push(clearOf(taken, label, at));
  });
}

// Moves a name up or down to the nearest free line, and returns the room that it takes.
function clearOf(taken, label, at) {
  const lines = [0];
  for (let i = 1; i <= 2 * NAMED; i++) lines.push(i * LINE, -i * LINE);
  for (const line of lines) {
    const y = at + line;
    if (y < 32 || y > 1148) continue;
    label.setAttribute("y", y);
    const box = label.getBBox();
    if (!taken.some((other) => overlap(box, other))) return box;
  }
  label.setAttribute("y", at);
  return label.getBBox();
}

function overlap(a, b) {
  const beside = a.x + a.width < b.x || b.x + b.width < a.x;
  return !(beside || a.y + a.height < b.y || b.y + b.height < a.y);
}

function colourMap() {
  const key = document.querySelector("input[name=colour]:checked").value;
  const seen = new Map();
  const { active, test } = wanted();
  for (const { node, point } of MAP.points) {
    const value = COLUMNS[key][node];
    const kind = key === "utilization" ? STATUS[value].toLowerCase() : classMark(value);
    point.setAttribute("class", kind + (active && !test(node) ? " dim" : ""));
    if (!seen.has(value)) seen.set(value, [kind, shown(key, node)]);
  }
  const legend = find("legend");
  legend.replaceChildren();
  const order = [...seen.keys()].sort((a, b) => (key === "utilization" ? b - a : a - b));
  for (const value of order.slice(0, MANY)) {
    const [kind, text] = seen.get(value);
    const entry = element("span", undefined, "key");
    const swatch = shape("svg", { class: "swatch", width: 12, height: 12, "aria-hidden": "true" });
    swatch.append(shape("circle", { cx: 6, cy: 6, r: 4.5, class: kind }));
    entry.append(swatch, text);
    legend.append(entry);
  }
  if (order.length > MANY) legend.append(`and ${order.length - MANY} more`);
}

function showTip(place) {
  MAP.hot = place;
  MAP.tip.hidden = place === null;
  MAP.ring.setAttribute("visibility", place === null ? "hidden" : "visible");
  if (place === null) return;
  const { node, point } = MAP.points[place];
  for (const name of ["cx", "cy"]) MAP.ring.setAttribute(name, point.getAttribute(name));
  MAP.tip.replaceChildren(element("strong", shown("id", node)));
  const said = { label: "class", prediction: "prediction", confidence: "confidence" };
  if (COLUMNS.utilization) said.utilization = "utilization";
  for (const [key, title] of Object.entries(said))
    MAP.tip.append(element("div", `${title}: ${shown(key, node)}`));
  const box = MAP.plot.getBoundingClientRect();
  const scale = box.width / 1240;
  const x = Number(point.getAttribute("cx")) * scale;
  const y = Number(point.getAttribute("cy")) * scale;
  const left = x + 14 + MAP.tip.offsetWidth > box.width ? x - 14 - MAP.tip.offsetWidth : x + 14;
  MAP.tip.style.left = Math.max(0, left) + "px";
  MAP.tip.style.top = Math.min(y + 10, box.height - MAP.tip.offsetHeight) + "px";
}

function nearest(event) {
  const box = MAP.plot.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * 1240 - MARGIN;
  const y = ((event.clientY - box.top) / box.height) * 1160 - TOP;
  let best = null;
  let least = NEAR * NEAR;
  MAP.points.forEach(({ node }, place) => {
    const distance = (COLUMNS.x[node] - x) ** 2 + (COLUMNS.y[node] - y) ** 2;
    if (distance < least) [best, least] = [place, distance];
  });
  return best;
}

drawMap();
colourMap();
for (const input of document.querySelectorAll("input[name=colour]"))
  input.addEventListener("change", colourMap);
for (const name of ["pointermove", "pointerdown"])
  MAP.plot.addEventListener(name, (event) => showTip(nearest(event)));
MAP.plot.addEventListener("pointerleave", () => showTip(null));
MAP.plot.addEventListener("blur", () => showTip(null));
MAP.plot.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const start = MAP.hot === null ? (step > 0 ? -1 : 0) : MAP.hot;
  showTip((start + step + MAP.points.length) % MAP.points.length);
});
