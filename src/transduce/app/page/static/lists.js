// Lists of rows: the least and most certain answers, the history, what a search found; and the counts.

import { $, colour, dot, fill, make } from "/page/dom.js";
import { count, number as written, rough } from "/page/locale.js";

const code = (model, label) => model.classes.findIndex((known) => known.name === String(label));
const short = (value) => (typeof value === "number" ? rough(value) : value);

function thumb(model, row) {
  const column = model.imageColumn;
  if (column === null) return null;
  const image = make("img", { class: "thumb", src: `/image/${row}/${column}`, alt: "", loading: "lazy" });
  image.addEventListener("error", () => image.remove());
  return image;
}

function entry(model, { row, title, mark, tag, label }, choose) {
  const text = model.imageColumn === null ? title : `row ${count(row + 1)}`;
  return make("li", {},
    make("button", { type: "button", onclick: () => choose(row), "data-row": row },
      thumb(model, row), label === undefined ? null : dot(code(model, label)),
      make("span", { class: "text", text, dir: "auto" }), tag ? make("span", { class: "tag", text: tag }) : null,
      make("span", { class: "mark", text: mark ?? "" })));
}

export function showAnswers(model, rows, missing, choose) {
  const items = rows.map(({ row, title, answer }) => entry(model, { row, title, mark: short(answer), label: answer }, choose));
  fill($("list"), ...(items.length ? items : [make("li", { class: "empty", text: missing || "No unlabelled row has a prediction yet." })]));
}

export function showHistory(model, decisions, choose) {
  const items = decisions.map(({ row, title, label, random, changed, mode }) =>
    entry(model, { row, title, label, mark: label === null ? "skipped" : `${typeof label === "number" ? written(label) : label}${changed ? " (changed)" : ""}`, tag: random ? "random" : mode === "chosen" ? "chosen" : null }, choose));
  $("history-list").append(...items);
  if (!$("history-list").children.length) $("history-list").append(make("li", { class: "empty", text: "No row is labelled yet." }));
}

export function showFound(model, rows, choose) {
  fill($("search-list"), ...rows.map(({ row, title, label }) => entry(model, { row, title, mark: label ?? "", label: label ?? undefined }, choose)));
}

export function showCounts(model, view) {
  if (model.task === "numbers") {
    const number = (value) => make("span", { text: short(Number(value)) });
    fill($("counts"), make("div", { class: "scale" }, number(view.map.low), make("i"), number(view.map.high)));
    return;
  }
  const most = Math.max(...view.classes.map(({ labelled, answered }) => labelled + answered), 1);
  const lines = view.classes.flatMap(({ name, labelled, answered }, index) => {
    const bars = [labelled, answered].map((count) => {
      const bar = make("i");
      bar.style.width = `${(100 * count) / most}%`;
      bar.style.background = colour(index);
      return bar;
    });
    return [
      make("span", { class: "name" }, dot(index), make("span", { text: name, title: name })),
      make("span", { class: "meter", "aria-hidden": "true" }, ...bars),
      make("span", { class: "figure", text: `${count(labelled)} + ${count(answered)}`, title: `${count(labelled)} labelled, ${count(answered)} answered` }),
    ];
  });
  fill($("counts"), ...lines);
}
