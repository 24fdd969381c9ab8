// What is known of the cluster: everything once, then what changes.
import { ask } from "./dom.js";

export const store = {
  units: new Map(), nodes: new Map(), marks: [], levels: [], device: "", mayNodes: false, everything: true,
  user: "", unread: [], reading: null, ready: false, skew: 0, version: 0, namespace: "",
  now() { return Date.now() / 1000 + this.skew; },
  visible(unit) { return !this.namespace || unit.ns === this.namespace; },
};

let listeners = [];
let source = null;
let pending = false;
let stopped = false;

export function listen(call) {
  listeners.push(call);
  return () => { listeners = listeners.filter((one) => one !== call); };
}

function tell() {
  store.version += 1;
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; for (const call of listeners) call(); });
}

function take(data) {
  store.reading = data.reading; // pods so far; null: all of them
  for (const unit of data.units) store.units.set(unit.id, unit);
  for (const id of data.goneUnits) store.units.delete(id);
  for (const row of data.nodes) {
    const [name, levels, hasDevice, capacity, used, cpu, memory, flags, pods, flat] = row;
    store.nodes.set(name, { name, levels, hasDevice, capacity, used, cpu, memory, flags, pods, flat });
  }
  for (const name of data.goneNodes) store.nodes.delete(name);
  store.marks.push(...data.marks.map(([number, at, what, text, ns, unit]) => ({ number, at, what, text, ns, unit })));
  if (store.marks.length > 400) store.marks.splice(0, store.marks.length - 400);
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function say(state, text) {
  const shown = document.getElementById("live");
  if (shown.textContent !== text) shown.textContent = text;
  shown.className = `live ${state}`;
}

export async function follow() {
  for (let wait = 500; !stopped; wait = Math.min(wait * 2, 10000)) {
    try {
      const data = await ask("/api/view");
      Object.assign(store, {
        units: new Map(), nodes: new Map(), marks: [], levels: data.levels, device: data.device, mayNodes: data.mayNodes,
        everything: data.everything, user: data.user, unread: data.unread, ready: true, skew: data.now - Date.now() / 1000,
      });
      take(data);
      tell();
      say("on", "live");
      wait = 500;
      await stream(data.number, data.epoch, data.mark);
    } catch (error) {
      say("off", `not connected: ${error.message}`);
    }
    await pause(wait);
  }
}

function stream(number, epoch, mark) {
  return new Promise((done) => {
    source = new EventSource(`/api/stream?number=${number}&epoch=${epoch}&mark=${mark}`);
    const end = () => { source.close(); done(); };
    source.addEventListener("delta", (event) => { take(JSON.parse(event.data)); tell(); });
    source.addEventListener("reset", end);
    source.addEventListener("beat", (event) => { store.skew = JSON.parse(event.data).now - Date.now() / 1000; tell(); });
    source.addEventListener("bye", () => { stopped = true; end(); location.assign("/login"); });
    source.addEventListener("error", () => { say("off", "connecting again"); end(); });
  });
}
