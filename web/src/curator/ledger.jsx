// The ledger: its events, newest first, to filter, search and export.
import { useState } from "preact/hooks";

import { session } from "../api.js";
import { plural, showAmount } from "../format.js";
import { ProblemBox, Text, notify, save } from "../ui.jsx";
import { Verify } from "./verify.jsx";
import { events, exportEvents, loadEvents, loadOlder, total } from "./state.js";

const SHOWN = 200;
const MOST_DETAIL = 4000;

const bill = (of) =>
  Object.entries(of)
    .map(([payer, cost]) => `${payer} ${showAmount(cost)}`)
    .join(", ");

/** What happened, in words. */
function summary({ kind, content: of }) {
  switch (kind) {
    case "begun":
      return "The dataset was begun.";
    case "opened":
      return `Opened with epsilon ${showAmount(of.epsilon.replace(/\/1$/, ""))}, ${of.neighbours}.`;
    case "granted":
      return `${of.payer} was granted a share of ${showAmount(of.share)}.`;
    case "left":
      return `${of.payer} left.`;
    case "configured":
      return "The service started with these settings.";
    case "charged":
      return `Charged: ${bill(of.bill)}.`;
    case "released":
      return `Released ${plural(of.values.length + of.rest, "number")} for event ${of.charge}.`;
    case "asked":
      return `${of.analyst} asked${of.pay ? "" : " for free"}: ${of.question.sql}`;
    case "answered":
      return `Question ${of.asked} was answered (${plural(of.answers.length, "number")}).`;
    case "answeredfree":
      return `Question ${of.asked} was answered for free (${plural(of.size, "number")}).`;
    case "refused":
      return `Question ${of.asked} was refused: ${of.message}`;
    case "turn":
      return `Turn of ${plural(of.asked.length, "question")}.`;
    case "done":
      return `${of.analyst} is done for now.`;
    case "curatoraction":
      return `${of.curator || "The command line"}: ${of.action.replaceAll("-", " ")}${of.subject ? ` (${of.subject})` : ""}.`;
    case "recovered":
      return `Recovered: ${bill(of.bill)} was booked as spent.`;
    default:
      return kind;
  }
}

function EventRow({ event }) {
  const [open, setOpen] = useState(false);
  const text = open ? JSON.stringify(event.content, null, 1) : "";
  return (
    <li class="event">
      <button type="button" class="plain event-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="event-number">{event.number}</span>
        <span class="event-kind">{event.kind}</span>
        <span class="event-text">
          <Text>{summary(event)}</Text>
        </span>
      </button>
      {open && (
        <pre tabIndex={0}>
          {text.slice(0, MOST_DETAIL)}
          {text.length > MOST_DETAIL && "\n… the export has all of it"}
        </pre>
      )}
    </li>
  );
}

export function Ledger() {
  const [kind, setKind] = useState("");
  const [search, setSearch] = useState("");
  const [progress, setProgress] = useState("");
  const [problem, setProblem] = useState(null);
  if (!events.value) return <p class="skeleton" />;
  const kinds = [...new Set(events.value.map((each) => each.kind))].sort();
  const sought = search.trim().toLowerCase();
  const found = events.value
    .filter((each) => (!kind || each.kind === kind) && (!sought || `${each.number} ${summary(each)}`.toLowerCase().includes(sought)))
    .reverse();
  const tryTo = (doing) => doing().catch(setProblem);
  const onExport = () =>
    tryTo(async () => {
      const blob = await exportEvents((done, of) => setProgress(`${done.toLocaleString("en-US")} of ${of.toLocaleString("en-US")} events`));
      save(blob, `${session.value.dataset}-ledger.ndjson`);
      setProgress("");
      notify("The ledger is exported, without its secret fields.");
    });
  return (
    <>
      <Verify />
      {problem && <ProblemBox problem={problem} />}
      <section class="card" aria-label="Events">
        <div class="ledger-tools">
          <select aria-label="Kind of event" value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            <option value="">all kinds</option>
            {kinds.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
          <input type="search" aria-label="Search events" placeholder="Search events" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
          <button type="button" onClick={() => tryTo(loadEvents)}>
            Refresh
          </button>
          <button type="button" onClick={onExport} disabled={Boolean(progress)}>
            {progress || "Export"}
          </button>
        </div>
        <p class="muted">
          {plural(found.length, "event")} of the newest {events.value.length.toLocaleString("en-US")}; the ledger has {total.value.toLocaleString("en-US")}.
        </p>
        <ol class="events">
          {found.slice(0, SHOWN).map((each) => (
            <EventRow event={each} key={each.number} />
          ))}
        </ol>
        {!found.length && <p class="muted">No event matches.</p>}
        {found.length > SHOWN && <p class="muted">The first {SHOWN} are shown: search to see others.</p>}
        {events.value[0]?.number > 0 && (
          <button type="button" onClick={() => tryTo(loadOlder)}>
            Load older events
          </button>
        )}
      </section>
    </>
  );
}
