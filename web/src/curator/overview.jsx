// The overview: shares, spent and left; questions by outcome; what needs attention.
import { useWidth } from "../analyst/charts.jsx";
import { amount, odds, percent, plural, showAmount } from "../format.js";
import { Text } from "../ui.jsx";
import { analysts, certificate, dataset, events, settings, total } from "./state.js";

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
  parts.push({ name: "unallocated", kind: "unallocated", from: at, size: amount(analysts.value.unallocated_part) });
  return (
    <div ref={parent} class="chart">
      <svg width={width} height="64" role="img" aria-label="The budget: what each analyst has spent and has left, and what is unallocated">
        {parts.map((part) => (
          <g key={`${part.name} ${part.kind}`}>
            <title>{`${part.name}: ${percent(part.size)} ${part.kind === "unallocated" ? "" : part.kind}`}</title>
            <rect class={`share ${part.kind}`} x={part.from * width + 1} y="24" width={Math.max(0, part.size * width - 2)} height="26" rx="3" />
            {part.kind !== "left" && (part.kind === "spent" ? amount(list.find((each) => each.analyst === part.name).part) : part.size) * width > 60 && (
              <text x={part.from * width + 2} y="16">
                {part.name}
              </text>
            )}
          </g>
        ))}
      </svg>
      <p class="legend">
        <span class="key spent" /> spent <span class="key left" /> left <span class="key unallocated" /> unallocated
      </p>
    </div>
  );
}

const KINDS = ["paid", "free", "refused"];
const BUCKETS = 40;

/** The questions among these events, in order: {analyst, kind}. */
function questionsOf(list) {
  const asked = new Map(list.filter((each) => each.kind === "asked").map((each) => [each.number, each.content.analyst]));
  const kinds = { answered: "paid", answeredfree: "free", refused: "refused" };
  return list
    .filter((each) => each.kind in kinds && asked.has(each.content.asked))
    .map((each) => {
      const cost = each.kind === "answered" && each.content.answers.some((answer) => answer.cost && amount(answer.cost) > 0);
      return { analyst: asked.get(each.content.asked), kind: each.kind === "answered" && !cost ? "free" : kinds[each.kind] };
    });
}

function Activity() {
  const [parent, width] = useWidth();
  const found = questionsOf(events.value);
  if (!found.length) return <p class="muted">No question has been asked yet.</p>;
  const size = Math.max(1, Math.ceil(found.length / BUCKETS));
  const buckets = [];
  for (let at = 0; at < found.length; at += size) {
    const part = found.slice(at, at + size);
    buckets.push(KINDS.map((kind) => part.filter((each) => each.kind === kind).length));
  }
  const step = Math.min(40, width / buckets.length);
  const scale = 96 / size;
  return (
    <div ref={parent} class="chart">
      <svg width={width} height="108" role="img" aria-label={`The last ${found.length} questions, by outcome`}>
        {buckets.map((counts, at) => {
          let y = 104;
          return counts.map((count, kind) => {
            y -= count * scale;
            return (
              <rect key={`${at} ${kind}`} class={`activity ${KINDS[kind]}`} x={at * step + 1} y={y} width={Math.max(1, step - 2)} height={count * scale}>
                <title>{`${count} ${KINDS[kind]}`}</title>
              </rect>
            );
          });
        })}
        <line class="zero" x1="0" x2={width} y1="104.5" y2="104.5" />
      </svg>
      <p class="legend">
        {KINDS.map((kind) => (
          <span key={kind}>
            <span class={`key activity-${kind}`} /> {found.filter((each) => each.kind === kind).length} {kind}
          </span>
        ))}
        <span class="muted">the last {plural(found.length, "question")}, newest on the right</span>
      </p>
    </div>
  );
}

function alerts() {
  const found = [];
  const info = dataset.value;
  if (info.paused) found.push("The dataset is paused: no question is accepted.");
  for (const each of analysts.value.analysts) {
    if (each.questions_left === 0) found.push(`${each.analyst} cannot pay for any more questions.`);
    if (each.waiting > 0) found.push(`${each.analyst} has ${plural(each.waiting, "waiting question")}.`);
  }
  const report = certificate.value;
  if (report?.contradicted) found.push(`The certificate is contradicted in ${plural(report.contradicted, "entry", "entries")}.`);
  else if (report?.holds === false) found.push("At least one analyst is worse off for sharing.");
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

export function Overview() {
  const info = dataset.value;
  if (!analysts.value || !events.value) return <p class="skeleton" />;
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
        <h2>Questions</h2>
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
