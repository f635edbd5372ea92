// Verification: recompute everything that the ledger says, in a process of low priority.
import { useEffect, useState } from "preact/hooks";

import { get, post } from "../api.js";
import { plural } from "../format.js";
import { ProblemBox, Text } from "../ui.jsx";

const POLL = 1000;
const CHECKS = {
  chain: "The hash chain",
  accounts: "Shares and spending",
  questions: "Questions and their order",
  answers: "Answers and their errors",
  certificate: "The fairness certificate",
};

function Progress({ status }) {
  const { check, done, of } = status;
  return (
    <div class="progress" role="status">
      <p>
        {CHECKS[check] ?? check}: {of ? `${done.toLocaleString("en-US")} of ${of.toLocaleString("en-US")}` : "reading"}
      </p>
      <progress value={of ? done : undefined} max={of || undefined} aria-label="Progress of the verification" />
    </div>
  );
}

const Found = ({ status }) => (
  <>
    <p class="verdict-text">{status.ok ? "The ledger is sound." : "The ledger has defects."}</p>
    <ul class="checks">
      {status.checks.map((each) => (
        <li key={each.check}>
          <span aria-hidden="true">{each.skipped ? "–" : each.ok ? "✓" : "✗"}</span>{" "}
          <strong>{CHECKS[each.check] ?? each.check}</strong>{" "}
          <span class="muted">
            {each.skipped
              ? `not checked: ${each.skipped}`
              : Object.entries(each.counts)
                  .map(([what, count]) => `${count.toLocaleString("en-US")} ${what}`)
                  .join(", ")}
          </span>
          {[...each.findings, ...each.notes].slice(0, 20).map((finding) => (
            <p class="note" key={finding.message}>
              <Text>{finding.message}</Text>
            </p>
          ))}
        </li>
      ))}
    </ul>
    <p class="muted">
      {plural(status.events, "event")}. Note the head elsewhere, to find out later whether events were taken back: <code class="head">{status.head}</code>
    </p>
  </>
);

export function Verify() {
  const [status, setStatus] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    get("/verification").then(setStatus, setProblem);
  }, []);
  useEffect(() => {
    if (status?.state !== "running") return undefined;
    const timer = setTimeout(() => get("/verification").then(setStatus, setProblem), POLL);
    return () => clearTimeout(timer);
  }, [status]);
  const start = () => post("/verification").then(setStatus, setProblem);
  const running = status?.state === "running";
  return (
    <section class={`card verdict ${status?.state === "done" ? (status.ok ? "good" : "bad") : ""}`} aria-label="Verification">
      <div class="card-head">
        <h2>Verification</h2>
        <button type="button" onClick={start} disabled={!status || running}>
          {running ? "Verifying…" : status?.state === "done" ? "Verify again" : "Verify"}
        </button>
      </div>
      {problem && <ProblemBox problem={problem} />}
      {status?.state === "none" && <p class="muted">Recomputes every charge, answer and the certificate from the ledger alone, beside the service and after everything else.</p>}
      {running && <Progress status={status} />}
      {status?.state === "failed" && <ProblemBox problem={{ message: status.message }} />}
      {status?.state === "done" && <Found status={status} />}
    </section>
  );
}
