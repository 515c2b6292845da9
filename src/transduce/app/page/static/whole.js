// The column as a whole: its mean, or the shares of its classes, and the same by a column that is chosen.

import { $, drawing, fill, make } from "/page/dom.js";
import { count, words } from "/page/locale.js";

const WIDTH = 260;
const HEIGHT = 22;

export function drawWhole(brief) {
  const { whole } = brief;
  if (!whole || whole.why) {
    fill($("whole"), make("p", { text: words(whole?.why || "There is nothing to ask.") }));
    return;
  }
  const tables = new Map([["", whole.tables[0]], ...brief.by_column.map((table) => [table.by, table])]);
  const proposed = whole.tables[1]?.by ?? "";
  const body = make("div", {});
  const by = make("select", { id: "whole-by", onchange: () => show(by.value) },
    ...[...tables.keys()].map((name) => make("option", { value: name, text: name === "" ? "all rows together" : name, selected: name === proposed })));
  const show = (name) => fill(body, tableOf(tables.get(name), whole.level));
  show(tables.has(proposed) ? proposed : "");
  fill($("whole"), make("p", { class: "strong", text: words(whole.first) }),
    make("div", { class: "filters" }, make("label", { for: "whole-by", text: "By" }), by), body,
    make("p", { class: "fine", text: words(whole.sentences.join(" ")) }), make("p", { class: "fine", text: words(whole.next) }),
    make("p", { class: "fine", text: "Do not average or count the filled values instead: they vary less than true ones. For totals, other shares, quantiles, differences and slopes there is “transduce estimate”." }));
}

function tableOf(table, level) {
  const ends = table.lines.flatMap((line) => [line.lower, line.upper, line.labels_alone_lower, line.labels_alone_upper]).filter((end) => typeof end === "number");
  const low = Math.min(...ends), high = Math.max(...ends);
  const place = (value) => 6 + (WIDTH - 12) * (high > low ? (value - low) / (high - low) : 0.5);
  const heads = [table.by ?? "", "estimate", words(`${Math.round(100 * level)} % interval`), "", "labels", "worth"];
  const rows = table.lines.map((line) => make("tr", {}, make("th", { scope: "row", text: line.group || "all rows" }), make("td", { class: "number strong", text: words(line.text) }),
    make("td", { text: words(line.interval) }), make("td", {}, line.kind === "none" ? make("span", { class: "fine", text: words(line.note) }) : forest(line, place)),
    make("td", { class: "number", text: count(line.n_labels) }), make("td", { class: "number", text: line.worth_text })));
  const body = make("table", { class: "rows" }, make("thead", {}, make("tr", {}, ...heads.map((name) => (name ? make("th", { scope: "col", text: name }) : make("td", {}))))), make("tbody", {}, ...rows));
  return make("div", {}, make("p", { class: "fine", text: words(`${table.title}. The thick line is the interval, the thin one that of the labels alone.`) }),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": words(table.title) }, body));
}

function forest(line, place) {
  const bar = (low, high, look, y) => (typeof low === "number" && typeof high === "number" ? drawing("line", { x1: place(low), x2: place(high), y1: y, y2: y, class: look }) : null);
  const parts = [bar(line.labels_alone_lower, line.labels_alone_upper, "alone", 17), bar(line.lower, line.upper, "ours", 9),
    drawing("circle", { cx: place(line.estimate), cy: 9, r: 4.5, class: "point" })];
  return drawing("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "forest", "aria-hidden": "true" }, ...parts.filter(Boolean));
}
