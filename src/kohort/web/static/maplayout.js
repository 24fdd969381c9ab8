// Where every node of the map stands: sections of the widest level, boxes of the next, cells in them.
import { shortKey } from "./dom.js";

const GAP = 3;
const PAD = 7;
const BETWEEN = 10;
const SIZES = [84, 76, 68, 60, 52, 46, 40, 36, 32, 28, 25, 22, 20, 18, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5];
const WIDE = 1.6;

export const titled = (size) => size >= 10;

// The level that boxes stand for: racks, if there are some.
export function defaultInner(levels) {
  const racks = levels.findIndex((key) => /rack$/i.test(key));
  return racks > 0 ? racks : levels.length > 1 ? 1 : levels.length ? 0 : -1;
}

const byName = new Intl.Collator("en", { numeric: true });

export function arrange(nodes, levels, inner) {
  const outer = inner > 0 ? 0 : -1;
  const sections = new Map();
  for (const node of [...nodes].sort((a, b) => byName.compare(a.name, b.name))) {
    const place = (level) => (level < 0 ? "" : node.levels[level] || "");
    const section = place(outer) || (outer >= 0 ? "no " + shortKey(levels[outer]) : "");
    const box = place(inner) || (inner >= 0 ? "no " + shortKey(levels[inner]) : "");
    if (!sections.has(section)) sections.set(section, new Map());
    const boxes = sections.get(section);
    if (!boxes.has(box)) boxes.set(box, []);
    boxes.get(box).push(node);
  }
  const lacks = (name) => name.startsWith("no ");
  const sorted = (map) => [...map].sort(([a], [b]) => lacks(a) - lacks(b) || byName.compare(a, b));
  return sorted(sections).map(([name, boxes]) => ({ name, boxes: sorted(boxes).map(([box, members]) => ({ name: shorter(box, name), members })) }));
}

// zone-0-rack-1 in zone-0 is rack-1.
const shorter = (name, above) => (above && name.startsWith(above) && name.length > above.length ? name.slice(above.length).replace(/^[-_./]+/, "") : name);

export function layOut(sections, width, height, chosen) {
  if (chosen) return flow(sections, width, chosen);
  let made = null;
  for (const size of SIZES) {
    made = flow(sections, width, size);
    if (made.height <= height) break;
  }
  return made;
}

export const nextSize = (size, step) => SIZES[Math.min(SIZES.length - 1, Math.max(0, SIZES.findIndex((one) => one <= size) - step))];

// Columns of the largest box, and so of all: nearly square, with as little left empty as may be.
function shapely(number) {
  if (number <= 4) return Math.max(1, number);
  const least = Math.ceil(Math.sqrt(number * 0.9));
  const left = (columns) => Math.ceil(number / columns) * columns - number;
  let best = least;
  for (let columns = least; columns <= least + 3; columns += 1) if (left(columns) < left(best)) best = columns;
  return best;
}

function flow(sections, width, size) {
  const cellWidth = Math.round(size * WIDE);
  const gap = size >= 14 ? GAP : size >= 8 ? 2 : 1;
  const pad = size >= 14 ? PAD : 4;
  const between = size >= 14 ? BETWEEN : 5;
  const head = titled(size) ? 16 : 0;
  const cells = [];
  const boxes = [];
  const titles = [];
  const columnsOf = shapely(Math.max(1, ...sections.flatMap((section) => section.boxes.map((box) => box.members.length))));
  let y = 10;
  for (const section of sections) {
    if (section.name) { titles.push({ text: section.name, x: 12, y: y + 14 }); y += 24; }
    let x = 12;
    let tallest = 0;
    for (const box of section.boxes) {
      const most = Math.max(1, Math.floor((width - 24 - 2 * pad + gap) / (cellWidth + gap)));
      const columns = Math.min(most, columnsOf, box.members.length);
      const rows = Math.ceil(box.members.length / columns);
      const w = Math.max(columns * (cellWidth + gap) - gap + 2 * pad, head && box.name ? Math.min(box.name.length * 6.2 + 2 * pad, 140) : 0);
      const tall = rows * (size + gap) - gap + 2 * pad + (box.name ? head : 0);
      if (x > 12 && x + w > width - 12) { x = 12; y += tallest + between; tallest = 0; }
      boxes.push({ name: box.name, x, y, w, h: tall });
      const top = y + pad + (box.name ? head : 0);
      box.members.forEach((node, index) => cells.push({ node, x: x + pad + (index % columns) * (cellWidth + gap), y: top + Math.floor(index / columns) * (size + gap), w: cellWidth, h: size }));
      x += w + between;
      tallest = Math.max(tallest, tall);
    }
    y += tallest + between + 8;
  }
  return { cells, boxes, titles, size, height: y + 4 };
}
