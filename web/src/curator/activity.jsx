// Questions over time, by the source of their answers.
import { ticks, useWidth } from "../analyst/charts.jsx";
import { plural } from "../format.js";
import { activity } from "./state.js";
import { moment, timeline, until } from "./timeline.js";

/** Where answers come from, in the order in which they are stacked, and what that means. */
const SOURCES = {
  measured: "measured, and paid for",
  cached: "measured before",
  reconstructed: "estimated from earlier measurements",
  synthetic: "from a synthetic table",
  public: "public, without noise",
  free: "free, too long to look up",
  refused: "refused",
};
const HEIGHT = 112;
const TOP = 8;
const AXIS = 24;
/** The narrowest column, the broadest bar and the room for one mark of the axis, in pixels. */
const COLUMN = 12;
const BAR = 32;
const MARK = 56;

/** How many of some sources there are of each kind. */
const count = (sources) =>
  Object.keys(SOURCES)
    .map((source) => [source, sources.filter((each) => each === source).length])
    .filter(([, many]) => many);

const total = (counts) => counts.reduce((sum, [, many]) => sum + many, 0);

/** Whole numbers from 0 to one that is not below the most: the lines of the vertical axis. */
function wholeTicks(most) {
  const [, step] = ticks(0, most, 3).filter(Number.isInteger);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, at) => at * step);
}

/** When the questions were asked, in words. */
function Caption({ many, shown: { first, last, unit } }) {
  if (first === last) return <p class="note">{many === 1 ? `One question, asked on ${moment(first)}.` : `The newest ${plural(many, "question")}, all asked on ${moment(first)}.`}</p>;
  return (
    <p class="note">
      The newest {plural(many, "question")}, asked from {moment(first, last)} to {until(first, last)}. Each column is {unit}.
    </p>
  );
}

/** One column: a part for each source, the measured ones at the bottom. */
function Column({ column, x, width, scale }) {
  const bar = Math.min(BAR, Math.max(1, width - 2));
  let y = TOP + HEIGHT;
  return (
    <g class="activity-column">
      <title>{`${moment(column.from)} to ${until(column.from, column.to)}: ${column.counts.map(([source, many]) => `${many} ${SOURCES[source]}`).join("; ")}`}</title>
      {column.counts.map(([source, many]) => {
        const height = Math.max(1.5, many * scale);
        y -= height;
        return <rect key={source} class={`activity ${source}`} x={x + (width - bar) / 2} y={y} width={bar} height={height > 4 ? height - 1 : height} rx="1.5" />;
      })}
    </g>
  );
}

export const Activity = () => (activity.value.sources.length ? <Chart {...activity.value} /> : <p class="muted">No question has been asked yet.</p>);

function Chart({ sources, times }) {
  const [parent, width] = useWidth();
  const left = 36;
  const room = width - left;
  const found = timeline(times, { most: Math.min(60, Math.floor(room / COLUMN)), mostMarks: Math.min(10, Math.floor(room / MARK)) });
  const columns = found.columns.map((each) => ({ ...each, counts: count(each.members.map((at) => sources[at])) }));
  const most = Math.max(...columns.map((each) => total(each.counts)));
  const levels = wholeTicks(most);
  const scale = HEIGHT / levels.at(-1);
  const x = (time) => left + ((time - found.start) / (found.end - found.start)) * room;
  return (
    <div ref={parent} class="chart">
      <svg width={width} height={TOP + HEIGHT + AXIS} role="img" aria-label={`The newest ${plural(sources.length, "question")} over time, by the source of the answer`}>
        {levels.map((level) => (
          <g key={level}>
            <line class={level ? "grid" : "zero"} x1={left} x2={width} y1={TOP + HEIGHT - level * scale + 0.5} y2={TOP + HEIGHT - level * scale + 0.5} />
            <text x={left - 8} y={TOP + HEIGHT - level * scale + 4} text-anchor="end">
              {level}
            </text>
          </g>
        ))}
        {found.marks.map(({ at, text }) => (
          <g key={at} class="time-mark">
            <line class="zero" x1={x(at) + 0.5} x2={x(at) + 0.5} y1={TOP + HEIGHT} y2={TOP + HEIGHT + 5} />
            <text x={x(at)} y={TOP + HEIGHT + 19} text-anchor={width - x(at) < 20 ? "end" : "middle"}>
              {text}
            </text>
          </g>
        ))}
        {columns.map((each) => each.counts.length > 0 && <Column key={each.from} column={each} x={x(each.from)} width={x(each.to) - x(each.from)} scale={scale} />)}
      </svg>
      <ul class="legend" aria-label="Answers by source">
        {count(sources).map(([source, many]) => (
          <li key={source}>
            <span class={`key activity ${source}`} /> {many.toLocaleString("en-US")} {SOURCES[source]}
          </li>
        ))}
      </ul>
      <Caption many={sources.length} shown={found} />
    </div>
  );
}
