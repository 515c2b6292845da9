// What a guarantee on average leaves open for one table: two sentences and a curve.

import { drawing, make } from "/page/dom.js";
import { words } from "/page/locale.js";

const WIDE = 280;
const HIGH = 64;
const FLOOR = 46;

export function oneTable(found) {
  if (!found) return [];
  const from = Math.min(Math.max(Math.floor(10 * found.low - 1) / 10, 0), 0.9);
  const x = (share) => 6 + (WIDE - 12) * ((share - from) / (1 - from));
  const y = (height) => FLOOR - 40 * height;
  const points = found.curve.filter(([share]) => share >= from).sort((one, other) => one[0] - other[0]);
  const path = (some) => (some.length ? `M${x(some[0][0])} ${FLOOR}${some.map(([share, height]) => `L${x(share)} ${y(height)}`).join("")}L${x(some.at(-1)[0])} ${FLOOR}Z` : "");
  const likely = points.filter(([share]) => share >= found.low - 1e-9 && share <= found.high + 1e-9);
  const mark = (share, anchor) => drawing("text", { x: x(share), y: HIGH - 4, "text-anchor": anchor, text: words(`${Math.round(100 * share)} %`) });
  const picture = drawing("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "one-table", role: "img", "aria-label": words(found.sentence) },
    drawing("path", { d: path(points), class: "all" }), drawing("path", { d: path(likely), class: "likely" }),
    drawing("line", { x1: x(from), x2: x(1), y1: FLOOR, y2: FLOOR, class: "base" }), drawing("line", { x1: x(found.level), x2: x(found.level), y1: 2, y2: FLOOR, class: "level" }),
    mark(from, "start"), mark(found.level, "middle"), mark(1, "end"));
  return [make("h3", { text: "In this one table" }), picture, make("p", { class: "fine", text: words(`${found.sentence} ${found.more}`) })];
}
