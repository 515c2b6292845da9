// What the page keeps of a table: said, with its place, and deleted by a click and another.

import { read } from "/page/api.js";
import { $, fill, make } from "/page/dom.js";
import { bytes } from "/page/locale.js";
import { lookAgain } from "/page/table.js";

const WORDS = {
  computed: ["What was computed, with copies of your data", "A new fill computes it again."],
  said: ["What you said about the table", "What was computed goes with it."],
  labels: ["Values that you gave on the labelling page", "They cannot be brought back."],
  copy: ["The copy of the file that was dropped here", "All that was kept of it goes, too."],
};

let latest = 0;

export async function drawKept(page) {
  const mine = (latest += 1);
  if (!$("kept").open) {
    fill($("kept-body"));
    return;
  }
  let kept = [];
  try {
    kept = await read("/open/kept");
  } catch (error) {
    page.failed(error);
  }
  if (mine !== latest) return;
  const line = ({ what, name, place: where, bytes: size }, place) => {
    const [words, then] = WORDS[what];
    const sure = () => {
      const yes = make("button", { type: "button", class: "plain", text: "Yes, delete it", onclick: () => remove(page, what, name) });
      button.replaceWith(make("span", { class: "row" }, make("span", { class: "fine", text: then }), yes, make("button", { type: "button", class: "plain", text: "Keep it", onclick: () => drawKept(page) })));
      yes.focus();
    };
    const button = make("button", { type: "button", class: "plain", text: "Delete", "aria-describedby": `kept-${place}`, onclick: sure });
    return make("li", {}, make("span", { class: "value" }, make("span", { id: `kept-${place}`, text: words }), make("span", { class: "fine", text: ` ${where} · ${bytes(size)}` })), button);
  };
  const none = "Nothing yet: the first thing is written when you choose something. Your own file is never changed.";
  fill($("kept-body"), make("p", { class: "fine", text: kept.length ? "Only you can open the folder. Your own file is never changed." : none }), make("ul", { class: "values" }, ...kept.map(line)));
}

async function remove(page, what, name) {
  if (await page.act("delete", { what, name })) page.say("Deleted");
  if (page.state.table) lookAgain(page);
  drawKept(page);
}
