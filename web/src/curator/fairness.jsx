// Fairness: the certificate as a picture, and what these settings promise.
import { shorten, useWidth } from "../analyst/charts.jsx";
import { number } from "../format.js";
import { ProblemBox, Text } from "../ui.jsx";
import { certificate, dataset, noCertificate } from "./state.js";

/** The pair that differs most: an analyst, and the other without whom they would do best. */
function worstPair(standings) {
  let worst = null;
  for (const each of standings) {
    for (const [other, without] of Object.entries(each.without ?? {})) {
      const loss = without - each.here;
      if (!worst || loss > worst.loss) worst = { analyst: each.analyst, other, here: each.here, without, loss };
    }
  }
  return worst;
}

function verdict({ exact, holds, contradicted, mechanism }) {
  if (!exact) return ["", `The certificate of ${mechanism} depends on the data and cannot be published.`];
  if (holds === null) return ["", "No answer has been judged yet."];
  if (contradicted) return ["bad", "Do not rely on this certificate: a second implementation contradicts it."];
  return holds ? ["good", "No analyst is worse off for sharing."] : ["bad", "At least one analyst is worse off for sharing."];
}

/** Below this width, names and figures are above the dots, not beside them. */
const NARROW = 480;

/** Paired dots: useful answers alone and here. */
function Pairs({ standings }) {
  const [parent, width] = useWidth();
  const narrow = width < NARROW;
  const figures = standings.map((each) => `${number(each.here)} here, ${number(each.alone)} alone${narrow ? "" : `, of ${each.answers.toLocaleString("en-US")}`}`);
  const widest = (texts) => Math.max(...texts.map((each) => each.length)) * 7 + 20;
  const left = narrow ? 8 : Math.min(widest(standings.map((each) => `${each.analyst}  `)), width * 0.3);
  const right = narrow ? 8 : widest(figures);
  const letters = Math.floor((narrow ? width - widest(figures) : left - 12) / 8);
  const line = narrow ? 48 : 34;
  const most = Math.max(1, ...standings.flatMap((each) => [each.here, each.alone]));
  const scale = (value) => left + (value / most) * (width - left - right);
  return (
    <div class="chart" ref={parent}>
      <svg width={width} height={standings.length * line + 8} role="img" aria-label="Useful answers of each analyst, here and alone">
        {standings.map((each, at) => {
          const y = at * line + (narrow ? 34 : 18);
          const text = narrow ? y - 18 : y + 4;
          const worse = each.here < each.alone;
          return (
            <g key={each.analyst}>
              <title>{`${each.analyst}: ${number(each.here)} useful answers here, ${number(each.alone)} alone, of ${each.answers}`}</title>
              <text class="value" x={0} y={text}>
                {shorten(each.analyst, letters)}
              </text>
              <line class="grid" x1={left} x2={width - right} y1={y} y2={y} />
              <line class={worse ? "pair worse" : "pair"} x1={scale(each.alone)} x2={scale(each.here)} y1={y} y2={y} />
              <circle class="alone" cx={scale(each.alone)} cy={y} r="7" />
              <circle class={worse ? "here worse" : "here"} cx={scale(each.here)} cy={y} r="5" />
              <text x={width} y={text} text-anchor="end">
                {figures[at]}
              </text>
            </g>
          );
        })}
      </svg>
      <p class="legend">
        <span class="key dot-alone" /> alone, with their own share <span class="key dot-here" /> here
      </p>
    </div>
  );
}

const WorstPair = ({ of: { analyst, other, here, without, loss } }) => (
  <p class="worst-pair">
    Worst pair: <Text>{analyst}</Text> has {number(here)} useful {here === 1 ? "answer" : "answers"}, and would have {number(without)} without <Text>{other}</Text>.
    {loss <= 0 && " No analyst would do better without any other."}
  </p>
);

const STATUS = { proven: "good", guaranteed: "good" };

export function Fairness() {
  const report = certificate.value;
  if (noCertificate.value) return <ProblemBox problem={noCertificate.value} />;
  if (!report) return <p class="skeleton" />;
  const [kind, text] = verdict(report);
  const pair = worstPair(report.analysts);
  const judged = report.entries + report.behind;
  return (
    <>
      <section class={`card verdict ${kind}`} aria-live="polite">
        <h2>Certificate</h2>
        <p class="verdict-text">{text}</p>
        <p class="muted">
          Judged up to entry {report.entries.toLocaleString("en-US")} of {judged.toLocaleString("en-US")}; {report.checked.toLocaleString("en-US")} checked by a second implementation.
        </p>
        {pair && report.holds !== null && <WorstPair of={pair} />}
      </section>
      {report.exact && (
        <section class="card">
          <h2>Useful answers (expected error of at most {number(report.error_threshold)})</h2>
          <Pairs standings={report.analysts} />
        </section>
      )}
      <section class="card">
        <h2>What these settings promise</h2>
        <ul class="promises">
          {dataset.value.promises.map((each) => (
            <li key={each.desideratum}>
              <p>
                <strong>{each.meaning}</strong> <span class={`badge ${STATUS[each.status] ?? ""}`}>{each.status}</span>
              </p>
              <p class="muted">
                {each.desideratum[0].toUpperCase() + each.desideratum.slice(1)}.{" "}
                {each.assumptions.length > 0 && (
                  <>
                    Assuming: <Text>{each.assumptions.join(" ")}</Text>
                  </>
                )}
              </p>
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}
