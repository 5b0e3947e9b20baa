// Pages of a corpus have thousands of items: their texts are read once, at the first search.
const all = [...document.querySelectorAll(".item")];
const count = document.getElementById("count");
document.querySelector(".controls").hidden = false;
let texts = null;
document.getElementById("search").addEventListener("input", event => {
  texts = texts || all.map(item => item.textContent.toLowerCase());
  const wanted = event.target.value.trim().toLowerCase();
  let shown = 0;
  all.forEach((item, i) => {
    item.hidden = !texts[i].includes(wanted);
    shown += !item.hidden;
    if (wanted && !item.hidden && item.closest(".fold")) item.closest(".fold").open = true;
  });
  count.textContent = wanted ? shown + " of " + all.length : "";
});
document.getElementById("sort").addEventListener("change", event => {
  const key = event.target.value;
  const order = key === "name"
    ? (a, b) => a.dataset.name.localeCompare(b.dataset.name)
    : (a, b) => b.dataset[key] - a.dataset[key];
  for (const list of document.querySelectorAll(".items")) {
    const items = [...list.children].filter(child => child.matches(".item"));
    list.append(...items.sort(order));
  }
});
