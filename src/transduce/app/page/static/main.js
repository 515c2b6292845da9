// The page: one model, drawn again after every decision. All decisions are made by the server's session.

import { beginSession, Gone, post, read, send, Stale, tab } from "/page/api.js";
import { showCard } from "/page/card.js";
import { showCertificates } from "/page/certificate.js";
import { beginDialogs, beginSearch, closeDialogs, openExport, openHistory } from "/page/dialogs.js";
import { $, colour, dot, fill, make, notes, toast } from "/page/dom.js";
import { count, number as written } from "/page/locale.js";
import { beginKeys, keysOf, listen, showKeys } from "/page/keys.js";
import { showAnswers, showCounts } from "/page/lists.js";
import { beginMap, repaint, showMap } from "/page/map.js";

const model = { about: null, view: null, looking: null, running: null, list: "uncertain", imageColumn: null, showAnswer: false, left: false, task: "classes", classes: [] };

function failed(error) {
  if (model.left) return;
  toast(error.message, error instanceof Gone ? "gone" : "error");
  if (error instanceof Gone) $("saved").textContent = "";
}

// ------------------------------------------------------------------------------------------------ drawing

const card = () => model.looking ?? model.view.proposal;

function draw() {
  const { view, about } = model;
  model.classes = view.classes;
  const shown = card();
  showCard(shown, about, { classes: view.classes, looking: model.looking, back, showAnswer: model.showAnswer });
  drawModes(view);
  drawChecked(view.check);
  drawClasses(view, shown);
  drawProgress(view);
  showCertificates(view.certificate, about, view, act);
  showMap(view.map, about, shown?.place ?? null);
  showCounts(model, view);
  showAnswers(model, view[model.list], view.certificate.no_answers, choose);
  const own = about.home ? " These are quick answers of this page, renewed after each label. The table is filled by more methods, when you are back." : "";
  const none = /^nobody[^:]*: (.*)$/.exec(view.source); // and why
  const from = restsOn(about.columns);
  const later = from ? ` They come${from.slice(1)}.` : "";
  const by = none ? `No answers yet: ${none[1]}.${later}` : `Answers by ${view.source}${from}.`;
  $("source").textContent = `${about.task === "classes" ? "Labelled + answered. " : ""}${by}${view.thinking ? " Thinking again …" : ""}${own}`;
  $("undo").disabled = !view.can_undo;
  $("skip").disabled = Boolean(model.looking) || !view.proposal;
  $("back").disabled = view.progress.decisions === 0;
  $("forward").disabled = !model.looking;
}

// What was predicted for the row that got its label last, told only now.
function drawChecked(check) {
  const last = check?.last;
  $("checked").hidden = !last;
  if (!last) return;
  const name = (value) => (typeof value === "number" ? written(value) : `“${value}”`);
  const said = last.prediction === null ? "nothing" : name(last.prediction);
  $("checked").classList.toggle("differs", !last.agrees);
  fill($("checked"), make("strong", { text: last.agrees ? "Agrees. " : "Differs. " }), `Row ${count(last.row + 1)}: you said ${name(last.label)}, “${check.column}” said ${said}. `,
    last.agrees ? null : make("button", { type: "button", class: "plain", text: "Look again", onclick: () => choose(last.row) }));
}

const MOST_NAMED = 8;
const LONGEST_NAME = 20; // characters for which a button of a class has room in one line

function restsOn(columns) {
  const more = columns.length - MOST_NAMED;
  const named = columns.slice(0, MOST_NAMED).map((name) => `“${name}”`).join(", ");
  if (!columns.length) return "";
  return `, from ${columns.length === 1 ? "the column" : "the columns"} ${named}${more > 0 ? ` and ${more} more` : ""}`;
}

// Why rows cannot be searched for now.
function noFind({ preparing, wanted }) {
  if (preparing.words) return `${preparing.words} ${preparing.runs ? "Until then rows come" : "Rows come"} in a random order${model.about.task === "classes" ? ", and Find waits" : ""}.`;
  return wanted === null && !model.view?.check ? "Find waits until you choose the wanted class." : "";
}

function drawModes(view) {
  for (const button of $("modes").children) {
    const mode = button.dataset.mode;
    button.setAttribute("aria-checked", String(view.mode === mode));
    button.tabIndex = view.mode === mode ? 0 : -1;
    button.hidden = mode === "find" && (model.about.task === "numbers" || Boolean(view.check));
    button.disabled = mode === "find" && Boolean(noFind(view));
  }
  const waits = view.preparing.words || model.about.task === "classes" ? noFind(view) : "";
  const since = model.about.home ? view.since : ""; // a fill takes the labels up to the draws; what comes then is told before
  $("mode-note").textContent = [waits, since].filter(Boolean).join(" ");
  $("want-box").hidden = model.about.task === "numbers" || Boolean(view.check);
  const none = view.wanted === null ? [make("option", { value: "", text: "choose …" })] : [];
  fill($("want"), ...none, ...view.classes.map(({ name }, code) => make("option", { value: code, text: name, selected: code === view.wanted })));
  $("want").disabled = !view.can_want;
  $("want").title = view.can_want ? "" : "It cannot change after the first random draw.";
}

function drawClasses(view, shown) {
  const numbers = model.about.task === "numbers";
  $("number-form").hidden = !numbers;
  $("name-form").hidden = true;
  $("classes").hidden = numbers;
  if (numbers) {
    $("number").value = shown?.label ?? "";
    return;
  }
  const keys = keysOf(view.classes);
  const many = view.classes.length;
  $("classes").classList.toggle("many", many > 6);
  $("classes").classList.toggle("crowd", many > keys.filter(Boolean).length);
  $("name-form").hidden = many <= keys.filter(Boolean).length;
  if (!$("name-form").hidden) fill($("names"), ...view.classes.map(({ name }) => make("option", { value: name })));
  $("classes").classList.toggle("short", many <= 10 && view.classes.every(({ name }) => name.length <= 3));
  $("classes").style.setProperty("--columns", many);
  $("classes").style.setProperty("--longest", Math.min(LONGEST_NAME, Math.max(0, ...view.classes.map(({ name }) => name.length))));
  fill($("classes"), ...view.classes.map(({ name }, code) => {
    const pressed = shown !== null && shown.label === name;
    const button = make("button", { type: "button", "aria-pressed": String(pressed), "aria-keyshortcuts": keys[code], title: name, onclick: () => label(code) },
      dot(code), make("span", { text: name }), keys[code] ? make("kbd", { text: keys[code].toUpperCase(), "aria-hidden": "true" }) : null);
    button.style.setProperty("--tint", colour(code));
    button.disabled = shown === null;
    return button;
  }));
}

function drawProgress(view) {
  const { labelled, given, unlabelled, draws } = view.progress;
  const parts = [`${count(labelled)} labelled`, draws ? `${count(draws)} random` : "", given ? `${count(given)} from the table` : "", `${count(unlabelled)} left`];
  $("progress-words").textContent = parts.filter(Boolean).join(" · ");
  $("bar-labelled").style.width = `${(100 * (labelled + given)) / model.about.n_rows}%`;
}

// ------------------------------------------------------------------------------------------------ acting

function act(action, body = {}) {
  if (model.running) return false;
  model.running = request(action, body).finally(() => { model.running = null; });
  return model.running;
}

async function request(action, body) {
  try {
    const found = await send(action, { ...body, version: model.view.version });
    if (found.ask) return found;
    model.view = found;
    model.looking = null;
    $("saved").textContent = "✓ saved";
    draw();
    return true;
  } catch (error) {
    $("saved").textContent = "not saved";
    failed(error);
    if (error instanceof Stale) await renew();
    return false;
  }
}

// Show where the session stands, which another tab may have changed.
async function renew() {
  const before = model.view;
  try {
    const found = await read("/api/view");
    if (model.view !== before || found.version === before.version || document.querySelector("dialog[open]")) return;
    [model.view, model.looking] = [found, null];
    draw();
  } catch (error) {
    failed(error);
  }
}

// Modes and undo wait for the request that runs. A label does not: it would go to a row that nobody has seen yet.
async function afterwards(run) {
  while (model.running) await model.running;
  run();
}

async function label(code) {
  const shown = card();
  if (!shown) return;
  const again = model.looking;
  if (await act("answer", { row: shown.row, class: code }) && again) toast(`Row ${count(shown.row + 1)} is now “${model.view.classes[code].name}”.`, "note", 3);
}

async function number(sure = null) {
  const typed = $("number").value.trim(), shown = card();
  if (!shown || typed === "") return toast("Type a number.", "note", 3);
  const done = await act("answer", { row: shown.row, label: sure ?? typed });
  $("number").setAttribute("aria-invalid", String(done === false)); // what is refused stays there to be mended
  if (done.ask) return ask(typed, done.ask);
  if (done) $("number").focus();
  return null;
}

// A number that can be read in two ways, or is far from all known ones, is asked about once before it is saved.
function ask(typed, { values, low, high }) {
  const far = `${written(values[0])} is far ${values[0] < low ? "below" : "above"} all known values (${written(low)} to ${written(high)}). Save it all the same?`;
  const choose = (value) => { $("ask-dialog").close(); number(value); };
  $("ask-title").textContent = values.length > 1 ? `“${typed}” can be read in two ways. Which do you mean?` : far;
  fill($("ask-body"), ...values.map((value) => make("button", { type: "button", class: values.length > 1 ? "plain" : "primary", text: values.length > 1 ? written(value) : "Save it", onclick: () => choose(value) })),
    make("button", { type: "button", class: "plain", text: "Type it again", onclick: () => $("ask-dialog").close() }));
  $("ask-dialog").addEventListener("close", () => $("number").select(), { once: true });
  $("ask-dialog").showModal();
}

function name() {
  const typed = $("name").value.trim().toLowerCase(), names = model.view.classes.map((known) => known.name.toLowerCase());
  const begins = names.filter((one) => one.startsWith(typed));
  const code = names.includes(typed) ? names.indexOf(typed) : begins.length === 1 ? names.indexOf(begins[0]) : -1;
  if (typed === "" || code < 0) {
    toast(begins.length && typed ? `“${typed}” begins ${begins.length} names: type more.` : "No class has this name.");
    return;
  }
  $("name").value = "";
  label(code);
}

// Until all rows are compared, the page asks how far that is; then come the map, the answers and the notes.
async function watch() {
  try {
    while (model.view.preparing.runs && !model.left) {
      await new Promise((go) => { setTimeout(go, 700); });
      model.view.preparing = await read("/api/preparing");
      drawModes(model.view);
    }
    if (model.left || model.view.preparing.words || model.about.columns.length) return;
    const about = await read("/api/about");
    let view;
    do { // a label given meanwhile is in the next view, not in this one
      while (model.running) await model.running;
      view = await read("/api/view");
    } while (model.running || view.version < model.view.version);
    const typed = $("number").value;
    notes(about.notes);
    model.about = about;
    model.view = view;
    draw();
    $("number").value = typed;
  } catch (error) {
    failed(error);
  }
}

// ------------------------------------------------------------------------------------------------ looking

let chosen = 0; // how many rows were: what is on its way for one before tells of the past

// The dialog closes when the row is there: a key pressed sooner must not label the row before it.
async function choose(row) {
  const mine = (chosen += 1);
  try {
    const found = model.view.proposal?.row === row ? null : await read(`/api/row/${row}`);
    if (mine !== chosen) return;
    model.looking = found;
    draw();
    closeDialogs();
    if (model.looking) $("row").focus({ preventScroll: false });
  } catch (error) {
    closeDialogs();
    failed(error);
  }
}

function back() {
  model.looking = null;
  draw();
}

async function step(direction) {
  try {
    const next = (model.looking?.step ?? -1) + direction; // 0 is the latest decision
    if (next < 0) {
      back();
      return;
    }
    const [decision] = await read(`/api/history?start=${next}&count=1`);
    if (decision) await choose(decision.row);
  } catch (error) {
    failed(error);
  }
}

const actions = {
  classes: () => (model.about?.task === "classes" ? model.view?.classes ?? [] : []),
  label,
  number: (key) => {
    if (model.about.task !== "numbers") return false;
    $("number").focus();
    $("number").value = key;
    return true;
  },
  undo: () => afterwards(() => { if (model.view.can_undo) act("undo"); }),
  skip: () => { if (!$("skip").disabled) act("skip"); },
  earlier: () => step(1),
  later: () => { if (model.looking) step(-1); },
  search: () => { $("search-dialog").showModal(); $("search").select(); },
  history: () => openHistory(model, choose, failed),
  export: () => openExport(model.about, failed),
  name: () => { if (!$("name-form").hidden) $("name").focus(); },
  settings: () => { showKeys(model.view.classes, draw); $("settings-dialog").showModal(); },
  mode: (mode) => afterwards(() => {
    const button = $("modes").querySelector(`[data-mode=${mode}]`);
    if (button.disabled) toast(noFind(model.view), "note");
    else if (model.view.mode !== mode && !button.hidden) act("mode", { mode });
  }),
  escape: () => { if (model.looking) back(); },
};

// ------------------------------------------------------------------------------------------------ beginning

function theme(choice) {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  for (const button of $("themes").children) button.setAttribute("aria-checked", String(button.dataset.themeChoice === choice));
  repaint();
}

function arrows(group) {
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = [...group.children].filter((button) => !button.disabled && !button.hidden);
    const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
    event.preventDefault();
    event.stopPropagation();
  });
}

function wire() {
  for (const [id, name] of [["open-search", "search"], ["open-history", "history"], ["open-export", "export"], ["open-settings", "settings"], ["undo", "undo"], ["skip", "skip"], ["back", "earlier"], ["forward", "later"]]) {
    $(id).addEventListener("click", () => actions[name]());
  }
  for (const button of $("modes").children) button.addEventListener("click", () => actions.mode(button.dataset.mode));
  for (const button of $("themes").children) {
    button.addEventListener("click", () => { localStorage.setItem("transduce-label:theme", button.dataset.themeChoice); theme(button.dataset.themeChoice); });
  }
  arrows($("modes"));
  arrows($("themes"));
  $("want").addEventListener("change", () => { if ($("want").value !== "") act("want", { class: Number($("want").value) }); $("want").blur(); });
  $("name-form").addEventListener("submit", (event) => { event.preventDefault(); name(); });
  window.addEventListener("focus", () => { if (!model.running && !model.left) renew(); });
  $("number-form").addEventListener("submit", (event) => { event.preventDefault(); number(); });
  $("class-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await act("class", { name: $("class-name").value })) { $("class-name").value = ""; showKeys(model.view.classes, draw); }
  });
  for (const list of ["uncertain", "certain"]) {
    $(`tab-${list}`).addEventListener("click", () => {
      model.list = list;
      for (const other of ["uncertain", "certain"]) $(`tab-${other}`).setAttribute("aria-selected", String(other === list));
      $("list-panel").setAttribute("aria-labelledby", `tab-${list}`);
      showAnswers(model, model.view[list], model.view.certificate.no_answers, choose);
    });
  }
  $("show-answer").checked = model.showAnswer;
  $("show-answer").addEventListener("change", () => {
    model.showAnswer = $("show-answer").checked;
    localStorage.setItem("transduce-label:show-answer", String(model.showAnswer));
    draw();
  });
}

// The session ends before the page is left, which then asks for nothing more.
async function leave(home) {
  try {
    model.left = true;
    await post("/open/back");
    if (tab.cameHere()) window.history.back(); // so that the browser's Back does not lead to a page that has ended
    else window.location.assign(home);
  } catch (error) {
    model.left = false;
    failed(error);
  }
}

async function begin() {
  tab.begin();
  model.showAnswer = localStorage.getItem("transduce-label:show-answer") === "true";
  theme(localStorage.getItem("transduce-label:theme") ?? "auto");
  const about = await read("/api/about");
  beginSession(about.session);
  const view = await read("/api/view");
  Object.assign(model, { about, view, task: about.task, classes: view.classes });
  const image = view.proposal?.cells.findIndex(({ kind }) => kind === "image") ?? -1;
  model.imageColumn = image >= 0 && !view.proposal.cells.some(({ kind }) => kind === "text") ? image : null;
  $("table-name").textContent = about.name;
  $("target-name").textContent = view.check ? `checking “${view.check.column}” blindly` : `labelling “${about.target}”`;
  document.title = `${about.target} · ${about.name} · transduce label`;
  beginKeys(about);
  beginDialogs();
  beginSearch(model, choose, failed);
  beginMap(choose, (row, code) => `row ${count(row + 1)}${about.task === "classes" && code !== undefined && code !== 255 ? ` · ${model.view.classes[code].name}` : ""}`);
  wire();
  listen(actions);
  draw();
  notes(about.notes);
  $("home").hidden = !about.home;
  $("lists-title").textContent = about.home ? "Quick answers" : "Answers";
  $("home").addEventListener("click", () => afterwards(() => leave(about.home)));
  watch();
  document.body.dataset.ready = "true";
}

begin().catch(failed);
