// Requests to the service: relative to the page, with the session's CSRF header.
import { signal } from "@preact/signals";

/** Whether the last request reached the service. */
export const online = signal(true);
/** The session: {dataset, name, role, csrf}; null if signed out, undefined until known. */
export const session = signal(undefined);
/** Why the user has to sign in again, if so. */
export const signedOutBecause = signal("");

/** A refusal of the service: its code, message, hint, position and suggestion. */
export class Problem extends Error {
  constructor(status, problem, retryAfter) {
    super(problem.message);
    Object.assign(this, { status, retryAfter, ...problem });
  }
}

/** The service cannot be reached. */
export class Offline extends Error {
  constructor() {
    super("The service cannot be reached.");
    this.hint = "The page goes on by itself when it is back.";
  }
}

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

async function send(method, path, { body, signal: abort, blob } = {}) {
  const headers = { Accept: "application/json" };
  if (session.value) headers["X-Sharewell-CSRF"] = session.value.csrf;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      signal: abort,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    online.value = false;
    throw new Offline();
  }
  online.value = true;
  if (response.ok) {
    if (blob) return response.blob();
    return response.status === 204 ? null : response.json();
  }
  const problem = await response.json().catch(() => ({
    code: "error",
    message: "The service answered in an unexpected way.",
    hint: "Reload the page.",
  }));
  throw new Problem(response.status, problem, Number(response.headers.get("Retry-After") || 1));
}

/** Whether a request may succeed later as it is. */
const isTransient = (error) =>
  error instanceof Offline ||
  (error.status === 503 && error.code !== "service.paused") ||
  error.status === 502 ||
  error.status === 504;

/**
 * Send a request; with `retry`, again while the service restarts. Only requests that change nothing, or
 * carry an idempotency key, may be retried.
 */
export async function call(method, path, options = {}) {
  for (let wait = 0.3; ; wait = Math.min(2 * wait, 5)) {
    try {
      return await send(method, path, options);
    } catch (error) {
      if (error.status === 401 && session.value) {
        signedOutBecause.value = "Your session has ended. Sign in again to go on.";
        session.value = null;
      }
      if (!options.retry || !isTransient(error)) {
        if (options.retry && error.status === 429) {
          await pause(error.retryAfter);
          continue;
        }
        throw error;
      }
      online.value = false;
      await pause(wait);
    }
  }
}

const of = (path) => `v1/datasets/${encodeURIComponent(session.value.dataset)}${path}`;

export const get = (path = "", options) => call("GET", of(path), { retry: true, ...options });
export const post = (path, body, options) => call("POST", of(path), { body, ...options });
export const remove = (path) => call("DELETE", of(path));

/** Ask whose session the browser has. */
export async function resume() {
  try {
    session.value = await call("GET", "v1/session", { retry: true });
  } catch {
    session.value = null;
  }
}

/** Exchange a token or a code for a session. */
export async function signIn(credentials) {
  session.value = await call("POST", "v1/session", { body: credentials });
  signedOutBecause.value = "";
}

export async function signOut() {
  await call("DELETE", "v1/session").catch(() => null);
  signedOutBecause.value = "";
  session.value = null;
}

/** A new idempotency key. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
