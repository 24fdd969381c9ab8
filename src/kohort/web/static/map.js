// The cluster as a map, drawn on a canvas of the size of the window; a table for those who cannot see it.
import { amount, ask, below, colour, fill, h, plural, shortKey, swatch, title } from "./dom.js";
import { arrange, defaultInner, layOut, nextSize, titled } from "./maplayout.js";
import { store } from "./store.js";

const [UNREADY, CORDONED, TAINTED] = [1, 2, 4];
const LEGEND = 120;

export function mapPage(main, rest) {
  if (!store.mayNodes) {
    fill(main, h("h1", {}, "Map"), h("p", { class: "empty" }, "You may not list the nodes of this cluster, so there is no map. The queue and the workloads of your namespaces are on the other pages."));
    return { update() {}, close() {} };
  }
  let inner = defaultInner(store.levels);
  let size = 0; // chosen by hand; 0: fits
  let selected = 0; // a unit
  let current = rest[0] || ""; // a node
  let hovered = null;
  let laid = { cells: [], boxes: [], titles: [], size: 10, height: 0 };
  let shape = "";
  let asTable = false;
  let sections = [];

  const canvas = h("canvas", { tabindex: "0", role: "application", "aria-label": "Map of the cluster. Arrow keys go from node to node, Enter tells about one, Escape leaves." });
  const spacer = h("div", { class: "spacer" });
  const tip = h("div", { class: "tip", hidden: true });
  const scroller = h("div", { class: "scroller" }, spacer, canvas, tip);
  const table = h("div", { class: "tablewrap", hidden: true, tabindex: "0", role: "region", "aria-label": "Racks" });
  const level = h("select", { "aria-label": "Boxes are" }, store.levels.map((key, index) => h("option", { value: index }, shortKey(key))), !store.levels.length && h("option", { value: -1 }, "none"));
  level.value = String(inner);
  const tabler = h("button", { type: "button", "aria-pressed": "false" }, "Table");
  const zoom = (words, label, call) => h("button", { type: "button", "aria-label": label, onclick: () => { call(); shape = ""; update(); } }, words);
  const facts = h("section", { class: "panel", "aria-label": "Summary" });
  const about = h("section", { class: "panel", "aria-label": "Node", hidden: true });
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter gangs" });
  const legend = h("ul", { class: "legend" });
  const none = h("p", { class: "dim" }, "Nothing runs.");
  fill(main, h("div", { class: "mapgrid" },
    h("div", { class: "mapmain" },
      h("div", { class: "tools" }, h("h1", {}, "Map"), h("label", { class: "inline" }, "boxes are ", level), h("span", { class: "gap" }), key(),
        zoom("−", "Smaller", () => { size = nextSize(laid.size, -1); }), zoom("Fit", "Fit the window", () => { size = 0; }), zoom("+", "Larger", () => { size = nextSize(laid.size, 1); }), tabler),
      scroller, table),
    h("div", { class: "side" }, facts, about, h("section", { class: "panel", "aria-label": "Gangs" }, h("h2", {}, "What runs"), filter, legend, none))));

  // ---- drawing

  function place() {
    const now = [store.nodes.size, scroller.clientWidth, scroller.clientHeight, size, inner, asTable].join(" ");
    if (now === shape && laid.cells.every((cell) => store.nodes.has(cell.node.name))) {
      for (const cell of laid.cells) cell.node = store.nodes.get(cell.node.name);
      return;
    }
    shape = now;
    sections = arrange(store.nodes.values(), store.levels, inner);
    laid = layOut(sections, scroller.clientWidth, scroller.clientHeight, size);
    spacer.style.height = `${laid.height}px`;
  }

  function draw() {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [scroller.clientWidth, scroller.clientHeight];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const ink = (name) => style.getPropertyValue(`--${name}`).trim();
    const inks = { cell: ink("cell"), free: ink("free"), slot: ink("slot"), line: ink("line"), text: ink("text"), dim: ink("dim"), bad: ink("bad"), warn: ink("warn"), accent: ink("accent"), badBack: ink("bad-back"), back: ink("back"), font: getComputedStyle(document.body).fontFamily };
    const top = scroller.scrollTop;
    pen.setTransform(ratio, 0, 0, ratio, 0, -top * ratio);
    pen.clearRect(0, top, width, height);
    pen.textBaseline = "alphabetic";
    const inside = (y, tall) => y + tall >= top && y <= top + height;
    pen.fillStyle = inks.text;
    pen.font = `600 13px ${inks.font}`;
    for (const one of laid.titles) if (inside(one.y - 14, 20)) pen.fillText(one.text, one.x, one.y);
    for (const box of laid.boxes) if (inside(box.y, box.h)) drawBox(pen, box, inks);
    const colours = new Map();
    const paint = (id) => { if (!colours.has(id)) colours.set(id, colour(id)); return colours.get(id); };
    for (const cell of laid.cells) if (inside(cell.y, cell.h)) drawCell(pen, cell, inks, paint, selected);
    for (const [name, tone] of [[hovered && hovered.node.name, inks.text], [current, inks.accent]]) {
      const cell = name && laid.cells.find((one) => one.node.name === name);
      if (cell) { pen.strokeStyle = tone; pen.lineWidth = 2; pen.strokeRect(cell.x - 2, cell.y - 2, cell.w + 4, cell.h + 4); }
    }
  }

  function drawBox(pen, box, inks) {
    pen.fillStyle = inks.back;
    pen.strokeStyle = inks.line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1, 6);
    pen.fill();
    pen.stroke();
    if (box.name && titled(laid.size)) {
      pen.fillStyle = inks.dim;
      pen.font = `11px ${inks.font}`;
      pen.fillText(box.name, box.x + 7, box.y + 15, box.w - 12);
    }
  }

  // ---- the side

  function summary() {
    let [devices, used, cpu, away] = [0, 0, 0, 0];
    for (const node of store.nodes.values()) {
      if (node.hasDevice) { devices += node.capacity; used += node.used; }
      cpu += node.cpu;
      if (node.flags & (UNREADY | CORDONED)) away += 1;
    }
    const units = [...store.units.values()].filter(store.visible, store);
    const running = units.filter((unit) => unit.placed).length;
    const waiting = units.filter((unit) => unit.pending).length;
    const mean = store.nodes.size ? Math.round(cpu / store.nodes.size) : 0;
    fill(facts,
      h("dl", { class: "big" },
        h("div", {}, h("dt", {}, "Nodes"), h("dd", {}, store.nodes.size.toLocaleString("en"), away > 0 && h("span", { class: "bad" }, ` ${away} away`))),
        h("div", {}, h("dt", {}, "Running"), h("dd", {}, running.toLocaleString("en"))),
        h("div", {}, h("dt", {}, store.device ? shortKey(store.device) : "CPU"), h("dd", {}, store.device ? `${used.toLocaleString("en")} / ${devices.toLocaleString("en")}` : `${mean} %`)),
        h("div", {}, h("dt", {}, "Waiting"), h("dd", {}, h("a", { href: "#/queue" }, waiting.toLocaleString("en"))))),
      h("div", { class: "bars" }, store.device && bar(`${store.device} in use`, devices ? (used / devices) * 100 : 0), bar("cpu requested", mean)));
  }

  function bar(label, percent) {
    const whole = Math.round(percent);
    return h("div", {}, h("span", { class: "sub" }, `${label}: ${whole} %`), h("div", { class: "bar", "aria-hidden": "true" }, h("span", { style: { width: `${Math.min(100, whole)}%` } })));
  }

  let legendText = "";
  function gangs() {
    const shares = new Map();
    for (const node of store.nodes.values()) {
      if (!node.hasDevice && store.device) continue;
      for (let index = 0; index < node.flat.length; index += 2) shares.set(node.flat[index], (shares.get(node.flat[index]) || 0) + node.flat[index + 1]);
    }
    const words = filter.value.toLowerCase();
    const units = [...store.units.values()].filter((unit) => unit.placed && store.visible(unit) && (!words || `${unit.ns} ${title(unit)} ${unit.name}`.toLowerCase().includes(words)));
    units.sort((a, b) => (shares.get(b.id) || 0) - (shares.get(a.id) || 0) || a.id - b.id);
    const counted = (unit) => (store.device ? `${shares.get(unit.id) || 0}` : `${amount("cpu", shares.get(unit.id) || 0)} cpu`);
    const text = units.map((unit) => `${unit.id} ${counted(unit)} ${unit.placed} ${unit.state}`).join() + selected;
    none.hidden = units.length > 0;
    none.textContent = store.reading === null ? "Nothing runs." : "Pods are being read.";
    if (text === legendText) return;
    legendText = text;
    const focused = [...legend.querySelectorAll("button")].indexOf(document.activeElement);
    fill(legend, units.slice(0, LEGEND).map((unit) => h("li", {}, h("button", { type: "button", "aria-pressed": String(selected === unit.id), title: `${unit.ns} · ${below(unit) || title(unit)}`, onclick: () => { selected = selected === unit.id ? 0 : unit.id; update(); } },
      swatch(unit.id), h("span", { class: "what" }, title(unit), h("div", { class: "sub" }, `${unit.ns} · ${plural(unit.placed, "pod")}`)), h("span", { class: "num" }, store.device ? `${counted(unit)} ${shortKey(store.device)}` : counted(unit))))),
      units.length > LEGEND && h("li", { class: "dim" }, `and ${plural(units.length - LEGEND, "more").replace("mores", "more")}; filter to find them`));
    if (focused >= 0) legend.querySelectorAll("button")[focused]?.focus();
  }

  async function tellNode() {
    about.hidden = !current;
    if (!current) return;
    const name = current;
    try {
      const data = await ask(`/api/node/${encodeURIComponent(name)}`);
      if (name !== current) return;
      const units = new Map();
      for (const pod of data.pods) units.set(pod.unit, (units.get(pod.unit) || 0) + 1);
      fill(about, h("h2", {}, name),
        h("dl", { class: "pairs" }, Object.entries(data.resources).filter(([one]) => one !== "pods").map(([one, [have, taken]]) => [h("dt", {}, shortKey(one)), h("dd", {}, `${amount(one, taken)} of ${amount(one, have)}`)]),
          store.levels.map((one) => data.labels[one] && [h("dt", {}, shortKey(one)), h("dd", {}, data.labels[one])]),
          data.taints.length > 0 && [h("dt", {}, "taints"), h("dd", {}, data.taints.join(", "))]),
        h("h3", {}, plural(data.pods.length + data.others, "pod")),
        [...units].slice(0, 30).map(([id, number]) => { const unit = store.units.get(id); return unit && h("div", { class: "who" }, swatch(id), h("span", {}, h("a", { href: `#/workload/${id}` }, title(unit)), h("span", { class: "sub" }, ` ${unit.ns} · ${plural(number, "pod")}`))); }),
        data.others > 0 && h("p", { class: "dim" }, `${plural(data.others, "pod")} of namespaces that you may not see`));
    } catch (error) {
      fill(about, h("h2", {}, name), h("p", { class: "empty" }, error.message));
    }
  }

  function racks() {
    const heads = [...(inner > 0 ? [shortKey(store.levels[0])] : []), inner >= 0 ? shortKey(store.levels[inner]) : "all", "nodes", store.device ? `${shortKey(store.device)} free` : "cpu free", store.device ? `${shortKey(store.device)} of` : "cpu of", "away", "runs"];
    const rows = sections.flatMap((section) => section.boxes.map((box) => {
      const members = box.members.map((node) => store.nodes.get(node.name) || node);
      const counted = members.filter((node) => node.hasDevice || !store.device);
      const total = counted.reduce((sum, node) => sum + node.capacity, 0);
      const free = total - counted.reduce((sum, node) => sum + node.used, 0);
      const units = new Set(members.flatMap((node) => node.flat.filter((_, index) => index % 2 === 0)));
      const away = members.filter((node) => node.flags & (UNREADY | CORDONED)).length;
      const shown = (value) => (store.device ? value : amount("cpu", value));
      const names = [...units].map((id) => store.units.get(id)).filter(Boolean).slice(0, 4).map(title).join(", ");
      return h("tr", {}, inner > 0 && h("td", {}, section.name), h("th", { scope: "row" }, box.name || "all"), h("td", { class: "num" }, String(members.length)), h("td", { class: "num" }, String(shown(free))), h("td", { class: "num" }, String(shown(total))), h("td", { class: "num" }, String(away)), h("td", {}, names + (units.size > 4 ? ` and ${units.size - 4} more` : "")));
    }));
    fill(table, h("table", {}, h("thead", {}, h("tr", {}, heads.map((word) => h("th", { scope: "col" }, word)))), h("tbody", {}, rows)));
  }

  // ---- hands and keys

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + scroller.scrollTop];
    return laid.cells.find((cell) => x >= cell.x - 1 && x <= cell.x + cell.w + 1 && y >= cell.y - 1 && y <= cell.y + cell.h + 1) || null;
  };
  canvas.addEventListener("mousemove", (event) => {
    const cell = at(event);
    if (cell !== hovered) { hovered = cell; draw(); }
    tip.hidden = !cell;
    if (!cell) return;
    tip.textContent = describe(cell.node);
    const left = Math.min(cell.x + cell.w + 8, scroller.clientWidth - 240);
    Object.assign(tip.style, { left: `${Math.max(4, left)}px`, top: `${cell.y + cell.h + 6}px` });
  });
  canvas.addEventListener("mouseleave", () => { hovered = null; tip.hidden = true; draw(); });
  canvas.addEventListener("click", (event) => { const cell = at(event); pick(cell ? cell.node.name : ""); });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { selected = 0; pick(""); return; }
    if (event.key === "Enter") { about.querySelector("a")?.focus(); return; }
    const cell = laid.cells.find((one) => one.node.name === current);
    const next = neighbour(laid.cells, cell, event.key);
    if (!next) return;
    event.preventDefault();
    pick(next.node.name);
    if (next.y < scroller.scrollTop) scroller.scrollTop = next.y - 30;
    if (next.y + next.h > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = next.y + next.h - scroller.clientHeight + 10;
    document.getElementById("say").textContent = describe(next.node).replaceAll("\n", ", ");
  });
  function pick(name) { current = name; draw(); tellNode(); }
  scroller.addEventListener("scroll", () => { tip.hidden = true; draw(); });
  level.addEventListener("change", () => { inner = Number(level.value); shape = ""; update(); });
  filter.addEventListener("input", gangs);
  tabler.addEventListener("click", () => { asTable = !asTable; tabler.setAttribute("aria-pressed", String(asTable)); scroller.hidden = asTable; table.hidden = !asTable; update(); });
  const watcher = new ResizeObserver(() => { place(); draw(); });
  watcher.observe(scroller);

  let told = -1;
  function update() {
    place();
    if (asTable) racks(); else draw();
    summary();
    gangs();
    if (current && told !== store.version) { told = store.version; tellNode(); }
    performance.mark("map-drawn");
  }
  update();
  if (current) pick(current);
  return { update, close() { watcher.disconnect(); } };
}

function drawCell(pen, cell, inks, paint, selected) {
  const { node, x, y, w, h: tall } = cell;
  const away = node.flags & UNREADY;
  pen.globalAlpha = 1;
  pen.fillStyle = away ? inks.badBack : inks.cell;
  pen.fillRect(x, y, w, tall);
  const named = tall >= 40 ? 13 : 0;
  if (named) {
    pen.fillStyle = inks.dim;
    pen.font = `10px ${inks.font}`;
    pen.fillText(node.name, x + 3, y + 10, w - 6);
  }
  if (node.hasDevice && node.capacity <= 64 && tall >= 8) slots(pen, cell, inks, paint, selected, named);
  else shares(pen, cell, paint, selected, named);
  pen.globalAlpha = 1;
  if (away || node.flags & CORDONED) {
    pen.strokeStyle = away ? inks.bad : inks.warn;
    pen.lineWidth = tall >= 14 ? 1.5 : 1;
    pen.setLineDash(away ? [] : [3, 2]);
    pen.strokeRect(x + 0.5, y + 0.5, w - 1, tall - 1);
    pen.setLineDash([]);
    if (away) { pen.beginPath(); pen.moveTo(x, y + tall); pen.lineTo(x + w, y); pen.stroke(); }
  }
}

function slots(pen, cell, inks, paint, selected, named) {
  const { node, x, y, w, h: tall } = cell;
  let columns = Math.max(1, Math.ceil(Math.sqrt(node.capacity * 1.2)));
  while (node.capacity % columns) columns += 1;
  const rows = node.capacity / columns;
  const pad = tall >= 20 ? 2 : 1;
  const gap = tall >= 20 ? 2 : tall >= 12 ? 1 : 0;
  const sw = (w - 2 * pad - (columns - 1) * gap) / columns;
  const sh = (tall - named - 2 * pad - (rows - 1) * gap) / rows;
  let number = 0;
  const next = () => { const at = [x + pad + (number % columns) * (sw + gap), y + named + pad + Math.floor(number / columns) * (sh + gap)]; number += 1; return at; };
  for (let index = 0; index < node.flat.length; index += 2) {
    pen.fillStyle = paint(node.flat[index]);
    pen.globalAlpha = selected && node.flat[index] !== selected ? 0.18 : 1;
    for (let many = 0; many < node.flat[index + 1] && number < node.capacity; many += 1) { const [left, up] = next(); pen.fillRect(left, up, sw, sh); }
  }
  pen.globalAlpha = 1;
  pen.fillStyle = inks.free;
  pen.strokeStyle = inks.slot;
  pen.lineWidth = 1;
  while (number < node.capacity) {
    const [left, up] = next();
    pen.fillRect(left, up, sw, sh);
    if (sh >= 5) pen.strokeRect(left + 0.5, up + 0.5, sw - 1, sh - 1);
  }
}

function shares(pen, cell, paint, selected, named) {
  const { node, x, y, w, h: tall } = cell;
  const pad = tall >= 12 ? 2 : 1;
  const full = w - 2 * pad;
  let left = x + pad;
  for (let index = 0; index < node.flat.length; index += 2) {
    const part = node.capacity ? (node.flat[index + 1] / node.capacity) * full : 0;
    pen.fillStyle = paint(node.flat[index]);
    pen.globalAlpha = selected && node.flat[index] !== selected ? 0.18 : 1;
    pen.fillRect(left, y + named + pad, Math.min(part, x + w - pad - left), tall - named - 2 * pad);
    left += part;
  }
}

function neighbour(cells, cell, pressed) {
  if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(pressed) || !cells.length) return null;
  if (!cell || pressed === "Home") return cells[0];
  if (pressed === "End") return cells[cells.length - 1];
  const index = cells.indexOf(cell);
  if (pressed === "ArrowLeft") return cells[Math.max(0, index - 1)];
  if (pressed === "ArrowRight") return cells[Math.min(cells.length - 1, index + 1)];
  const down = pressed === "ArrowDown" ? 1 : -1;
  let best = null;
  for (const one of cells) {
    const away = (one.y - cell.y) * down;
    if (away <= 0) continue;
    const far = away * 4 + Math.abs(one.x - cell.x);
    if (!best || far < best.far) best = { far, one };
  }
  return best && best.one;
}

function describe(node) {
  const lines = [`${node.name}  ${node.levels.filter(Boolean).slice(-1)[0] || ""}`.trim()];
  lines.push(node.hasDevice ? `${node.used} of ${node.capacity} ${shortKey(store.device)}, cpu ${node.cpu} %, ${plural(node.pods, "pod")}` : `cpu ${node.cpu} %, memory ${node.memory} %, ${plural(node.pods, "pod")}`);
  if (node.flags & UNREADY) lines.push("not ready");
  if (node.flags & CORDONED) lines.push("unschedulable");
  if (node.flags & TAINTED) lines.push("tainted");
  for (let index = 0; index < node.flat.length && index < 12; index += 2) {
    const unit = store.units.get(node.flat[index]);
    lines.push(`${unit ? title(unit) : "others"}: ${node.hasDevice ? node.flat[index + 1] : `${amount("cpu", node.flat[index + 1])} cpu`}`);
  }
  return lines.join("\n");
}

function key() {
  return h("span", { class: "inline", "aria-hidden": "true" }, h("span", { class: "swatch", style: { background: colour(1) } }), "used", h("span", { class: "swatch", style: { background: "var(--free)", border: "1px solid var(--slot)" } }), "free");
}
