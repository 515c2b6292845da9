// The second step: how the known values came about, on which every guarantee rests. Each answer has a picture.

import { read } from "/page/api.js";
import { $, drawing, fill, make, refuse, refused } from "/page/dom.js";
import { number, typed, words as plain } from "/page/locale.js";
import { arrows, question, redraw } from "/page/table.js";

const LIMITS = ["minimum", "maximum"];
const [ACROSS, DOWN] = [9, 4];
const LOTS = [1, 5, 8, 12, 15, 20, 22, 27, 30, 34];
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

export async function drawWays(page) {
  const { table } = page.state;
  const key = JSON.stringify([table, page.state.choices.target, page.state.choices.task, page.state.choices.missing]); // a target may be read in another way
  if (kinds?.key !== key) {
    $("to-fill").hidden = true; // its place is known when all above it is drawn
    try {
      const { columns } = await read("/open/preview");
      if (page.state.table !== table) return;
      kinds = { key, columns };
    } catch (error) {
      $("labels-lead").textContent = error.message; // in its place, and to stay: nothing else is drawn here
      $("labels-lead").classList.add("bad");
      fill($("ways"));
      return;
    }
  }
  $("labels-lead").classList.remove("bad");
  const { state } = page, { choices } = state;
  $("labels-lead").textContent = `Some cells of “${choices.target}” have a value and others not. What decided which? What can be guaranteed depends on this alone.`;
  const own = choices.labels ? [make("p", { class: "note", text: "Values from the labelling page take part, and decide this: rows that were drawn there at random count as drawn, if they are enough; rows that you or the program picked were not chosen by chance." }), ...(state.since ? [make("p", { class: "note", id: "since", text: plain(state.since) })] : [])] : [];
  redraw($("ways"), ...own, ...state.ways.map((card, place) => {
    const { way, title, words } = card;
    const chosen = state.way === way;
    const button = make("button", { type: "button", role: "radio", "aria-checked": String(chosen), disabled: Boolean(choices.labels) && !chosen, tabindex: chosen || (!state.way && place === 0) ? 0 : -1, onclick: () => page.change({ way, column: null }) },
      picture(way), make("strong", { text: title }), make("span", { class: "fine", text: words }));
    return make("div", { class: "way-box" }, button, chosen && card.column && !choices.labels ? columnOf(page, card) : null);
  }));
  $("confidence").value = String(choices.confidence);
  $("limits").hidden = choices.task === "classification" || kinds.columns.find(({ name }) => name === choices.target)?.kind !== "number";
  const of = JSON.stringify([table, choices.target]);
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
  $("fill").disabled = !ready(state) || (!$("limits").hidden && LIMITS.some((end) => refused($(end))));
}

// Whether it was said how the values came about, and by which column.
function ready({ way, ways, choices }) {
  const card = ways.find((one) => one.way === way);
  return Boolean(card) && (!card.column || Boolean(choices.column) || choices.labels > 0);
}

function columnOf(page, card) {
  const { choices } = page.state;
  const fits = ({ kind }) => (card.kinds.includes(kind) ? card.kinds.indexOf(kind) : card.kinds.length);
  const some = kinds.columns.filter(({ name, kind }) => name !== choices.target && kind !== "empty").sort((one, other) => fits(one) - fits(other));
  const take = async () => { if (!(await page.change({ column: select.value || null }))) select.value = choices.column ?? ""; };
  const select = make("select", { "aria-label": card.column, onchange: take },
    make("option", { value: "", text: "choose a column …" }), ...some.map(({ name }) => make("option", { value: name, text: name, selected: name === choices.column })));
  return make("label", { class: "of-column" }, make("span", { class: "fine", text: card.column }), select);
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
    put($("outlook"), make("p", { class: "fine", text: choices.way ? "Choose the column that says so." : "Choose one of these, and read here what will and what will not be guaranteed." }));
  } else {
    put($("outlook"), make("p", { class: "fine", text: "…" }));
    read("/open/outlook").then((found) => { if (asked === key) showOutlook(page, found); }, (error) => { put($("outlook"), make("p", { class: "bad", text: asks ? WAITS : error.message })); });
  }
  put($("test"), make("p", { class: "fine", text: "Rows with and without a value are compared …" }));
  read("/open/test").then((found) => { if (asked === key) showTest(found); }, (error) => { put($("test"), make("p", { class: "fine", text: asks ? WAITS : error.message })); });
}

function showTest({ differ, perhaps, tested, columns, compared }) {
  const where = columns.length ? `, most of all in ${columns.map((name) => `“${name}”`).join(", ")}` : "";
  const said = !tested ? "There are too few rows to see anything." : differ ? `Rows with and without a value differ${where}. That is an alarm, which chance alone raises in 1 of 100 tables. Unless it did, more than chance chose, or a column came about differently with and without a value: choose that one in the table, and ignore it.`
    : perhaps ? `There are signs that rows with and without a value differ${where}, but they are weak.` : "Rows with and without a value look alike. That fits with chance, and does not prove it.";
  const seen = `${number(compared[0])} rows with a value were compared with ${number(compared[1])} without.${tested && !differ ? " Small differences can be missed." : ""}`;
  put($("test"), make("p", { class: `headline ${differ ? "bad" : ""}`, text: said }), make("p", { class: "fine", text: seen }));
}

function showOutlook(page, found) {
  const list = (title, look, lines) => (lines.length ? [make("h3", { text: title }), make("ul", { class: look }, ...lines.map((text) => make("li", { text: plain(text) })))] : []);
  const offer = found.draw ? [make("h3", { text: "To be sure" }), make("p", { class: "fine", text: "Label twenty or more rows that this page draws at random. Then the guarantee holds however all other values came about." }),
    make("button", { type: "button", class: "plain", text: "Label rows drawn at random", onclick: () => label(page, true) })] : [];
  put($("outlook"), make("p", { class: `headline ${found.will.length ? "" : "bad"}`, text: capital(plain(found.headline)) }), ...list(found.roughly ? "Roughly guaranteed" : "Guaranteed", "yes", found.will), ...list("Not guaranteed", "no", found.will_not), ...offer);
  page.say(`${capital(plain(found.headline))}.`);
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// From here, or from the answers, to the labelling page; its link leads back.
export async function label(page, draw) {
  page.say("Opening the labelling page");
  document.body.classList.add("waiting");
  if (await page.act("label", { draw })) window.location.assign("/label");
  document.body.classList.remove("waiting");
}

export function waysBegin(page) {
  arrows($("ways"));
  $("confidence").addEventListener("change", async () => { if (!(await page.change({ confidence: Number($("confidence").value) }))) $("confidence").value = String(page.state.choices.confidence); });
  for (const end of LIMITS) $(end).addEventListener("change", () => takeLimit(page, end));
  $("fill").addEventListener("click", async () => {
    await page.settled(); // a number that was typed just before
    if (!$("fill").disabled && await page.act("fill")) page.go("answers");
  });
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
