// A question's answer: the table with error bars, a chart, downloads, and where the numbers come from.
import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";

import { get, session } from "../api.js";
import { halfWidth, high, label, low, margin, number, plural, showAmount } from "../format.js";
import { Menu, ProblemBox, Spinner, Tabs, Text, copy, notify, save } from "../ui.jsx";
import { fitting, toPng } from "./charts.jsx";
import { focusEditor, setText } from "./editor.jsx";
import { dataset, history, inQuestions, sayDone, shown, takesTurns } from "./state.js";
import { examples, columns as schema } from "./sql.js";
import { snippets } from "./snippets.js";

const MOST_ROWS = 500;
/** The view that the user chose last: "Table" or the name of a chart. */
const chosen = signal(null);
const SOURCES = {
  measured: "measured for this question",
  cached: "measured before",
  reconstructed: "estimated from earlier measurements",
  synthetic: "from a synthetic table",
  public: "public, without noise",
};

/** A small picture of a number and its interval, on the scale of its column, as wide as the column. */
function ErrorBar({ field, from, to }) {
  const half = halfWidth(field);
  if (field.value === null || !Number.isFinite(half) || !(to > from)) return null;
  const at = (value) => `${(100 * (value - from)) / (to - from)}%`;
  const crosses = low(field) < 0 && high(field) > 0;
  return (
    <svg class="error-bar" width="100%" height="16" aria-hidden="true">
      {from < 0 && <line class="zero" x1={at(0)} x2={at(0)} y1="0" y2="16" />}
      <line class="whisker" x1={at(low(field))} x2={at(high(field))} y1="8" y2="8" />
      {[low(field), high(field)].map((end, index) => (
        <line class="whisker" key={index} x1={at(end)} x2={at(end)} y1="4" y2="12" />
      ))}
      <circle class={crosses ? "dot open" : "dot"} cx={at(field.value)} cy="8" r="3.5" />
    </svg>
  );
}

function Table({ answer }) {
  const { columns, rows } = answer;
  const [all, setAll] = useState(false);
  const kept = all ? rows : rows.slice(0, MOST_ROWS);
  const scales = columns.map((each, at) => {
    if (each.kind !== "number") return null;
    const ends = rows.flatMap((row) => [low(row[at]), high(row[at])]).filter(Number.isFinite);
    return [Math.min(0, ...ends), Math.max(0, ...ends)];
  });
  const numbers = scales.filter(Boolean).length;
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Table of the answer">
      <table class={`answer ${numbers > 2 ? "many" : numbers > 1 ? "two" : ""}`}>
        <thead>
          <tr>
            {columns.map((each, at) => [
              <th key={at} scope="col" class={each.kind}>
                <Text>{each.name}</Text>
              </th>,
              each.kind === "number" && <td key={`${at} margin`} colSpan={2} />,
            ])}
          </tr>
        </thead>
        <tbody>
          {kept.map((row, index) => (
            <tr key={index}>
              {columns.map((each, at) =>
                each.kind === "group" ? (
                  <th key={at} scope="row" class="group">
                    <Text>{label(row[at])}</Text>
                  </th>
                ) : (
                  [
                    <td key={at} class="number">
                      {number(row[at].value, halfWidth(row[at]))}
                    </td>,
                    <td key={`${at} margin`} class="margin">
                      {margin(row[at])}
                    </td>,
                    <td key={`${at} bar`} class="bar">
                      <ErrorBar field={row[at]} from={scales[at][0]} to={scales[at][1]} />
                    </td>,
                  ]
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {kept.length < rows.length && (
        <button type="button" class="plain" onClick={() => setAll(true)}>
          Show all {plural(rows.length, "row")}
        </button>
      )}
    </div>
  );
}

function Footer({ ticket }) {
  const { answer } = ticket;
  const sources = [...new Set(answer.rows.flatMap((row) => row.filter((each) => each?.source).map((each) => each.source)))];
  const questions = inQuestions(answer.cost);
  const cost = answer.cost === "0" ? "free" : `cost ${questions === null ? showAmount(answer.cost) : plural(questions, "question")}`;
  const payer = answer.paid_by === session.value.name ? "paid by you" : answer.paid_by ? `paid by ${answer.paid_by}` : "";
  return (
    <footer class="answer-footer">
      <p>
        {[plural(answer.rows.length, "row"), sources.map((each) => SOURCES[each] ?? each).join(", "), cost].filter(Boolean).join(" · ")}
        {payer && (
          <>
            {" · "}
            <Text>{payer}</Text>
          </>
        )}
        {sources.length > 0 && (
          <>
            {" · "}
            <span class="nowrap">± is a 95 % interval</span>
          </>
        )}
      </p>
      {answer.notes.map((note) => (
        <p class="note" key={note}>
          {note}
        </p>
      ))}
    </footer>
  );
}

function Downloads({ ticket, svg }) {
  const stem = `${session.value.dataset}-${ticket.number}`;
  const file = async (format) => {
    try {
      save(await get(`/tickets/${ticket.number}/file?format=${format}`, { blob: true }), `${stem}.${format}`);
    } catch (error) {
      notify(error.message);
    }
  };
  const png = async () => {
    const chart = await svg();
    if (chart) save(await toPng(chart, getComputedStyle(chart.closest(".chart")).backgroundColor), `${stem}.png`);
  };
  return (
    <div class="downloads">
      <button type="button" class="plain" onClick={() => file("csv")}>
        CSV
      </button>
      <button type="button" class="plain" onClick={() => file("parquet")}>
        Parquet
      </button>
      <button type="button" class="plain" onClick={png}>
        PNG
      </button>
      <Menu text="Copy" label="Copy as" actions={snippets(ticket, dataset.value.name).map(([language, text]) => [`as ${language}`, () => copy(text, language)])} />
    </div>
  );
}

/** The view of an answer: the chosen one where it fits, a chart of its shape where another was chosen. */
function choose(charts, { rows }) {
  if (!charts.length || chosen.value === "Table") return "Table";
  if (chosen.value === null) return rows.length > 1 ? "Table" : charts[0][0];
  return (charts.find(([name]) => name === chosen.value) ?? charts[0])[0];
}

const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));

function Answer({ ticket }) {
  const { answer } = ticket;
  const ordered = new Set(
    schema(dataset.value)
      .filter((each) => ["integer", "date", "binned", "bins"].includes(each.kind))
      .map((each) => each.name),
  );
  const charts = fitting(answer, ordered);
  const numbers = answer.columns.map((each, at) => [each.name, at]).filter(([, at]) => answer.columns[at].kind === "number");
  const view = choose(charts, answer);
  const setView = (name) => (chosen.value = name);
  const [column, setColumn] = useState(numbers[0]?.[1]);
  const body = useRef();
  const Chart = charts.find(([name]) => name === view)?.[1];
  /** The chart on the page; from the table, it is drawn first. */
  const svg = async () => {
    if (!Chart && charts.length) {
      setView(charts[0][0]);
      await nextFrame();
      await nextFrame();
    }
    return body.current.querySelector(".chart svg");
  };
  return (
    <>
      <div class="results-head">
        <Tabs names={["Table", ...charts.map(([name]) => name)]} current={view} onChange={setView} label="View of the answer" id="answer-view" />
        {Chart && numbers.length > 1 && view !== "Interval" && (
          <select aria-label="Number to draw" value={column} onChange={(event) => setColumn(Number(event.currentTarget.value))}>
            {numbers.map(([name, at]) => (
              <option key={at} value={at}>
                {name}
              </option>
            ))}
          </select>
        )}
        <Downloads ticket={ticket} svg={svg} />
      </div>
      <div id="answer-view" role="tabpanel" aria-label={view} ref={body}>
        {Chart ? <Chart rows={answer.rows} columns={answer.columns} column={column} title={answer.columns[column]?.name} /> : <Table answer={answer} />}
      </div>
      <Footer ticket={ticket} />
    </>
  );
}

function Waiting({ ticket }) {
  const [done, setDone] = useState(false);
  const onDone = async () => {
    await sayDone();
    setDone(true);
    notify("The others no longer wait for you. Asking again takes you back in.");
  };
  return (
    <div class="waiting-box">
      <Spinner text="Waiting for its turn" />
      <p>
        {ticket.position ? `${plural(ticket.position, "question")} of yours ${ticket.position === 1 ? "comes" : "come"} before it. ` : "It is the next of yours. "}
        {takesTurns.value && "Analysts take turns here, so that the order makes no one worse off: the others ask first, or say that they are done."}
      </p>
      <p class="muted">You can leave the page and come back: the question is kept, and its answer will be in the history.</p>
      {takesTurns.value && (
        <button type="button" onClick={onDone} disabled={done}>
          I’m done for now
        </button>
      )}
    </div>
  );
}

/** Statements to begin with, from the public schema. They are put into the editor, not asked. */
function Examples() {
  const info = dataset.value;
  return (
    <ul class="examples" aria-label="Examples">
      {examples(info).map(([meaning, text]) => (
        <li key={text}>
          <button type="button" onClick={() => (setText(text), focusEditor())}>
            <Text>{meaning}</Text>
          </button>
        </li>
      ))}
    </ul>
  );
}

export function Results() {
  const ticket = shown.value;
  return (
    <section class="results" aria-label="Answer" aria-live="polite">
      {!ticket && (
        <div class="empty">
          <h2>{history.value?.length ? "Ask a question" : "Ask the first question"}</h2>
          <p>Type SQL above, build it with the form, or click a column. You see the price and the error of an answer before you ask.</p>
          {dataset.value && <Examples />}
        </div>
      )}
      {ticket && (
        <div class="question-text">
          <code dir="auto">{ticket.sql}</code>
          <button type="button" class="plain" onClick={() => (setText(ticket.sql), focusEditor())}>
            Edit
          </button>
        </div>
      )}
      {ticket?.state === "waiting" && <Waiting ticket={ticket} key={ticket.number} />}
      {ticket?.problem && <ProblemBox problem={ticket.problem} />}
      {ticket?.answer && dataset.value && <Answer ticket={ticket} key={ticket.number} />}
    </section>
  );
}
