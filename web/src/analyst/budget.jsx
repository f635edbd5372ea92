// The analyst's budget: in questions, and on demand as odds.
import { useState } from "preact/hooks";

import { amount, odds, percent, plural, showAmount } from "../format.js";
import { Dialog } from "../ui.jsx";
import { budget, dataset, paid } from "./state.js";

const left = (of) => (of.questions_left === null ? `${showAmount(of.left)} left` : `${plural(of.questions_left, "question")} left`);

export function BudgetMeter() {
  const [open, setOpen] = useState(false);
  const of = budget.value;
  if (!of || !dataset.value) return <span class="skeleton meter-skeleton" />;
  // Of what was there for questions: the seed is paid for before the first.
  const whole = amount(of.left) + (paid.value ?? Infinity);
  const part = whole ? amount(of.left) / whole : 0;
  return (
    <>
      <button type="button" class="plain meter-button" onClick={() => setOpen(true)} aria-haspopup="dialog">
        <span>{left(of)}</span>
        <svg class="meter" width="72" height="8" aria-hidden="true">
          <rect class="meter-back" width="72" height="8" rx="4" />
          <rect class="meter-left" width={Math.max(part > 0 ? 4 : 0, 72 * part)} height="8" rx="4" />
        </svg>
      </button>
      {open && <BudgetDialog of={of} info={dataset.value} onClose={() => setOpen(false)} />}
    </>
  );
}

function BudgetDialog({ of, info, onClose }) {
  const epsilon = amount(info.epsilon);
  const one = info.privacy_unit ? `all rows of any one ${info.privacy_unit}` : "any one row";
  const otherwise = info.neighbours === "replace-one" ? `with ${one} changed` : `without ${one}`;
  const name = info.currency === "zcdp" ? "rho" : "epsilon";
  return (
    <Dialog title="Your budget" onClose={onClose}>
      <dl class="facts">
        <dt>Left</dt>
        <dd>
          {left(of)} ({showAmount(of.left)} of {showAmount(of.share)} {name})
        </dd>
        <dt>Your share</dt>
        <dd>{percent(amount(of.part))} of the whole budget; a part of it has paid for the measurement that makes free answers possible.</dd>
        <dt>Asked</dt>
        <dd>
          {plural(of.asked, "question")}
          {of.waiting ? `, ${of.waiting} waiting` : ""}
        </dd>
      </dl>
      <p>What one analyst has paid for is free for all. Asking the same again costs nothing, in any wording.</p>
      <details>
        <summary>What does the budget protect?</summary>
        <p>
          Random noise in the answers hides what {one} of the table says. The whole budget is epsilon = {info.epsilon}: any conclusion from all answers together, to all analysts, is at most <strong>{odds(epsilon)} times</strong> as likely as it
          would be {otherwise}.
        </p>
        <p class="muted">
          {amount(info.delta) > 0 && `Except with a probability of at most delta = ${info.delta}. `}
          Neighbouring tables: {info.neighbours}. Mechanism: {info.mechanism}.
        </p>
      </details>
    </Dialog>
  );
}
