"use strict";
const data = JSON.parse(document.getElementById("data").textContent), HEIGHT = 24;
const [OP, NAME, PATH, IN, OUT, ATTRS] = [0, 1, 2, 3, 4, 5], text = number => data.texts[number];
const app = document.getElementById("app"), element = (tag, parent, content, className) => {
  const made = document.createElement(tag);
  if (content !== undefined) made.textContent = content;
  if (className) made.className = className;
  parent?.append(made);
  return made;
};
app.replaceChildren();
const tools = element("div", app), tree = element("div", app), about = element("div", app), rows = element("div", tree);
tools.id = "tools"; tree.id = "tree"; about.id = "about"; rows.id = "rows";
tree.tabIndex = 0; tree.setAttribute("role", "tree"); tree.setAttribute("aria-label", "nodes by scope");
about.setAttribute("aria-live", "polite");
const search = element("input", tools), overlay = element("select", tools), count = element("span", tools, data.about);
search.type = "search"; search.placeholder = "search operators, names, values"; search.setAttribute("aria-label", "search");
overlay.setAttribute("aria-label", "overlay");
for (const title of ["no overlay", ...Object.keys(data.overlays)]) element("option", overlay, title);

// Scopes as a tree. Siblings with the same operators, whose names differ in numbers only, are shown once.
const producers = new Map(), consumers = new Map(), graphs = [];
data.nodes.forEach((node, number) => {
  for (const value of node[OUT]) if (value >= 0 && !producers.has(value)) producers.set(value, number);
  for (const value of node[IN]) if (value >= 0) (consumers.get(value) ?? consumers.set(value, []).get(value)).push(number);
});
data.graphs.forEach(([address, first], place) => {
  const last = data.graphs[place + 1]?.[1] ?? data.nodes.length;
  const top = { title: text(address), depth: 0, parts: [], inner: new Map(), open: place === 0, first, size: last - first };
  for (let number = first; number < last; number++) {
    let at = top;
    const path = text(data.nodes[number][PATH]);
    for (const part of path ? path.split("/") : []) {
      if (!at.inner.has(part)) {
        const scope = { title: part, depth: at.depth + 1, parts: [], inner: new Map(), open: false, first: number, size: 0 };
        at.inner.set(part, scope);
        at.parts.push(scope);
      }
      at = at.inner.get(part);
      at.size++;
    }
    at.parts.push(number);
  }
  if (last > first) graphs.push(fold(top));
});
function hash(words) {
  let found = 7;
  for (const word of words) found = (Math.imul(found, 31) + word) | 0;
  return found;
}
function runs(scope) {
  const found = [];
  for (let at = 0, end; at < scope.parts.length; at = end) {
    const part = scope.parts[at], operator = data.nodes[part]?.[OP];
    for (end = at + 1; typeof part === "number" && data.nodes[scope.parts[end]]?.[OP] === operator;) end++;
    const run = scope.parts.slice(at, end);
    if (run.length < 8) found.push(...run);
    else found.push({ title: text(operator), depth: scope.depth + 1, parts: run, open: false, first: part,
      size: run.length, print: 0 });
  }
  return found;
}
function fold(scope) {
  const words = [], groups = new Map();
  for (const part of scope.parts) {
    if (typeof part === "number") { words.push(data.nodes[part][OP]); continue; }
    fold(part);
    words.push(part.print);
    const key = part.title.replace(/\d+/g, "#") + " " + part.print + " " + part.size;
    groups.set(key, [...(groups.get(key) ?? []), part]);
  }
  scope.print = hash(words);
  scope.parts = runs(scope);
  for (const group of groups.values()) {
    if (group.length < 2) continue;
    const [first, final] = [group[0], group.at(-1)];
    const others = { title: `${group.length - 1} more like ${first.title}: to ${final.title}`, depth: first.depth,
      parts: group.slice(1), open: false, first: group[1].first, size: first.size * (group.length - 1), repeated: true };
    first.times = group.length;
    const kept = new Set(group.slice(1));
    scope.parts = scope.parts.flatMap(part => part === group[1] ? [others] : kept.has(part) ? [] : [part]);
  }
  return scope;
}

const counted = size => size.toLocaleString("en") + (size === 1 ? " node" : " nodes");
let shown = [], here = 0, found = null, amounts = null, most = 0;
function list() {
  shown = [];
  if (found) { for (const number of found) shown.push([number, 0]); return; }
  const add = (part, depth) => {
    shown.push([part, depth]);
    if (typeof part !== "number" && part.open) for (const each of part.parts) add(each, depth + 1);
  };
  for (const graph of graphs) add(graph, 0);
}
const weight = amount => typeof amount === "string" ? 1 : amount || 0;
function total(part) {
  if (typeof part === "number") return amounts[part];
  if (part.sums !== amounts) {
    part.sums = amounts;
    part.sum = part.parts.reduce((sum, each) => sum + weight(total(each)), 0);
  }
  return part.sum || undefined;
}
const figure = value => typeof value !== "number" ? value
  : value >= 1e9 ? (value / 1e9).toFixed(2) + " G" : value >= 1e6 ? (value / 1e6).toFixed(2) + " M"
  : Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(3);
function draw() {
  rows.style.height = shown.length * HEIGHT + "px";
  const first = Math.max(0, Math.floor(tree.scrollTop / HEIGHT) - 8);
  const last = Math.min(shown.length, first + Math.ceil(tree.clientHeight / HEIGHT) + 16);
  rows.replaceChildren();
  for (let place = first; place < last; place++) {
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
      row.setAttribute("aria-expanded", part.open);
      element("span", row, part.open ? "▾" : "▸", "fold");
      element("span", row, part.title + " ");
      element("i", row, (part.times ? `×${part.times}, ` : "") + counted(part.size));
    }
    const amount = amounts && total(part);
    if (amount !== undefined && amount !== null) {
      const cell = element("span", row, figure(amount), "amount");
      const share = typeof amount === "number" && most ? 100 * amount / most : 0;
      cell.style.background = `linear-gradient(to left, var(--bar) ${share}%, transparent ${share}%)`;
    }
    row.onclick = () => { go(place); toggle(); };
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
}
function toggle(open) {
  const part = shown[here]?.[0];
  if (part === undefined || typeof part === "number") return;
  part.open = open ?? !part.open;
  list();
  draw();
}
function reveal(number) {
  found = null;
  search.value = "";
  const open = part => {
    if (part === number) return true;
    const is = typeof part !== "number" && part.parts.some(open);
    if (is) part.open = true;
    return is;
  };
  graphs.some(open);
  list();
  count.textContent = data.about;
  go(shown.findIndex(([part]) => part === number));
}
function describe() {
  about.replaceChildren();
  const part = shown[here]?.[0];
  if (part === undefined) return;
  if (typeof part !== "number") {
    element("h2", about, part.title);
    element("p", about, counted(part.size));
    return;
  }
  const node = data.nodes[part], value = (number, where, links) => {
    const line = element("p", where, number < 0 ? "omitted" : text(data.values[number][0]));
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
  for (const each of node[IN]) value(each, about, producers.has(each) ? [producers.get(each)] : []);
  element("h3", about, "outputs");
  for (const each of node[OUT]) value(each, about, consumers.get(each) ?? []);
}
let lines = null;
function look() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  lines ??= data.nodes.map(node => [text(node[OP]), text(node[NAME]), ...node[OUT].map(each => each < 0 ? "" : text(data.values[each][0]))]
    .join(" ").toLowerCase());
  found = words.length ? [] : null;
  if (found) lines.forEach((line, number) => { if (words.every(word => line.includes(word))) found.push(number); });
  count.textContent = found ? `${found.length.toLocaleString("en")} found` : data.about;
  list();
  go(0);
}
search.addEventListener("input", look);
overlay.addEventListener("change", () => {
  amounts = data.overlays[overlay.value] ?? null;
  most = amounts ? graphs.reduce((sum, graph) => sum + weight(total(graph)), 0) : 0;
  draw();
});
tree.addEventListener("scroll", draw);
addEventListener("resize", draw);
tree.addEventListener("keydown", event => {
  const page = Math.floor(tree.clientHeight / HEIGHT);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.key in steps) go(here + steps[event.key]);
  else if (event.key === "ArrowRight") toggle(true);
  else if (event.key === "ArrowLeft") {
    const [part, depth] = shown[here];
    if (typeof part !== "number" && part.open) toggle(false);
    else for (let place = here; place >= 0; place--) if (shown[place][1] < depth) { go(place); break; }
  } else if (event.key === "Enter" || event.key === " ") toggle();
  else return;
  event.preventDefault();
});
addEventListener("keydown", event => {
  if (event.key === "/" && document.activeElement !== search) { search.focus(); event.preventDefault(); }
  if (event.key === "Escape" && document.activeElement === search) { search.value = ""; look(); tree.focus(); }
});
list();
go(0);
if (data.overlay) {
  overlay.value = data.overlay;
  overlay.dispatchEvent(new Event("change"));
}
document.documentElement.dataset.ready = Math.round(performance.now());
