// The overview: shares, spent and left; questions over time; what needs attention; changed settings.
import { shorten, useWidth } from "../analyst/charts.jsx";
import { amount, odds, percent, plural, showAmount } from "../format.js";
import { Text } from "../ui.jsx";
import { Activity } from "./activity.jsx";
import { activity, analysts, certificate, dataset, settings, total } from "./state.js";

/** Shares are named where each has so many pixels. */
const LEAST_NAMED = 28;

/** One stacked bar of the whole budget: for each analyst spent and left, then what is unallocated. */
function Shares() {
  const [parent, width] = useWidth();
  const list = analysts.value.analysts;
  const whole = amount(dataset.value.total);
  let at = 0;
  const parts = list.flatMap((each) => {
    const found = [
      { name: each.analyst, kind: "spent", from: at, size: amount(each.spent) / whole },
      { name: each.analyst, kind: "left", from: at + amount(each.spent) / whole, size: amount(each.left) / whole },
    ];
    at += amount(each.share) / whole;
    return found;
  });
  const unallocated = amount(analysts.value.unallocated_part);
  parts.push({ name: "unallocated", kind: "unallocated", from: at, size: unallocated });
  const names = [...list.map((each) => [each.analyst, amount(each.share) / whole]), ["unallocated", unallocated]];
  const starts = names.map((_, index) => names.slice(0, index).reduce((sum, [, size]) => sum + size, 0));
  return (
    <div ref={parent} class="chart">
      <svg width={width} height="64" role="img" aria-label="The budget: what each analyst has spent and has left, and what is unallocated">
        {parts.map((part) => (
          <g key={`${part.name} ${part.kind}`}>
            <title>{`${part.name}: ${percent(part.size)} ${part.kind === "unallocated" ? "" : part.kind}`}</title>
            <rect class={`share ${part.kind}`} x={part.from * width + 1} y="24" width={Math.max(0, part.size * width - 2)} height="26" rx="3" />
          </g>
        ))}
        {names.every(([, size]) => size === 0 || size * width >= LEAST_NAMED) &&
          names.map(([name, size], index) => (
            <text key={name} x={starts[index] * width + 2} y="16">
              {size > 0 && shorten(name, Math.floor((size * width - 4) / 7))}
            </text>
          ))}
      </svg>
      <p class="legend">
        <span class="key spent" /> spent <span class="key left" /> left <span class="key unallocated" /> unallocated
      </p>
    </div>
  );
}

/** What needs attention, the most urgent first. */
function alerts() {
  const found = [];
  const report = certificate.value;
  if (dataset.value.paused) found.push("The dataset is paused: no question is accepted.");
  if (report?.contradicted) found.push(`The certificate is contradicted in ${plural(report.contradicted, "entry", "entries")}.`);
  else if (report?.holds === false) found.push("At least one analyst is worse off for sharing.");
  const list = analysts.value.analysts;
  const exhausted = list.filter((each) => each.questions_left === 0).map((each) => each.analyst);
  if (exhausted.length) found.push(`No budget left for paid questions: ${exhausted.join(", ")}.`);
  const waiting = list.filter((each) => each.waiting > 0).map((each) => `${each.analyst} ${each.waiting.toLocaleString("en-US")}`);
  if (waiting.length) found.push(`Waiting questions: ${waiting.join(", ")}.`);
  return found;
}

const Fact = ({ name, children }) => (
  <div class="fact">
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

/** Settings whose value in the file is not that of the ledger: they take effect at the next start. */
function Settings() {
  if (!settings.value?.readable) return <p class="note">The configuration file cannot be read now.</p>;
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Changed settings">
      <table>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">In the ledger</th>
            <th scope="col">In the file</th>
          </tr>
        </thead>
        <tbody>
          {settings.value.changes.map((each) => (
            <tr key={each.setting}>
              <th scope="row">
                <code>{each.setting}</code>
              </th>
              <td>
                <Text>{each.ledger ?? "–"}</Text>
              </td>
              <td>
                <Text>{each.file ?? "–"}</Text>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The places of everything, until the figures have come. */
export const LoadingOverview = () => (
  <div class="loading" role="status" aria-label="Loading">
    <div class="fact-row">
      {Array.from({ length: 6 }, (_, at) => (
        <p class="skeleton" key={at} />
      ))}
    </div>
    <p class="skeleton card" />
    <p class="skeleton card" />
  </div>
);

export function Overview() {
  const info = dataset.value;
  if (!analysts.value || !activity.value) return <LoadingOverview />;
  const list = analysts.value.analysts;
  const spent = list.reduce((sum, each) => sum + amount(each.spent), 0) / amount(info.total);
  const warnings = alerts();
  return (
    <>
      {warnings.length > 0 && (
        <section class="card alerts" aria-label="Needs attention">
          <h2>Needs attention</h2>
          <ul>
            {warnings.map((each) => (
              <li key={each}>
                <Text>{each}</Text>
              </li>
            ))}
          </ul>
        </section>
      )}
      <dl class="fact-row">
        <Fact name="Budget">epsilon {showAmount(info.epsilon)}</Fact>
        <Fact name="Odds, at most">{odds(amount(info.epsilon))} times</Fact>
        <Fact name="Spent">{percent(spent)}</Fact>
        <Fact name="Analysts">{list.length}</Fact>
        <Fact name="Questions">{list.reduce((sum, each) => sum + each.asked, 0).toLocaleString("en-US")}</Fact>
        <Fact name="Ledger">{plural(total.value, "event")}</Fact>
      </dl>
      <section class="card">
        <h2>Shares</h2>
        <Shares />
      </section>
      <section class="card">
        <h2>Questions over time, by source</h2>
        <Activity />
      </section>
      {settings.value && (settings.value.changes.length > 0 || !settings.value.readable) && (
        <section class="card">
          <h2>Changed in the file since the start; takes effect at the next start</h2>
          <Settings />
        </section>
      )}
    </>
  );
}
