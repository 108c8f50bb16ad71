"use strict";
for (const search of document.querySelectorAll(".search")) {
  const words = search.querySelector("input"), state = search.querySelector("select");
  const found = search.querySelector(".found"), rows = [...search.nextElementSibling.tBodies[0].rows];
  const texts = rows.map(row => row.textContent.toLowerCase());
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, place) => {
      const fits = (!state.value || row.dataset.state === state.value)
        && wanted.every(word => texts[place].includes(word));
      row.hidden = !fits;
      count += fits;
    });
    found.textContent = count === rows.length ? "" : count.toLocaleString("en") + " found";
  };
  search.hidden = false;
  words.addEventListener("input", filter);
  state.addEventListener("change", filter);
}
function offerZoom() {
  for (const figure of document.querySelectorAll("figure")) {
    const button = figure.querySelector("button"), drawing = figure.querySelector("svg");
    const isFull = figure.classList.contains("full");
    button.hidden = !isFull && !(drawing && drawing.clientWidth < Number(drawing.getAttribute("width")) - 1);
    button.textContent = isFull ? "fit" : "full size";
    button.onclick = () => { figure.classList.toggle("full"); offerZoom(); };
  }
}
offerZoom();
addEventListener("resize", offerZoom);
addEventListener("hashchange", () => {
  for (let each = document.querySelector(location.hash || "html"); each; each = each.parentElement) each.open = true;
  document.querySelector(location.hash || "html")?.scrollIntoView();
});
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details:not(:has(> .nodes))")) each.open = true;
  for (const pair of document.querySelectorAll(".pair")) // a drawing this wide is too small on half of a sheet
    pair.classList.toggle("wide", [...pair.querySelectorAll("svg")].some(each => each.getAttribute("width") > 700));
});
