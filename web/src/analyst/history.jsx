// The analyst's questions, newest first, with cost and payer.
import { useState } from "preact/hooks";

import { session } from "../api.js";
import { plural, showAmount } from "../format.js";
import { Text } from "../ui.jsx";
import { history, inQuestions, open, shown } from "./state.js";

const PAGE = 50;

const SOURCES = { cached: "measured before", reconstructed: "estimated" };

function status({ state, answer, problem, position }) {
  if (state === "waiting") return position ? `waiting behind ${plural(position, "question")} of yours` : "waiting for its turn";
  if (state === "refused") return `refused: ${problem?.message ?? ""}`;
  const found = answer.rows.flat().find((each) => each?.source)?.source ?? "";
  const source = SOURCES[found] ?? found;
  if (answer.cost === "0") return [source, "free", answer.paid_by && answer.paid_by !== session.value.name ? `paid by ${answer.paid_by}` : ""].filter(Boolean).join(" · ");
  const questions = inQuestions(answer.cost);
  return `${source} · ${questions === null ? `cost ${showAmount(answer.cost)}` : plural(questions, "question")}`;
}

export function History() {
  const [most, setMost] = useState(PAGE);
  const all = history.value;
  return (
    <section class="history" aria-labelledby="history-title">
      <h2 id="history-title">History</h2>
      {!all && <p class="skeleton" />}
      {all && !all.length && <p class="muted">Your questions will be here. Looking at an answer again is always free.</p>}
      <ol>
        {(all ?? []).slice(0, most).map((ticket) => (
          <li key={ticket.number} class={shown.value?.number === ticket.number ? "current" : ""}>
            <button type="button" class="plain" onClick={() => open(ticket)} aria-current={shown.value?.number === ticket.number}>
              <code dir="auto">{ticket.sql.replace(/\s+/g, " ")}</code>
              <span class={`status ${ticket.state}`}>
                <Text>{status(ticket)}</Text>
                {ticket.state === "answered" && <span class="free-mark">✓ free to repeat</span>}
              </span>
            </button>
          </li>
        ))}
      </ol>
      {all && all.length > most && (
        <button type="button" class="plain" onClick={() => setMost(most + PAGE)}>
          Show more
        </button>
      )}
    </section>
  );
}
