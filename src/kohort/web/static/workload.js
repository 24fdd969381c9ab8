// One workload: who stands above it, why it waits, its groups down to the pods; an object's conditions, events and YAML.
import { age, ask, fill, h, plural, swatch, title } from "./dom.js";
import { store } from "./store.js";

export function workloadPage(main, id) {
  const head = h("div");
  const why = h("div");
  const tree = h("section", { class: "panel" });
  const panel = h("section", { class: "panel objectpanel", "aria-label": "Object" });
  fill(main, head, h("div", { class: "work" }, h("div", {}, why, tree), panel));
  let seen = null;
  let closed = false;
  let asking = false;
  let chosen = null;
  const shut = new Set();
  let drawn = "";

  async function load() {
    if (asking || closed) return;
    asking = true;
    try {
      const data = await ask(`/api/unit/${id}`);
      if (!closed) draw(data);
    } catch (error) {
      if (!closed) { fill(head, h("h1", {}, "Workload"), h("p", { class: "empty" }, error.message)); fill(why); fill(tree); tree.hidden = panel.hidden = true; }
    }
    asking = false;
  }

  function draw(data) {
    const text = JSON.stringify(data);
    if (text === drawn) return;
    drawn = text;
    const unit = store.units.get(id);
    const show = (name) => (event) => { event.preventDefault(); choose({ ...name, namespace: data.namespace }); };
    const own = data.above.length && data.above[data.above.length - 1];
    fill(head,
      h("h1", {}, unit && swatch(id), " ", unit ? title(unit) : data.tree.name, " ", unit && h("span", { class: `pill ${unit.state}` }, unit.state === "Partly" ? "Runs in part" : unit.state), " ", h("span", { class: "sub" }, `in ${data.namespace}`)),
      data.above.length > 0 && h("ol", { class: "chain", "aria-label": "Owners, the topmost first" }, data.above.map((one) => h("li", {}, h("button", { type: "button", class: "link", onclick: show(one) }, `${one.kind} ${one.name}`))),
        data.tree.kind !== (own && own.kind) && h("li", {}, `${data.tree.kind} ${data.tree.name}`)));
    fill(why, data.why && reasons(data.why));
    fill(tree, h("h2", {}, "Groups and pods"), group(data.tree, show, shut));
    if (!chosen) choose({ ...(data.above[0] || { apiVersion: "", kind: data.tree.kind, name: data.tree.name }), namespace: data.namespace });
  }

  async function choose(name) {
    chosen = name;
    await object(panel, name, () => closed || chosen !== name);
  }

  function update() {
    const unit = store.units.get(id);
    const now = JSON.stringify(unit || null);
    if (now !== seen) { seen = now; load(); }
  }
  update();
  const timer = setInterval(load, 10000);
  return { update, close() { closed = true; clearInterval(timer); } };
}

// ---- why it waits, in the words of kohort explain

function reasons(why) {
  if (!why.reason && !why.places.length) return null;
  return h("section", { class: "panel why", "aria-label": "Why" },
    why.reason && h("div", {}, h("span", { class: "reason" }, why.reason), " ", why.explanation ? "" : why.message),
    why.explanation && evidence(why.explanation, why.reason),
    (why.victims.length > 0 || why.otherVictims > 0) && line("who goes", `${plural(why.victims.length + why.otherVictims, "pod")} of lower priority: ${[...why.victims.slice(0, 8), why.otherVictims ? `${why.otherVictims} of others` : ""].filter(Boolean).join(", ")}`),
    why.wouldGo.length > 0 && line("would go", why.wouldGo.map(where).join("; ")),
    why.places.length > 0 && line("runs on", why.places.map(where).join("; ")),
    why.reason && line("scheduler", `${why.scheduler}, priority ${why.priority}`));
}

function evidence(one, above) {
  return h("div", {},
    one.reason !== above && h("div", {}, h("b", {}, one.group), " ", h("span", { class: "reason" }, one.reason)),
    h("div", {}, one.detail, one.proven ? "" : " (not found; it is not proven impossible)"),
    one.nodes.length > 0 && line("nodes", one.nodes.join("; ")),
    one.closest && line("closest", one.closest),
    one.wouldFit.length > 0 && line("would fit", one.wouldFit.join(", or "), "good"),
    one.nextStep.length > 0 && line("next step", one.nextStep.join(", or "), "good"),
    one.groups.length > 0 && h("div", { class: "nested" }, one.groups.map((child) => h("div", {}, h("b", {}, child.group), " ", evidence(child, child.reason)))));
}

const line = (label, text, tone) => h("dl", { class: "pairs" }, h("dt", {}, label), h("dd", { class: tone }, text));

function where(place) {
  const nodes = Object.entries(place.nodes);
  const pods = nodes.reduce((sum, [, number]) => sum + number, 0);
  const names = nodes.slice(0, 6).map(([name, number]) => (number > 1 ? `${name} (${number})` : name)).join(", ");
  const more = nodes.length > 6 ? ` and ${nodes.length - 6} more` : "";
  return `${place.group ? `${place.group}: ` : ""}${plural(pods, "pod")} on ${names}${more}${place.domain ? `, in ${place.domain}` : ""}`;
}

// ---- groups

function group(one, show, shut) {
  const unit = one.kind === "CompositePodGroup" ? "group" : "pod";
  const grouped = ["PodGroup", "CompositePodGroup", "Workload"].includes(one.kind);
  const policy = one.minimum === null ? (grouped ? "basic" : "") : `gang, minimum ${plural(one.minimum, unit)}`;
  const enough = one.placed >= one.pods && one.pods > 0;
  const body = h("div", { hidden: shut.has(one.name) });
  const toggle = h("button", { type: "button", class: "toggle", "aria-label": `Members of ${one.name}`, "aria-expanded": String(!shut.has(one.name)), onclick: () => {
    body.hidden = !body.hidden;
    toggle.setAttribute("aria-expanded", String(!body.hidden));
    if (body.hidden) shut.add(one.name); else shut.delete(one.name);
  } });
  fill(body,
    conditions(one.conditions),
    one.groups && one.groups.map((child) => group(child, show, shut)),
    one.members.length > 0 && members(one.members, show),
    one.more > 0 && h("p", { class: "dim" }, `and ${plural(one.more, "pod")} more`));
  return h("div", { class: "group" },
    h("div", { class: "grouphead" }, toggle, h("button", { type: "button", class: "link", onclick: show({ apiVersion: "", kind: one.kind, name: one.name }) }, `${one.kind} ${one.name}`), " ",
      h("span", { class: "sub" }, policy), " ",
      one.pods > 0 && h("span", { class: enough ? "good" : "warn" }, `${one.placed} of ${one.pods} placed`), one.finished > 0 && h("span", { class: "sub" }, ` ${one.finished} finished`),
      one.topology && h("span", { class: "sub" }, ` in one ${one.topology}${one.domains.length ? `: ${one.domains.join(", ")}` : ""}`)),
    body);
}

function members(pods, show) {
  const named = (pod) => (store.mayNodes ? h("a", { href: `#/map/${encodeURIComponent(pod.node)}` }, pod.node) : pod.node);
  return h("table", { class: "pods" },
    h("thead", {}, h("tr", {}, ["Rank", "Pod", "Node", "Phase"].map((word) => h("th", { scope: "col" }, word)))),
    h("tbody", {}, pods.map((pod) => h("tr", {},
      h("td", { class: "tight" }, pod.rank), h("td", {}, h("button", { type: "button", class: "link", onclick: show({ apiVersion: "v1", kind: "Pod", name: pod.name }) }, pod.name)),
      h("td", {}, pod.node ? named(pod) : h("span", { class: "warn" }, "no node yet")),
      h("td", { class: "tight" }, h("span", { class: `pill ${pod.phase}` }, pod.phase))))));
}

function conditions(list) {
  if (!list.length) return null;
  return h("div", { class: "sub" }, list.map((one) => h("div", {}, `${one.type}=${one.status}${one.reason ? ` (${one.reason})` : ""}`)));
}

// ---- an object

async function object(panel, name, stale) {
  const heading = h("h2", {}, `${name.kind} ${name.name}`);
  panel.hidden = false;
  fill(panel, heading, h("p", { class: "dim" }, "reading…"));
  const words = new URLSearchParams({ apiVersion: name.apiVersion, kind: name.kind, name: name.name, namespace: name.kind === "Node" ? "" : name.namespace });
  let data;
  try {
    data = await ask(`/api/object?${words}`);
  } catch (error) {
    if (!stale()) fill(panel, heading, h("p", { class: "empty" }, error.message));
    return;
  }
  if (stale()) return;
  const views = {
    Conditions: () => (data.conditions.length ? h("div", {}, data.conditions.map((one) => h("div", { class: "condition" }, h("h3", {}, `${one.type} `, h("span", { class: `pill ${one.status === "True" ? "" : "dim"}` }, one.status)), h("div", {}, one.reason, one.since && h("span", { class: "dim" }, ` for ${age(store.now() - Date.parse(one.since) / 1000)}`)), h("div", { class: "sub" }, one.message)))) : h("p", { class: "empty" }, "It has no conditions.")),
    Events: () => (data.events.length ? h("div", {}, data.events.map((one) => h("div", {}, h("h3", { class: one.type === "Warning" ? "warn" : "" }, one.reason, " ", h("span", { class: "dim" }, `${age(store.now() - Date.parse(one.at) / 1000)} ago${one.count > 1 ? `, ${one.count} times` : ""}`)), h("div", {}, one.message)))) : h("p", { class: "empty" }, "No events are kept about it.")),
    YAML: () => h("pre", { class: "yaml", tabindex: "0", "aria-label": "YAML" }, data.yaml),
  };
  const body = h("div", { role: "tabpanel", id: "objectview", tabindex: "0", "aria-label": "Object" });
  const tabs = Object.keys(views).map((word) => h("button", { type: "button", role: "tab", "aria-controls": "objectview", onclick: () => pick(word) }, word));
  function pick(word) {
    sessionStorage.setItem("tab", word);
    tabs.forEach((tab) => { const on = tab.textContent === word; tab.setAttribute("aria-selected", String(on)); tab.tabIndex = on ? 0 : -1; });
    fill(body, views[word]());
  }
  const bar = h("div", { class: "tabs", role: "tablist", "aria-label": "What of it", onkeydown: (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.focus();
    pick(next.textContent);
  } }, tabs);
  fill(panel, heading, bar, body);
  pick(sessionStorage.getItem("tab") in views ? sessionStorage.getItem("tab") : "Conditions");
}
