// The analysts: their budgets, joining, leaving and tokens.
import { useState } from "preact/hooks";

import { amount, percent, plural, showAmount } from "../format.js";
import { Dialog, ProblemBox, Text, copy } from "../ui.jsx";
import { analysts, join, leave, rotate } from "./state.js";

/** A new token, shown once. */
function NewToken({ issued, onClose }) {
  return (
    <Dialog title={`Token of ${issued.name}`} onClose={onClose} wide>
      <p>
        Pass it on to <Text>{issued.name}</Text> over a safe channel. It is shown once and stored nowhere; any previous token and its sessions have ended.
      </p>
      <code class="token">{issued.token}</code>
      <button type="button" class="primary" onClick={() => copy(issued.token, "Token")}>
        Copy
      </button>
    </Dialog>
  );
}

function Join({ onIssued, onClose }) {
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const spare = analysts.value.unallocated_part;
  const onSubmit = async (event) => {
    event.preventDefault();
    const { name, share } = event.currentTarget.elements;
    setBusy(true);
    try {
      onIssued(await join(name.value.trim(), share.value.trim()));
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Add an analyst" onClose={onClose}>
      <form onSubmit={onSubmit} class="stack">
        <label for="join-name">Name</label>
        <input id="join-name" name="name" required autocomplete="off" />
        <label for="join-share">Share of the whole budget</label>
        <input id="join-share" name="share" required autocomplete="off" placeholder={`such as 1/20; ${showAmount(spare)} is unallocated`} />
        <p class="muted">The share comes from the unallocated budget. What joining means for the others is under Fairness.</p>
        {problem && <ProblemBox problem={problem} />}
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Adding…" : "Add"}
        </button>
      </form>
    </Dialog>
  );
}

function Remove({ of, onClose }) {
  const [donate, setDonate] = useState(false);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const onRemove = async () => {
    setBusy(true);
    try {
      await leave(of.analyst, donate);
      onClose();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Remove ${of.analyst} for good?`} onClose={onClose}>
      <ul class="plain-list">
        <li>The token and all sessions of the analyst end at once.</li>
        <li>{of.waiting ? `${plural(of.waiting, "waiting question")} will be refused.` : "No question of theirs is waiting."}</li>
        <li>The name cannot be used again.</li>
        <li>
          What is left, {showAmount(of.left)} of {showAmount(of.share)}, {donate ? "is spent on a measurement for all others." : "is never spent."}
        </li>
      </ul>
      <label class="check">
        <input type="checkbox" checked={donate} onChange={(event) => setDonate(event.currentTarget.checked)} /> Donate the rest to the remaining analysts
      </label>
      {problem && <ProblemBox problem={problem} />}
      <div class="dialog-buttons">
        <button type="button" onClick={onClose}>
          Keep
        </button>
        <button type="button" class="danger" onClick={onRemove} disabled={busy}>
          {busy ? "Removing…" : "Remove for good"}
        </button>
      </div>
    </Dialog>
  );
}

function Rotate({ of, onIssued, onClose }) {
  const [problem, setProblem] = useState(null);
  const onRotate = async () => {
    try {
      onIssued(await rotate(of.analyst));
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Dialog title={`New token for ${of.analyst}?`} onClose={onClose}>
      <p>The present token and all sessions of the analyst end at once.</p>
      {problem && <ProblemBox problem={problem} />}
      <div class="dialog-buttons">
        <button type="button" onClick={onClose}>
          Keep the present one
        </button>
        <button type="button" class="primary" onClick={onRotate}>
          Issue a new token
        </button>
      </div>
    </Dialog>
  );
}

/** The columns of figures. */
const FIGURES = {
  Share: (of) => percent(amount(of.part)),
  Spent: (of) => (amount(of.share) ? percent(amount(of.spent) / amount(of.share)) : "–"),
  Left: (of) => (of.questions_left === null ? showAmount(of.left) : plural(of.questions_left, "question")),
  Asked: (of) => of.asked.toLocaleString("en-US"),
  Waiting: (of) => of.waiting.toLocaleString("en-US"),
};

export function Analysts() {
  const [dialog, setDialog] = useState(null);
  const close = () => setDialog(null);
  const onIssued = (issued) => setDialog({ kind: "token", issued });
  const list = analysts.value;
  if (!list) return <p class="skeleton" />;
  const spare = amount(list.unallocated_part);
  return (
    <>
      <section class="card">
        <div class="card-head">
          <h2>{plural(list.analysts.length, "analyst")}</h2>
          <span class="muted">{percent(spare)} of the budget is unallocated</span>
          <button type="button" class="primary" onClick={() => setDialog({ kind: "join" })} disabled={spare <= 0}>
            Add an analyst
          </button>
        </div>
        <div class="table-scroll" tabIndex={0} role="group" aria-label="Analysts and their budgets">
          {/* On narrow screens every row is a block, which would lose the meaning of a table without roles. */}
          <table class="analysts" role="table">
            <thead role="rowgroup">
              <tr role="row">
                {["Name", ...Object.keys(FIGURES), "Actions"].map((name) => (
                  <th scope="col" role="columnheader" key={name}>
                    {name === "Actions" ? <span class="hidden">{name}</span> : name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody role="rowgroup">
              {list.analysts.map((each) => (
                <tr role="row" key={each.analyst}>
                  <th scope="row" role="rowheader">
                    <Text>{each.analyst}</Text>
                  </th>
                  {Object.entries(FIGURES).map(([name, show]) => (
                    <td role="cell" key={name} data-name={name}>
                      {show(each)}
                    </td>
                  ))}
                  <td role="cell" class="actions">
                    <button type="button" class="plain" onClick={() => setDialog({ kind: "rotate", of: each })} aria-label={`New token for ${each.analyst}`}>
                      New token
                    </button>
                    <button type="button" class="plain danger" onClick={() => setDialog({ kind: "remove", of: each })} aria-label={`Remove ${each.analyst}`}>
                      Remove
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      {dialog?.kind === "join" && <Join onIssued={onIssued} onClose={close} />}
      {dialog?.kind === "remove" && <Remove of={dialog.of} onClose={close} />}
      {dialog?.kind === "rotate" && <Rotate of={dialog.of} onIssued={onIssued} onClose={close} />}
      {dialog?.kind === "token" && <NewToken issued={dialog.issued} onClose={close} />}
    </>
  );
}
