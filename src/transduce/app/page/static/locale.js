// Numbers, dates, sizes and times as the browser's language writes them.

const whole = new Intl.NumberFormat();
const formats = new Map();

export const count = (number) => whole.format(number);

// Years and other small whole numbers are not grouped.
export function number(value, decimals = 6) {
  if (value === null || value === undefined) return "";
  if (!formats.has(decimals)) formats.set(decimals, new Intl.NumberFormat(undefined, { maximumFractionDigits: Math.min(Math.max(decimals, 0), 12), useGrouping: "min2" }));
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-9)) return new Intl.NumberFormat(undefined, { notation: "scientific", maximumSignificantDigits: 4 }).format(value);
  return formats.get(decimals).format(value);
}

// Five digits are enough to compare answers by; no power of ten is written where none is needed.
export const rough = (value) => number(Number(value.toPrecision(5)), 9);

const days = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
const moments = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });

// A text that is a date is written as one; any other stays as it is.
export function text(value) {
  const found = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::\d\d(?:\.0+)?)?)?$/.exec(value);
  if (!found) return value;
  const time = new Date(`${found[1]}T${found[2] ?? "00:00"}:00Z`);
  if (Number.isNaN(time.getTime())) return value;
  return found[2] && found[2] !== "00:00" ? moments.format(time) : days.format(time);
}

export const percent = (share) => new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 }).format(share).replace(/\s?%/u, " %"); // as the sentences have it

export function bytes(size) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  const step = Math.min(Math.floor(Math.log10(Math.max(size, 1)) / 3), 3);
  const unitDisplay = step ? "short" : "long"; // the short word for bytes is none: 5 byte
  return new Intl.NumberFormat(undefined, { style: "unit", unit: units[step], unitDisplay, maximumSignificantDigits: 3 }).format(size / 1000 ** step);
}

export function seconds(time) {
  const whole = Math.max(Math.round(time), 0);
  const unit = whole < 100 ? "second" : "minute";
  return new Intl.NumberFormat(undefined, { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 0 }).format(unit === "second" ? whole : whole / 60);
}

export const day = (time) => new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }).format(new Date(time * 1000));

// A number that somebody types as the browser's language writes it, or with the other decimal sign where that can mean
// nothing else; NaN for anything else.
export function typed(text) {
  const sign = (type) => new Intl.NumberFormat(undefined, { useGrouping: true }).formatToParts(1234567.5).find((part) => part.type === type)?.value ?? "";
  const plain = text.trim().replace(/[\u2212\u2013]/g, "-").replace(/\s/g, " "), group = sign("group").replace(/\s/g, " ");
  const escaped = (one) => one.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const [between, point] = [escaped(group || ","), escaped(sign("decimal"))];
  const whole = new RegExp(`^-?0*${between}`).test(plain); // 0,500 is no five hundred: no group of digits is a zero
  if (whole || !new RegExp(`^-?(?=\\D?\\d)(\\d*|\\d{1,3}(${between}\\d{2,3})*${between}\\d{3})(${point}\\d+)?(e[-+]?\\d+)?$`, "i").test(plain)) {
    const other = sign("decimal") === "." ? "," : ".";
    return new RegExp(`^-?\\d*${escaped(other)}\\d+$`).test(plain) ? Number(plain.replace(other, ".")) : NaN;
  }
  return Number(plain.replaceAll(group || ",", "").replace(sign("decimal"), "."));
}

// Sentences come from the program in English. Their numbers are written as everywhere else on the page, and a few words
// of the field as this page calls them; what stands in quotation marks is the table's own.
const WORDS = [
  [/\bLabelled and unlabelled rows\b/g, "Rows with and without a value"], [/\blabelled and unlabelled rows\b/g, "rows with and without a value"], [/\bunlabelled rows\b/g, "rows without a value"], [/\blabelled rows\b/g, "rows with a value"],
  [/\bcalibration label(s?)\b/g, "known value$1 kept aside"], [/\b(a|A|the|The|no|No|one|One|each|Each|of|1) label\b/g, "$1 known value"], [/\blabels\b/g, "known values"], [/\bLabels\b/g, "Known values"],
];
const NUMBER = /(?<![\w.,-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w])|(?<![\w.,-])\d+\.\d+(?![\w.])/g;

export function words(sentence) {
  return (sentence ?? "").split(/(“[^”]*”|'[^']*'|`[^`]*`)/).map((part, place) => {
    if (place % 2) return part;
    const plain = WORDS.reduce((text, [from, to]) => text.replace(from, to), part);
    return plain.replace(NUMBER, (found) => {
      const decimals = (found.split(".")[1] ?? "").length;
      return new Intl.NumberFormat(undefined, { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).format(Number(found.replaceAll(",", "")));
    });
  }).join("");
}
