// The queue, with reasons; and all workloads.
import { age, below, fill, h, plural, swatch, title } from "./dom.js";
import { store } from "./store.js";

const MOST = 300;

function list(main, heading, columns, describe, choose, none) {
  let text = "";
  let most = MOST;
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${heading.toLowerCase()}` });
  const number = h("span", { class: "dim", role: "status" });
  const body = h("tbody");
  const wrap = h("div", { class: "tablewrap", tabindex: "0", role: "region", "aria-label": heading }, h("table", {}, h("thead", {}, h("tr", {}, columns.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))), body));
  const empty = h("p", { class: "empty" }, none);
  const more = h("button", { type: "button", onclick: () => { most += 1000; update(); } }, "Show more");
  fill(main, h("div", { class: "tools" }, h("h1", {}, heading), number, h("span", { class: "gap" }), filter), wrap, empty, more);
  filter.addEventListener("input", () => { text = filter.value.toLowerCase(); update(); });
  const known = new Map();

  function update() {
    const found = choose([...store.units.values()].filter(store.visible, store))
      .filter((unit) => !text || `${unit.ns} ${title(unit)} ${below(unit)} ${unit.reason} ${unit.message} ${unit.state}`.toLowerCase().includes(text));
    number.textContent = plural(found.length, "entry").replace("entrys", "entries");
    wrap.hidden = !found.length;
    empty.hidden = found.length > 0;
    more.hidden = found.length <= most;
    const rows = found.slice(0, most).map((unit) => {
      const made = describe(unit);
      const sum = made.map((cell) => (cell instanceof Node ? cell.outerHTML : cell)).join("|");
      const before = known.get(unit.id);
      if (before && before.sum === sum) return before.row;
      const row = h("tr", {}, made.map((cell, index) => h("td", { class: columns[index][1] }, cell)));
      known.set(unit.id, { sum, row });
      return row;
    });
    if (rows.length !== body.children.length || rows.some((row, index) => body.children[index] !== row)) fill(body, rows);
  }
  update();
  return { update, close() {} };
}

function who(unit) {
  const under = below(unit);
  return h("div", { class: "who" }, swatch(unit.id), h("div", {},
    h("a", { href: `#/workload/${unit.id}` }, title(unit)),
    h("div", { class: "sub" }, unit.ns, under && ` · ${under}`)));
}

const waited = (unit) => (unit.since ? age(store.now() - Date.parse(unit.since) / 1000) : "");

export function queuePage(main) {
  return list(
    main, "Queue", [["Workload", ""], ["Waits", "tight num"], ["Pods", "tight num"], ["Why, and what would help", ""]],
    (unit) => [
      who(unit), waited(unit),
      h("span", {}, unit.placed ? `${unit.pending} of ${unit.pending + unit.placed}` : String(unit.pending), unit.priority ? h("div", { class: "sub" }, `priority ${unit.priority}`) : ""),
      h("div", {},
        unit.reason ? h("span", {}, h("span", { class: "pill Waiting" }, unit.reason), " ", unit.message) : h("span", { class: "dim" }, "looking…"),
        unit.needs && h("div", { class: "sub" }, `needs ${unit.needs}${unit.topology ? `, in one ${unit.topology}` : ""}`),
        unit.help.length > 0 && h("ul", { class: "help" }, unit.help.slice(0, 3).map((one) => h("li", {}, one)))),
    ],
    (units) => units.filter((unit) => unit.pending).sort((a, b) => b.priority - a.priority || a.since.localeCompare(b.since) || a.id - b.id),
    "Nothing waits.",
  );
}

const ORDER = { Waiting: 0, Partly: 1, Running: 2, Failed: 3, Succeeded: 4 };

export function workloadsPage(main) {
  return list(
    main, "Workloads", [["Workload", ""], ["State", "tight"], ["Pods", "tight num"], ["Nodes", "tight num"], ["Policy", ""]],
    (unit) => [
      who(unit), h("span", { class: `pill ${unit.state}` }, unit.state === "Partly" ? "Runs in part" : unit.state),
      h("span", {}, String(unit.placed + unit.pending + unit.succeeded + unit.failed), h("div", { class: "sub" }, parts(unit))),
      String(unit.nodes), h("span", { class: "sub" }, policy(unit)),
    ],
    (units) => units.filter((unit) => unit.state !== "Gone").sort((a, b) => ORDER[a.state] - ORDER[b.state] || a.ns.localeCompare(b.ns) || title(a).localeCompare(title(b)) || a.id - b.id),
    "No pods are here.",
  );
}

function parts(unit) {
  return [[unit.placed, "placed"], [unit.pending, "waiting"], [unit.succeeded, "succeeded"], [unit.failed, "failed"]]
    .filter(([number]) => number).map(([number, word]) => `${number} ${word}`).join(", ");
}

function policy(unit) {
  const words = [unit.gang ? `gang, minimum ${unit.gang}` : "no gang"];
  if (unit.topology) words.push(`in one ${unit.topology}`);
  if (unit.priority) words.push(`priority ${unit.priority}`);
  return words.join(", ");
}
