// The third step: a fill that runs, then its answers: cards, rows, a map, how good they are, and what to do next.

import { ofTable, read } from "/page/api.js";
import { $, colour, drawing, fill, make, toast } from "/page/dom.js";
import { count, number, percent, rough, seconds, text, typed, words } from "/page/locale.js";
import { oneTable } from "/page/coverage.js";
import { redraw, showCell } from "/page/table.js";
import { drawSuspects, openSuspects } from "/page/suspects.js";
import { listBox } from "/page/take.js";
import { label } from "/page/ways.js";
import { drawWhole } from "/page/whole.js";

const STAGES = {
  reading: "reading the table", columns: "reading the columns", exchangeability: "comparing rows with and without a value",
  answers: "learning", values: "predicting", "cross-validation": "checking the predictions", "how well it does": "checking the predictions",
  map: "drawing the map", estimates: "looking at the column as a whole", "what to label next": "what to label next", report: "writing the report", writing: "writing the table",
};
const STATUSES = { answered: "answered", below: "below a limit", above: "above a limit", unusual: "unusual", tied: "undecided", rejected: "too unsure", unreached: "no answer" };
const SHARES = [0.05, 0.1, 0.2];
const COLUMNS = {
  regression: { filled: "the known value, or the prediction", lower: "where the interval begins", upper: "where it ends", width_reduction: "how much the other columns helped: 0 if the interval is as wide as without them, 0.8 if it is 80 % narrower", status: "“given” where the value was known" },
  classification: { filled: "the known class, or the prediction", set: "all classes that are possible", probability: "how likely the prediction is right", confidence: "up to which level no other class is possible", status: "“given” where the class was known" },
};
const A_PAGE = 25;
const MOST_STEPS = 4; // of what to do next
const asked = { of: "0", start: 0, sort: "", down: "0", search: "", status: "", trust: "", tolerance: "", relative: "" };
let brief = null;
let ran = null; // the choices of the fill that is shown
let shown = null;
let latest = 0; // of the requests for a page of rows, and for one row
let latestRow = 0;
let allColumns = false; // although they do not fit beside each other

// ------------------------------------------------------------------------------------------------ a fill that runs

function drawRun(page) {
  const { run, filled, choices } = page.state;
  const changed = page.state.tables.find(({ name }) => name === page.state.table)?.changed;
  const other = brief !== null && Math.abs(brief.read_at / 1e9 - changed) > 0.01;
  const stale = filled !== null && brief && (other || !same(ran, choices));
  $("run").hidden = run.state === "none" || run.state === "done" ? !stale : false;
  if ($("run").hidden) return;
  const again = make("button", { type: "button", class: "primary", text: filled === null ? "Fill" : "Fill again", onclick: () => page.act("fill") });
  if (run.state === "running") {
    const past = run.forecast && run.seconds > run.forecast;
    const [column, place, columns] = run.column ?? ["", 1, 1];
    const which = columns > 1 ? `“${column}”, ${count(place)} of ${count(columns)} columns: ` : "";
    const about = run.forecast ? past ? "a little longer than forecast" : `about ${seconds(run.forecast - run.seconds)} left` : "estimating how long it takes";
    const named = Object.entries(run.stages ?? {}).filter(([name]) => STAGES[name]);
    const now = named.findLast(([, share]) => share < 1) ?? named.at(-1);
    const share = run.forecast ? Math.min(run.seconds / run.forecast, 0.97) : null;
    const bar = make("progress", { max: 1, value: share, "aria-label": "Progress of the fill" });
    redraw($("run-body"), make("h2", { text: "Filling …" }), bar, make("p", { text: `${which}${now ? STAGES[now[0]] : "starting"} · ${seconds(run.seconds)} so far, ${about}` }),
      make("p", { class: "fine", text: "You may close this page: the fill continues as long as the program runs." }),
      make("button", { type: "button", class: "plain", text: "Cancel", onclick: () => page.act("cancel") }));
    return;
  }
  const words = {
    failed: ["The table could not be filled", run.error], cancelled: ["Cancelled", "Nothing was changed."],
    interrupted: ["The program ended during the fill", "Nothing but time is lost."],
  }[run.state] ?? (other ? ["The table has changed", "These predictions were made before the table changed."] : choices.labels > ran.labels ? ["There are new known values", `Fill again to see what they change. ${page.state.since}`] : ["Your choices have changed", "These predictions were made before. Fill again to see the difference."]);
  redraw($("run-body"), make("h2", { text: words[0] }), make("p", { text: words[1] }), again);
}

const same = (one, other) => Object.keys(other).every((name) => name === "step" || JSON.stringify(one[name]) === JSON.stringify(other[name]));

// ------------------------------------------------------------------------------------------------ the answers

export async function drawAnswers(page) {
  const { state } = page;
  const filling = `${state.table} ${state.filled}`;
  if (!shown?.startsWith(`${filling} `)) asked.of = "0";
  const key = `${filling} ${asked.of}`;
  if (state.filled === null) {
    shown = brief = null;
    $("answers").hidden = true;
    $("answers-title").textContent = `Answers for “${state.choices.target}”`;
  } else if (key !== shown) {
    shown = key;
    try {
      const found = await read(`/open/answers?of=${asked.of}`);
      if (shown !== key) return;
      brief = found;
    } catch (error) {
      if (shown !== key) return;
      shown = null; // so that it is asked for again
      page.failed(error);
      return;
    }
    if (asked.of === "0") ran = brief.choices;
    const { trust } = asked; // who asked for this before the fill still does
    Object.assign(asked, { start: 0, sort: "", down: "0", search: "", status: "", trust, tolerance: String(brief.trust.usual ?? ""), relative: "" });
    $("search").value = "";
    drawBrief(page);
    page.say(brief.reply[0]);
    drawRows(page);
  }
  if (brief && asked.of === "0") drawSuspects(page, brief, openRow);
  if (brief) drawNextSteps(page); // one fewer when something was said of a suspect
  drawRun(page);
}

function drawBrief(page) {
  $("answers").hidden = false;
  const along = asked.of !== "0"; // labels and corrections are of the first column
  $("rows-panel").hidden = Boolean(brief.parts);
  $("label-panel").hidden = Boolean(brief.parts) || along;
  if (along) $("suspects").hidden = true;
  drawSeveral(page);
  document.querySelector(".beside").classList.toggle("alone", Boolean(brief.parts));
  $("answers-title").textContent = `Answers for “${brief.target}”`;
  $("reply").textContent = [brief.question, ...brief.reply].map(words).join(" ");
  const cards = brief.cards.map((card, place) => (place === 0 && worse() ? { ...card, tone: "fair", icon: "↓", small: `Worse than before. ${card.small}` } : card));
  fill($("cards"), ...cards.map((card) => make("article", { class: `card-box ${card.tone}` }, make("h3", { text: card.question }),
    make("p", { class: "large" }, make("span", { class: "icon", "aria-hidden": "true", text: card.icon }), make("span", { text: words(card.large) })), make("p", { class: "fine", text: words(card.small) }))));
  drawChanges();
  drawNextSteps(page);
  fill($("said-notes"), ...brief.notes.map((text) => make("li", { text: words(text) })));
  drawDownloads();
  drawQuality();
  const parts = oneTable(brief.one_table).slice(1);
  $("one-table-panel").hidden = !parts.length;
  fill($("one-table"), ...parts);
  drawMap();
  $("next").textContent = `Every label improves the predictions; labels of rows drawn at random make the guarantee exact. ${words(brief.next)}`;
  fill($("list-box"), ...listBox(page, { helpful: brief.advised.length }));
  const statuses = Object.keys(STATUSES).filter((status) => brief.counts[status]);
  fill($("status"), make("option", { value: "", text: "all rows" }), ...statuses.map((status) => make("option", { value: status, text: `${STATUSES[status]} (${count(brief.counts[status])})` })));
  $("status").hidden = statuses.length < 2;
  drawTrust(page);
}

// Several columns of one fill: a line each, of which one is shown below.
function drawSeveral(page) {
  const { several = [] } = brief;
  $("several").hidden = !several.length;
  const show = (place) => { asked.of = String(place); drawAnswers(page); };
  const head = ["column", "filled", "known", "how good", "guarantee"].map((text, place) => make("th", { scope: "col", class: place === 1 || place === 2 ? "number" : "", text }));
  const lines = several.map((line, place) => {
    const here = String(place) === asked.of;
    return make("tr", { class: here ? "aim" : "" }, make("th", { scope: "row" }, make("button", { type: "button", class: "link", "aria-current": String(here), text: line.name, onclick: () => show(place) })),
      make("td", { class: "number", text: count(line.filled) }), make("td", { class: "number", text: count(line.labelled) }), make("td", { text: words(line.good) }), make("td", { text: words(line.guarantee) }));
  });
  fill($("several-box"), make("table", { class: "rows" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines)));
}

// What a person would do now, the most urgent first.
function drawNextSteps(page) {
  const { guarantee, counts, trust } = brief, along = asked.of !== "0", steps = [], suspects = openSuspects(page, brief);
  const odd = ["unusual", "tied", "rejected", "unreached"].filter((status) => counts[status]);
  const step = (words, action, run) => steps.push([words, make("button", { type: "button", class: "link", text: action, onclick: run })]);
  const press = (id) => { $(id).click(); $("rows-panel").scrollIntoView({ block: "start" }); };
  if (suspects.length && !along) step(`${count(suspects.length)} known value${suspects.length === 1 ? " does" : "s do"} not fit ${suspects.length === 1 ? "its row" : "their rows"}, and may be ${suspects.length === 1 ? "a slip" : "slips"}.`, suspects.length === 1 ? "Look at it" : "Look at them", () => $("suspects").scrollIntoView({ block: "start" }));
  if (guarantee.kind !== "exact" && !brief.parts && !along) step(guarantee.kind === "none" ? "Nothing is guaranteed so far: take the values as suggestions." : "The guarantee is approximate: labels of rows drawn at random make it exact.", "Label rows drawn at random", () => label(page, true));
  if (brief.cards[0].tone === "bad") step("The predictions say little: columns that tell more, or more known values, would help.", "See how good they are", () => $("quality-panel").scrollIntoView({ block: "start" }));
  if (odd.length && !brief.parts) step(`${count(odd.reduce((sum, status) => sum + counts[status], 0))} rows need a second look: ${odd.map((status) => STATUSES[status]).join(", ")}.`, "See them", () => { $("status").value = odd[0]; $("status").dispatchEvent(new Event("change")); $("rows-panel").scrollIntoView({ block: "start" }); });
  if (!brief.parts) {
    if (trust.why_not) step("Look at the least certain predictions before you rely on them.", "Least certain first", () => press("ask-doubt"));
    else step("Choose how many of the rows that you use may be wrong.", "Pick the reliable rows", () => press("ask-trust"));
  }
  step("Use each prediction with its interval or set, not as if it were measured.", "Take the filled table with you", () => { $("downloads").scrollIntoView({ block: "center" }); $("downloads").querySelector("a").focus({ preventScroll: true }); });
  $("next-steps").hidden = !counts.unlabelled;
  redraw($("next-steps-list"), ...steps.slice(0, MOST_STEPS - 1).concat(steps.slice(MOST_STEPS - 1).slice(-1)).map(([said, button]) => make("li", {}, `${said} `, button)));
}

// Whether the answers at the same hidden values are clearly worse than those of the fill before.
const worse = () => Boolean(brief.changes?.quality?.worse);

// How good the answers were and are, at the same known values; those of other rows are not compared.
function qualityWords(quality) {
  if (!quality) return "";
  if (quality.other_shares) return "How good the predictions are cannot be compared: one fill took the known values to be chosen by their class, the other did not.";
  if (!quality.means) return `The quality was measured at ${count(quality.measured[0])} known values before and at ${count(quality.measured[1])} now, most of them others, so the two cannot be compared.`;
  const digits = decimalsOf(quality.means); // the same for both
  const good = (error) => (brief.task === "regression" ? `off by ${number(Number(error.toFixed(digits)), digits)} on average` : `${percent(1 - error)} right`);
  const [before, now] = quality.means.map(good);
  const verdict = quality.worse ? " That is worse. The new known values may be of harder rows, or some of them wrong." : quality.clear ? "" : " That is no clear difference.";
  return `At the same ${count(quality.rows)} known values, each hidden in turn: ${before} before, ${now} now.${verdict}`;
}

// How many decimals tell two sizes apart: three digits of the larger one, or as many as differ.
function decimalsOf(sizes) {
  const largest = Math.max(...sizes.map(Math.abs)), apart = Math.abs(sizes[0] - sizes[1]);
  const places = (size, digits) => (size > 0 ? Math.max(digits - 1 - Math.floor(Math.log10(size)), 0) : 0);
  return Math.min(Math.max(places(largest, 3), Math.min(places(apart, 1), places(largest, 5))), 9);
}

const moreKnown = (labels) => (labels === 0 ? "" : labels > 0 ? `${count(labels)} more known value${labels === 1 ? "" : "s"}.` : `${count(-labels)} fewer known value${labels === -1 ? "" : "s"}.`);

function drawChanges() {
  const { changes } = brief;
  $("changes").hidden = !changes;
  if (!changes) return;
  const [before, after] = changes.size, [old, now] = changes.guarantee.map(words);
  const narrower = before && after ? 1 - after / before : 0;
  const size = Math.abs(narrower) < 0.005 ? "Intervals are as wide as before." : `Intervals are ${percent(Math.abs(narrower))} ${narrower > 0 ? "narrower" : "wider"}.`;
  const lines = [[moreKnown(changes.labels)], [`${count(changes.changed)} of the ${count(changes.rows)} answers of both fills changed.`], [before && after ? size : "", narrower < -0.005 ? "worse" : ""],
    [old === now ? `The guarantee is as before: ${now}.` : `The guarantee was “${old}” and is now “${now}”.`],
    [qualityWords(changes.quality), worse() ? "worse" : ""]];
  $("changes").classList.toggle("worse", worse());
  fill($("changes-body"), make("ul", { class: "notes" }, ...lines.filter(([text]) => text).map(([text, look = ""]) => make("li", { text, class: look }))));
}

function drawDownloads() {
  const copy = make("button", { type: "button", class: "plain", text: "Copy", onclick: async () => { await navigator.clipboard.writeText(brief.again); toast("Copied.", "note", 2); } });
  const { parts } = brief;
  const where = parts ? [make("li", { text: `The filled table is in the folder “${parts.folder}” beside it, in ${parts.n_parts === 1 ? "one file" : `${count(parts.n_parts)} files`}.` })] : [];
  fill($("downloads"), ...where, ...[...(parts ? [] : [["filled", "The filled table"]]), ["report", "The report, to share"], ["numbers", "All numbers, as JSON"]].map(([name, words]) => make("li", {}, make("a", { href: ofTable(`/open/file/${name}?of=${asked.of}`), download: "", text: words }))),
    make("li", {}, make("details", {}, make("summary", { text: "What the new columns mean" }), make("dl", { class: "fine" }, ...Object.entries(COLUMNS[brief.task]).flatMap(([name, words]) => [make("dt", { text: `${brief.target}_${name}` }), make("dd", { text: words })])))),
    make("li", {}, make("a", { href: ofTable(`/open/file/show?of=${asked.of}`), target: "_blank", rel: "noopener", text: "Read the report now" })),
    make("li", { class: "again" }, make("span", { class: "fine", text: "The command that repeats it" }), make("code", { text: brief.again }), copy,
      brief.again.includes(".transduce/") ? make("span", { class: "fine", text: "It reads a copy of the table with your values, in the folder “.transduce”: keep that folder as long as you want to repeat it." }) : null));
}

// ------------------------------------------------------------------------------------------------ rows

// Rows one by one, or the column as a whole.
function showWhole(on) {
  $("ask-whole").setAttribute("aria-pressed", String(on));
  $("whole").hidden = !on;
  for (const id of ["row-filters", "row-box", "row-pages"]) $(id).hidden = on;
  if (!on) return;
  for (const id of ["ask-doubt", "ask-trust"]) $(id).setAttribute("aria-pressed", "false");
  $("trust").hidden = true;
  drawWhole(brief);
}

function drawTrust(page) {
  const on = asked.trust !== "";
  showWhole(false);
  $("ask-doubt").setAttribute("aria-pressed", String(!on && asked.sort === ""));
  $("ask-trust").setAttribute("aria-pressed", String(on));
  $("trust").hidden = !on;
  if (!on) return;
  if (brief.trust.why_not) {
    const again = brief.trust.can_hold_out && brief.guarantee.kind !== "none" ? [make("p", { class: "fine", text: "To find out, some known values must be held out to check the predictions. Intervals may get a little wider." }),
      make("button", { type: "button", class: "primary", text: "Fill again with this", onclick: async () => { if (await page.change({ guarantee: "column" })) page.act("fill"); } })] : [];
    const draw = [make("p", { class: "fine", text: "Values of rows that are drawn at random would tell, however all others came about." }), make("button", { type: "button", class: again.length ? "plain" : "primary", text: "Label rows drawn at random", onclick: () => label(page, true) })];
    const offered = brief.trust.can_draw === false ? [] : draw;
    fill($("trust"), make("p", { text: `${words(brief.trust.why_not)} The rows are ranked all the same, those first that look surest.` }), ...again, ...offered);
    return;
  }
  const share = amount("most-wrong", percent(Number(asked.trust)).replace(/[\s%]/g, ""), SHARES.map((one) => 100 * one), (value) => { asked.trust = String(value / 100); }, (value) => value > 0 && value < 100);
  const off = amount("most-off", number(Number(asked.tolerance) * (asked.relative ? 100 : 1)), asked.relative ? [5, 10, 20] : brief.trust.offered, (value) => { asked.tolerance = String(asked.relative ? value / 100 : value); }, (value) => value > 0);
  const unit = make("select", { "aria-label": "In which unit", onchange: () => { Object.assign(asked, unit.value ? { relative: "1", tolerance: "0.1" } : { relative: "", tolerance: String(brief.trust.usual) }); drawTrust(page); again(); } },
    make("option", { value: "", text: brief.answers.unit || "in the unit of the column" }), make("option", { value: "1", text: "% of the answer", selected: asked.relative !== "" }));
  function again() { asked.start = 0; drawRows(page); }
  function amount(id, value, offered, take, fits) {
    const field = make("input", { id, list: `${id}-offered`, value, inputmode: "decimal", size: 9, autocomplete: "off", maxlength: 20, onchange: () => {
      const found = typed(field.value);
      field.setAttribute("aria-invalid", String(!fits(found)));
      if (fits(found)) { take(found); again(); } else $("trust-said").textContent = `“${field.value}” is not an amount, and is not used: write a number such as ${number(offered[0] ?? 10)}. The rows are still those of before.`;
    } });
    return [field, make("datalist", { id: `${id}-offered` }, ...offered.map((one) => make("option", { value: number(one) })))];
  }
  const wrong = brief.task === "regression" ? [make("label", { for: "most-off", text: "% are off by more than" }), ...off, unit] : [make("span", { text: "% are wrong" })];
  redraw($("trust"), make("div", { class: "filters" }, make("label", { for: "most-wrong", text: "Pick rows of which at most" }), ...share, ...wrong), make("p", { class: "fine", id: "trust-said", role: "status" }),
    make("a", { id: "trust-file", download: "", text: `Download the table with these rows marked, in a column “${brief.target}_trusted”` }));
}

async function drawRows(page) {
  const mine = (latest += 1);
  try {
    const found = await read(`/open/rows?${new URLSearchParams({ ...asked, count: A_PAGE })}`);
    if (mine === latest) showRows(page, found);
  } catch (error) {
    page.failed(error);
  }
}

function showRows(page, found) {
  const numbers = brief.task === "regression", trusted = asked.trust !== "" && !brief.trust.why_not;
  const several = trusted || !$("status").hidden || !brief.counts.answered; // what all rows have tells nothing
  const heads = [["row", brief.rows_are], ["value", brief.target], ...(numbers ? [["width", `interval at ${percent(brief.confidence)}`]] : [["chance", "probability"], ["size", "possible"]]), ...(several ? [["status", "status"]] : []), ...brief.context.map((name) => [name, name])];
  const sortable = new Set(["row", "value", "width", "chance", "size", "status", ...brief.context]);
  const head = make("tr", {}, ...heads.map(([key, name]) => {
    const of = (key === "value" && numbers) || key === "chance" || found.rows[0]?.cells[brief.context.indexOf(key)]?.[0] === "number" ? "number" : "";
    const sorted = asked.sort === key ? (asked.down === "1" ? "descending" : "ascending") : "none";
    const arrow = { descending: " ↓", ascending: " ↑", none: "" }[sorted];
    return make("th", { scope: "col", "aria-sort": sorted, class: of }, sortable.has(key) ? make("button", { type: "button", text: `${name}${arrow}`, onclick: () => sort(page, key) }) : name);
  }));
  const other = (line) => trusted && (numbers ? Math.abs(line.first - line.value) > Number(asked.tolerance) * (asked.relative ? Math.abs(line.first) : 1) : line.first !== line.value);
  const body = found.rows.map((line) => {
    const open = () => openRow(page, line.row);
    const row = make("tr", {}, make("th", { scope: "row" }, make("button", { type: "button", class: "link", text: numberOf(line), "aria-label": `${capital(line.name)}: ${answerOf(line, trusted)}`, onclick: open })),
      make("td", { class: numbers ? "number strong" : "strong", text: answerOf(line, trusted) }), ...(numbers ? [make("td", { class: "range" }, interval(line), make("span", { class: "fine", text: rangeOf(line) }))] : [make("td", { class: "number", text: line.chance === null || other(line) ? "" : percent(line.chance) }), make("td", { text: (line.set ?? []).join(", ") })]),
      ...(several ? [make("td", other(line) ? { class: "differs", text: `filled: ${answerOf(line)}` } : { class: `status ${line.status}`, text: STATUSES[line.status] ?? line.status })] : []), ...line.cells.map((cell) => make("td", { class: cell[0] }, showCell(cell, line.row))));
    row.addEventListener("click", (event) => { if (!event.target.closest("button")) open(); });
    return row;
  });
  redraw($("rows"), make("thead", {}, head), make("tbody", {}, ...body));
  fitColumns();
  $("found").textContent = found.total === brief.n_answers ? `${count(found.total)} rows` : `${count(found.total)} of ${count(brief.n_answers)} rows`;
  $("page").textContent = found.total ? `${count(found.start + 1)} to ${count(found.start + found.rows.length)} of ${count(found.total)}` : "none";
  $("earlier").disabled = found.start === 0;
  $("later").disabled = found.start + found.rows.length >= found.total;
  if ($("trust-said")) {
    $("trust-said").textContent = trustSaid(found.trusted, found.other);
    $("trust-file").href = ofTable(`/open/file/trusted?${new URLSearchParams({ of: asked.of, trust: asked.trust, tolerance: asked.tolerance, relative: asked.relative })}`);
    $("trust-file").hidden = !found.trusted;
  }
  document.body.dataset.rows = latest;
}

// The columns of the table that tell which row is meant, as many as there is room for; a button shows the others.
function fitColumns() {
  const box = $("row-box"), button = $("all-columns"), own = brief.context.length;
  const last = $("rows").rows[0].cells.length;
  const cells = (place) => [...$("rows").rows].map((line) => line.cells[last - 1 - place]);
  const show = (place, on) => { for (const cell of cells(place)) if (cell) cell.hidden = !on; };
  for (let place = 0; place < own; place += 1) show(place, true);
  let out = 0;
  while (!allColumns && out < own && box.scrollWidth > box.clientWidth) show(out++, false);
  button.hidden = !out && !allColumns;
  button.textContent = allColumns ? "Columns that fit" : `${count(out)} more column${out === 1 ? "" : "s"}`;
  button.setAttribute("aria-pressed", String(allColumns));
}

// Rows are named by their line in the file, or else by their number.
const numberOf = ({ name }) => words(name.replace(/^\D+/, ""));
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// The answers that were checked are those of a fit that had not seen the known values kept aside.
function trustSaid(picked, other) {
  const amount = asked.relative ? percent(Number(asked.tolerance)) : `${number(Number(asked.tolerance))} ${brief.answers.unit ?? ""}`.trim();
  const wrong = brief.task === "regression" ? `off by more than ${amount}` : "wrong";
  if (!picked) return "No row is that reliable. Allow more of the selected rows to be wrong, or allow predictions to be off by more; more known values help too.";
  return `${count(picked)} of ${count(brief.n_answers)} rows were picked. On average over many such tables, at most ${percent(Number(asked.trust))} of the rows picked are ${wrong} (${words(brief.trust.headline)}).${other ? ` ${count(other)} of them were filled with another answer, from all known values: look at these twice.` : ""}`;
}

function answerOf(line, first = false) {
  if (line.status === "unreached") return "–";
  if (line.value_text) return text(line.value_text);
  const value = first && line.first !== undefined ? line.first : line.value;
  return typeof value === "number" ? `${number(value, brief.answers.decimals)} ${brief.answers.unit ?? ""}`.trim() : String(value);
}

function rangeOf(line) {
  const [low, high] = ["low", "high"].map((end) => (line[`${end}_text`] ? text(line[`${end}_text`]) : line[end] === null ? null : number(line[end], brief.answers.decimals)));
  if (low === null) return high === null ? "any number" : `${high} or less`;
  return high === null ? `${low} or more` : `${low} to ${high}`;
}

// The interval and the answer in it, on the scale of all answers; an arrow where it goes on.
function interval(line) {
  const [from, to] = brief.scale ?? [0, 1], wide = 120;
  const at = (value) => Math.min(Math.max((wide - 8) * ((value - from) / (to - from || 1)) + 4, 1), wide - 1);
  const [low, high] = [line.low === null ? 0 : at(line.low), line.high === null ? wide : at(line.high)];
  return drawing("svg", { viewBox: `0 0 ${wide} 14`, class: "interval", "aria-hidden": "true" }, drawing("line", { x1: 0, x2: wide, y1: 7, y2: 7, class: "base" }),
    drawing("line", { x1: low, x2: high, y1: 7, y2: 7, class: "band" }), ...(line.value === null ? [] : [drawing("circle", { cx: at(line.value), cy: 7, r: 4 })]));
}

function sort(page, key) {
  const down = asked.sort === key && asked.down === "0" ? "1" : "0";
  Object.assign(asked, asked.sort === key && asked.down === "1" ? { sort: "", down: "0" } : { sort: key, down }, { start: 0 });
  drawTrust(page);
  drawRows(page);
}

// ------------------------------------------------------------------------------------------------ one row

async function openRow(page, row) {
  const mine = (latestRow += 1);
  try {
    const found = await read(`/open/row?row=${row}&of=${asked.of}`);
    if (mine !== latestRow) return;
    const own = found.known === undefined ? answerOf(found) : shownLabel(found.known);
    $("row-title").textContent = `${capital(words(found.name))}: ${own}`;
    const near = found.neighbours.map(({ label: known }) => shownLabel(known));
    const chance = typeof found.chance === "number" ? `It is right with probability ${percent(found.chance)}. ` : "";
    const sure = found.known !== undefined ? "This value is known." : brief.task === "regression" ? `The true value is probably in this interval: ${rangeOf(found)}.` : `${chance}Possible at ${percent(brief.confidence)}: ${(found.set ?? []).join(", ") || "nothing that was seen"}.`;
    const why = near.length ? `The known rows that are most like it have ${near.join(", ")}.` : "";
    const strongest = found.columns.filter((_, place) => (found.relevance[place] ?? 0) >= 0.3).slice(0, 3);
    const count_most = strongest.length ? ` What counts most: ${strongest.map((name) => `“${name}”`).join(", ")}.` : "";
    const head = make("tr", {}, make("td", {}), make("th", { scope: "col", text: "this row" }), ...found.neighbours.map((one) => make("th", { scope: "col" }, make("span", { text: words(one.name) }), make("span", { class: "fine", text: ` ${percent(Math.round(100 * one.weight) / 100)}` }))));
    const first = make("tr", { class: "aim" }, make("th", { scope: "row", text: brief.target }), make("td", { class: "strong", text: own }), ...near.map((known) => make("td", { text: known })));
    const lines = found.columns.slice(0, 40).map((name, place) => make("tr", {}, make("th", { scope: "row" }, weight(found.relevance[place]), make("span", { text: name })), make("td", {}, showCell(found.own[place], row)),
      ...found.neighbours.map((one) => make("td", {}, showCell(one.cells[place], one.row)))));
    fill($("row-body"), make("p", { text: `${sure} ${why}${count_most}` }), make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "This row and those most like it" }, make("table", { class: "rows beside-it" }, make("thead", {}, head), make("tbody", {}, first, ...lines))));
    $("row-dialog").showModal();
  } catch (error) {
    page.failed(error);
  }
}

const shownLabel = (known) => (typeof known === "number" ? number(known, Number.isInteger(known) ? 0 : 9) : text(known));

// How much a column counts, as a small bar.
function weight(relevance) {
  const bar = make("i", {});
  if (relevance === null || relevance === undefined) return null;
  bar.style.width = `${100 * relevance}%`;
  return make("span", { class: "weight", "aria-hidden": "true" }, bar);
}

// ------------------------------------------------------------------------------------------------ how good, and where

function drawQuality() {
  const { quality } = brief;
  $("quality-panel").hidden = !quality;
  if (!quality) return;
  const said = make("p", { class: "fine", text: words(brief.quality_sentence) });
  if (!quality.true) {
    const most = Math.max(...quality.confusion.flat(), 1);
    const cell = (times, right) => { const box = make("td", { class: right ? "right" : "wrong", text: count(times) }); box.style.setProperty("--share", times / most); return box; };
    fill($("quality"), make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Known and predicted classes" }, make("table", { class: "confusion" }, make("thead", {}, make("tr", {}, make("td", { class: "fine", text: "known \\ answered" }), ...quality.classes.map((name) => make("th", { scope: "col", text: name })))),
      make("tbody", {}, ...quality.confusion.map((line, row) => make("tr", {}, make("th", { scope: "row", text: quality.classes[row] }), ...line.map((times, column) => cell(times, row === column))))))), said);
    return;
  }
  const all = [...quality.true, ...quality.answered].sort((one, other) => one - other), end = (share) => all[Math.round(share * (all.length - 1))];
  const room = (end(0.98) - end(0.02)) / 2, [from, to] = [Math.max(all[0], end(0.02) - room), Math.min(all.at(-1), end(0.98) + room)];
  const at = (value) => 20 + 230 * Math.min(Math.max((value - from) / (to - from || 1), 0), 1); // one far from all others is at the edge
  fill($("quality"), drawing("svg", { viewBox: "0 0 270 270", class: "scatter", role: "img", "aria-label": words(brief.quality_sentence) }, drawing("line", { x1: 20, y1: 250, x2: 250, y2: 20, class: "base" }),
    ...quality.true.map((value, place) => drawing("circle", { cx: at(value), cy: 270 - at(quality.answered[place]), r: 2.6 })),
    drawing("text", { x: 135, y: 266, "text-anchor": "middle", text: `known: ${rough(brief.known[0])} to ${rough(brief.known[1])}` }), drawing("text", { x: 10, y: 135, "text-anchor": "middle", transform: "rotate(-90 10 135)", text: "answered" })), said);
}

function drawMap() {
  const { map } = brief;
  $("map-panel").hidden = !map;
  if (!map) return;
  // By rank: a few rows far from all others would press these into a corner.
  const ranks = (values) => {
    const places = values.map((_, place) => place).sort((one, other) => values[one] - values[other]), found = [];
    places.forEach((place, rank) => { found[place] = rank / (places.length - 1 || 1); });
    return found;
  };
  const [across, up] = [ranks(map.x), ranks(map.y)];
  const numbers = brief.task === "regression", names = numbers ? [] : [...new Set(map.value.filter(Boolean))].sort();
  const known = numbers ? map.value.filter((value) => value !== null).sort((one, other) => one - other) : [];
  const rank = (value) => (value === null ? null : known.findIndex((one) => one >= value) / known.length);
  const dots = map.x.map((_, place) => {
    const value = map.value[place], dot = drawing("circle", { cx: 6 + 288 * across[place], cy: 194 - 188 * up[place], r: map.unlabelled[place] ? 2.4 : 3.4, class: map.unlabelled[place] ? "" : "known" });
    dot.style.fill = value === null ? "var(--none)" : numbers ? `color-mix(in oklab, var(--c1) ${Math.round(100 * rank(value))}%, var(--c0))` : colour(names.indexOf(value));
    return dot;
  });
  const legend = numbers ? `Blue: low, orange: high.` : "";
  const keys = names.slice(0, 10).map((name, place) => { const dot = make("span", { class: "dot", "aria-hidden": "true" }); dot.style.background = colour(place); return make("span", { class: "key" }, dot, name); });
  fill($("map"), drawing("svg", { viewBox: "0 0 300 200", class: "map", role: "img", "aria-label": "Rows that are alike are near each other" }, ...dots), make("p", { class: "fine" }, `Rows that are alike are near each other; those with a known value have a ring. ${legend} `, ...keys));
}

// ------------------------------------------------------------------------------------------------ beginning

export function answersBegin(page) {
  let typing = null;
  $("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { Object.assign(asked, { search: $("search").value, start: 0 }); drawRows(page); }, 250); });
  $("status").addEventListener("change", () => { Object.assign(asked, { status: $("status").value, start: 0 }); drawRows(page); });
  for (const [id, step] of [["earlier", -A_PAGE], ["later", A_PAGE]]) $(id).addEventListener("click", () => { asked.start = Math.max(asked.start + step, 0); drawRows(page); });
  $("ask-doubt").addEventListener("click", () => { Object.assign(asked, { trust: "", sort: "", down: "0", start: 0 }); drawTrust(page); drawRows(page); });
  $("ask-whole").addEventListener("click", () => showWhole(true));
  $("ask-trust").addEventListener("click", () => { Object.assign(asked, { trust: "0.1", start: 0, tolerance: String(brief.trust.usual ?? ""), relative: "" }); drawTrust(page); drawRows(page); });
  $("all-columns").addEventListener("click", () => { allColumns = !allColumns; fitColumns(); });
  window.addEventListener("resize", () => { if (brief && !brief.parts && $("rows").rows.length) fitColumns(); });
  $("label").addEventListener("click", () => label(page, false));
  $("label-draw").addEventListener("click", () => label(page, true));
}
