"use strict";
const data = JSON.parse(document.getElementById("data").textContent), HEIGHT = 24, MOST_BOXES = 200, MOST_PRINTED = 2000;
const [OP, NAME, IN, OUT, ATTRS] = [0, 1, 2, 3, 4], text = number => data.texts[number];
const app = document.getElementById("app"), element = (tag, parent, content, className) => {
  const made = document.createElement(tag);
  if (content !== undefined) made.textContent = content;
  if (className) made.className = className;
  parent?.append(made);
  return made;
};
app.replaceChildren();
const [tools, tree, graph, about] = ["tools", "tree", "graph", "about"].map(id => {
  const made = element("div", app);
  made.id = id;
  return made;
});
const rows = element("div", tree);
rows.id = "rows";
tree.tabIndex = 0; tree.setAttribute("role", "tree"); tree.setAttribute("aria-label", "the model on one page");
about.setAttribute("aria-live", "polite");
const search = element("input", tools), overlay = element("select", tools), count = element("span", tools, data.about);
search.type = "search"; search.placeholder = "search operators, names, values"; search.setAttribute("aria-label", "search");
overlay.setAttribute("aria-label", "overlay");
for (const title of ["no overlay", ...Object.keys(data.overlays)]) element("option", overlay, title);

const producers = new Map(), consumers = new Map();
data.nodes.forEach((node, number) => {
  for (const value of node[OUT]) if (value >= 0 && !producers.has(value)) producers.set(value, number);
  for (const value of node[IN]) if (value >= 0) (consumers.get(value) ?? consumers.set(value, []).get(value)).push(number);
});

// The lines of the model. A line of a repeat has the nodes of all rounds; those of the first stand for the others.
const numbers = ranges => ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, step) => first + step));
const first = new Map(), rounds = new Map();
function line([title, ranges, inner, isRepeat]) {
  const made = { title: text(title), parts: [], open: inner.length > 0, isRepeat, size: 0 };
  made.nodes = isRepeat ? ranges.flatMap(numbers) : numbers(ranges);
  made.size = made.nodes.length;
  if (isRepeat) {
    const own = ranges.map(numbers);
    own.forEach((nodes, round) => nodes.forEach((node, place) => {
      (rounds.get(node) ?? rounds.set(node, []).get(node)).push([made, round]);
      if (round && place < own[0].length) first.set(node, own[0][place]);
    }));
  }
  made.parts = inner.map(line);
  const inside = new Set(made.parts.flatMap(part => part.nodes));
  made.own = made.nodes.filter(node => !inside.has(node));
  return made;
}
const ofFirstRound = node => { while (first.has(node)) node = first.get(node); return node; };
function finish(part) {
  part.parts.forEach(finish);
  const shown = part.own.filter(node => !first.has(node)), others = part.own.filter(node => first.has(node));
  part.parts = [...shown, ...part.parts];
  if (others.length) part.parts.push({ title: "the same nodes of the other rounds", parts: others, nodes: others, size: others.length, others: true });
}
const lines = data.lines.map(line);
lines.forEach(finish);
const known = new Set(lines.flatMap(part => part.nodes)), without = data.nodes.map((_, number) => number).filter(number => !known.has(number));

const counted = size => size.toLocaleString("en") + (size === 1 ? " node" : " nodes");
let listed = [], shown = [], here = 0, found = null, printing = false, amounts = null, most = 0;
function list() {
  listed = [];
  const add = (part, depth) => {
    listed.push([part, depth]);
    if (typeof part !== "number" && part.open) for (const each of part.parts) add(each, depth + 1);
  };
  for (const part of [...lines, ...without]) add(part, 0);
  shown = found ? found.map(number => [number, 0]) : listed;
  rows.style.height = shown.length * HEIGHT + "px";
}
const weight = amount => typeof amount === "string" ? 1 : amount || 0;
function total(part) {
  if (typeof part === "number") return amounts[part];
  if (part.sums !== amounts) {
    part.sums = amounts;
    part.sum = part.nodes.reduce((sum, each) => sum + weight(amounts[each]), 0);
  }
  return part.sum || undefined;
}
const figure = value => typeof value !== "number" ? value
  : value >= 1e9 ? (value / 1e9).toFixed(2) + " G" : value >= 1e6 ? (value / 1e6).toFixed(2) + " M"
  : Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(3);
function draw() {
  const start = printing ? 0 : Math.max(0, Math.floor(tree.scrollTop / HEIGHT) - 8);
  const end = Math.min(shown.length, printing ? MOST_PRINTED : start + Math.ceil(tree.clientHeight / HEIGHT) + 16);
  rows.replaceChildren();
  for (let place = start; place < end; place++) {
    const [part, depth] = shown[place], row = element("div", rows, undefined, place === here ? "row here" : "row");
    row.id = "row" + place;
    row.style.top = place * HEIGHT + "px";
    row.style.paddingLeft = 4 + Math.min(depth, 12) * 14 + "px";
    row.setAttribute("role", "treeitem");
    row.setAttribute("aria-level", depth + 1);
    if (typeof part === "number") {
      element("span", row, "", "fold");
      element("b", row, text(data.nodes[part][OP]) + " ");
      element("i", row, text(data.nodes[part][NAME]));
    } else {
      if (part.parts.length) row.setAttribute("aria-expanded", !!part.open);
      element("span", row, part.parts.length ? part.open ? "▾" : "▸" : "", "fold");
      element("code", row, part.title);
      if (part.size) element("i", row, " " + counted(part.size));
      row.title = part.title;
    }
    const amount = amounts && total(part);
    if (amount !== undefined && amount !== null) {
      const cell = element("span", row, figure(amount), "amount");
      const share = typeof amount === "number" && most ? 100 * amount / most : 0;
      cell.style.background = `linear-gradient(to left, var(--bar) ${share}%, transparent ${share}%)`;
    }
    row.onclick = () => { go(place); if (found) reveal(part); else toggle(); };
  }
  tree.setAttribute("aria-activedescendant", "row" + here);
}
function go(place) {
  here = Math.max(0, Math.min(place, shown.length - 1));
  const top = here * HEIGHT;
  if (top < tree.scrollTop) tree.scrollTop = top;
  if (top + HEIGHT > tree.scrollTop + tree.clientHeight) tree.scrollTop = top + HEIGHT - tree.clientHeight;
  describe();
  draw();
  mark();
}
function toggle(open) {
  const part = shown[here]?.[0];
  if (part === undefined || typeof part === "number" || !part.parts.length) return;
  part.open = open ?? !part.open;
  list();
  draw();
  picture();
}
function reveal(number) {
  found = null;
  search.value = "";
  const open = part => {
    if (part === number) return true;
    if (typeof part === "number" || !part.nodes.includes(number)) return false;
    return part.open = part.parts.some(open);
  };
  lines.some(open);
  list();
  count.textContent = data.about;
  picture();
  go(listed.findIndex(([part]) => part === number));
}

// The picture of the rows: folded lines and nodes are boxes, unfolded lines frames around theirs.
const SVG = "http://www.w3.org/2000/svg", boxes = new Map();
const shape = (parent, tag, attributes, content) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (content !== undefined) made.textContent = content;
  parent.append(made);
  return made;
};
function wrapped(title, width, most) {
  const parts = title.match(/[^ /.,]*[ /.,]?/g).filter(Boolean), texts = [""];
  for (let part of parts) {
    if (texts.at(-1) && texts.at(-1).length + part.length > width) texts.push("");
    for (; part.length > width; part = part.slice(width)) texts.splice(-1, 1, texts.at(-1) + part.slice(0, width), "");
    texts[texts.length - 1] += part;
  }
  return texts.length > most ? [...texts.slice(0, most - 1), texts[most - 1].slice(0, width - 1) + "…"] : texts;
}
let drawn = [0, 0], scale = 0, svg = null;
const bar = element("p", graph), note = element("span", bar), canvas = element("div", graph);
bar.id = "bar"; canvas.id = "canvas";
for (const [sign, factor, title] of [["−", 0.8, "smaller"], ["+", 1.25, "larger"], ["fit", 0, "fit the width"]]) {
  const button = element("button", bar, sign);
  button.title = title;
  button.onclick = () => { scale = factor ? scale * factor : 0; resize(); mark(); };
}
function resize() {
  if (!svg) return;
  const [width, height] = svg.dataset.size.split(" ").map(Number);
  scale ||= Math.max(0.45, Math.min(1, (canvas.clientWidth - 4) / width));
  svg.setAttribute("width", width * scale);
  svg.setAttribute("height", height * scale);
}
function picture() {
  const at = found ? 0 : here, from = listed.length > MOST_BOXES ? Math.max(0, at - MOST_BOXES / 2) : 0;
  drawn = [from, Math.min(listed.length, from + MOST_BOXES)];
  const layout = new dagre.Graph({ compound: true });
  layout.setGraph({ nodesep: 18, ranksep: 26, marginx: 10, marginy: 10 });
  layout.setDefaultEdgeLabel(() => ({}));
  boxes.clear();
  const around = [], owners = new Map(), box = (key, kind, title, below, row) => {
    const upper = wrapped(title, kind === "node" ? 24 : 40, 4), lower = below ? wrapped(below, 34, 3) : [];
    const wide = Math.max(...upper.map(each => each.length * (kind === "node" ? 7.4 : 6.8)), ...lower.map(each => each.length * 6.2));
    layout.setNode(key, { kind, upper, lower, row, full: [title, below].filter(Boolean).join(" "), width: wide + 18,
      height: 10 + upper.length * 15 + lower.length * 13 });
  };
  for (let place = drawn[0]; place < drawn[1]; place++) {
    const [part, depth] = listed[place], key = "r" + place;
    around.length = depth;
    if (typeof part === "number" ? first.has(part) : part.others || !part.size) continue;
    if (typeof part === "number") {
      box(key, "node", text(data.nodes[part][OP]), text(data.nodes[part][NAME]), place);
      owners.set(part, key);
    } else if (part.open) {
      layout.setNode(key, { kind: "frame", title: part.title, row: place, full: part.title });
      around[depth] = key;
    } else {
      box(key, "line", part.title, "", place);
      for (const node of part.nodes) owners.set(node, key);
    }
    const frame = around.slice(0, depth).findLast(Boolean);
    if (frame) layout.setParent(key, frame);
  }
  const owner = node => owners.get(node) ?? owners.get(ofFirstRound(node));
  const apart = (one, other) => (rounds.get(one) ?? []).some(([repeat, round]) =>
    (rounds.get(other) ?? []).some(([another, number]) => repeat === another && round !== number));
  for (const [value, nodes] of consumers) {
    const source = producers.get(value), start = source === undefined ? data.inputs.includes(value) ? "v" + value : undefined : owner(source);
    if (start === undefined) continue;
    for (const node of nodes) {
      const end = owner(node);
      if (end === undefined || start === end || (source !== undefined && apart(source, node))) continue;
      if (source === undefined && !layout.hasNode(start)) box(start, "value", text(data.values[value][0]), text(data.values[value][1]), 0);
      layout.setEdge(start, end);
    }
  }
  for (const value of data.outputs) {
    const source = producers.get(value), start = source === undefined ? undefined : owner(source);
    if (start === undefined) continue;
    box("o" + value, "value", text(data.values[value][0]), text(data.values[value][1]), listed.length - 1);
    layout.setEdge(start, "o" + value);
  }
  for (const key of layout.nodes()) if (layout.node(key).kind === "frame" && !layout.children(key).length) layout.removeNode(key);
  const number = layout.nodes().length;
  note.textContent = drawn[1] - drawn[0] < listed.length ? `rows ${drawn[0] + 1} to ${drawn[1]} of ${listed.length.toLocaleString("en")} ` : "";
  canvas.replaceChildren();
  svg = null;
  if (!number) return;
  dagre.layout(layout);
  const { width, height } = layout.graph();
  svg = shape(canvas, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "graph of the rows" });
  svg.dataset.size = `${width} ${height}`;
  const put = key => {
    const { kind, upper, lower, row, full, title, x, y, width, height } = layout.node(key), group = shape(svg, "g", { class: kind });
    shape(group, "title", {}, full);
    const label = kind === "frame" ? 10 : 0, top = y - height / 2 - label;
    shape(group, "rect", { x: x - width / 2, y: top, width, height: height + label, rx: kind === "value" ? height / 2 : 5 });
    if (label) shape(group, "text", { x: x - width / 2 + 6, y: top + 13 }, wrapped(title, Math.max(12, Math.floor(width / 6.8) - 2), 1)[0]);
    else upper.forEach((each, line) => shape(group, "text", { x, y: y - height / 2 + 17 + line * 15 }, each));
    lower?.forEach((each, line) => shape(group, "text", { x, y: y - height / 2 + 16 + upper.length * 15 + line * 13, class: "name" }, each));
    group.onclick = () => { if (found) { found = null; search.value = ""; list(); } go(row); };
    boxes.set(row, boxes.get(row) ?? group);
  };
  const frames = layout.nodes().filter(key => layout.node(key).kind === "frame");
  for (const edge of layout.edges()) {
    const [start, ...points] = layout.edge(edge).points;
    shape(svg, "path", { d: `M${start.x} ${start.y}` + points.map(({ x, y }) => `L${x} ${y}`).join("") });
    const end = points.at(-1), before = points.at(-2) ?? start, turn = Math.atan2(end.y - before.y, end.x - before.x) * 180 / Math.PI;
    shape(svg, "polygon", { points: "0,0 -7,-3.5 -7,3.5", transform: `translate(${end.x} ${end.y}) rotate(${turn})` });
  }
  frames.forEach(put); // over the edges, which would cross their titles
  layout.nodes().filter(key => !frames.includes(key)).forEach(put);
  resize();
  mark();
}
function mark() {
  if (!found && listed.length > MOST_BOXES && (here < drawn[0] || here >= drawn[1])) return picture();
  canvas.querySelector(".here")?.classList.remove("here");
  const group = found ? undefined : boxes.get(here);
  if (!group) return;
  group.classList.add("here");
  const place = group.querySelector("rect").getBoundingClientRect(), view = canvas.getBoundingClientRect();
  if (place.top < view.top || place.bottom > view.bottom) canvas.scrollTop += place.top - view.top - view.height / 3;
  if (place.left < view.left || place.right > view.right) canvas.scrollLeft += place.left - view.left - view.width / 3;
}

function describe() {
  about.replaceChildren();
  const part = shown[here]?.[0];
  if (typeof part === "number") describeNode(part);
  else if (part) {
    element("h2", about, part.size ? counted(part.size) : "the whole model");
    if (part.size) element("p", about, part.title);
  }
  if (typeof part === "number") return;
  const operators = new Map(), cost = data.overlays[data.macs] ?? {};
  for (const number of part?.size ? part.nodes : data.nodes.keys()) {
    const row = operators.get(data.nodes[number][OP]) ?? operators.set(data.nodes[number][OP], [0, 0]).get(data.nodes[number][OP]);
    row[0]++;
    row[1] += weight(cost[number]);
  }
  if (!part?.size || part === lines[0]) for (const each of data.cost) element("p", about, each);
  const table = element("table", about), head = element("tr", table);
  for (const title of ["operator", "nodes", ...(data.macs ? [data.macs] : [])]) element("th", head, title);
  for (const [operator, [nodes, macs]] of [...operators].sort((one, other) => other[1][1] - one[1][1] || other[1][0] - one[1][0])) {
    const row = element("tr", table);
    for (const cell of [text(operator), nodes.toLocaleString("en"), ...(data.macs ? [macs ? figure(macs) : ""] : [])]) element("td", row, cell);
  }
}
function describeNode(part) {
  const node = data.nodes[part], value = (number, links) => {
    const line = element("p", about, number < 0 ? "omitted" : text(data.values[number][0]));
    if (number < 0) return;
    const kind = text(data.values[number][1]);
    if (kind) line.append(": " + kind);
    for (const link of links.slice(0, 20)) {
      line.append(" ");
      element("button", line, `${text(data.nodes[link][OP])} ${text(data.nodes[link][NAME])}`).onclick = () => reveal(link);
    }
  };
  element("h2", about, text(node[OP]));
  element("p", about, text(node[NAME]));
  const graph = data.graphs.findLast(each => each[1] <= part);
  element("p", about, `${text(graph[0])}/node/${part - graph[1]}`);
  for (const [title, amounts] of Object.entries(data.overlays)) {
    if (amounts[part] !== undefined) element("p", about, `${title}: ${figure(amounts[part])}`);
  }
  if (node[ATTRS].length) element("h3", about, "attributes");
  for (const [name, shown] of node[ATTRS]) element("p", about, `${text(name)} = ${text(shown)}`);
  element("h3", about, "inputs");
  for (const each of node[IN]) value(each, producers.has(each) ? [producers.get(each)] : []);
  element("h3", about, "outputs");
  for (const each of node[OUT]) value(each, consumers.get(each) ?? []);
}
let wordsOf = null;
function look() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  wordsOf ??= data.nodes.map(node => [text(node[OP]), text(node[NAME]), ...node[OUT].map(each => each < 0 ? "" : text(data.values[each][0]))]
    .join(" ").toLowerCase());
  found = words.length ? [] : null;
  if (found) wordsOf.forEach((line, number) => { if (words.every(word => line.includes(word))) found.push(number); });
  count.textContent = found ? `${found.length.toLocaleString("en")} found; enter goes there` : data.about;
  list();
  go(0);
}
search.addEventListener("input", look);
overlay.addEventListener("change", () => {
  amounts = data.overlays[overlay.value] ?? null;
  most = amounts ? lines.reduce((sum, part) => sum + weight(total(part)), 0) : 0;
  draw();
});
tree.addEventListener("scroll", draw);
for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => { printing = event === "beforeprint"; draw(); });
addEventListener("resize", () => { draw(); resize(); });
tree.addEventListener("keydown", event => {
  const page = Math.floor(tree.clientHeight / HEIGHT);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.key in steps) go(here + steps[event.key]);
  else if (event.key === "ArrowRight") toggle(true);
  else if (event.key === "ArrowLeft") {
    const [part, depth] = shown[here];
    if (typeof part !== "number" && part.open) toggle(false);
    else for (let place = here; place >= 0; place--) if (shown[place][1] < depth) { go(place); break; }
  } else if (event.key === "Enter" || event.key === " ") { if (found?.length) reveal(found[here]); else toggle(); }
  else return;
  event.preventDefault();
});
addEventListener("keydown", event => {
  if (event.key === "/" && document.activeElement !== search) { search.focus(); event.preventDefault(); }
  if (document.activeElement !== search) return;
  if (event.key === "Escape") { search.value = ""; look(); tree.focus(); }
  if (event.key === "Enter" && found?.length) { reveal(found[0]); tree.focus(); }
});
list();
go(0);
picture();
if (data.overlay) {
  overlay.value = data.overlay;
  overlay.dispatchEvent(new Event("change"));
}
document.documentElement.dataset.ready = Math.round(performance.now());
