// The page for the whole job: one state, kept by the server, drawn by the step that is shown.

import { Gone, post, read, Stale, tab } from "/page/api.js";
import { answersBegin, drawAnswers } from "/page/answers.js";
import { $, clearGone, clearToasts, notes, toast } from "/page/dom.js";
import { drawTable, drawTables, tableBegin } from "/page/table.js";
import { drawWays, waysBegin } from "/page/ways.js";

const THEMES = { auto: "As the system", light: "Light", dark: "Dark" };
const page = { state: null, step: "table", refusal: "", change, act, settled, go, failed, say };
const drawing = { table: drawTable, labels: drawWays, answers: drawAnswers };
let timer = null;
let lost = false;
let turns = 0; // acts that began, acts that ended and looks: a look during which one of them came tells of the past
let acting = 0;
let travelling = false; // to where the browser's history is
let queue = Promise.resolve(); // each act knows what the one before it has changed

function failed(error) {
  if (error instanceof Gone && lost) return;
  lost = error instanceof Gone;
  toast(error.message, lost ? "gone" : "error");
}

// For screen readers: what happened, in a few words.
function say(words) {
  $("said").textContent = words;
}

function draw() {
  const { state } = page;
  const open = state.table !== null;
  $("title").textContent = open ? state.table : "transduce";
  $("subtitle").textContent = open && state.choices.target ? `filling “${state.choices.target}”` : state.folder;
  document.title = open ? `${state.table} · transduce` : "transduce";
  $("steps").hidden = $("close-table").hidden = !open;
  for (const button of $("steps").children) {
    const step = button.dataset.step;
    button.setAttribute("aria-current", step === page.step ? "step" : "false");
    button.disabled = (step !== "table" && !state.choices?.target) || (step === "answers" && state.filled === null && state.run?.state === "none");
  }
  for (const view of ["tables", "table", "labels", "answers"]) $(`view-${view}`).hidden = open ? view !== page.step : view !== "tables";
  if (open) drawing[page.step](page);
  else drawTables(page);
}

function show(state) {
  const before = page.state;
  page.state = state;
  tab.table = state.table;
  if (lost) clearGone();
  lost = false;
  if (JSON.stringify(state) === JSON.stringify(before)) return; // what is drawn again can be lost from under the mouse
  if (state.table !== before?.table) {
    page.step = stepOf(state);
    notes(state.notes ?? []);
    if (before) clearToasts(); // they were about another table
    remember();
  }
  draw();
}

// The step at which a table was left; one that was filled under another name has no answers yet.
function stepOf({ choices, filled, run }) {
  const left = choices?.step ?? "table";
  return left === "answers" && filled === null && run.state === "none" ? "labels" : left;
}

const here = () => ({ table: page.state.table, step: page.step });
const isHere = (place) => !place || (place.table === page.state.table && (place.table === null || place.step === page.step));

// Where the page is goes into the browser's history, so that Back goes one step back.
function remember() {
  const { state } = window.history;
  if (travelling || (state?.table === page.state.table && state?.step === page.step)) return;
  if (state === null) window.history.replaceState(here(), "");
  else window.history.pushState(here(), "");
}

// After Back or Forward the page goes where the history is, also if that has moved on meanwhile.
async function travel() {
  if (travelling || !page.state) return;
  travelling = true;
  let arrives = true;
  while (arrives && !isHere(window.history.state)) arrives = await towards(window.history.state);
  travelling = false;
  if (!arrives) window.history.replaceState(here(), ""); // that table is not there any more
}

async function towards({ table, step }) {
  if (table !== page.state.table) return act("open", { name: table });
  await go(step);
  return true;
}

// The body may be a function, which is asked once the acts before have changed what they change.
function act(path, body = {}) {
  const done = queue.then(() => request(path, body));
  queue = done;
  return done;
}

// When all that was clicked on and typed is on disk, or refused.
function settled() {
  return queue;
}

async function request(path, body) {
  const { state } = page, asked = typeof body === "function" ? body() : body;
  turns += 1;
  acting += 1;
  try {
    show(await post(`/open/${path}`, { table: state.table ?? "", revision: state.revision ?? 0, ...asked }));
    return true;
  } catch (error) {
    page.refusal = error.message; // for the field that was refused
    failed(error);
    if (!(error instanceof Stale)) return false;
  } finally {
    turns += 1;
    acting -= 1;
  }
  await look();
  return false;
}

// Some choices change: written to disk when this is done, or refused if another tab was quicker.
// What is added to a list of choices, or taken from it, is a function of the choices that the clicks before have made.
async function change(changes) {
  return act("change", () => ({ changes: typeof changes === "function" ? changes(page.state.choices) : changes }));
}

async function go(step) {
  page.step = page.state.choices.step = step;
  remember();
  draw();
  window.scrollTo(0, 0);
  $("main").focus({ preventScroll: true });
  await change({ step });
}

async function look() {
  const began = turns;
  try {
    const found = await read("/open/state");
    if (began !== turns || acting) return;
    turns += 1;
    const before = page.state;
    const other = before && (found.table !== page.state.table || found.revision > page.state.revision);
    show(found);
    if (other) toast(found.table === null ? `“${before.table}” is not in the folder any more.` : "Another tab has changed this; here it is.", "note", 5);
  } catch (error) {
    failed(error);
  }
}

// Other tabs, files and a fill that runs: the page looks now and then, also for a program that did not answer.
function watch() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    if (!document.hidden) await look();
    watch();
  }, page.state?.run?.state === "running" ? 700 : 2500);
}

function theme(choice) {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  $("theme").title = $("theme").ariaLabel = `Light or dark: ${THEMES[choice].toLowerCase()}`;
}

async function begin() {
  tab.begin();
  theme(localStorage.getItem("transduce-label:theme") ?? "auto");
  $("theme").addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(localStorage.getItem("transduce-label:theme") ?? "auto") + 1) % names.length];
    localStorage.setItem("transduce-label:theme", next);
    theme(next);
    say(`Light or dark: ${THEMES[next].toLowerCase()}`);
  });
  for (const button of $("steps").children) button.addEventListener("click", () => go(button.dataset.step));
  $("close-table").addEventListener("click", () => act("open", { name: null }));
  for (const dialog of document.querySelectorAll("dialog")) {
    const close = document.createElement("button");
    Object.assign(close, { type: "button", className: "close", textContent: "×", ariaLabel: "Close", onclick: () => dialog.close() });
    dialog.append(close);
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
  window.addEventListener("popstate", travel);
  window.addEventListener("pageshow", ({ persisted }) => { if (persisted) window.location.reload(); }); // as it was, not as it is
  tableBegin(page);
  waysBegin(page);
  answersBegin(page);
  show(await read("/open/state"));
  watch();
  document.body.dataset.ready = "true";
}

begin().catch(failed);
