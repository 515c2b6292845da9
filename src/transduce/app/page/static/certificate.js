// What is certain, in words and as a curve.

import { $, drawing, fill, make } from "/page/dom.js";
import { count, words as plain } from "/page/locale.js";

const WIDTH = 340, HEIGHT = 124, LEFT = 36, RIGHT = 10, TOP = 8, BOTTOM = 20;
const opened = new Set(); // parts that the reader opened

// The line is what was certain so far; dashed is what more draws would bring at the present rate.
function curve(points, { top, goal, more: further = [], ticks, word, describe, falling = false }) {
  const [end, height] = points[points.length - 1];
  const ahead = further.length ? further[further.length - 1][0] : 0;
  const last = Math.max(end + ahead, 10);
  const x = (draws) => LEFT + ((WIDTH - LEFT - RIGHT) * draws) / last;
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.min(value, top) / top);
  const line = points.map(([draws, value], i) => `${i ? "L" : "M"}${x(draws).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const parts = [drawing("title", { text: describe })];
  for (const [value, text] of ticks) {
    parts.push(drawing("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
    parts.push(drawing("text", { x: LEFT - 6, y: y(value) + 3.5, "text-anchor": "end", text }));
  }
  parts.push(drawing("line", { class: "goal", x1: LEFT, x2: WIDTH - RIGHT, y1: y(goal), y2: y(goal) }));
  parts.push(drawing("text", { class: "goal-word", x: falling ? WIDTH - RIGHT : LEFT + 4, y: falling ? TOP + 12 : y(goal) + 11, "text-anchor": falling ? "end" : "start", text: word }));
  parts.push(drawing("path", { class: "area", d: `${line}L${x(end).toFixed(1)} ${y(0)}L${x(points[0][0])} ${y(0)}Z` }));
  const dashed = [[0, height], ...further].map(([draws, value], i) => `${i ? "L" : "M"}${x(end + draws).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  if (ahead) parts.push(drawing("path", { class: "ahead", d: dashed }));
  for (const [draws, value] of further) parts.push(drawing("circle", { class: "then", cx: x(end + draws), cy: y(value), r: 2.4 }));
  parts.push(drawing("path", { class: "line", d: line }));
  parts.push(drawing("circle", { class: "end", cx: x(end), cy: y(height), r: 3.8 }));
  parts.push(drawing("text", { x: LEFT, y: HEIGHT - 4, text: "0" }));
  const room = x(end) - LEFT;
  if (end > 0 && ahead && room > 24 && WIDTH - RIGHT - x(end) > 100) parts.push(drawing("text", { x: x(end), y: HEIGHT - 4, "text-anchor": "middle", text: count(end) }));
  parts.push(drawing("text", { x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end", text: `${count(last)} random draws` }));
  return drawing("svg", { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": describe }, ...parts);
}

function recall(found, { estimate, hint, share }, act, mode, left) {
  const plot = curve(found.curve, {
    top: 1, goal: found.goal, more: found.reached ? [] : found.more, word: `goal ${Math.round(found.goal * 1000) / 10} %`,
    describe: `Share of the wanted rows that is certainly found, draw by draw; dashed: with more draws, at the present rate. ${plain(found.headline)}`,
    ticks: [[0, "0 %"], [0.5, "50 %"], [1, "100 %"]],
  });
  const audit = !found.reached && mode !== "audit" && ((found.ahead && found.ahead <= left / 2) || hint)
    ? make("div", { class: "row" }, make("button", { type: "button", class: "plain", text: "Draw at random now", onclick: () => act("mode", { mode: "audit" }) }))
    : null;
  return make("div", { class: found.reached ? "certificate reached" : "certificate" },
    make("h3", { id: "recall-headline", text: plain(found.headline) }), make("p", { text: plain(found.text) }), plot,
    found.reached || !found.more.some(([, bound]) => bound > 0) ? null : more(found.more, (bound) => `at least ${inPercent(Math.floor(1000 * bound) / 1000)} found`, found.curve.length > 1),
    share ? make("p", { id: "share", text: plain(share) }) : null, estimate ? make("p", { id: "estimate", text: estimate }) : null, hint ? make("p", { id: "hint", class: "strong", text: hint }) : null, audit);
}

// What more draws would make certain, if what they find is as frequent as so far; nothing, before the first.
function more(points, words, drawn) {
  if (!points.length) return null;
  const caption = drawn ? "What more random draws would bring, at the present rate" : "What random draws would bring if they find nothing new";
  const line = points.map(([draws, bound]) => make("tr", {}, make("th", { scope: "row", text: drawn ? `${count(draws)} more` : count(draws) }), make("td", { text: words(bound) })));
  return make("table", { class: "more" }, make("caption", { text: caption }), make("tbody", {}, ...line));
}

const inPercent = (value) => `${(100 * value).toLocaleString(undefined, { maximumFractionDigits: 1 })} %`;

// Bounds on shares as numbers of the rows that are left then.
const inRows = (found) => (found.reached ? [] : found.more.map(([draws, share]) => [draws, share * Math.max(found.left - draws, 0)]));

// Predictions made elsewhere that are checked: how many are wrong, and how frequent each class is.
function check(found) {
  const most = Math.max(...found.curve.map(([, wrong]) => wrong), 1);
  const plot = curve(found.curve, {
    top: most, goal: found.goal, more: inRows(found), word: `goal ${count(found.goal)}`, falling: true,
    describe: `Upper bound on wrong predictions, draw by draw; dashed: with more draws, at the present rate. ${plain(found.headline)}`,
    ticks: [[0, "0"], [most, count(most)]],
  });
  const seen = found.changed ? ` ${count(found.changed)} of your labels ${found.changed === 1 ? "was" : "were"} changed after the prediction was seen.` : "";
  const shares = sharesOf(found.shares, `True share of each class, each ${inPercent(found.certainty)} certain at every look`);
  const sampled = found.sample ? make("div", { class: "certificate" }, make("h3", { id: "sample-headline", text: plain(found.sample.headline) }), make("p", { id: "sample-text", text: plain(found.sample.text) }), make("p", { text: `${count(found.agreed)} agree, ${count(found.differed)} differ.${seen}` }),
    sharesOf(found.sample.shares, `True share of each class by this draw, each ${inPercent(found.certainty)} certain`)) : null;
  if (sampled && !found.draws) return sampled;
  return make("div", { class: found.reached ? "certificate reached" : "certificate" }, sampled,
    make("h3", { id: "check-headline", text: plain(found.headline) }), make("p", { text: plain(found.text) }),
    make("p", { id: "check-counts", text: `${count(found.agreed)} agree, ${count(found.differed)} differ.${seen}` }), plot,
    more(found.more, (bound) => `at most ${inPercent(Math.ceil(1000 * bound) / 1000)} wrong`, found.draws > 0), shares);
}

function sharesOf(intervals, caption) {
  if (!intervals.length) return null;
  const rows = intervals.map(({ label, fewest: low, most: high, n_rows: of }) => make("tr", {}, make("th", { scope: "row", text: label }), make("td", {}, interval(low / of, high / of)), make("td", { text: `${inPercent(Math.floor(1000 * low / of) / 1000)} to ${inPercent(Math.ceil(1000 * high / of) / 1000)}` })));
  return make("table", { class: "more" }, make("caption", { text: caption }), make("tbody", {}, ...rows));
}

function interval(low, high) {
  const bar = drawing("rect", { class: "between", x: 60 * low, y: 1, width: Math.max(60 * (high - low), 1), height: 6, rx: 2 });
  return drawing("svg", { class: "share", viewBox: "0 0 60 8", "aria-hidden": "true" }, drawing("rect", { class: "whole", x: 0, y: 1, width: 60, height: 6, rx: 2 }), bar);
}

function part(name, title, words, open, ...children) {
  const details = make("details", { class: "certificate", open: open || opened.has(name) },
    make("summary", {}, make("h3", { text: title }), make("span", { class: "fine", text: words })), ...children);
  details.addEventListener("toggle", () => (details.open ? opened.add(name) : opened.delete(name)));
  return details;
}

function answers(found, missing, about, act) {
  const tolerance = about.task === "numbers" ? make("input", { type: "number", min: "0", step: "any", "aria-label": "By how much a number may be off", placeholder: "± off" }) : null;
  const freeze = () => act("freeze", tolerance ? { tolerance: tolerance.value === "" ? null : Number(tolerance.value) } : {});
  const button = make("button", { type: "button", class: "plain", id: "freeze", text: found ? "Freeze again" : "Freeze answers", onclick: freeze });
  button.disabled = Boolean(missing);
  const row = make("div", { class: "row" }, tolerance, button);
  if (found === null) {
    return part("answers", "Wrong answers", "how many there are", false,
      make("p", { text: `Freeze the current predictions, then draw at random: the draws tell how many of them are wrong at most. ${missing}` }), row);
  }
  const most = Math.max(...found.curve.map(([, wrong]) => wrong), 1);
  const plot = curve(found.curve, {
    top: most, goal: found.goal, word: `goal ${count(found.goal)}`, falling: true,
    describe: `Upper bound on wrong predictions, draw by draw. ${plain(found.headline)}`,
    ticks: [[0, "0"], [most, count(most)]],
  });
  const shown = part("answers", "Wrong answers", "", true, make("p", { class: "strong", id: "wrong-headline", text: plain(found.headline) }), make("p", { text: plain(found.text) }), plot, row);
  shown.classList.toggle("reached", found.reached);
  return shown;
}

function intervals(found, about, act) {
  const begun = found.planned > 0 && !found.complete && !found.spoilt;
  const value = begun ? found.planned : found.usual;
  const field = make("input", { type: "number", min: "1", value: `${value || ""}`, "aria-label": "Number of random draws", id: "plan-count", oninput: () => (field.dataset.typed = "yes") });
  const plan = make("button", { type: "button", class: "plain", id: "plan", text: found.planned ? "Begin a new block" : "Fix the number", onclick: () => act("plan", { count: Math.round(Number(field.value)) }) });
  const words = begun ? `${count(found.answered)} of ${count(found.planned)}` : found.ready ? "ready" : "from random draws";
  const shown = part("intervals", about.task === "numbers" ? "Guaranteed intervals" : "Guaranteed sets", words, found.planned > 0,
    make("p", { id: "interval-words", text: plain(found.text) }), found.open ? null : make("div", { class: "row" }, field, plan));
  shown.classList.toggle("reached", found.ready);
  return shown;
}

// What is to be reached. All but the certainty may change at any time: certificates hold for all shares at once.
const GOALS = {
  recall: "of wanted rows to be found",
  wrong_share: "of predictions may be wrong",
  certainty: "certainty of these statements",
  confidence: "confidence of intervals, sets",
};

function goals(found, names, act) {
  const rows = names.map((name) => {
    const field = make("input", { type: "number", min: "0", max: "100", step: "any", id: `goal-${name}`, value: `${Number((100 * found[name]).toFixed(6))}` });
    field.disabled = name === "certainty" && !found.may_change_certainty;
    if (field.disabled) field.title = "It cannot change after the first random draw was judged.";
    field.addEventListener("change", () => act("goal", { name, value: field.value === "" ? null : Number(field.value) / 100 }));
    return make("div", { class: "row goal-row" }, field, make("label", { for: `goal-${name}`, text: `% ${GOALS[name]}` }));
  });
  return part("goals", "Goals", "what is to be reached", false, ...rows);
}

export function showCertificates(found, about, { mode, progress, check: checked, goals: wanted }, act) {
  const left = progress.unlabelled;
  const before = $("plan-count"), focused = document.activeElement?.id;
  fill($("certificate"),
    checked ? check(checked) : null,
    found.recall ? recall(found.recall, found, act, mode, left) : null,
    answers(found.answers, found.no_answers, about, act),
    intervals(found.intervals, about, act),
    goals(wanted, ["recall", "wrong_share", "certainty", "confidence"].filter((name) => name !== "recall" || found.recall), act));
  if (before?.dataset.typed && $("plan-count")) $("plan-count").value = before.value;
  if (focused === "plan-count") $("plan-count")?.focus();
}
