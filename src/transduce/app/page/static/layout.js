// Where the table begins and ends: the first rows of the file as they stand; a click says which one has the names.

import { read } from "/page/api.js";
import { $, fill, make } from "/page/dom.js";
import { number } from "/page/locale.js";

export async function openLayout(page) {
  let rows;
  try {
    rows = await read("/open/raw");
  } catch (error) {
    page.failed(error);
    return;
  }
  draw(page, rows);
  $("layout-dialog").showModal();
}

function draw(page, rows) {
  const { choices } = page.state, wide = Math.min(Math.max(...rows.map(({ cells }) => cells.length)), 12);
  const change = async (changes) => {
    if (await page.change({ target: null, besides: [], ...changes })) $("layout-dialog").close();
    else $("layout-refused").textContent = page.refusal;
  };
  const lines = rows.map(({ row, cells }) => make("tr", { class: row === choices.header ? "aim" : "" },
    make("th", { scope: "row", class: "number", id: `raw-${row}`, text: number(row) }),
    make("td", {}, make("button", { type: "button", class: "plain", text: "The names are here", "aria-describedby": `raw-${row}`, "aria-pressed": String(row === choices.header), onclick: () => change({ header: row, rows: null }) })),
    ...Array.from({ length: wide }, (_, place) => make("td", { text: cells[place] ?? "" }))));
  const [from, to] = (choices.rows ?? ":").split(":");
  const field = (id, value) => make("input", { id, value, inputmode: "numeric", size: 6, maxlength: 9, autocomplete: "off" });
  const first = field("first-row", from), last = field("last-row", to);
  const form = make("form", { class: "inline-form" }, make("label", { for: "first-row", text: "The data are in rows" }), first, make("label", { for: "last-row", text: "to" }), last, make("button", { type: "submit", text: "Use these rows" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = `${first.value.trim()}:${last.value.trim()}`;
    change({ rows: asked === ":" ? null : asked });
  });
  fill($("layout-body"), make("p", { text: "These are the first rows of the file as they stand. In which row are the names of the columns? What is above it is left out." }),
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The first rows of the file" }, make("table", { class: "rows raw" }, make("tbody", {}, ...lines))),
    make("p", { class: "fine", text: "Leave a field empty to have the row found for you. Footnotes and totals below the data are left out when the last row is named." }), form,
    make("div", { class: "actions" }, make("button", { type: "button", class: "plain", text: "No row has names", onclick: () => change({ header: 0, rows: null }) }),
      make("button", { type: "button", class: "plain", text: "Find the table by itself", onclick: () => change({ header: null, rows: null }) })),
    make("p", { class: "refused", id: "layout-refused", role: "alert" }));
}
