// What the analyst's page shows, and what it does: draft, ask, wait, look up.
import { computed, signal } from "@preact/signals";

import { Problem, get, newKey, post, session } from "../api.js";
import { amount } from "../format.js";

/** The public description of the dataset; null until it has come. */
export const dataset = signal(null);
export const budget = signal(null);
/** All questions of the analyst, newest first; null until the first page has come. */
export const history = signal(null);
export const sql = signal("");
/** The last draft: {sql, quote, problem}; `pending` while a newer one is on its way. */
export const draft = signal(null);
export const pending = signal(false);
/** The question that is shown: a ticket, with `problem` if it was refused. */
export const shown = signal(null);
export const asking = signal(false);

/** The price of one paid question, or null where it is not known in advance. */
export const price = computed(() => dataset.value?.query_budget && amount(dataset.value.query_budget));
/** Whether questions wait for their turn. */
export const takesTurns = computed(() => !["none", "in-order"].includes(dataset.value?.scheduler ?? "none"));

/** What the analyst has paid for questions so far; null until the history has come. */
export const paid = computed(() => history.value && history.value.reduce((sum, { answer }) => sum + (answer ? amount(answer.cost) : 0), 0));

/** A cost in questions where questions have a price; null where they have none. */
export const inQuestions = (cost) => (price.value ? Math.round((100 * amount(cost)) / price.value) / 100 : null);

export const loadBudget = async () => {
  budget.value = await get("/me");
};

export async function load() {
  const [info] = await Promise.all([get(), loadBudget()]);
  dataset.value = info;
  await loadHistory();
  const waiting = history.value.find((ticket) => ticket.state === "waiting");
  if (waiting && !shown.value) follow(waiting);
}

/** Read all questions. They come oldest first, so that none is shown before all are here: nothing moves. */
async function loadHistory() {
  const found = [];
  for (let after = -1; after !== null; ) {
    const page = await get(`/questions?after=${after}&limit=1000`);
    found.push(...page.tickets);
    after = page.next;
  }
  const known = new Set(found.map((ticket) => ticket.number));
  const meanwhile = (history.value ?? []).filter((ticket) => !known.has(ticket.number));
  history.value = [...meanwhile, ...found.reverse()];
}

const DEBOUNCE = 120;
let timer;
let drafting;

/** Quote what is typed, once the typing pauses. */
export function draftLater() {
  clearTimeout(timer);
  drafting?.abort();
  const text = sql.value.trim();
  pending.value = Boolean(text);
  if (!text) {
    draft.value = null;
    return;
  }
  timer = setTimeout(() => quote(sql.value), DEBOUNCE);
}

async function quote(text) {
  drafting = new AbortController();
  const { signal: abort } = drafting;
  try {
    const found = await post("/draft", { sql: text }, { signal: abort, retry: true });
    draft.value = { sql: text, ...found };
  } catch (error) {
    if (error.name === "AbortError") return;
    draft.value = { sql: text, quote: null, problem: error };
  }
  pending.value = false;
}

const remember = (ticket) => {
  const others = (history.value ?? []).filter((each) => each.number !== ticket.number);
  history.value = [ticket, ...others].sort((a, b) => b.number - a.number);
};

/** Ask what is in the editor; with the same key it is asked once, however often the request is sent. */
export async function ask(pay) {
  const text = sql.value.trim();
  if (!text || asking.value) return;
  asking.value = true;
  try {
    const ticket = await post("/ask", { sql: text, pay, key: newKey() }, { retry: true });
    remember(ticket);
    if (ticket.state === "waiting") follow(ticket);
    else shown.value = ticket;
  } catch (error) {
    shown.value = { sql: text, pay, state: "refused", problem: error };
    if (error instanceof Problem && error.where) draft.value = { sql: text, quote: null, problem: error };
  } finally {
    asking.value = false;
  }
  await loadBudget().catch(() => null);
  if (session.value) draftLater();
}

/** Show a waiting question, and its answer as soon as there is one. */
export async function follow(ticket) {
  shown.value = ticket;
  while (ticket.state === "waiting" && shown.value?.number === ticket.number && session.value) {
    try {
      ticket = await get(`/tickets/${ticket.number}?wait=15`);
    } catch {
      return;
    }
    remember(ticket);
    if (shown.value?.number === ticket.number) shown.value = ticket;
  }
  if (!session.value) return;
  await loadBudget().catch(() => null);
  // What was measured meanwhile is free now.
  draftLater();
}

/** Show a question of the history. */
export function open(ticket) {
  if (ticket.state === "waiting") follow(ticket);
  else shown.value = ticket;
}

/** Say that there are no more questions for now. */
export const sayDone = () => post("/done");

/** Forget everything, when another user signs in. */
export function reset() {
  clearTimeout(timer);
  drafting?.abort();
  for (const each of [dataset, budget, history, draft, shown]) each.value = null;
  sql.value = "";
  asking.value = pending.value = false;
}
