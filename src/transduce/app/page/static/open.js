// The page for the whole job: one state, kept by the server, drawn by the step that is shown.

import { Gone, post, read, Stale } from "/page/api.js";
import { answersBegin, drawAnswers } from "/page/answers.js";
import { $, clearToasts, notes, toast } from "/page/dom.js";
import { drawTable, drawTables, tableBegin } from "/page/table.js";
import { drawWays, waysBegin } from "/page/ways.js";

const THEMES = { auto: "As the system", light: "Light", dark: "Dark" };
const page = { state: null, step: "table", refusal: "", change, act, settled, go, failed, say };
const drawing = { table: drawTable, labels: drawWays, answers: drawAnswers };
let timer = null;
let lost = false;
let acts = 0; // a look that began before an act, or ends before it does, tells of the past
let acting = 0;
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
  lost = false;
  if (JSON.stringify(state) === JSON.stringify(before)) return; // what is drawn again can be lost from under the mouse
  if (state.table !== before?.table) {
    page.step = state.choices?.step ?? "table";
    notes(state.notes ?? []);
    if (before) clearToasts(); // they were about another table
    remember();
  }
  draw();
}

// Where the page is goes into the browser's history, so that Back goes one step back.
function remember() {
  const place = { table: page.state.table, step: page.step };
  const { state } = window.history;
  if (state?.table === place.table && state?.step === place.step) return;
  if (state === null) window.history.replaceState(place, "");
  else window.history.pushState(place, "");
}

async function back(place) {
  if (!place || !page.state) return;
  if (place.table !== page.state.table) await act("open", { name: place.table });
  const there = page.state.table === place.table && place.table !== null;
  if (there && place.step !== page.step) await go(place.step);
}

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
  const { state } = page;
  acts += 1;
  acting += 1;
  try {
    show(await post(`/open/${path}`, { table: state.table ?? "", revision: state.revision ?? 0, ...body }));
    return true;
  } catch (error) {
    page.refusal = error.message; // for the field that was refused
    failed(error);
    if (!(error instanceof Stale)) return false;
  } finally {
    acting -= 1;
  }
  await look();
  return false;
}

// Some choices change: written to disk when this is done, or refused if another tab was quicker.
async function change(changes) {
  return act("change", { changes });
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
  const began = acts;
  try {
    const found = await read("/open/state");
    if (began !== acts || acting) return;
    const other = page.state && (found.table !== page.state.table || found.revision > page.state.revision);
    show(found);
    if (other) toast("Another tab has changed this; here it is.", "note", 5);
  } catch (error) {
    failed(error);
  }
}

// Other tabs, files and a fill that runs: the page looks now and then.
function watch() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    if (!document.hidden && !lost) await look();
    watch();
  }, page.state?.run?.state === "running" ? 700 : 2500);
}

function theme(choice) {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  $("theme").title = $("theme").ariaLabel = `Light or dark: ${THEMES[choice].toLowerCase()}`;
}

async function begin() {
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
  window.addEventListener("popstate", (event) => back(event.state));
  tableBegin(page);
  waysBegin(page);
  answersBegin(page);
  show(await read("/open/state"));
  watch();
  document.body.dataset.ready = "true";
}

begin().catch(failed);
