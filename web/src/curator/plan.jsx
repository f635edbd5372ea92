// The plan of a dataset that was never begun: what its seed and its price would mean. No row is read.
import { useEffect, useRef, useState } from "preact/hooks";

import { call, session, signOut } from "../api.js";
import { amount, number, odds, percent, showAmount } from "../format.js";
import { Logo } from "../signin.jsx";
import { nextTheme, theme } from "../theme.js";
import { Menu, ProblemBox, Text, copy } from "../ui.jsx";

const DEBOUNCE = 150;
/** Prices that the slider offers: the budget divided by these. */
const PARTS = [1000, 750, 500, 400, 300, 250, 200, 150, 120, 100, 80, 60, 50, 40, 30, 25, 20, 15, 12, 10, 8, 6, 5, 4];
const STEPS = 20;

/** The place of the offered price that is nearest to one. */
function nearest(price) {
  const distance = (part) => Math.abs(Math.log(part * price));
  return PARTS.reduce((best, part, at) => (distance(part) < distance(PARTS[best]) ? at : best), 0);
}

function Slider({ id, name, value, max, text, onInput }) {
  return (
    <div class="slider">
      <p>
        <label for={id}>{name}</label> <output for={id}>{text}</output>
      </p>
      <input id={id} type="range" min="0" max={max} value={value} aria-valuetext={text} onInput={(event) => onInput(Number(event.currentTarget.value))} />
    </div>
  );
}

const Figures = ({ plan, pending }) => (
  <dl class="fact-row plan-figures" data-pending={pending} aria-live="polite">
    <div class="fact">
      <dt>Useful answers</dt>
      <dd>{percent(plan.useful)}</dd>
    </div>
    <div class="fact">
      <dt>Typical error</dt>
      <dd>{number(plan.typical_error, plan.typical_error)} rows</dd>
    </div>
    <div class="fact">
      <dt>Odds, at most</dt>
      <dd>{odds(amount(plan.epsilon))} times</dd>
    </div>
  </dl>
);

const Analysts = ({ plan }) => (
  <div class="table-scroll" tabIndex={0} role="group" aria-label="What each analyst can expect">
    <table class="plan">
      <thead>
        <tr>
          <th scope="col">Analyst</th>
          <th scope="col">Paid questions</th>
          <th scope="col">Useful answers</th>
        </tr>
      </thead>
      <tbody>
        {plan.analysts.map((each) => (
          <tr key={each.analyst}>
            <th scope="row">
              <Text>{each.analyst}</Text>
            </th>
            <td>{each.questions ?? "–"}</td>
            <td>{each.useful === null ? "–" : percent(each.useful)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

export function PlanPage() {
  const [plan, setPlan] = useState(null);
  const [chosen, setChosen] = useState(null);
  const [pending, setPending] = useState(false);
  const [problem, setProblem] = useState(null);
  const timer = useRef();
  const sent = useRef();
  useEffect(() => {
    call("GET", "v1/plan", { retry: true }).then(setPlan, setProblem);
    return () => clearTimeout(timer.current);
  }, []);
  const propose = (change) => {
    const next = { seed_fraction: plan.seed_fraction, query_budget: plan.query_budget, ...chosen, ...change };
    setChosen(next);
    setPending(true);
    clearTimeout(timer.current);
    sent.current?.abort();
    timer.current = setTimeout(async () => {
      sent.current = new AbortController();
      try {
        setPlan(await call("POST", "v1/plan", { body: next, signal: sent.current.signal }));
        setProblem(null);
      } catch (error) {
        if (error.name === "AbortError") return;
        setProblem(error);
      }
      setPending(false);
    }, DEBOUNCE);
  };
  const now = chosen ?? plan;
  const step = now && Math.round(amount(now.seed_fraction) * STEPS) - 1;
  const toml = now && `[mechanism]\nseed_fraction = "${now.seed_fraction}"\nquery_budget = "${now.query_budget}"\n`;
  return (
    <div class="curator">
      <header class="top">
        <Logo />
        <h1>
          <Text>{session.value.dataset}</Text>
        </h1>
        <span class="badge">not begun</span>
        <div class="top-right">
          <Menu
            text={<Text>{session.value.name}</Text>}
            label={`Account of ${session.value.name}`}
            actions={[
              [`Theme: ${theme.value}`, nextTheme],
              ["Sign out", signOut],
            ]}
          />
        </div>
      </header>
      <main class="main">
        <section class="card">
          <h2>Plan</h2>
          <p>
            The dataset was never begun: nothing is spent, and no row is read. The figures come from the settings and the questions that the analysts are expected to ask. Once you run <code>sharewell begin</code>, seed and price are fixed.
          </p>
          {problem && <ProblemBox problem={problem} />}
          {!plan && !problem && <p class="skeleton" />}
          {plan && (
            <>
              <Slider id="seed-fraction" name="Part of each share for the seed, which makes free answers" value={step} max={STEPS - 2} text={percent(amount(now.seed_fraction))} onInput={(at) => propose({ seed_fraction: `${at + 1}/${STEPS}` })} />
              <Slider id="query-budget" name="Price of a paid question" value={nearest(amount(now.query_budget))} max={PARTS.length - 1} text={`${showAmount(now.query_budget)} of the budget`} onInput={(at) => propose({ query_budget: `1/${PARTS[at]}` })} />
              <Figures plan={plan} pending={pending} />
              <p class="muted">
                An answer is useful if its error is at most {number(plan.error_threshold)}. Seed: {plan.seed}; <code>sharewell plan</code> compares seeds, too.
              </p>
            </>
          )}
        </section>
        {plan && (
          <section class="card">
            <h2>Analysts</h2>
            <Analysts plan={plan} />
          </section>
        )}
        {plan && (
          <section class="card">
            <div class="card-head">
              <h2>For sharewell.toml</h2>
              <button type="button" onClick={() => copy(toml, "Settings")}>
                Copy
              </button>
            </div>
            <pre class="toml">{toml}</pre>
          </section>
        )}
      </main>
    </div>
  );
}
