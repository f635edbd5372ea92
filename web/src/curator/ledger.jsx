// The ledger: its events, newest first, to filter, search and export.
import { useState } from "preact/hooks";

import { session } from "../api.js";
import { plural } from "../format.js";
import { ProblemBox, Text, notify, save } from "../ui.jsx";
import { kindName, summary } from "./events.js";
import { Verify } from "./verify.jsx";
import { events, exportEvents, loadEvents, loadOlder, total } from "./state.js";

const SHOWN = 200;
const MOST_DETAIL = 4000;

function EventRow({ event }) {
  const [open, setOpen] = useState(false);
  const text = open ? JSON.stringify(event.content, null, 1) : "";
  return (
    <li class="event">
      <button type="button" class="plain event-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="event-number">{event.number}</span>
        <span class="event-kind">{kindName(event.kind)}</span>
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

/** How many events are shown, of those that were read, of all. */
function counted(found, read) {
  const all = plural(total.value, "event");
  if (read < total.value) return `${found.toLocaleString("en-US")} of the newest ${read.toLocaleString("en-US")} events; the ledger has ${all}.`;
  return found < read ? `${found.toLocaleString("en-US")} of ${all}.` : `${all}.`;
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
                {kindName(each)}
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
        <p class="muted">{counted(found.length, events.value.length)}</p>
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
