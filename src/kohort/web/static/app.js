// The frame of all pages: routes, theme, the choice of a namespace.
import { fill, h } from "./dom.js";
import { follow, listen, store } from "./store.js";
import { mapPage } from "./map.js";
import { queuePage, workloadsPage } from "./lists.js";
import { workloadPage } from "./workload.js";
import { timelinePage } from "./timeline.js";

const PAGES = [
  ["map", "Map", mapPage], ["queue", "Queue", queuePage], ["workloads", "Workloads", workloadsPage],
  ["timeline", "Timeline", timelinePage],
];
const main = document.getElementById("main");
let page = { update() {}, close() {} };
let shown = "";

// ---- theme

const wanted = () => localStorage.getItem("theme") || "auto";
const darkness = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  const choice = wanted();
  document.documentElement.dataset.theme = choice === "auto" ? (darkness.matches ? "dark" : "light") : choice;
  const button = document.getElementById("theme");
  button.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[choice];
  button.setAttribute("aria-label", `Theme: ${choice}. Change it`);
  page.close();
  shown = "";
  if (store.ready) go();
}

document.getElementById("theme").addEventListener("click", () => {
  const order = ["auto", "light", "dark"];
  localStorage.setItem("theme", order[(order.indexOf(wanted()) + 1) % 3]);
  applyTheme();
});
darkness.addEventListener("change", applyTheme);

// ---- pages

function go() {
  const [, name = "map", ...rest] = location.hash.split("/").map(decodeURIComponent);
  const key = [name, ...rest].join("/");
  if (key !== shown) {
    const moved = shown !== "";
    page.close();
    shown = key;
    const found = PAGES.find(([one]) => one === name);
    fill(main);
    page = name === "workload" ? workloadPage(main, Number(rest[0])) : (found ? found[2] : mapPage)(main, rest);
    const words = name === "workload" ? "Workload" : (found || PAGES[0])[1];
    document.title = `${words} · Kohort`;
    main.scrollTop = 0;
    if (moved) main.focus({ preventScroll: true });
  }
  frame();
  page.update();
}

function frame() {
  const waiting = [...store.units.values()].filter((unit) => unit.pending && store.visible(unit)).length;
  const current = shown.split("/")[0];
  const nav = document.getElementById("pages");
  const links = PAGES.map(([name, words]) => h(
    "a", { href: `#/${name}`, "aria-current": current === name || (current === "workload" && name === "workloads") ? "page" : null },
    words, name === "queue" && h("span", { class: `count ${waiting ? "warn" : ""}` }, String(waiting), h("span", { class: "sr" }, " waiting")),
  ));
  if (nav.textContent !== links.map((one) => one.textContent).join("") || nav.dataset.current !== current) {
    const focused = [...nav.children].indexOf(document.activeElement);
    fill(nav, links);
    nav.dataset.current = current;
    if (focused >= 0) nav.children[focused].focus();
  }
  namespaces();
  document.getElementById("who").title = store.user ? `Log out ${store.user}` : "Log out";
  const notice = document.getElementById("notice");
  const reading = store.reading !== null;
  notice.hidden = !store.unread.length && store.everything && !reading;
  const some = store.everything ? "" : "You see the namespaces whose pods you may list. ";
  const far = reading ? `Pods are being read, ${store.reading.toLocaleString("en")} so far: until all are there, nodes seem freer than they are. ` : "";
  notice.textContent = far + some + (store.unread.length ? `Not looked at: ${store.unread.join("; ")}` : "");
  document.getElementById("main").setAttribute("aria-busy", String(reading));
}

function namespaces() {
  const select = document.getElementById("namespace");
  const names = [...new Set([...store.units.values()].map((unit) => unit.ns))].sort();
  if (select.dataset.names === names.join(" ")) return;
  select.dataset.names = names.join(" ");
  fill(select, h("option", { value: "" }, "all"), names.map((name) => h("option", { value: name }, name)));
  select.value = names.includes(store.namespace) ? store.namespace : "";
  store.namespace = select.value;
}

document.getElementById("namespace").addEventListener("change", (event) => {
  store.namespace = event.target.value;
  go();
});
addEventListener("hashchange", () => store.ready && go());
listen(go);
setInterval(() => store.ready && page.update(), 5000);
applyTheme();
follow();
