"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const form = one("#filter"), find = one("#find"), shown = one("#shown");
  const picks = ["verdict", "role", "level"].map((name) => [name, one("#by-" + name)]);
  const cases = all("details.case"), lines = all(".matrix > li[data-find]");
  const passes = new Set(["pass", "not-applicable"]);
  form.hidden = false;

  const fits = (item, words) => {
    const data = item.dataset;
    return words.every((word) => data.find.includes(word)) && picks.every(([name, box]) =>
      !box.value ||
      (box.value === "*" ? !passes.has(data[name]) :
        name === "role" ? data.role.split(" ").includes(box.value) : data[name] === box.value));
  };

  const apply = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const item of cases) {
      item.hidden = !fits(item, words);
      count += !item.hidden;
    }
    for (const item of lines) item.hidden = !fits(item, words);
    for (const group of all(".group")) {
      const left = group.querySelectorAll("details.case:not([hidden])").length;
      group.hidden = !left;
      group.querySelector(".count").textContent = left;
    }
    one(".empty").hidden = count > 0;
    const filtered = words.length || picks.some(([, box]) => box.value);
    shown.textContent = filtered ? `${count} of ${cases.length} cases` : "";
  };

  const clear = () => {
    find.value = "";
    for (const [, box] of picks) box.value = "";
    apply();
  };

  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.hidden || target.closest("[hidden]")) clear();
    const fold = target.closest("details");
    if (fold) fold.open = true;
    target.scrollIntoView();
  };

  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  one("#clear").addEventListener("click", () => { clear(); find.focus(); });
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      find.focus();
      find.select();
    } else if (event.key === "Escape") {
      clear();
      find.blur();
    }
  });

  // On paper a fold cannot be opened: what did not pass is printed open.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = cases.filter((item) => !item.open && !passes.has(item.dataset.verdict));
    for (const item of opened) item.open = true;
  });
  addEventListener("afterprint", () => {
    for (const item of opened) item.open = false;
  });

  if (location.hash) follow();
})();
