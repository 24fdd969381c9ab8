// Starts, waits, preemptions and failures over time.
import { age, clockTime, colour, fill, h, named, plural, swatch, title } from "./dom.js";
import { store } from "./store.js";

const WINDOWS = [["1 min", 60], ["5 min", 300], ["15 min", 900], ["1 h", 3600], ["6 h", 21600], ["1 d", 86400]];
const SIGNS = { preempted: ["▼", "warn"], disrupted: ["▽", "warn"], failed: ["✕", "bad"], node: ["■", "bad"] };
const LANES = 150;

export function timelinePage(main) {
  let seconds = Number(sessionStorage.getItem("window")) || fitting();
  const buttons = WINDOWS.map(([words, value]) => h("button", { type: "button", onclick: () => { seconds = value; sessionStorage.setItem("window", value); update(); } }, words));
  const chart = h("div", { class: "chart panel" });
  const note = h("p", { class: "dim" });
  const log = h("tbody");
  const happened = h("section", {}, h("h2", {}, "What happened"), h("div", { class: "tablewrap" }, h("table", {}, h("thead", {}, h("tr", {}, ["Time", "What", "Whose", ""].map((word) => h("th", { scope: "col" }, word)))), log)));
  fill(main,
    h("div", { class: "tools" }, h("h1", {}, "Timeline"), h("span", { class: "gap" }), h("span", { role: "group", "aria-label": "Window", class: "inline" }, "last ", buttons)),
    chart, note, keys(), happened);

  function update() {
    WINDOWS.forEach(([, value], index) => buttons[index].setAttribute("aria-pressed", String(value === seconds)));
    const end = store.now();
    const start = end - seconds;
    const place = (at) => `${Math.min(100, Math.max(0, ((at - start) / seconds) * 100))}%`;
    const units = [...store.units.values()].filter((unit) => store.visible(unit) && unit.spans.some(([, , to]) => !to || to > start));
    units.sort((a, b) => begin(b) - begin(a) || b.id - a.id);
    const marks = store.marks.filter((mark) => mark.at > start && (!mark.unit || !store.namespace || mark.ns === store.namespace));
    const whole = marks.filter((mark) => mark.what === "node");
    const lanes = Math.min(units.length, LANES) + (whole.length ? 1 : 0);
    fill(chart,
      h("div", { class: "axis", "aria-hidden": "true" }, ticks(start, seconds).map((at) => [h("span", { style: { left: place(at) } }, seconds > 3600 ? clockTime(at).slice(0, 5) : clockTime(at)), h("i", { style: { left: place(at), height: `${29 * lanes}px` } })])),
      whole.length > 0 && h("div", { class: "lane" }, h("div", { class: "label" }, "Nodes"), h("div", { class: "track" }, whole.map((mark) => sign(mark, place)))),
      units.slice(0, LANES).map((unit, _, shown) => lane(unit, named(unit, shown), marks.filter((mark) => mark.unit === unit.id), place, end)));
    if (!units.length) chart.append(h("p", { class: "empty" }, "Nothing in this window."));
    note.textContent = units.length > LANES ? `The latest ${LANES} of ${plural(units.length, "workload")} are shown.` : "";
    fill(log, entries(units, marks, start).slice(0, 200).map((one) => h("tr", {},
      h("td", { class: "tight" }, clockTime(one.at)), h("td", { class: `tight ${one.tone}` }, one.what),
      h("td", {}, one.unit ? h("a", { href: `#/workload/${one.unit.id}` }, title(one.unit)) : ""), h("td", {}, one.text))));
    happened.hidden = !log.children.length;
  }
  update();
  return { update, close() {} };
}

// The smallest window that shows something.
function fitting() {
  const begins = [...store.units.values()].map(begin);
  const first = begins.length ? store.now() - Math.min(...begins) : 900;
  return (WINDOWS.find(([, value]) => value >= first) || WINDOWS[2])[1];
}

const begin = (unit) => (unit.spans.length ? unit.spans[0][1] : 0);

function lane(unit, label, marks, place, end) {
  const words = unit.spans.map(([what, from, to]) => `${what === "waiting" ? "waited" : "ran"} ${age((to || end) - from)}${to ? "" : " so far"}`).join(", ");
  return h("div", { class: "lane" },
    h("div", { class: "label" }, swatch(unit.id), unit.state === "Gone" ? h("span", { class: "dim" }, label) : h("a", { href: `#/workload/${unit.id}`, title: label }, label), h("span", { class: "sr" }, words)),
    h("div", { class: "track", title: words },
      unit.spans.map(([what, from, to]) => {
        const left = parseFloat(place(from));
        const width = parseFloat(place(to || end)) - left;
        return h("span", { class: `span ${what}`, style: { left: `${left}%`, width: `${width}%`, background: what === "running" ? colour(unit.id) : "" } });
      }),
      marks.map((mark) => sign(mark, place))));
}

function sign(mark, place) {
  const [letter, tone] = SIGNS[mark.what] || ["•", ""];
  return h("span", { class: `mark ${tone}`, style: { left: place(mark.at) }, title: `${clockTime(mark.at)} ${mark.text}`, role: "img", "aria-label": `${clockTime(mark.at)} ${mark.text}` }, letter);
}

function ticks(start, seconds) {
  const step = [10, 30, 60, 300, 900, 3600, 14400].find((one) => seconds / one <= 10) || 14400;
  const found = [];
  for (let at = Math.ceil(start / step) * step; at < start + seconds - step / 3; at += step) if (at > start + step / 3) found.push(at);
  return found;
}

function entries(units, marks, start) {
  const found = marks.map((mark) => ({ at: mark.at, what: mark.what, tone: (SIGNS[mark.what] || ["", ""])[1], unit: mark.unit ? store.units.get(mark.unit) : null, text: mark.text }));
  for (const unit of units) {
    for (const [index, [what, from, to]] of unit.spans.entries()) {
      const before = unit.spans[index - 1];
      if (what === "running" && from > start) found.push({ at: from, what: "started", tone: "good", unit, text: before ? `after waiting ${age(from - before[1])}` : "" });
      if (what === "waiting" && from > start) found.push({ at: from, what: "waits", tone: "", unit, text: index ? "again" : "" });
      if (what === "running" && to > start && index === unit.spans.length - 1) found.push({ at: to, what: "ended", tone: "", unit, text: `after running ${age(to - from)}` });
    }
  }
  return found.sort((a, b) => b.at - a.at);
}

function keys() {
  return h("div", { class: "keyline" },
    h("span", {}, h("span", { class: "span waiting" }), "waits"),
    h("span", {}, h("span", { class: "span", style: { background: colour(1) } }), "runs, in its colour on the map"),
    h("span", {}, h("b", { class: "warn" }, "▼"), "preempted"), h("span", {}, h("b", { class: "warn" }, "▽"), "disrupted otherwise"),
    h("span", {}, h("b", { class: "bad" }, "✕"), "a pod failed"), h("span", {}, h("b", { class: "bad" }, "■"), "a node"));
}
