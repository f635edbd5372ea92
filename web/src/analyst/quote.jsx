// The quote line: what an answer costs and how precise it is, before it is asked for.
import { number, plural, showAmount } from "../format.js";
import { Text } from "../ui.jsx";
import { mend } from "./editor.jsx";
import { correction } from "./mistakes.js";
import { ask, asking, budget, dataset, draft, inQuestions, pending, sql } from "./state.js";

/** So many columns of numbers are quoted one by one; of more, the least and the largest error. */
const MOST_NAMED = 2;

const PAUSED = "The curator has paused the dataset: no question is accepted until it is resumed.";

/** The precision of an offer in words: ± for each column of numbers. */
function precision(quote, offer) {
  const names = quote.columns.filter((each) => each.kind === "number").map((each) => each.name);
  if (!names.length) return "public, without noise";
  const known = offer.errors.map((pair, at) => pair && [quote.critical * pair[0], names[at]]).filter(Boolean);
  if (!known.length) return "precision not known in advance";
  const show = (half) => `± ${number(half, half)}`;
  if (names.length === 1) return show(known[0][0]);
  if (known.length <= MOST_NAMED)
    return known.map(([half, name], at) => [
      at > 0 && ", ",
      show(half),
      <span class="name" key={name}>
        {" "}
        <Text>{name}</Text>
      </span>,
    ]);
  const halves = known.map(([half]) => half);
  const [least, most] = [show(Math.min(...halves)), show(Math.max(...halves))];
  return `${least === most ? least : `${least} to ${most}`} (${known.length} columns)`;
}

const cost = (offer) => {
  const questions = inQuestions(offer.cost);
  return questions === null ? `${showAmount(offer.cost)} of your budget` : plural(questions, "question");
};

function Offers({ quote }) {
  const { free, paid } = quote;
  const left = budget.value?.questions_left;
  const isFree = paid && paid.cost === "0";
  const littleGained = quote.notes.some((note) => note.startsWith("Paying would hardly"));
  const notes = dataset.value?.paused ? PAUSED : quote.notes.join(" ");
  return (
    <div class="offers">
      {isFree ? (
        <p class="offer">
          <span class="what">{quote.columns.some((each) => each.kind === "number") ? "Free, already measured" : "Free"}</span> <b>{precision(quote, paid)}</b>
        </p>
      ) : (
        <>
          <p class="offer">
            <span class="what">{free ? "Free now" : "Nothing free yet"}</span> {free && <b>{precision(quote, free)}</b>}
          </p>
          <p class={`offer ${littleGained ? "muted" : ""}`}>
            {paid ? (
              <>
                <span class="what">
                  {inQuestions(paid.cost) !== null && left !== null && left !== undefined ? `${inQuestions(paid.cost)} of your ${plural(left, "question")}` : cost(paid)}
                </span>{" "}
                <b>{precision(quote, paid)}</b>
              </>
            ) : (
              <span class="what">Your budget does not cover a better answer</span>
            )}
          </p>
        </>
      )}
      {notes && (
        <p class="quote-note" title={notes}>
          {notes}
        </p>
      )}
    </div>
  );
}

function Mistake({ found }) {
  const { problem } = found;
  const change = correction(sql.value, problem);
  return (
    <div class="mistake" role="status">
      <p title={[problem.message, problem.hint].filter(Boolean).join(" ")}>
        <strong>
          <Text>{problem.message}</Text>
        </strong>{" "}
        {problem.hint && !change && <Text>{problem.hint}</Text>}
      </p>
      {change && (
        <button type="button" onClick={() => mend(change)}>
          Replace with <code>{change.text}</code>
        </button>
      )}
    </div>
  );
}

function Buttons({ quote }) {
  const busy = asking.value;
  const isFree = quote?.paid?.cost === "0";
  const little = quote?.notes.some((note) => note.startsWith("Paying would hardly"));
  const disabled = busy || pending.value || dataset.value?.paused;
  return (
    <div class="ask-buttons">
      {!isFree && (
        <button type="button" class={little || (quote && !quote.paid) ? "primary" : ""} disabled={disabled || !quote?.free} onClick={() => ask(false)} title="Ctrl-Shift-Enter">
          Ask for free
        </button>
      )}
      <button type="button" class={little ? "" : "primary"} disabled={disabled || !quote?.paid} onClick={() => ask(true)} title="Ctrl-Enter">
        {busy ? "Asking…" : isFree ? "Ask, free" : quote?.paid ? `Ask for ${cost(quote.paid)}` : "Ask"}
      </button>
    </div>
  );
}

export function QuoteLine() {
  const found = draft.value;
  const current = found && !pending.value ? found : null;
  return (
    <section class="quote-line" aria-label="Quote" data-pending={pending.value}>
      <div class="quote-text" aria-live="polite">
        {!found && !pending.value && <p class="muted">{dataset.value?.paused ? PAUSED : "The quote appears here as you type. Quotes are free."}</p>}
        {pending.value && !found?.quote && <p class="muted">Quoting…</p>}
        {found?.quote && <Offers quote={found.quote} />}
        {current?.problem && <Mistake found={current} />}
      </div>
      <Buttons quote={found?.quote} />
    </section>
  );
}
