// Keys: one for each class, which can be changed, and the fixed ones.

import { $, fill, make, toast } from "/page/dom.js";

const RESERVED = new Set(["s", "u", "f", "l", "a", "h", "e", "/", "?", ".", " "]);
const ORDER = "1234567890bcdgijkmnopqrtvwxyz"; // classes beyond these are found by typing their names
let store = null, bound = {};

export function beginKeys(about) {
  store = `transduce-label:${about.name}:${about.target}`;
  try {
    bound = JSON.parse(localStorage.getItem(store) ?? "{}");
  } catch {
    bound = {};
  }
}

// The key of each class: the one chosen, else its own name if that is a digit for all, else its place.
export function keysOf(classes) {
  const digits = classes.every(({ name }) => /^[0-9]$/.test(name));
  const usual = classes.map(({ name }, index) => (digits ? name : ORDER[index] ?? null));
  return classes.map(({ name }, index) => bound[name] ?? (Object.values(bound).includes(usual[index]) ? null : usual[index]));
}

export function showKeys(classes, changed) {
  const keys = keysOf(classes);
  fill($("key-list"), ...classes.map(({ name }, index) => {
    const input = make("input", { maxlength: "1", value: keys[index] ?? "", "aria-label": `Key of ${name}` });
    input.addEventListener("input", () => {
      const key = input.value.toLowerCase();
      if (key && (RESERVED.has(key) || keysOf(classes).some((other, i) => other === key && i !== index))) {
        toast(`The key “${key}” is taken.`);
        input.value = keysOf(classes)[index] ?? "";
        return;
      }
      if (key) bound[name] = key;
      else delete bound[name];
      localStorage.setItem(store, JSON.stringify(bound));
      changed();
    });
    return make("label", {}, input, make("span", { text: name, title: name }));
  }));
}

const typing = (target) => target instanceof HTMLElement && target.matches("input:not([type=checkbox]), select, textarea");

export function listen(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
      if (typing(event.target)) event.target.blur();
      actions.escape();
      return;
    }
    if (document.querySelector("dialog[open]") || typing(event.target)) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const index = keysOf(actions.classes()).indexOf(key);
    const fixed = { u: "undo", s: "skip", ArrowLeft: "earlier", ArrowRight: "later", "/": "search", h: "history", e: "export", "?": "settings", ".": "name" }[key];
    const mode = { f: "find", l: "learn", a: "audit" }[key];
    if (index >= 0) actions.label(index);
    else if (/^[-0-9.]$/.test(key) && actions.number(key)) { /* the number's field takes it from here */ }
    else if (fixed) actions[fixed]();
    else if (mode) actions.mode(mode);
    else return;
    event.preventDefault();
  });
}
