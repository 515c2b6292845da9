// A list of rows to take away, and what comes back in it: odd values are shown before anything is taken.

import { ofTable, post, upload } from "/page/api.js";
import { $, fill, make, toast } from "/page/dom.js";
import { count, words } from "/page/locale.js";

const USUAL = 20;

// Two buttons that make a list, and a place to which it comes back.
export function listBox(page, { helpful = 0 } = {}) {
  const number = make("input", { class: "list-number", inputmode: "numeric", size: 4, maxlength: 4, value: USUAL, "aria-label": "How many rows drawn at random" });
  const file = make("input", { type: "file", accept: ".xlsx,.csv", hidden: true });
  file.addEventListener("change", async () => {
    if (file.files[0]) await bringBack(page, file.files[0]);
    file.value = "";
  });
  const random = make("div", { class: "row" }, number, make("button", { type: "button", class: "plain", text: "random rows, as Excel", onclick: () => takeAway(page, "random", Number(number.value)) }));
  const useful = helpful ? make("button", { type: "button", class: "plain", text: `The ${count(helpful)} rows that help most, as Excel`, onclick: () => takeAway(page, "helpful", helpful) }) : null;
  return [make("p", { class: "fine", text: "Or take a list with you, fill in its last column, and bring it back:" }), useful, random, file,
    make("button", { type: "button", class: "plain", text: "Bring a list back …", onclick: () => file.click() })];
}

async function takeAway(page, kind, number) {
  if (!Number.isInteger(number) || number < 1) {
    toast("Say how many rows, such as 20.");
    return;
  }
  page.say("Making the list");
  document.body.classList.add("waiting");
  if (await page.act("list", { kind, number })) make("a", { href: ofTable("/open/file/list"), download: "" }).click();
  document.body.classList.remove("waiting");
}

async function bringBack(page, file) {
  try {
    const found = await upload(`/open/returned?name=${encodeURIComponent(file.name)}`, file);
    showReview(page, found);
  } catch (error) {
    page.failed(error);
  }
}

function showReview(page, { rows, listed, random, ending }) {
  const places = rows.map((_, place) => place), odd = places.filter((place) => rows[place].problem), fits = rows.length - odd.length;
  const boxes = new Map(), named = () => odd.filter((place) => boxes.get(place).checked), n_taken = () => fits + named().length;
  const draw = make("p", { class: "note", id: "draw-note" });
  const go = make("button", { type: "button", class: "primary", onclick: () => take() });
  const say = () => {
    const taken = n_taken();
    go.textContent = `Take ${count(taken)} value${taken === 1 ? "" : "s"}`;
    go.disabled = taken === 0;
    draw.hidden = !random || taken === listed;
    draw.textContent = `These rows were drawn at random. They make the guarantee exact once all ${count(listed)} have a value; until then they count as rows that somebody picked.`;
  };
  const line = (place) => {
    const one = rows[place];
    const only = () => odd.forEach((other) => { if (other !== place && rows[other].row === one.row) boxes.get(other).checked = false; }); // one value for each row
    const box = make("input", { type: "checkbox", disabled: one.value === null || one.row < 0, onchange: () => { if (box.checked) only(); say(); } });
    boxes.set(place, box);
    return make("li", {}, make("label", { class: "check" }, box, make("span", {}, make("strong", { text: words(one.name) }), `: ${one.problem.includes(one.text) ? "" : `“${one.text}”. `}${words(one.problem)}`)));
  };
  async function take() {
    $("list-dialog").close();
    const taken = n_taken();
    if (await page.act("take", { ending, odd: named() })) toast(`${count(taken)} value${taken === 1 ? " was" : "s were"} taken. Fill again to use ${taken === 1 ? "it" : "them"}.`, "note", 8);
  }
  const lines = odd.map(line);
  say();
  $("list-title").textContent = "The list came back";
  fill($("list-body"), make("p", { text: `${count(rows.length)} of its ${count(listed)} rows have a value; ${odd.length ? `${count(odd.length)} of these look odd` : "none looks odd"}.` }),
    odd.length ? make("p", { class: "fine", text: "Tick those that are to be taken all the same; the others are left out." }) : null,
    make("ul", { class: "values odd-rows" }, ...lines), draw, make("div", { class: "actions" }, go, make("button", { type: "button", class: "plain", text: "Take none", onclick: () => $("list-dialog").close() })));
  $("list-dialog").showModal();
}

// ------------------------------------------------------------------------------------------------ a corrected copy

// A file that was dropped beside one of the same name: a corrected copy keeps what was said.
export function askCorrected(page, name, before) {
  $("list-title").textContent = `There is a table “${before}” already`;
  const open = async (keep) => {
    $("list-dialog").close();
    if (keep) await post("/open/adopt", { name, before }).catch(page.failed);
    await page.act("open", { name });
  };
  fill($("list-body"), make("p", { text: `The new one is called “${name}”. The old one stays as it is.` }), make("div", { class: "actions" },
    make("button", { type: "button", class: "primary", text: "It is a corrected copy: keep what I said", onclick: () => open(true) }),
    make("button", { type: "button", class: "plain", text: "It is another table", onclick: () => open(false) })));
  $("list-dialog").showModal();
}
