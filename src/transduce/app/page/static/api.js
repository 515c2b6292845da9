// Requests to this page's own server. What is refused comes back as a sentence.

export class Refused extends Error {}
export class Gone extends Error {}
export class Stale extends Error {}

// Each tab has its own table, which it remembers when it is loaded again; "" is none, null the one opened last.
const KEY = "transduce:table";
const CAME = "transduce:came"; // to the labelling page, by a click in this tab
let session = null; // of the labelling page

export const tab = {
  get table() { return sessionStorage.getItem(KEY); },
  set table(name) { sessionStorage.setItem(KEY, name ?? ""); },
  // To the labelling page, from which the same way leads back.
  toLabelling() {
    sessionStorage.setItem(CAME, "yes");
    window.location.assign("/label");
  },
  cameHere() {
    const came = sessionStorage.getItem(CAME) !== null;
    sessionStorage.removeItem(CAME);
    return came;
  },
  // Who comes by an address that a program printed begins at the table that this one has open.
  begin() {
    if (window.location.search !== "?first") return;
    sessionStorage.removeItem(KEY);
    window.history.replaceState(null, "", window.location.pathname);
  },
};

export function beginSession(key) {
  session = key || null;
}

// The address of something of this tab's table, for links and pictures.
export function ofTable(path) {
  return tab.table === null ? path : `${path}${path.includes("?") ? "&" : "?"}table=${encodeURIComponent(tab.table)}`;
}

function headers() {
  const named = tab.table === null ? {} : { "x-transduce-table": encodeURIComponent(tab.table) };
  return session === null ? named : { ...named, "x-transduce-session": session };
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options, headers: { ...headers(), ...options.headers } });
  } catch {
    throw new Gone("The program has ended. Nothing is lost: start the same command again, and open the new address.");
  }
  if (response.status === 403) {
    throw new Gone("This page belongs to an earlier start of the program. Open the address that it printed last.");
  }
  const found = response.headers.get("content-type")?.startsWith("application/json") ? await response.json() : null;
  if (found?.ended) throw new Refused(found.ended);
  if (response.status === 409) throw new Stale(found?.error);
  if (!response.ok || found === null) throw new Refused(found?.error ?? `The request was refused (${response.status}).`);
  return found;
}

export const read = (path) => ask(path);

export const post = (path, body = {}) =>
  ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

export const send = (action, body) => post(`/api/${action}`, body);

export const upload = (path, file) => ask(path, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file });
