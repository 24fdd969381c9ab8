// Small helpers: elements from descriptions, ages, numbers.

export function h(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(made.style, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    made.append(child);
  }
  return made;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((one) => one !== undefined && one !== null && one !== false));
}

export function age(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const whole = Math.max(0, Math.floor(seconds));
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (whole >= 2 * size) return `${Math.floor(whole / size)} ${unit}`;
  }
  return `${whole} s`;
}

export const plural = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

export const clockTime = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export const shortKey = (key) => key.slice(key.lastIndexOf("/") + 1);

const units = [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];

export function amount(resource, value) {
  if (resource === "cpu") return String(Math.round(value / 100) / 10);
  if (resource === "memory" || resource.includes("storage") || resource.startsWith("hugepages-")) {
    for (const [unit, size] of units) if (value >= size) return `${Math.round((value / size) * 10) / 10} ${unit}`;
  }
  return String(value);
}

// Neighbouring numbers get hues far from one another.
export function colour(id) {
  if (!id) return getComputedStyle(document.documentElement).getPropertyValue("--other").trim();
  const dark = document.documentElement.dataset.theme === "dark";
  const light = (dark ? [60, 50, 70] : [52, 42, 62])[id % 3];
  return `hsl(${Math.round((id * 137.508) % 360)} ${dark ? 58 : 62}% ${light}%)`;
}

export const swatch = (id) => h("span", { class: "swatch", "aria-hidden": "true", style: { background: colour(id) } });

export const title = (unit) => `${unit.top[0]} ${unit.top[1]}`;

// What a unit is below its topmost owner, if that is not all.
export const below = (unit) => (unit.kind === unit.top[0] && unit.name === unit.top[1] ? "" : `${unit.kind} ${unit.name}`);

// With its own name, where its owner has several: replicas can be told apart.
export const named = (unit, units) => {
  const several = units.some((one) => one !== unit && one.ns === unit.ns && title(one) === title(unit));
  return several && below(unit) ? `${unit.top[0]} ${unit.name}` : title(unit);
};

export async function ask(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  const body = await answer.json().catch(() => ({ error: answer.statusText }));
  if (answer.status === 401) location.assign("/login");
  if (!answer.ok) throw new Error(body.error || `${answer.status}`);
  return body;
}
