// Dialogs: search, history, export, settings.

import { read, send } from "/page/api.js";
import { $, fill, make } from "/page/dom.js";
import { showFound, showHistory } from "/page/lists.js";

export function beginDialogs() {
  for (const dialog of document.querySelectorAll("dialog")) {
    const close = make("button", { type: "button", class: "close", "aria-label": "Close", text: "×", onclick: () => dialog.close() });
    dialog.append(close);
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
}

export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

export function beginSearch(model, choose, failed) {
  let asked = 0;
  const input = $("search");
  const go = async () => {
    const words = input.value.trim(), number = ++asked;
    if (!words) {
      fill($("search-list"));
      $("search-count").textContent = "";
      return;
    }
    try {
      const rows = await read(`/api/search?words=${encodeURIComponent(words)}`);
      if (number !== asked) return;
      showFound(model, rows, choose);
      $("search-count").textContent = rows.length >= 50 ? "The first 50 rows." : rows.length === 1 ? "1 row." : `${rows.length} rows.`;
    } catch (error) {
      failed(error);
    }
  };
  let timer = null;
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(go, 150); });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    $("search-list").querySelector("button")?.click();
  });
}

const PART = 100; // decisions listed at a time

export async function openHistory(model, choose, failed) {
  const more = $("history-more");
  let start = 0;
  const add = async () => {
    try {
      const found = await read(`/api/history?start=${start}&count=${PART}`);
      showHistory(model, found, choose);
      start += found.length;
      more.hidden = start >= model.view.progress.decisions;
    } catch (error) {
      failed(error);
    }
  };
  fill($("history-list"));
  more.onclick = add;
  await add();
  $("history-dialog").showModal();
}

export function openExport(about, failed) {
  const body = $("export-body");
  const write = async (force) => {
    fill(body, make("p", { text: "Filling the table from your labels: this can take a minute …", role: "status" }));
    try {
      const found = await send("export", { force });
      if (found.exists) {
        fill(body, make("p", { text: found.exists }), make("div", { class: "actions" },
          make("button", { type: "button", class: "primary", id: "export-replace", text: "Replace them", onclick: () => write(true) })));
        return;
      }
      fill(body, make("p", { class: "strong", id: "export-verdict", text: found.verdict }),
        make("p", { text: `Written into the folder ${found.folder}:` }),
        make("ul", { class: "files", id: "export-files" }, ...found.files.map((text) => make("li", { text }))),
        make("p", { class: "fine", text: found.grounds }));
    } catch (error) {
      $("export-dialog").close();
      failed(error);
    }
  };
  fill(body,
    make("p", { text: `Your table stays as it is. Into ${about.folder ? `the folder ${about.folder}` : "a folder"} are written: the labels and which rows were random draws, the certificates, and the table filled from your labels with its report.` }),
    make("div", { class: "actions" }, make("button", { type: "button", class: "primary", id: "export-go", text: "Write the files", onclick: () => write(false) }),
      make("a", { id: "print-drawn", href: about.home ? "/label/print" : "/print", target: "_blank", rel: "noopener", text: "The drawn rows, to print" })));
  $("export-dialog").showModal();
}
