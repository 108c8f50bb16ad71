"use strict";
const words = document.getElementById("words"), state = document.getElementById("state");
const found = document.getElementById("found"), rows = [...document.querySelectorAll("#nodes tbody tr")];
const texts = rows.map(row => row.textContent.toLowerCase());
function search() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
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
