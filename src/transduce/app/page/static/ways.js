// The second step: how the known values came about, on which every guarantee rests. Each answer has a picture.

import { read, tab } from "/page/api.js";
import { $, drawing, fill, make, refuse, refused } from "/page/dom.js";
import { number, typed, words as plain } from "/page/locale.js";
import { oneTable } from "/page/coverage.js";
import { arrows, question, redraw } from "/page/table.js";
import { listBox } from "/page/take.js";

const LIMITS = ["minimum", "maximum"];
const [ACROSS, DOWN] = [9, 4];
const LOTS = [1, 5, 8, 12, 15, 20, 22, 27, 30, 34];
const PICKED = "value"; // the card of rows that somebody picked
const QUESTIONS = {
  value: "Did the value itself play a part, or something that hints at it, such as symptoms or a first look?",
  columns: "Did other columns of this table play a part, such as age, place or time?",
};
const LEADS = {
  chance: "Then the rows were in effect chosen at random. Whether the other columns speak against it is tested all the same.",
  unknown: "Then the part that the other columns played is estimated.",
  class: "Then the classes were chosen, and within each class rows were in effect chosen at random.",
  value: "Then no column shows how the rows without a value differ. The values are filled all the same, as suggestions; only rows drawn at random can bring a guarantee.",
};
const ALSO = { groups: "whole groups had a value at once", order: "values end at a date, or along another order", within: "chance decided within each category" };
const ALSO_COLUMN = { groups: "The column that names the group", order: "The column with the date, or another order", within: "The column of categories" };
const WAITS = "This waits for the answer to the question above.";
let asked = null;
let kinds = null;

// ------------------------------------------------------------------------------------------------ the pictures

function picture(way) {
  const dots = [];
  for (let place = 0; place < ACROSS * DOWN; place += 1) {
    const x = place % ACROSS, y = Math.floor(place / ACROSS);
    const [cx, cy, r] = [8 + 12 * x, 8 + 12 * y, way === "known" ? 1.6 + 0.35 * x : 4];
    let look = LOTS.includes(place) ? "has" : "";
    if (way === "drawn") look = x < 3 && y < 3 ? "chosen" : LOTS.includes(place) ? "has ring" : "";
    if (way === PICKED) look = x > 4 && (y + x) % 3 ? "has" : "";
    if (way === "class") look = `${x < 3 ? "one" : "other"} ${(x < 3 && (x + y) % 2) || (x > 6 && (x + y) % 2) ? "has" : ""}`;
    if (way === "groups") look = x < 3 || x > 5 ? (y < 2) === (x < 3) ? "has" : "" : "";
    if (way === "date") look = x < 5 ? "has" : "";
    if (way === "known") look = (place * 7) % 11 < x + 1 ? "has" : "";
    if (way === "unknown") look = (place * 5 + y) % 4 === 0 ? "has" : "";
    dots.push(drawing("circle", { cx, cy, r, class: look }));
  }
  if (way === "groups") for (const [x, y] of [[2.5, 2.5], [38.5, 2.5], [74.5, 2.5], [2.5, 26.5], [38.5, 26.5], [74.5, 26.5]]) dots.push(drawing("rect", { x, y, width: 35, height: 23, rx: 4 }));
  if (way === "date") dots.push(drawing("path", { d: "M62 0V52M56 52h-50" }));
  if (way === "unknown") dots.push(drawing("text", { x: 56, y: 40, "text-anchor": "middle", text: "?" }));
  return drawing("svg", { viewBox: "0 0 112 54", class: `way ${way}`, "aria-hidden": "true" }, ...dots);
}

// ------------------------------------------------------------------------------------------------ drawing

// What the kinds of the columns rest on: a target may be read in another way.
const kindsKey = ({ table, choices }) => JSON.stringify([table, choices?.target, choices?.task, choices?.missing, choices?.same, choices?.labels]);

export async function drawWays(page) {
  const key = kindsKey(page.state);
  if (kinds?.key !== key) {
    $("to-fill").hidden = true; // its place is known when all above it is drawn
    try {
      const { columns, unfit, in_parts: parts, classes } = await read("/open/preview");
      if (kindsKey(page.state) !== key) return;
      kinds = { key, columns, unfit, parts, classes };
    } catch (error) {
      if (kindsKey(page.state) !== key) return;
      $("labels-lead").textContent = error.message; // in its place, and to stay: nothing else is drawn here
      $("labels-lead").classList.add("bad");
      fill($("ways"));
      return;
    }
  }
  $("labels-lead").classList.remove("bad");
  const { state } = page, { choices } = state;
  $("labels-lead").textContent = `Some cells of “${choices.target}” have a value and others not. What decided which? What can be guaranteed depends on this alone.`;
  const own = choices.labels ? [make("p", { class: "note", text: "Labels from the labelling page are used too, and decide this: if enough rows were drawn there at random, they are used for calibration; rows that you or the program picked were not chosen at random." }), ...(state.since ? [make("p", { class: "note", id: "since", text: plain(state.since) })] : [])] : [];
  redraw($("ways"), ...own, ...state.ways.map((card, place) => {
    const { way, title, words } = card;
    const chosen = shownWay(state) === way, unfit = chosen ? "" : kinds.unfit[way] ?? "";
    const choose = () => page.change(way === PICKED ? { picked: {} } : { way, column: null });
    const button = make("button", { type: "button", role: "radio", "aria-checked": String(chosen), disabled: (Boolean(choices.labels) && !chosen) || Boolean(unfit), tabindex: chosen || (!shownWay(state) && place === 0) ? 0 : -1, onclick: choose },
      picture(way), make("strong", { text: title }), make("span", { class: "fine", text: unfit || words }));
    const asks = chosen && !choices.labels ? [card.column ? columnOf(page, card) : null, choices.picked ? pickedOf(page) : null, state.way === "class" ? sharesOf(page) : null, alsoOf(page, card)] : [];
    return make("div", { class: "way-box" }, button, ...asks);
  }));
  $("confidence").value = String(choices.confidence);
  $("limits").hidden = choices.task === "classification" || kinds.columns.find(({ name }) => name === choices.target)?.kind !== "number";
  const isNumber = kinds.columns.find(({ name }) => name === choices.target)?.kind !== "category" && choices.task !== "classification";
  $("conditional-box").hidden = isNumber;
  $("reject-box").hidden = kinds.parts; // it asks for all rows at once
  $("conditional").checked = choices.label_conditional;
  if (document.activeElement !== $("reject") && !refused($("reject"))) $("reject").value = choices.reject === null ? "" : number(100 * choices.reject);
  const of = JSON.stringify([state.table, choices.target]);
  if ($("limits").dataset.of !== of) refuse($("reject"), "");
  if ($("limits").dataset.of !== of) LIMITS.forEach((end) => refuse($(end), "")); // what was refused was of another column
  $("limits").dataset.of = of;
  for (const end of LIMITS) if (document.activeElement !== $(end) && !refused($(end))) $(end).value = choices[end] === null ? "" : number(choices[end]);
  const asks = kinds.columns.find(({ name }) => name === choices.target)?.ask;
  redraw($("labels-question"), ...(asks ? [question(page, asks)] : []));
  drawFill(state);
  $("to-fill").hidden = false;
  drawOutlook(page);
}

// What is refused must be mended before a fill, which would not use it.
function drawFill(state) {
  $("fill").disabled = !ready(state) || refused($("reject")) || (!$("limits").hidden && LIMITS.some((end) => refused($(end))));
}

// Whether it was said how the values came about, and by which column.
function ready({ way, ways, choices }) {
  const card = ways.find((one) => one.way === way);
  const besides = !choices.also || Boolean(choices.also_column);
  return Boolean(card) && besides && (!card.column || Boolean(choices.column) || choices.labels > 0);
}

// The card that was chosen: who picked rows stays at that card, wherever the answers lead.
const shownWay = ({ way, choices }) => (choices.picked ? PICKED : way);

// A choice of a column, those that suit best first.
function columnOf(page, { column: words, kinds: suited }, field = "column") {
  const { choices } = page.state;
  const fits = ({ kind }) => (suited.includes(kind) ? suited.indexOf(kind) : suited.length);
  const some = kinds.columns.filter(({ name, kind }) => name !== choices.target && kind !== "empty").sort((one, other) => fits(one) - fits(other));
  const take = async () => { if (!(await page.change({ [field]: select.value || null }))) select.value = choices[field] ?? ""; };
  const select = make("select", { "aria-label": words, onchange: take },
    make("option", { value: "", text: "choose a column …" }), ...some.map(({ name }) => make("option", { value: name, text: name, selected: name === choices[field] })));
  return make("label", { class: "of-column" }, make("span", { class: "fine", text: words }), select);
}

// Two questions to who picked the rows, and what the answers lead to.
function pickedOf(page) {
  const { picked, way } = page.state.choices;
  const ask = ([name, words]) => make("fieldset", { class: "yes-no" }, make("legend", { class: "fine", text: words }), ...[["Yes", true], ["No", false]].map(([text, answer]) => {
    const box = make("input", { type: "radio", name: `picked-${name}`, value: text, onchange: () => page.change((choices) => ({ picked: { ...choices.picked, [name]: answer } })) });
    box.checked = picked[name] === answer;
    return make("label", {}, box, make("span", { text }));
  }));
  const lead = way ? make("p", { class: "fine", id: "picked-lead", role: "status", text: LEADS[way] }) : null;
  return make("div", { class: "picked" }, ...Object.entries(QUESTIONS).map(ask), lead);
}

// How frequent each class is among the rows without a value, where somebody knows it.
function sharesOf(page) {
  const { shares } = page.state.choices;
  if (kinds.classes.length < 2) return null;
  const shown = (name) => (shares === null || shares[name] === undefined ? "" : number(100 * shares[name], 4));
  const fields = kinds.classes.map((name, place) => make("input", { id: `share-${place}`, inputmode: "decimal", size: 5, maxlength: 9, autocomplete: "off", value: shown(name) }));
  const lines = kinds.classes.map((name, place) => make("div", { class: "share-row" }, make("label", { for: `share-${place}`, text: name }), fields[place], make("span", { text: "%" })));
  const form = make("form", {}, ...lines, make("div", { class: "row" }, make("button", { type: "submit", class: "plain", text: "Use these shares" }),
    shares ? make("button", { type: "button", class: "plain", text: "Estimate them instead", onclick: () => page.change({ shares: null }) }) : null));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    takeShares(page, fields);
  });
  const box = make("details", { class: "shares", open: shares !== null }, make("summary", { text: "Do you know how frequent each class is?" }),
    make("p", { class: "fine", text: "Among the rows without a value, for example from a registry. Otherwise it is estimated." }), form);
  return box;
}

async function takeShares(page, fields) {
  const values = fields.map((field) => typed(field.value.trim()));
  fields.forEach((field, place) => refuse(field, values[place] >= 0 && values[place] <= 100 ? "" : "Give a number from 0 to 100."));
  if (fields.some(refused)) return;
  const total = values.reduce((sum, value) => sum + value, 0);
  if (Math.abs(total - 100) > 0.5) {
    refuse(fields.at(-1), `These shares sum to ${number(total, 2)} %, not to 100 %.`);
    return;
  }
  const shares = Object.fromEntries(kinds.classes.map((name, place) => [name, Number((values[place] / total).toPrecision(12))]));
  if (!(await page.change({ shares }))) refuse(fields.at(-1), page.refusal);
}

// A second reason besides the first, where the two go together.
function alsoOf(page, card) {
  const { choices, ways } = page.state;
  const offered = choices.picked ? ways.find(({ way }) => way === choices.way)?.also ?? [] : card.also;
  if (!offered.length) return null;
  const select = make("select", { "aria-label": "Did something else decide, too?", onchange: () => page.change({ also: select.value || null, also_column: null }) },
    make("option", { value: "", text: "nothing else" }), ...offered.map((flag) => make("option", { value: flag, text: ALSO[flag], selected: flag === choices.also })));
  const label = make("label", { class: "of-column" }, make("span", { class: "fine", text: "Did something else decide, too?" }), select);
  const suited = { groups: ["category", "identifier"], order: ["date", "number"], within: ["category"] }[choices.also];
  return make("div", {}, label, choices.also ? columnOf(page, { column: ALSO_COLUMN[choices.also], kinds: suited }, "also_column") : null);
}

// What is said keeps the room of what was said before, so that the page never gets shorter under the mouse.
function put(box, ...children) {
  box.style.minHeight = `${box.offsetHeight}px`;
  fill(box, ...children);
}

function drawOutlook(page) {
  const { state } = page, { choices } = state;
  const key = JSON.stringify([state.table, state.revision]);
  const asks = kinds.columns.find(({ name }) => name === choices.target)?.ask;
  if (key === asked) return;
  asked = key;
  if (!ready(state)) {
    put($("outlook"), make("p", { class: "fine", text: choices.picked && !choices.way ? "Answer the two questions." : choices.way ? "Choose the column that says so." : "Choose one of these to see what will be guaranteed and what will not." }));
  } else {
    put($("outlook"), make("p", { class: "fine", text: "…" }));
    read("/open/outlook").then((found) => { if (asked === key) showOutlook(page, found); }, (error) => { if (asked === key) put($("outlook"), ...refusal(page, asks ? WAITS : error.message, asks)); });
  }
  put($("test"), make("p", { class: "fine", text: "Rows with and without a value are compared …" }));
  read("/open/test").then((found) => { if (asked === key) showTest(found); }, (error) => { if (asked === key) put($("test"), make("p", { class: "fine", text: asks ? WAITS : error.message })); });
}

// Why nothing can be filled like this; who labels rows here may go on with it.
function refusal(page, text, asks) {
  const more = page.state.choices.labels && !asks ? [make("button", { type: "button", class: "plain", text: "Label more rows", onclick: () => label(page, false) })] : [];
  return [make("p", { class: "bad", text: plain(text) }), ...more];
}

function showTest({ differ, perhaps, tested, columns, compared }) {
  const where = columns.length ? `, most of all in ${columns.map((name) => `“${name}”`).join(", ")}` : "";
  const said = !tested ? "There are too few rows to see anything." : differ ? `Rows with and without a value differ${where}. If values were missing at random, this test would give such an alarm in 1 of 100 tables. So probably they are not, or some column was filled in differently at rows with a value: if so, choose that column in the table and ignore it.`
    : perhaps ? `There are signs that rows with and without a value differ${where}, but they are weak.` : "Rows with and without a value look alike. That agrees with values missing at random, but does not prove it.";
  const seen = `${number(compared[0])} rows with a value were compared with ${number(compared[1])} without.${tested && !differ ? " Small differences can be missed." : ""}`;
  put($("test"), make("p", { class: `headline ${differ ? "bad" : ""}`, text: said }), make("p", { class: "fine", text: seen }));
}

function showOutlook(page, found) {
  const list = (title, look, lines) => (lines.length ? [make("h3", { text: title }), make("ul", { class: look }, ...lines.map((text) => make("li", { text: plain(text) })))] : []);
  const offer = found.draw ? [make("h3", { text: "To be sure" }), make("p", { class: "fine", text: "Label twenty or more rows that this page draws at random. Then the guarantee holds however all other values came about." }),
    make("button", { type: "button", class: "plain", text: "Label rows drawn at random", onclick: () => label(page, true) }), make("div", { class: "stack" }, ...listBox(page))] : [];
  put($("outlook"), make("p", { class: `headline ${found.will.length ? "" : "bad"}`, text: capital(plain(found.headline)) }), ...list(found.roughly ? "Roughly guaranteed" : "Guaranteed", "yes", found.will), ...list("Not guaranteed", "no", found.will_not), ...oneTable(found.one_table), ...offer);
  page.say(`${capital(plain(found.headline))}.`);
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// From here, or from the answers, to the labelling page; its link leads back.
export async function label(page, draw) {
  page.say("Opening the labelling page");
  document.body.classList.add("waiting");
  if (await page.act("label", { draw })) tab.toLabelling();
  document.body.classList.remove("waiting");
}

export function waysBegin(page) {
  arrows($("ways"));
  $("confidence").addEventListener("change", async () => { if (!(await page.change({ confidence: Number($("confidence").value) }))) $("confidence").value = String(page.state.choices.confidence); });
  $("conditional").addEventListener("change", async () => { if (!(await page.change({ label_conditional: $("conditional").checked }))) $("conditional").checked = page.state.choices.label_conditional; });
  $("reject").addEventListener("change", () => takeReject(page));
  for (const end of LIMITS) $(end).addEventListener("change", () => takeLimit(page, end));
  $("fill").addEventListener("click", async () => {
    await page.settled(); // a number that was typed just before
    if (!$("fill").disabled && await page.act("fill")) page.go("answers");
  });
}

async function takeReject(page) {
  const words = $("reject").value.trim(), share = words === "" ? 0 : typed(words);
  if (!(share >= 0 && share < 100)) refuse($("reject"), `“${words}” is not a share below 100 %, and is not used.`);
  else refuse($("reject"), await page.change({ reject: share === 0 ? null : share / 100 }) ? "" : `${page.refusal} It is not used.`);
  drawFill(page.state);
}

async function takeLimit(page, end) {
  const text = $(end).value.trim(), value = text === "" ? null : typed(text);
  if (Number.isNaN(value)) {
    refuse($(end), `“${text}” is not a number, and is not used: write one such as ${number(0.5)}.`);
  } else {
    refuse($(end), await page.change({ [end]: value }) ? "" : `${page.refusal} It is not used.`);
    const other = LIMITS.find((one) => one !== end);
    if (!refused($(end)) && refused($(other))) await takeLimit(page, other); // it may have been refused because of this one
  }
  drawFill(page.state);
}
