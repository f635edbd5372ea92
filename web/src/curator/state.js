// What the curator's page shows, and what it does.
import { signal } from "@preact/signals";

import { get, post, remove } from "../api.js";

export const dataset = signal(null);
/** The analysts with their budgets, and the unallocated budget. */
export const analysts = signal(null);
export const certificate = signal(null);
/** Why there is no certificate, if so. */
export const noCertificate = signal(null);
/** The newest events of the ledger, oldest first, and the number of all. */
export const events = signal(null);
export const total = signal(0);
/** The sources and times of the newest questions, oldest first. */
export const activity = signal(null);
/** How the configuration file differs from the ledger. */
export const settings = signal(null);

const PAGE = 500;

export async function load() {
  const [info] = await Promise.all([get(), loadAnalysts(), loadCertificate(), loadEvents(), loadSettings()]);
  dataset.value = info;
}

export const loadAnalysts = async () => {
  analysts.value = await get("/analysts");
};

export const loadSettings = async () => {
  settings.value = await get("/settings");
};

export async function loadCertificate() {
  try {
    certificate.value = await get("/certificate", { retry: false });
    noCertificate.value = null;
  } catch (error) {
    noCertificate.value = error;
  }
}

const countOf = (head) => Number(head.split(":")[0]);

/** Read the end of the ledger, if it has grown: the first page says how long it is. */
export async function loadEvents() {
  const first = await get("/ledger?limit=1");
  const count = countOf(first.head);
  if (events.value && count === total.value) return;
  const [page, newest] = await Promise.all([get(`/ledger?after=${Math.max(-1, count - 1 - PAGE)}&limit=${PAGE}`), get("/activity")]);
  activity.value = newest;
  events.value = page.events;
  total.value = countOf(page.head);
}

/** Read the events before those that are here. */
export async function loadOlder() {
  const oldest = events.value[0]?.number ?? 0;
  const after = Math.max(-1, oldest - 1 - PAGE);
  const page = await get(`/ledger?after=${after}&limit=${Math.max(1, oldest - 1 - after)}`);
  events.value = [...page.events.filter((each) => each.number < oldest), ...events.value];
}

/** All events as lines of JSON, page by page. */
export async function exportEvents(onProgress) {
  const lines = [];
  for (let after = -1; after !== null; ) {
    const page = await get(`/ledger?after=${after}&limit=${PAGE}`);
    for (const event of page.events) lines.push(JSON.stringify(event));
    onProgress(lines.length, countOf(page.head));
    after = page.next;
  }
  return new Blob(lines.map((line) => `${line}\n`), { type: "application/x-ndjson" });
}

/** Do something as a curator, then show what it has changed. */
async function act(doing) {
  const done = await doing;
  const info = await get();
  dataset.value = info;
  await Promise.all([loadAnalysts(), loadEvents()]);
  return done;
}

const named = (name) => `/analysts/${encodeURIComponent(name)}`;

export const join = (name, share) => act(post("/analysts", { name, share }));
export const leave = (name, donate) => act(remove(`${named(name)}?donate=${donate}`));
export const rotate = (name) => act(post(`${named(name)}/token`));
export const setPaused = (paused) => act(post(paused ? "/pause" : "/resume"));

export function reset() {
  for (const each of [dataset, analysts, certificate, noCertificate, events, activity, settings]) each.value = null;
}
