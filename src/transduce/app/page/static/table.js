// The first step: which table, how each of its columns was read, and which one is to be filled.

import { ofTable, read, tab, upload } from "/page/api.js";
import { $, drawing, fill, make, toast } from "/page/dom.js";
import { drawKept } from "/page/kept.js";
import { openLayout } from "/page/layout.js";
import { askCorrected } from "/page/take.js";
import { bytes, count, day, number, text, words } from "/page/locale.js";

const KINDS = {
  number: "number", category: "category", date: "date", text: "text", picture: "picture", vector: "vector",
  identifier: "name of the row", constant: "always the same", empty: "empty", lists: "lists",
};
const WORDS = {
  number: "It is read as numbers.", category: "It is read as categories.", date: "It is read as dates.",
  text: "It is read as text.", picture: "It is read as pictures.", vector: "It is read as vectors of numbers.",
  identifier: "Every row has its own value, so nothing can be learned from it.",
  constant: "All values are the same, so nothing can be learned from it.", empty: "All cells are empty.", lists: "The lists have different lengths and are left out.",
};
const TASKS = { classification: "Its values are classes, such as names, codes or grades", regression: "Its values are numbers" };
const MOST_COUNTED = 2000;
const LARGE = 1_000_000; // bytes of a table whose first rows are shown before it is read
let seen = null; // what the preview that is shown was made of
let found = null;

// What is drawn again keeps the focus at its place, so that keys go on where they were, and waits while it is pressed.
export function redraw(element, ...children) {
  clearTimeout(element.later);
  if (element.matches(":active")) {
    element.later = setTimeout(() => redraw(element, ...children), 50);
    return;
  }
  const all = () => [...element.querySelectorAll("button, select, input, a")];
  const place = element.contains(document.activeElement) ? all().indexOf(document.activeElement) : -1;
  fill(element, ...children);
  if (place >= 0) all()[place]?.focus({ preventScroll: true });
}

// ------------------------------------------------------------------------------------------------ all tables

export function drawTables(page) {
  seen = null;
  const { tables, folder, pictures } = page.state;
  const listed = tables.some(({ name }) => name.startsWith("pictures"));
  redraw($("pictures"), ...(pictures && !listed ? [pictureCard(page, pictures)] : []));
  $("example").hidden = tables.length > 0;
  $("tables-in").textContent = tables.length ? `Tables in the folder “${folder}”` : `There is no table in the folder “${folder}” yet.`;
  redraw($("tables"), ...tables.map((table) => make("li", {},
    make("button", { type: "button", onclick: () => page.act("open", { name: table.name }) },
      make("strong", { text: table.name }), table.begun ? make("span", { class: "tag", text: "go on" }) : null,
      make("span", { class: "fine", text: `${bytes(table.bytes)} · ${day(table.changed)}` })))));
}

// A folder of pictures without a table is one all the same: a row for each picture.
function pictureCard(page, pictures) {
  const words = pictures >= MOST_COUNTED ? `more than ${count(MOST_COUNTED - 1)} pictures` : pictures === 1 ? "one picture" : `${count(pictures)} pictures`;
  return make("button", { type: "button", class: "add", onclick: () => page.act("pictures") }, make("strong", { text: `Make a table of ${words}` }),
    make("span", { class: "fine", text: "One row for each picture in this folder, in a new file pictures.csv. Then add a column, label some of them, and the others are filled." }));
}

async function drop(page, file) {
  try {
    page.say(`Copying ${file.name}`);
    $("drop").classList.add("busy");
    const { name } = await upload(`/open/drop?name=${encodeURIComponent(file.name)}`, file);
    const begun = page.state.tables.find((table) => table.name === file.name)?.begun;
    if (name !== file.name && begun) askCorrected(page, name, file.name);
    else {
      if (name !== file.name) toast(`There was a file “${file.name}” already: this one is called “${name}”.`, "note", 8);
      await page.act("open", { name });
    }
  } catch (error) {
    page.failed(error);
  } finally {
    $("drop").classList.remove("busy");
    $("file").value = "";
  }
}

// ------------------------------------------------------------------------------------------------ one table

export async function drawTable(page) {
  const { state } = page, { choices } = state;
  const key = JSON.stringify([state.table, state.tables.find(({ name }) => name === state.table)?.changed, choices.text, choices.number, choices.missing, choices.keep, choices.same, choices.case_sensitive, choices.ignore, choices.id, choices.sheet, choices.header, choices.rows, choices.decimal, choices.added, choices.labels, choices.target, choices.besides, choices.task]);
  if (key !== seen) {
    seen = key;
    if (found?.table !== state.table) wait(state, true);
    try {
      const preview = await read("/open/preview");
      if (seen !== key) return;
      found = { table: state.table, ...preview };
    } catch (error) {
      if (seen !== key) return;
      wait(state); // nothing that was seen before is so any more
      seen = null; // so that it is asked for again
      showSheets(page);
      $("table-lead").textContent = error.message;
      $("table-lead").classList.add("bad");
      $("layout").hidden = false; // perhaps the table begins elsewhere
      drawKept(page);
      return;
    }
  }
  $("table-lead").classList.remove("bad");
  if (found?.table === state.table) drawPreview(page);
}

// A sheet that holds no table can be left for another one.
async function showSheets(page) {
  const { table, choices } = page.state;
  if (!choices.sheet) return;
  const { sheets, sheets_are } = await read("/open/sheets").catch(() => ({ sheets: [] }));
  if (!found && page.state.table === table) drawSheets(sheets, sheets_are, choices);
}

function drawSheets(sheets, word, choices) {
  $("sheet-box").hidden = !sheets.length;
  $("sheet-word").textContent = word;
  fill($("sheet"), ...sheets.map((name) => make("option", { value: name, text: name, selected: name === choices.sheet })));
}

function wait({ table, tables }, head = false) {
  found = null;
  const { bytes: size } = tables.find(({ name }) => name === table) ?? { bytes: 0 };
  if (head && size > LARGE) showHead(table, seen);
  $("table-lead").textContent = "Reading the table …";
  fill($("targets"));
  $("to-ways").hidden = true; // its place is known when the columns are
  fill($("unlabelled"));
  fill($("asks"));
  $("besides").hidden = $("layout").hidden = $("sheet-box").hidden = true;
  fill($("question"));
  $("unlabelled-title").hidden = true;
  fill($("preview"));
  $("table-fine").textContent = "";
}

// The first rows of a large table at once, as they are written; the rest comes when all of it is read.
async function showHead(table, key) {
  const head = await read("/open/head").catch(() => null);
  if (found || seen !== key || !head?.names.length || $("table-lead").classList.contains("bad")) return;
  $("table-fine").textContent = `The first rows of “${table}”. How its columns are read is shown once the whole table has been read.`;
  fill($("preview"), make("thead", {}, make("tr", {}, ...head.names.map((name) => make("th", { scope: "col", class: "plain-head", text: name })))),
    make("tbody", {}, ...head.rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", { text: text(cell) }))))));
}

function drawPreview(page) {
  const { choices } = page.state;
  const { columns, rows, targets } = found;
  const named = new Map(columns.map((column) => [column.name, column]));
  const size = `${rows === 1 ? "1 row" : `${count(rows)} rows`}, ${found.n_columns === 1 ? "1 column" : `${count(found.n_columns)} columns`}.`;
  $("table-lead").textContent = rows ? `${size} ${aboutHoles()}` : `There is no row below the names of the ${found.n_columns === 1 ? "column" : "columns"}. If they stand elsewhere, say so below.`;
  redraw($("targets"), ...targets.map((name, place) => {
    const column = named.get(name), chosen = choices.target === name;
    const button = make("button", { type: "button", role: "radio", "aria-checked": String(chosen), tabindex: chosen || (!choices.target && place === 0) ? 0 : -1, onclick: () => page.change({ target: name }) },
      make("strong", { text: name }), make("span", { class: "fine", text: `${count(column.empty)} of ${count(rows)} empty · ${kind(column)}` }), meter(column.empty / rows));
    return button;
  }));
  drawUnlabelled(page);
  const asks = named.get(choices.target)?.ask;
  drawBesides(page);
  const along = choices.besides.flatMap((name) => named.get(name)?.ask ?? []);
  redraw($("question"), ...[asks, ...along].filter(Boolean).map((one) => question(page, one)), ...askMarks(page, named.get(choices.target)));
  redraw($("asks"), ...askSign(page), ...questions(page));
  const chosen = choices.target && !found.without_label.includes(choices.target);
  $("to-ways").hidden = !targets.length;
  $("to-labels").disabled = !chosen;
  $("why-not").textContent = chosen ? "" : "Choose the column first.";
  const parts = found.in_parts ? " The table needs more memory than there is free, so it is filled part by part, into a folder beside it." : "";
  const part = found.looked_at < rows ? `${parts} How columns were read was told by ${count(found.looked_at)} rows.` : "";
  const more = found.n_columns > columns.length ? ` Only the first ${count(columns.length)} columns are listed.` : "";
  $("table-fine").textContent = `Choose a column to see more, or to have it read in another way.${part}${more} ${found.notes.map(words).join(" ")}`;
  $("layout").hidden = !found.has_layout;
  drawKept(page);
  drawSheets(found.sheets, found.sheets_are, choices);
  drawFirst(page);
}

// Several columns at once, such as all lab values: each is filled in the same way, and none from another.
function drawBesides(page) {
  const { choices } = page.state, others = found.targets.filter((name) => name !== choices.target);
  $("besides").hidden = !choices.target || !found.targets.includes(choices.target) || !others.length || found.in_parts;
  if ($("besides").hidden) return;
  const all = others.every((name) => choices.besides.includes(name));
  const toggle = (name) => page.change(({ besides }) => ({ besides: toggled(besides, name) }));
  redraw($("besides-list"), ...others.map((name) => option(name, choices.besides.includes(name), () => toggle(name))),
    ...(others.length > 1 ? [make("button", { type: "button", class: "plain", text: all ? "None of them" : others.length === 2 ? "Both of them" : `All ${count(others.length)} of them`, onclick: () => page.change({ besides: all ? [] : others }) })] : []));
}

// A list with a value, or without it if that is in it.
const toggled = (list, value) => (list.includes(value) ? list.filter((one) => one !== value) : [...list, value]);

// What the lead says of empty cells: some, none, or a column without any value.
function aboutHoles() {
  const { targets, without_label: bare } = found;
  const partly = targets.length === 1 ? "One column has empty cells." : `${count(targets.length)} columns have empty cells.`;
  const none = bare.length === 1 ? `“${bare[0]}” has no value yet in the file: label some rows first.` : `${count(bare.length)} columns have no value yet: label some rows of one first.`;
  if (targets.length) return partly;
  if (bare.length) return none;
  return "No cell is empty. If a value such as -999 stands for an empty cell, choose its column below and say so; or add a column to label.";
}

// Columns without any value, and one that is yet to be added: somebody has to begin.
function drawUnlabelled(page) {
  const cards = found.without_label.map((name) => {
    const begun = found.begun.includes(name);
    const start = () => (begun ? beginLabelling(page, { target: name, classes: null }) : openBegin(page, name));
    return make("button", { type: "button", onclick: start }, make("strong", { text: name }),
      make("span", { class: "fine", text: begun ? `${count(found.rows)} rows, labelling has begun` : `${count(found.rows)} rows, no value yet` }),
      make("span", { class: "link", text: begun ? "Go on labelling" : "Label this column" }));
  });
  const add = make("button", { type: "button", class: "add", onclick: () => openBegin(page, null) }, make("strong", { text: "Add a column to label" }),
    make("span", { class: "fine", text: "Relevant or not, a grade, a measurement: you label some rows, and the others are filled from them." }));
  const none = found.in_parts || !found.rows; // nobody can label
  $("unlabelled-title").hidden = none;
  redraw($("unlabelled"), ...(none ? [] : [...cards, add]));
}

function openBegin(page, name) {
  $("begin-title").textContent = name === null ? "Add a column to label" : `Label “${name}”`;
  $("begin-name-box").hidden = name !== null;
  $("begin-name").value = name ?? "";
  $("begin-refused").textContent = "";
  if (!$("begin-classes").value.trim()) $("begin-classes").value = "yes\nno";
  $("begin-form").onsubmit = (event) => {
    event.preventDefault();
    const classes = $("begin-numbers-kind").checked ? [] : $("begin-classes").value.split("\n");
    beginLabelling(page, { target: $("begin-name").value, classes, added: name === null, predictions: $("begin-check").value || null });
  };
  const others = found.columns.filter((column) => column.name !== name && !found.without_label.includes(column.name));
  fill($("begin-check"), make("option", { value: "", text: "none" }), ...others.map((column) => make("option", { value: column.name, text: column.name })));
  showClassesBox();
  $("begin-dialog").showModal();
}

// Predicted classes are classes without being typed.
function showClassesBox() {
  const numbers = $("begin-numbers-kind").checked;
  $("begin-check-box").hidden = numbers;
  if (numbers) $("begin-check").value = "";
  $("begin-classes-box").hidden = numbers || $("begin-check").value !== "";
}

async function beginLabelling(page, body) {
  document.body.classList.add("waiting");
  if (await page.act("begin", body)) tab.toLabelling();
  else $("begin-refused").textContent = page.refusal;
  document.body.classList.remove("waiting");
}

const MOST_ASKED = 6; // questions about spellings and units that are shown at once

// Spellings that may mean the same, and numbers with a unit among bare ones: a click settles each.
function questions(page) {
  const open = found.columns.filter((column) => !column.ignored).flatMap((column) => [...alikeOf(page, column).map((group) => askAlike(page, column, group)), ...askUnit(page, column)]);
  const more = open.length > MOST_ASKED ? [make("p", { class: "fine", text: `${count(open.length - MOST_ASKED)} more questions come when these are answered.` })] : [];
  return [...open.slice(0, MOST_ASKED), ...more];
}

const alikeOf = (page, column) => (column.alike ?? []).filter((group) => !page.state.choices.apart.some(([name, ...texts]) => name === column.name && JSON.stringify(texts) === JSON.stringify(group.map(([text]) => text))));

const asking = (words, ...buttons) => make("div", { class: "question", role: "group", "aria-label": "A question" }, make("p", {}, ...words), make("div", { class: "row" }, ...buttons));
const answer = (text, onclick, look = "plain") => make("button", { type: "button", class: look, text, onclick });

function askAlike(page, { name }, group, after = () => {}) {
  const texts = group.map(([text]) => text);
  const listed = group.map(([text, times]) => `“${text}” (${count(times)})`).join(", ");
  const call = async (chosen) => { await page.change(({ same }) => ({ same: [...same, [name, chosen, ...texts.filter((text) => text !== chosen)]] })); after(); };
  return asking([make("strong", { text: `Is this the same in “${name}”?` }), ` ${listed}`],
    ...texts.slice(0, 3).map((text, place) => answer(`Yes, call it “${text}”`, () => call(text), place ? "plain" : "primary")),
    answer("No, these differ", async () => { await page.change(({ apart }) => ({ apart: [...apart, [name, ...texts]] })); after(); }));
}

// Numbers such as 4,729, of which nothing in the table says what the comma is.
function askSign(page) {
  if (!found.two_ways) return [];
  const { column, text, point, comma } = found.two_ways;
  return [asking([make("strong", { text: `How large is “${text}” in “${column}”?` }), " Nothing else in the table shows whether its comma stands before decimals or between thousands."],
    answer(`Decimals: ${number(comma)}`, () => page.change({ decimal: "comma" }), "primary"),
    answer(`Thousands: ${number(point)}`, () => page.change({ decimal: "point" })))];
}

// Numbers such as -999 among the known values: they are taken as empty, unless somebody says otherwise.
function askMarks(page, column) {
  const { missing, keep, task } = page.state.choices;
  if (!column || task === "classification") return [];
  const open = column.marks.filter((mark) => !missing.includes(mark) && !keep.includes(mark));
  const times = new Map(column.values);
  return open.map((mark) => asking([make("strong", { text: `Does “${mark}” stand for an empty cell in “${column.name}”?` }), ` ${times.get(mark) > 1 ? `${count(times.get(mark))} cells hold it` : "One cell holds it"}, far from all other values.`],
    answer(times.get(mark) > 1 ? `Yes, these ${count(times.get(mark))} cells are empty` : "Yes, this cell is empty", () => page.change((now) => ({ missing: [...now.missing, mark] })), "primary"),
    answer("No, it is a number", () => page.change((now) => ({ keep: [...now.keep, mark] })))));
}

function askUnit(page, column) {
  const { number: read, apart, target } = page.state.choices, unit = column.with_unit;
  const settled = read.includes(column.name) || column.name === target || column.ask; // the target has a question of its own
  if (!unit || settled || apart.some(([name, mark]) => name === column.name && mark === "unit")) return [];
  const shown = unit.words.slice(0, 3).map((word) => `“${word}”`).join(", ");
  return [asking([make("strong", { text: `Does the number count in these cells of “${column.name}”?` }), ` ${count(unit.cells)} of them ${unit.cells === 1 ? "has" : "have"} more than a number: ${shown}.`],
    answer(unit.unit ? `Yes, all are in ${unit.unit}` : "Yes, take the number", () => page.change((choices) => ({ number: [...choices.number, column.name] })), "primary"),
    answer("No, these cells are empty", () => page.change((choices) => ({ apart: [...choices.apart, [column.name, "unit"]] }))))];
}

// Cells of the column to be filled that are not what the others are: one click says what they are.
export function question(page, { column, words: cells, listed, cells: times, labels, what, with_unit: unit }) {
  const { choices } = page.state;
  const named = listed.map(([word, often]) => (often > 1 ? `“${word}” (${count(often)})` : `“${word}”`));
  const more = cells.length > listed.length ? ` and ${count(cells.length - listed.length)} others` : "";
  const said = `${count(times)} of the ${count(labels)} values of “${column}” ${times === 1 ? "is" : "are"} not ${what}: ${named.join(", ")}${more}.`;
  const empty = () => page.change(({ missing }) => ({ missing: [...new Set([...missing, ...cells])] }));
  const numbers = () => page.change(({ number: read, missing }) => ({ number: [...read, column], missing: [...new Set([...missing, ...unit.others])] }));
  const rest = unit?.others.length ? ", the others are empty" : "";
  const take = unit && what === "numbers" ? [answer(unit.unit ? `Take the numbers: all are in ${unit.unit}${rest}` : `Take the number in each${rest}`, numbers, "primary")] : [];
  return make("div", { class: "question", role: "group", "aria-label": "A question" },
    make("p", {}, make("strong", { text: times === 1 ? "What is this cell?" : "What are these cells?" }), ` ${said}`),
    make("div", { class: "row" }, ...take,
      make("button", { type: "button", class: take.length ? "plain" : "primary", text: times === 1 ? "Treat this cell as empty" : `Treat these ${count(times)} cells as empty`, onclick: empty }),
      column === choices.target ? make("button", { type: "button", class: "plain", text: `All values are names, not ${what}`, onclick: () => page.change({ task: "classification" }) }) : null),
    make("p", { class: "fine", text: "Or correct them in the file: this page reads it again." }));
}

const kind = (column) => `${KINDS[column.kind] ?? column.kind}${column.unit ? ` in ${column.unit}` : ""}`;

function meter(share) {
  const bar = make("i", {}), box = make("span", { class: "meter", "aria-hidden": "true" }, bar);
  bar.style.width = `${100 * (1 - share)}%`;
  return box;
}

function drawFirst(page) {
  const { choices } = page.state;
  const heads = found.columns.map((column) => {
    const off = column.ignored, aim = column.name === choices.target;
    const words = aim || choices.besides.includes(column.name) ? "to be filled" : off ? "ignored" : choices.predictions.includes(column.name) ? "predictions" : kind(column);
    return make("th", { scope: "col", class: `${off ? "off" : ""} ${aim ? "aim" : ""}` },
      make("button", { type: "button", onclick: () => openColumn(page, column.name) },
        make("span", { class: "name", text: column.name }), make("span", { class: "fine", text: words }),
        histogram(column),
        column.empty ? make("span", { class: "fine", text: `${count(column.empty)} empty` }) : null,
        column.notes.length ? make("span", { class: "odd", text: "noted" }) : null));
  });
  const lines = found.first.map((cells, row) => make("tr", {}, make("th", { scope: "row", class: "number", text: number(found.lines[row]) }),
    ...cells.map((cell, place) => make("td", { class: `${cell[0]} ${found.columns[place].ignored ? "off" : ""} ${found.columns[place].name === choices.target ? "aim" : ""}` }, showCell(cell, row)))));
  redraw($("preview"), make("thead", {}, make("tr", {}, make("td", {}), ...heads)), make("tbody", {}, ...lines));
}

// Two dates as short as they can be told apart: years, or days of one year.
function daysBetween(ends) {
  const days = ends.map((end) => new Date(1000 * end)), years = days.map((end) => end.getUTCFullYear());
  return years[0] === years[1] ? days.map((end) => end.toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" })) : years.map(String);
}

// How the values of a column are spread, or how frequent its categories are; the ends in words for screen readers.
function histogram({ shape }) {
  if (!shape) return null;
  const most = Math.max(...shape.counts, 1), { length } = shape.counts, wide = 84, high = 24, step = wide / length;
  const ends = shape.of === "texts" ? shape.ends : shape.of === "dates" ? daysBetween(shape.ends) : shape.ends.map((end) => number(Number(end.toPrecision(4))));
  const said = shape.of === "texts" ? `Most frequent: ${ends[0]}` : `From ${ends[0]} to ${ends[1]}`;
  const bars = shape.counts.map((times, place) => {
    const tall = times ? Math.max((high * times) / most, 1) : 0;
    return drawing("rect", { x: step * place + 0.5, y: high - tall, width: Math.max(step - 1, 1), height: tall });
  });
  const picture = drawing("svg", { viewBox: `0 0 ${wide} ${high}`, class: `shape ${shape.of}`, role: "img", "aria-label": said }, drawing("title", { text: said }), ...bars);
  return make("span", { class: "shape-box" }, picture, shape.of === "texts" ? null : make("span", { class: "shape-ends", "aria-hidden": "true" }, make("span", { text: ends[0] }), make("span", { text: ends[1] })));
}

// A cell is text, a number in the browser's language, or a picture from below the table's folder.
export function showCell([of, value, column], row) {
  if (of === "missing") return make("span", { class: "empty", text: "empty" });
  if (of === "image") {
    const image = make("img", { src: ofTable(`/open/picture/${row}/${column}`), alt: "", loading: "lazy", width: 44, height: 44 });
    const shown = make("span", { class: "pictured", title: value }, image, make("span", { class: "fine", text: value.split("/").at(-1) }));
    image.addEventListener("error", () => shown.replaceWith(make("span", { text: value }))); // it is no picture that is shown
    return shown;
  }
  return make("span", { text: typeof value === "number" ? number(value) : text(value) });
}

// ------------------------------------------------------------------------------------------------ one column

function openColumn(page, name) {
  drawColumn(page, name);
  const place = found.columns.findIndex((one) => one.name === name);
  $("column-dialog").addEventListener("close", () => $("preview").querySelectorAll("thead button")[place]?.focus(), { once: true });
  $("column-dialog").showModal();
}

function drawColumn(page, name) {
  const { choices } = page.state, column = found.columns.find((one) => one.name === name);
  const has = (list) => choices[list].includes(name);
  const toggle = async (list, value) => {
    const rival = { text: "number", number: "text" }[list]; // a column is read in one way
    const done = await page.change((now) => ({ [list]: toggled(now[list], value), ...(rival ? { [rival]: now[rival].filter((one) => one !== value) } : {}) }));
    await (done ? again(page, name) : drawColumn(page, name)); // a box that was refused is not ticked
    return done;
  };
  $("column-title").textContent = name;
  const aim = choices.target === name, told = aim && { classification: "It is read as classes.", regression: "It is read as numbers." }[choices.task];
  const read_as = make("p", { text: `${told || (has("text") ? WORDS.text : WORDS[column.kind] ?? column.treatment)}${column.unit ? ` The unit is ${column.unit}.` : ""} ${column.empty ? `${count(column.empty)} of ${count(found.rows)} cells are empty${column.empty > column.n_blank ? ", or read as such" : ""}.` : "No cell is empty."}` });
  const notes = column.notes.length ? [make("h3", { text: "What was noted" }), make("ul", { class: "notes" }, ...column.notes.map((note) => make("li", { text: words(note) })))] : [];
  const any_words = "Read the number in each cell; cells without a number then count as empty";
  const switches = aim ? [make("p", { class: "fine", text: "This is the column to be filled." }),
    ...(has("number") ? [option(any_words, true, () => toggle("number", name))] : []),
    ...Object.entries(TASKS).map(([task, said]) => option(said, choices.task === task, async () => { await (await page.change({ task: choices.task === task ? "auto" : task }) ? again(page, name) : drawColumn(page, name)); }))] : [
    option("Ignore this column", column.ignored, () => toggle("ignore", name)),
    option("Read it as text", has("text"), () => toggle("text", name)),
    ...(column.in_text ? [option(any_words, has("number"), () => toggle("number", name))] : []),
    ...(choices.target ? [option(`It holds predictions made elsewhere of “${choices.target}”, such as by a language model, or the probability of one class`, has("predictions"), () => toggle("predictions", name))] : []),
    option("It names the rows", choices.id === name, async () => { await (await page.change({ id: choices.id === name ? null : name }) ? again(page, name) : drawColumn(page, name)); }),
  ];
  const keep = (value) => (column.marks.includes(value) || choices.keep.includes(value)
    ? make("button", { type: "button", class: "plain", "aria-pressed": String(choices.keep.includes(value)), onclick: () => toggle("keep", value), text: choices.keep.includes(value) ? "is a number ✓" : "is a number" }) : null);
  const values = column.values.map(([value, times]) => make("li", {}, make("span", { class: "value", text: value }), make("span", { class: "fine", text: `${count(times)} ×` }), keep(value),
    make("button", { type: "button", class: "plain", "aria-pressed": String(choices.missing.includes(value)), onclick: () => toggle("missing", value), text: choices.missing.includes(value) ? "is empty ✓" : "means empty" })));
  if (column.kind === "category" || choices.case_sensitive) switches.push(option("Capitals make a difference, in every column", choices.case_sensitive, async () => { if (await page.change({ case_sensitive: !choices.case_sensitive })) await again(page, name); }));
  const merged = choices.same.filter(([of]) => of === name).map((group) => make("li", {}, make("span", { class: "value", text: `${group.slice(2).map((text) => `“${text}”`).join(", ")} → “${group[1]}”` }),
    make("button", { type: "button", class: "plain", text: "Take apart", onclick: async () => { if (await page.change(({ same }) => ({ same: same.filter((one) => JSON.stringify(one) !== JSON.stringify(group)) }))) await again(page, name); } })));
  const alike = alikeOf(page, column).map((group) => askAlike(page, column, group, () => again(page, name)));
  const spelled = merged.length + alike.length ? [make("h3", { text: "May mean the same" }), ...alike, make("ul", { class: "values" }, ...merged)] : [];
  const other = make("input", { id: "missing-value", autocomplete: "off", maxlength: 80 });
  const takeMissing = async () => { if (other.value.trim() && !(await toggle("missing", other.value.trim()))) toast(`“${other.value.trim()}” is not used. ${page.refusal}`); };
  const form = make("form", { class: "inline-form" }, make("label", { for: "missing-value", text: "Another value that means an empty cell" }), other, make("button", { type: "submit", text: "Add" }));
  form.addEventListener("submit", (event) => { event.preventDefault(); takeMissing(); });
  redraw($("column-body"), read_as, ...notes, make("h3", { text: "Change it" }), ...switches, ...spelled,
    make("h3", { text: "Values in it" }), make("p", { class: "fine", text: "Such a value counts as empty in every column." }), make("ul", { class: "values" }, ...values), form);
}

function option(words, on, run) {
  const box = make("input", { type: "checkbox", onchange: run });
  box.checked = on;
  return make("label", { class: "check" }, box, make("span", { text: words }));
}

// Something that the columns tell has changed on the disk, though no choice has.
export function lookAgain(page) {
  seen = null;
  drawTable(page);
}

async function again(page, name) {
  await drawTable(page);
  if (found.columns.some((one) => one.name === name)) drawColumn(page, name);
}

// ------------------------------------------------------------------------------------------------ beginning

// In a group of choices the arrows move, and space or enter chooses.
export function arrows(group) {
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || event.target.role !== "radio") return;
    const buttons = [...group.querySelectorAll("[role=radio]:not(:disabled)")];
    buttons[(buttons.indexOf(event.target) + step + buttons.length) % buttons.length].focus();
    event.preventDefault();
  });
}

export function tableBegin(page) {
  $("file").addEventListener("change", () => { if ($("file").files[0]) drop(page, $("file").files[0]); });
  for (const kind of ["dragover", "dragenter"]) document.addEventListener(kind, (event) => { event.preventDefault(); $("drop").classList.add("over"); });
  document.addEventListener("dragleave", () => $("drop").classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    $("drop").classList.remove("over");
    const { files } = event.dataTransfer;
    if (files.length > 1) toast(`One table at a time: “${files[0].name}” is opened, the other ${count(files.length - 1)} are not.`, "note", 10);
    if (files[0]) drop(page, files[0]);
  });
  $("to-labels").addEventListener("click", () => page.go("labels"));
  $("sheet").addEventListener("change", async () => { if (!(await page.change({ sheet: $("sheet").value, header: null, rows: null, target: null }))) drawTable(page); });
  $("layout").addEventListener("click", () => openLayout(page));
  $("kept").addEventListener("toggle", () => drawKept(page));
  $("example").addEventListener("click", () => page.act("example"));
  arrows($("targets"));
  for (const id of ["begin-classes-kind", "begin-numbers-kind", "begin-check"]) $(id).addEventListener("change", showClassesBox);
}
