// The row that is judged, or looked at again.

import { $, dot, fill, make } from "/page/dom.js";
import { count, number, rough, text, words } from "/page/locale.js";

const TITLE = 160; // a first text up to this long is a headline
const TINY = 32; // images up to so many pixels are shown as squares

function picture(cell, row, column) {
  const image = make("img", { src: `/image/${row}/${column}`, alt: `${cell.name} of row ${row + 1}` });
  image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth <= TINY));
  image.addEventListener("error", () => image.replaceWith(make("p", { class: "missing", text: `no image: ${cell.text}` })));
  return image;
}

// Numbers and dates as the browser's language writes them.
function written(cell) {
  const value = Number(cell.text.replaceAll(",", ""));
  return cell.kind === "number" && Number.isFinite(value) ? number(value) : text(cell.text);
}

function shown(cell, row, column, plain) {
  const heading = plain ? null : make("h3", { text: cell.name });
  let body;
  if (cell.kind === "image") body = make("figure", {}, picture(cell, row, column), plain ? make("figcaption", { class: "fine", text: cell.text.split("/").at(-1) }) : null);
  else if (cell.kind === "missing") body = make("p", { class: "missing", text: "empty" });
  else body = make("p", { text: written(cell), dir: "auto" });
  return make("div", { class: "cell" }, heading, body);
}

// Screen readers hear which row it is and how it begins, once, not all of its text after every change.
function announce(card, about) {
  const begins = card?.cells.find(({ kind }) => kind === "text")?.text.replace(/\s+/g, " ").slice(0, 80) ?? "";
  const words = card ? `Row ${count(card.row + 1)} of ${count(about.n_rows)}. ${begins}` : "Every row has a label.";
  if ($("announce").textContent !== words) $("announce").textContent = words;
}

export function showCard(card, about, model) {
  announce(card, about);
  $("row-number").textContent = card ? `row ${count(card.row + 1)} of ${count(about.n_rows)}${card.line === null ? "" : `, line ${count(card.line)} of the file`}` : "";
  $("why").textContent = card ? words(card.why) : "";
  $("row").classList.toggle("drawn", Boolean(card?.random));
  if (!card) {
    fill($("card-state"));
    fill($("cells"), make("div", { class: "done" }, make("h3", { text: "Every row has a label." }), make("p", { text: "Export writes the files." })));
    return;
  }
  const cells = card.cells.map((cell, column) => ({ cell, column }));
  const first = cells.find(({ cell }) => cell.kind === "text");
  const headline = first && first.cell.text.length <= TITLE && cells.some(({ cell }) => cell.kind === "text" && cell !== first.cell) ? first : null;
  const isNumber = ({ kind }) => kind === "number" || kind === "code"; // a code names the row, and is written as it stands
  const numbers = cells.filter(({ cell }) => isNumber(cell));
  const others = cells.filter(({ cell }) => !isNumber(cell) && cell !== headline?.cell);
  const alone = cells.length === 1;
  const build = ({ cell, column }) => {
    const made = shown(cell, card.row, column, cell === headline?.cell || alone);
    made.classList.toggle("headline", cell === headline?.cell);
    made.classList.toggle("alone", alone);
    return made;
  };
  fill(
    $("cells"),
    ...(headline ? [build(headline)] : []),
    ...others.filter(({ cell }) => cell.kind === "image").map(build),
    ...others.filter(({ cell }) => cell.kind === "text").map(build),
    numbers.length ? make("div", { class: "numbers" }, ...numbers.map(build)) : null,
    ...others.filter(({ cell }) => cell.kind === "missing").map(build),
  );
  fill($("card-state"), stateOf(card, model));
  $("row").scrollTop = 0;
}

function stateOf(card, model) {
  const code = (label) => model.classes.findIndex((known) => known.name === label);
  const back = model.looking ? make("button", { type: "button", text: "Back to the row to judge", onclick: model.back }) : null;
  if (card.label !== null) {
    const who = card.by === "table" ? "in the table" : card.decision?.random ? "a random draw" : "by you";
    const predicted = card.checked ? ` Predicted: ${card.checked.prediction === null ? "nothing" : `“${card.checked.prediction}”`}.` : "";
    const words = make("span", { text: `Labelled “${typeof card.label === "number" ? number(card.label) : card.label}”, ${who}.${predicted} Choose again to change it.` });
    return make("div", { class: "state" }, dot(code(card.label)), words, back);
  }
  if (card.random && (card.decision || back)) {
    const text = card.decision ? "A random draw that you skipped: it counts as a possible hit until you judge it." : "A random draw.";
    return make("div", { class: "state random" }, make("span", { text }), back);
  }
  if (model.showAnswer && card.answer !== null) {
    const between = card.bounds ? ` (${card.bounds.map((end) => rough(Number(end))).join(" to ")})` : "";
    const value = typeof card.answer === "number" ? rough(card.answer) : card.answer;
    return make("div", { class: "state" }, dot(code(card.answer)), make("span", { text: `Current answer: ${value}${between}` }), back);
  }
  return back ? make("div", { class: "state" }, make("span", { text: "Not labelled yet." }), back) : null;
}
