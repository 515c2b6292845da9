// Requests to this page's own server. What is refused comes back as a sentence.

export class Refused extends Error {}
export class Gone extends Error {}
export class Stale extends Error {}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
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
