// The map of rows: near rows are alike, colours are answers, rings are labels.

import { $, colour as classColour, resolved } from "/page/dom.js";
import { count } from "/page/locale.js";

const REACH = 14; // pixels within which a click finds a row
let places = null, codes = null, labelled = null, current = null, palette = null;

const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

// Blue over grey to red, for numbers from low to high.
const HEAT = [[59, 76, 192], [143, 177, 254], [212, 212, 212], [244, 152, 122], [180, 4, 38]];

export function heat(share) {
  const place = Math.min(Math.max(share, 0), 1) * (HEAT.length - 1), low = Math.min(Math.floor(place), HEAT.length - 2);
  return `rgb(${HEAT[low].map((value, i) => Math.round(value + (HEAT[low + 1][i] - value) * (place - low))).join(" ")})`;
}

export function beginMap(choose, title) {
  const canvas = $("map"), tip = $("map-tip");
  canvas.addEventListener("click", (event) => {
    const found = nearest(event);
    if (found !== null) choose(places.rows[found]);
  });
  canvas.addEventListener("mousemove", (event) => {
    const found = nearest(event);
    tip.hidden = found === null;
    if (found !== null) tip.textContent = title(places.rows[found], codes?.[found]);
  });
  canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
  new ResizeObserver(paint).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
}

export function repaint() {
  palette = null;
  paint();
}

function colours() {
  if (palette === null) {
    palette = { none: resolved("var(--none)"), ink: resolved("var(--ink)"), ground: resolved("var(--sunken)"), accent: resolved("var(--accent)") };
    palette.classes = [];
  }
  return palette;
}

export function showMap(found, about, place) {
  places = about.map;
  const drawn = places.rows.length, some = drawn < about.n_rows ? ` of ${count(about.n_rows)} rows, drawn at random` : " rows";
  $("map").setAttribute("aria-label", `Map of ${count(drawn)}${some}: rows that are alike lie near each other. The counts below say the same in numbers.`);
  codes = bytes(found.codes);
  labelled = bytes(found.labelled);
  current = place;
  $("map").dataset.task = about.task;
  paint();
}

function at(index, width, height) {
  return [(places.x[index] / 10000) * width, (1 - places.y[index] / 10000) * height];
}

function paint() {
  const canvas = $("map"), box = canvas.getBoundingClientRect(), density = window.devicePixelRatio || 1;
  if (!places || codes.length !== places.rows.length || box.width === 0) return;
  canvas.width = box.width * density;
  canvas.height = box.height * density;
  const ink = canvas.getContext("2d"), colour = colours(), numbers = canvas.dataset.task === "numbers";
  ink.scale(density, density);
  const size = places.rows.length > 2000 ? 1.7 : places.rows.length > 500 ? 2.3 : 3.2;
  const crowded = labelled.reduce((sum, one) => sum + one, 0) > 0.3 * labelled.length;
  const tint = (code) => (code === 255 ? colour.none : numbers ? heat(code / 254) : (colour.classes[code] ??= resolved(classColour(code))));
  for (const marked of [0, 1]) {
    for (let i = 0; i < codes.length; i += 1) {
      if (labelled[i] !== marked) continue;
      const [x, y] = at(i, box.width, box.height);
      ink.globalAlpha = marked ? 1 : codes[i] === 255 ? 0.55 : 0.62;
      ink.fillStyle = tint(codes[i]);
      ink.beginPath();
      ink.arc(x, y, marked ? size + (crowded ? 0.8 : 1.7) : size, 0, 7);
      ink.fill();
      if (marked) {
        ink.lineWidth = crowded ? 0.6 : 1.4;
        ink.strokeStyle = colour.ink;
        ink.stroke();
      }
    }
  }
  ink.globalAlpha = 1;
  if (current) {
    const x = current[0] * box.width, y = (1 - current[1]) * box.height;
    for (const [width, stroke] of [[5, colour.ground], [2.2, colour.ink]]) {
      ink.lineWidth = width;
      ink.strokeStyle = stroke;
      ink.beginPath();
      ink.arc(x, y, 9, 0, 7);
      ink.stroke();
    }
  }
}

function nearest(event) {
  if (!places || codes.length !== places.rows.length) return null;
  const box = $("map").getBoundingClientRect();
  let best = null, least = REACH * REACH;
  for (let i = 0; i < codes.length; i += 1) {
    const [x, y] = at(i, box.width, box.height);
    const square = (x - event.offsetX) ** 2 + (y - event.offsetY) ** 2;
    if (square < least) [best, least] = [i, square];
  }
  return best;
}
