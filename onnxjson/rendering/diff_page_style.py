"""Style sheet and script of the page of a diff; neither contains text of a model."""

from typing import Final

from onnxjson.rendering import drawings

_COLOURS: Final = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1c2128; --soft: #57606a; --line: #8c959f; --faint: #d0d7de; --shade: #f4f6f8;
  --link: #0969da;
  --removed: #cf222e; --removed-shade: #ffebe9; --added: #1a7f37; --added-shade: #dafbe1;
  --changed: #9a6700; --changed-shade: #fff8c5; --rewritten: #8250df; --rewritten-shade: #f3e8ff;
}
@media (prefers-color-scheme: dark) { @media screen { :root {
  --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --line: #6e7681; --faint: #30363d; --shade: #161b22;
  --link: #4493f8;
  --removed: #f85149; --removed-shade: #3c1618; --added: #3fb950; --added-shade: #12261a;
  --changed: #d29922; --changed-shade: #2b2111; --rewritten: #ab7df8; --rewritten-shade: #221b36;
} } }
"""

_LAYOUT: Final = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: .5rem 0; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; padding-bottom: .3rem; border-bottom: 1px solid var(--faint); }
h3 { font-size: 1rem; margin: 0; font-weight: 600; min-width: 0; }
p { margin: .4rem 0; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code { font: .9em ui-monospace, Menlo, Consolas, monospace; }
.soft { color: var(--soft); }
.problem { border-left: 4px solid var(--removed); background: var(--removed-shade); padding: .5rem .8rem; }
.badges { display: flex; flex-wrap: wrap; gap: .4rem; margin: .8rem 0; padding: 0; list-style: none; }
.kind { display: inline-block; border-radius: 1rem; padding: .05rem .65rem; font-size: .82rem; white-space: nowrap;
  border: 1px solid var(--faint); background: var(--shade); color: var(--soft); }
.kind.added { color: var(--added); background: var(--added-shade); border-color: var(--added); }
.kind.removed { color: var(--removed); background: var(--removed-shade); border-color: var(--removed); }
.kind.changed { color: var(--changed); background: var(--changed-shade); border-color: var(--changed); }
.kind.rewritten { color: var(--rewritten); background: var(--rewritten-shade); border-color: var(--rewritten); }
table { border-collapse: collapse; font-size: .9rem; }
th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: .2rem .9rem .2rem 0; vertical-align: top; border-bottom: 1px solid var(--faint); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.more { color: var(--added); } td.less { color: var(--removed); }
.sum td { font-weight: 600; }
article { border: 1px solid var(--faint); border-radius: 8px; padding: .5rem .9rem; margin: .6rem 0; }
article > header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .3rem .7rem; }
.verdict { margin-left: auto; font-size: .85rem; color: var(--soft); white-space: nowrap; }
.verdict.good { color: var(--added); } .verdict.bad { color: var(--removed); font-weight: 700; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: .8rem; margin: .6rem 0; }
figure { margin: 0; min-width: 0; border-radius: 6px; border: 1px solid var(--faint); display: flex;
  flex-direction: column; }
figcaption { font-size: .8rem; color: var(--soft); padding: .25rem .6rem; border-bottom: 1px solid var(--faint); }
.scroll { overflow-x: auto; padding: .7rem; text-align: center; margin: auto; max-width: 100%; }
.scroll table { text-align: left; }
.scroll svg { display: inline-block; vertical-align: top; max-width: 100%; height: auto; }
.scroll svg.wide { min-width: 28rem; }
.scroll svg.widest { min-width: 52rem; }
ul.members { list-style: none; padding: 0; margin: .2rem 0 0; }
ul.members > li { padding: .2rem 0; border-top: 1px solid var(--faint); }
ul.members > li:first-child { border-top: 0; }
.address { font-size: .8rem; color: var(--soft); }
.details td:first-child { color: var(--soft); }
.details td { border: 0; padding: 0 .9rem 0 0; overflow-wrap: break-word; }
#operators td:first-child { min-width: 9rem; }
#operators td:last-child, #operators th:last-child { padding-right: 0; }
del { text-decoration: none; color: var(--removed); } ins { text-decoration: none; color: var(--added); }
summary { cursor: pointer; font-size: .9rem; color: var(--soft); }
.search { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: .6rem 0; }
.search input, .search select { font: inherit; color: inherit; background: var(--shade); padding: .35rem .6rem;
  border: 1px solid var(--line); border-radius: 6px; }
.search input { flex: 1 1 14rem; min-width: 0; }
#nodes { width: 100%; }
#nodes td:nth-child(2) { white-space: nowrap; }
footer { margin-top: 2.5rem; font-size: .8rem; color: var(--soft); }
"""

_NARROW: Final = """
@media (max-width: 44rem) {
  body { padding: .6rem .7rem 2rem; }
  .pair { grid-template-columns: 1fr; }
  .verdict { margin-left: 0; }
  th, td { padding-right: .55rem; }
  #operators { width: 100%; }
  #operators td:first-child { min-width: 6rem; }
  .details tr { display: flex; flex-wrap: wrap; }
  .details td { overflow-wrap: anywhere; }
  #nodes thead { display: none; }
  #nodes tr { display: flex; flex-wrap: wrap; gap: 0 .6rem; padding: .4rem 0; border-bottom: 1px solid var(--faint); }
  #nodes tr[hidden] { display: none; }
  #nodes td { border: 0; padding: 0; }
  #nodes td:nth-child(3) { flex: 1 1 60%; }
}
@page { margin: 1.4cm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  .search, a.top { display: none; }
  article { break-inside: avoid; }
  article.long { break-inside: auto; }
  figure { break-inside: avoid; }
  .scroll { overflow: visible; }
  .scroll svg, .scroll svg.wide, .scroll svg.widest { min-width: 0; }
  details::details-content { content-visibility: visible; block-size: auto; }
  tr { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

STYLE: Final = _COLOURS + _LAYOUT + drawings.STYLE + _NARROW

SCRIPT: Final = """
"use strict";
const words = document.getElementById("words"), state = document.getElementById("state");
const found = document.getElementById("found"), rows = [...document.querySelectorAll("#nodes tbody tr")];
const texts = rows.map(row => row.textContent.toLowerCase());
function search() {
  const wanted = words.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  rows.forEach((row, place) => {
    const fits = (!state.value || (" " + row.dataset.state + " ").includes(" " + state.value + " "))
      && wanted.every(word => texts[place].includes(word));
    row.hidden = !fits;
    count += fits;
  });
  found.textContent = count === rows.length ? "" : count.toLocaleString("en") + " found";
}
if (words) {
  document.querySelector(".search").hidden = false;
  words.addEventListener("input", search);
  state.addEventListener("change", search);
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(each => { each.open = true; }));
"""
"""Searches the table of nodes by words and by kind of change."""
