// Elements are made here only, and text is always set as text: nothing from the table is ever read as markup.

export const $ = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function drawing(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "text") element.textContent = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

// Ten colours are chosen by hand; further ones lie around the circle, no two of them near each other.
export function colour(code) {
  if (code === null || code < 0) return "var(--none)";
  if (code < 10) return `var(--c${code})`;
  const hue = ((code - 10) * 137.508 + 20) % 360, step = (code % 3) * 6;
  return `light-dark(hsl(${hue} 65% ${32 + step}%), hsl(${hue} 75% ${66 + step}%))`;
}

export function dot(code) {
  const found = make("span", { class: "dot", "aria-hidden": "true" });
  found.style.background = colour(code);
  return found;
}

// A colour of the style sheet as the canvas needs it: resolved for light or dark.
export function resolved(name) {
  const probe = make("span", { hidden: true });
  probe.style.color = name;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

// A field whose value is refused says so, beside it and to screen readers, until it is mended; "" takes it back.
export function refuse(field, message) {
  if (message) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
  const id = `${field.id}-refused`;
  const box = $(id) ?? make("span", { id, class: "refused", role: "alert" });
  if (message && !box.isConnected) field.after(box);
  if (!message) box.remove();
  box.textContent = message;
  if (message) field.setAttribute("aria-describedby", id);
  else field.removeAttribute("aria-describedby");
}

export const refused = (field) => field.getAttribute("aria-invalid") === "true";

const LONG = 15; // seconds that an error stays, to be read twice

// What happened, in a line that goes by itself, unless the mouse is on it; that the program has ended stays.
export function toast(text, kind = "error", seconds = kind === "error" ? LONG : 6) {
  const same = [...$("toasts").children].find((one) => one.firstChild.textContent === text);
  const found = same ?? make("p", { class: `toast ${kind === "gone" ? "error gone" : kind}` }, make("span", { text }), make("button", { type: "button", class: "close", "aria-label": "Close", text: "×", onclick: () => found.remove() }));
  if (!same) $("toasts").append(found);
  clearTimeout(found.timer);
  if (kind !== "gone") leave(found, seconds);
}

function leave(line, seconds) {
  const go = () => (line.matches(":hover, :focus-within") ? leave(line, 2) : line.remove());
  line.timer = setTimeout(go, seconds * 1000);
}

export function clearToasts() {
  for (const line of [...$("toasts").children]) line.remove();
}

// The program answers again.
export function clearGone() {
  for (const line of $("toasts").querySelectorAll(".gone")) line.remove();
}

// Notes to be read at leisure: they stand in the page, over nothing else, until somebody closes them.
export function notes(texts) {
  const box = $("notes");
  fill(box, ...(texts.length ? [make("ul", {}, ...texts.map((text) => make("li", { text }))), make("button", { type: "button", class: "close", "aria-label": "Close these notes", text: "×", onclick: () => { box.hidden = true; } })] : []));
  box.hidden = !texts.length;
}
