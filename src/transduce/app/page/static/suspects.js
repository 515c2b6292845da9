// Known values that are perhaps wrong: look at the row, correct the value, or say that it is right.

import { $, make, refuse } from "/page/dom.js";
import { number, typed, words } from "/page/locale.js";
import { redraw } from "/page/table.js";

const FIRST = 5;
let all = false; // whether the whole list is shown
let editing = null; // the row whose value is being corrected

// Those of which nothing was said yet.
export function openSuspects(page, { suspects = [] }) {
  const { corrected, right } = page.state.choices;
  return suspects.filter(({ position }) => !right.includes(position) && !corrected.some(({ row }) => row === position));
}

export function drawSuspects(page, brief, openRow) {
  const { corrected } = page.state.choices;
  const asked = openSuspects(page, brief);
  const shown = all ? asked : asked.slice(0, FIRST);
  const again = () => drawSuspects(page, brief, openRow);
  $("suspects").hidden = !asked.length && !corrected.length;
  const more = asked.length > shown.length ? make("li", {}, make("button", { type: "button", class: "link", text: `Show ${number(asked.length - shown.length)} more`, onclick: () => { all = true; again(); } })) : null;
  redraw($("suspects-list"), ...shown.map((suspect) => line(page, brief, suspect, openRow, again)), more, ...corrected.map((one) => taken(page, one)));
}

function line(page, brief, suspect, openRow, again) {
  const { position } = suspect;
  const button = (text, onclick, look = "plain") => make("button", { type: "button", class: look, text, onclick });
  const say = (body) => page.act("correct", { row: position, ...body });
  const buttons = editing === position ? [form(page, brief, suspect, say, again)] : [
    button("Look at the row", () => openRow(page, position)), button("Correct it", () => { editing = position; again(); $("correction").focus(); }), button("It is right", () => say({ right: true }))];
  return make("li", {}, make("p", {}, make("strong", { text: words(suspect.value) }), ` in ${words(suspect.row)}: `, words(suspect.reason)), make("div", { class: "row" }, ...buttons));
}

function form(page, brief, { row: name }, say, again) {
  const numbers = brief.task === "regression" && !brief.answers.moments;
  const field = make("input", { id: "correction", autocomplete: "off", size: 12, maxlength: 80, "aria-label": `The right value in ${name}`, inputmode: numbers ? "decimal" : "text" });
  const take = async (text) => {
    const now = text === "" ? null : numbers ? typed(text) : text;
    if (Number.isNaN(now)) {
      refuse(field, `“${text}” is not a number.`);
      return;
    }
    if (!(await say({ now }))) refuse(field, page.refusal);
    else editing = null;
    again();
  };
  const made = make("form", { class: "inline-form" }, field, make("button", { type: "submit", class: "primary", text: "Use this value" }),
    make("button", { type: "button", class: "plain", text: "Empty the cell", onclick: () => take("") }), make("button", { type: "button", class: "plain", text: "Leave it", onclick: () => { editing = null; again(); } }));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.value.trim()) take(field.value.trim());
  });
  return made;
}

function taken(page, { row, name, was, now }) {
  const shown = now === null ? "emptied" : `now ${typeof now === "number" ? number(now, 9) : `“${now}”`}`;
  return make("li", { class: "taken" }, make("p", { text: `${words(name)}: was ${was.replace(/^(-?\d+)\.0$/, "$1") || "empty"}, ${shown}.` }), make("div", { class: "row" },
    make("button", { type: "button", class: "plain", text: "Take it back", onclick: () => page.act("correct", { row }) })));
}
