// Charts of results, drawn as SVG: bars with whiskers, a line with a band, a heat map, an interval.
import { useEffect, useRef, useState } from "preact/hooks";

import { estimate, halfWidth, high, label, low, margin, number } from "../format.js";

const MOST_BARS = 60;
const AXIS = 28;

/** The width of an element, as it changes. */
export function useWidth(first = 640) {
  const element = useRef();
  const [width, setWidth] = useState(first);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(240, Math.floor(entry.contentRect.width))));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

/** Round numbers that divide a range into a few parts. */
export function ticks(from, to, most = 6) {
  const span = to - from || 1;
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(from / step - 1e-9) * step; at <= to + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

const finite = (values) => values.filter(Number.isFinite);
const ends = (fields) => finite(fields.flatMap((each) => [low(each), high(each), each.value]).filter((each) => each !== null));
const crossesZero = (field) => low(field) < 0 && high(field) > 0;
/** A text of at most so many letters. */
export const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const tick = (value) => (Math.abs(value) >= 100_000 ? `${number(value / 1000)}k` : number(value));
/** Below this width, the name of a bar is above it, not beside it. */
const NARROW = 480;

/** The range that whole steps of ticks cover, and the ticks. */
function rounded(from, to, most) {
  const found = ticks(from, to, most);
  const step = found.length > 1 ? found[1] - found[0] : to - from || 1;
  // A little below zero, as noise often is, does not deserve a step of its own.
  const bottom = from < 0 && from > -0.4 * step ? from : Math.floor(from / step + 1e-9) * step;
  const top = Math.ceil(to / step - 1e-9) * step;
  return [bottom, top, ticks(bottom, top, Math.ceil((top - bottom) / step))];
}

/** What an open or dashed mark means, where there is one. */
const MayBeZero = ({ fields }) => (fields.some((field) => field.value !== null && crossesZero(field)) ? <p class="chart-note">Dashed or open: the interval contains 0, so that it may be nothing at all.</p> : null);

const Whisker = ({ field, x, y, size = 5 }) => {
  const [from, to] = [x(low(field)), x(high(field))];
  if (![from, to].every(Number.isFinite)) return null;
  return <path class="whisker" d={`M${from} ${y}H${to}M${from} ${y - size}v${2 * size}M${to} ${y - size}v${2 * size}`} />;
};

function XAxis({ scale, values, y, top }) {
  return (
    <g class="axis">
      {values.map((value) => (
        <g key={value}>
          <line class={value === 0 ? "zero" : "grid"} x1={scale(value)} x2={scale(value)} y1={top} y2={y} />
          <text x={scale(value)} y={y + 16} text-anchor="middle">
            {tick(value)}
          </text>
        </g>
      ))}
    </g>
  );
}

/** One bar a row. A number whose interval contains 0 has an open bar: it may be nothing at all. */
export function Bars({ rows, column, columns, title }) {
  const [parent, width] = useWidth();
  const shown = rows.slice(0, MOST_BARS);
  const fields = shown.map((row) => row[column]);
  const groups = columns.map((each, at) => (each.kind === "group" ? at : -1)).filter((at) => at >= 0);
  const names = shown.map((row) => groups.map((at) => label(row[at])).join(" · ") || title);
  const numbers = fields.map((field) => [number(field.value, halfWidth(field)), margin(field)]);
  const narrow = width < NARROW;
  const left = narrow ? 4 : Math.min(Math.max(...names.map((each) => each.length)) * 7.2 + 14, width * 0.36);
  const right = narrow ? 8 : Math.max(...numbers.map((each) => each.join(" ").length)) * 7 + 20;
  const [from, to] = [Math.min(0, ...ends(fields)), Math.max(0, ...ends(fields))];
  const pad = 0.02 * (to - from);
  const [start, end] = [from < 0 ? from - pad : from, to > 0 ? to + pad : to];
  const scale = (value) => left + ((value - start) / (end - start || 1)) * (width - left - right);
  const line = narrow ? 46 : 28;
  const height = shown.length * line + AXIS + 24;
  const room = narrow ? width - Math.max(...numbers.map((each) => each.join(" ").length)) * 7 - 16 : left - 10;
  return (
    <div class="chart" ref={parent}>
      <svg width={width} height={height} role="img" aria-label={`Bars of ${title}, with 95 % intervals`}>
        <XAxis scale={scale} values={ticks(start, end, Math.max(2, Math.floor((width - left - right) / 90)))} y={height - AXIS - 16} top={0} />
        <text class="axis-title" x={scale((start + end) / 2)} y={height - 8} text-anchor="middle">
          {shorten(title, 40)}
        </text>
        {shown.map((row, at) => {
          const field = fields[at];
          const middle = at * line + (narrow ? 31 : 16);
          const text = narrow ? middle - 14 : middle + 5;
          const zero = scale(0);
          const value = field.value === null ? 0 : field.value;
          return (
            <g key={at} class="bar-row">
              <title>{`${names[at]}: ${estimate(field)}`}</title>
              <text x={narrow ? left : left - 8} y={text} text-anchor={narrow ? "start" : "end"}>
                {shorten(names[at], Math.floor(room / 7))}
              </text>
              <rect class={crossesZero(field) ? "bar open" : "bar"} x={Math.min(zero, scale(value))} y={middle - 8} width={Math.max(1, Math.abs(scale(value) - zero))} height="16" rx="2" />
              <Whisker field={field} x={scale} y={middle} />
              <text class="value" x={width - 4} y={text} text-anchor="end">
                {numbers[at][0]} <tspan class="margin">{numbers[at][1]}</tspan>
              </text>
            </g>
          );
        })}
      </svg>
      <MayBeZero fields={fields} />
      {rows.length > MOST_BARS && (
        <p class="chart-note">
          The first {MOST_BARS} of {rows.length.toLocaleString("en-US")} rows; the table and the downloads have all.
        </p>
      )}
    </div>
  );
}

/** A line through ordered groups, within the band of their intervals. */
export function Line({ rows, column, columns, title }) {
  const [parent, width] = useWidth();
  const height = 300;
  const [left, right, top, bottom] = [64, 16, 28, 48];
  const fields = rows.map((row) => row[column]);
  const all = ends(fields);
  let [from, to] = [Math.min(...all), Math.max(...all)];
  // Zero belongs to the picture unless everything is far from it.
  if (from > 0 && from < 0.6 * to) from = 0;
  if (from === to) [from, to] = [from - 1, to + 1];
  let marks;
  [from, to, marks] = rounded(from, to, 5);
  const x = (at) => left + (rows.length > 1 ? at / (rows.length - 1) : 0.5) * (width - left - right);
  const y = (value) => top + (1 - (Math.min(Math.max(value, from), to) - from) / (to - from)) * (height - top - bottom);
  const known = fields.map((field, at) => [field, at]).filter(([field]) => field.value !== null);
  const band = [...known.map(([field, at]) => `${x(at)} ${y(high(field))}`), ...[...known].reverse().map(([field, at]) => `${x(at)} ${y(low(field))}`)];
  const labels = rows.map((row) => shorten(label(row[0]), 10));
  const rough = rows.length / Math.max(2, (width - left) / (7 * Math.max(...labels.map((each) => each.length)) + 24));
  const step = [1, 2, 5, 10, 20, 50, 100].find((each) => each >= rough) ?? Math.ceil(rough);
  // Where the points are close, the dots are no wider than the line.
  const dot = Math.min(3.5, Math.max(0.4, (x(1) - x(0)) / 4 - 0.6));
  // Numbers are marked at multiples of the step, wherever they begin.
  const first = Number.isInteger(rows[0][0]) ? (step - (((rows[0][0] % step) + step) % step)) % step : 0;
  return (
    <div class="chart" ref={parent}>
      <svg width={width} height={height} role="img" aria-label={`Line of ${title}, with a band of 95 % intervals`}>
        <g class="axis">
          {marks.map((value) => (
            <g key={value}>
              <line class={value === 0 ? "zero" : "grid"} x1={left} x2={width - right} y1={y(value)} y2={y(value)} />
              <text x={left - 8} y={y(value) + 4} text-anchor="end">
                {tick(value)}
              </text>
            </g>
          ))}
          {rows.map((_, at) =>
            at >= first && (at - first) % step === 0 ? (
              <text key={at} x={x(at)} y={height - bottom + 18} text-anchor="middle">
                {labels[at]}
              </text>
            ) : null,
          )}
        </g>
        <text class="axis-title" x={8} y={14}>
          {shorten(title, 40)}
        </text>
        <text class="axis-title" x={(left + width - right) / 2} y={height - 6} text-anchor="middle">
          {shorten(columns[0].name, 40)}
        </text>
        <path class="band" d={`M${band.join("L")}Z`} />
        <path class="line" d={`M${known.map(([field, at]) => `${x(at)} ${y(field.value)}`).join("L")}`} />
        {known.map(([field, at]) => (
          <circle key={at} class={crossesZero(field) ? "dot open" : "dot"} cx={x(at)} cy={y(field.value)} r={dot}>
            <title>{`${label(rows[at][0])}: ${estimate(field)}`}</title>
          </circle>
        ))}
      </svg>
      <MayBeZero fields={fields} />
    </div>
  );
}

/** Two groupings as a grid; a cell whose interval contains 0 is dashed. */
export function HeatMap({ rows, column, title, columns }) {
  const [parent, width] = useWidth();
  const [first, second] = columns.map((each, at) => (each.kind === "group" ? at : -1)).filter((at) => at >= 0);
  const distinct = (at) => [...new Map(rows.map((row) => [label(row[at]), row[at]])).keys()];
  let [down, across, ofRow, ofColumn] = [distinct(first), distinct(second), first, second];
  if (across.length > down.length && across.length > 14) [down, across, ofRow, ofColumn] = [across, down, second, first];
  const byCell = new Map(rows.map((row) => [`${label(row[ofRow])}\n${label(row[ofColumn])}`, row[column]]));
  const values = finite(rows.map((row) => row[column].value ?? NaN));
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const left = Math.min(Math.max(columns[ofRow].name.length, ...down.map((each) => each.length)) * 7.2 + 16, width * 0.3);
  const widest = Math.max(...rows.map((row) => number(row[column].value, halfWidth(row[column])).length));
  const cell = Math.max(7.4 * widest + 14, 56, (width - left - 4) / across.length);
  const line = down.length > 30 ? 20 : 34;
  const [top, chartWidth] = [46, left + cell * across.length + 4];
  return (
    <div class="chart scroll" ref={parent} tabIndex={0} role="group" aria-label={`Heat map of ${title}`}>
      <svg width={chartWidth} height={top + line * down.length + 4} role="img" aria-label={`Heat map of ${title}; the table has the same numbers`}>
        <text class="axis-title" x={left - 8} y={36} text-anchor="end">
          {shorten(columns[ofRow].name, Math.floor((left - 8) / 7))}
        </text>
        <text class="axis-title" x={left + 2} y={14}>
          {shorten(`${columns[ofColumn].name}: ${title}`, 60)}
        </text>
        <g class="axis">
          {across.map((name, at) => (
            <text key={name} x={left + cell * (at + 0.5)} y={36} text-anchor="middle">
              {shorten(name, Math.floor((cell - 4) / 7.2))}
            </text>
          ))}
          {down.map((name, at) => (
            <text key={name} x={left - 8} y={top + line * (at + 0.5) + 4} text-anchor="end">
              {shorten(name, Math.floor((left - 8) / 7))}
            </text>
          ))}
        </g>
        {down.map((one, row) =>
          across.map((other, at) => {
            const field = byCell.get(`${one}\n${other}`);
            if (!field) return null;
            const strength = Math.sqrt(Math.abs(field.value ?? 0) / most);
            const [x, y] = [left + cell * at, top + line * row];
            return (
              <g key={`${row} ${at}`}>
                <title>{`${one}, ${other}: ${estimate(field)}`}</title>
                <rect class={`cell ${field.value < 0 ? "negative" : ""} ${crossesZero(field) ? "open" : ""}`} x={x + 1.5} y={y + 1.5} width={cell - 3} height={line - 3} rx="3" fill-opacity={crossesZero(field) ? 0 : 0.06 + 0.84 * strength} />
                <text class={strength > 0.62 && !crossesZero(field) ? "on-dark" : ""} x={x + cell / 2} y={y + line / 2 + 4} text-anchor="middle">
                  {number(field.value, halfWidth(field))}
                </text>
              </g>
            );
          }),
        )}
      </svg>
      <MayBeZero fields={rows.map((row) => row[column])} />
    </div>
  );
}

const INTERVAL = 112;

/** A number and its interval, on a scale of its own. */
function Interval({ name, field, width }) {
  const half = halfWidth(field);
  const text = (
    <text class="value" x={width / 2} y="16" text-anchor="middle">
      {name && <tspan class="margin">{shorten(name, 24)} </tspan>}
      {estimate(field)}
    </text>
  );
  if (field.value === null || !Number.isFinite(half)) return text;
  const [from, to] = [low(field) - 0.6 * half, high(field) + 0.6 * half];
  const scale = (value) => 24 + ((value - from) / (to - from || 1)) * (width - 48);
  return (
    <>
      <XAxis scale={scale} values={ticks(from, to, Math.max(4, Math.floor(width / 90)))} y={84} top={28} />
      <rect class="band" x={scale(low(field))} y="38" width={Math.max(1, scale(high(field)) - scale(low(field)))} height="28" rx="4" />
      <Whisker field={field} x={scale} y={52} size={14} />
      <circle class={crossesZero(field) ? "dot open" : "dot"} cx={scale(field.value)} cy="52" r="6" />
      {text}
    </>
  );
}

/** One row: each number with its interval. */
export function Intervals({ rows, columns }) {
  const [parent, width] = useWidth();
  const shown = columns.map((each, at) => [each.name, rows[0]?.[at], each.kind]).filter(([, field, kind]) => kind === "number" && field);
  return (
    <div class="chart" ref={parent}>
      <svg width={width} height={INTERVAL * shown.length} role="img" aria-label={shown.map(([name, field]) => `${name}: ${estimate(field)}`).join("; ")}>
        {shown.map(([name, field], at) => (
          <g key={at} transform={`translate(0 ${INTERVAL * at})`}>
            <Interval name={shown.length > 1 ? name : ""} field={field} width={width} />
          </g>
        ))}
      </svg>
    </div>
  );
}

/** The charts that fit a result, the best first: [[name, component], ...]. */
export function fitting({ columns, rows }, ordered) {
  const groups = columns.filter((each) => each.kind === "group");
  if (!rows.length || groups.length === columns.length) return [];
  if (!groups.length) return [["Interval", Intervals]];
  if (groups.length === 2 && rows.length > 3) return [["Heat map", HeatMap], ["Bars", Bars]];
  if (groups.length === 1 && rows.length > 2 && ordered.has(groups[0].name)) return rows.length > 12 ? [["Line", Line], ["Bars", Bars]] : [["Bars", Bars], ["Line", Line]];
  return [["Bars", Bars]];
}

const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "font-size", "font-family", "font-weight", "opacity"];

/** A chart as a PNG image, as it looks on the page. */
export async function toPng(svg, background) {
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((each, at) => {
    const style = getComputedStyle(originals[at]);
    for (const name of COPIED) each.setAttribute(name, style.getPropertyValue(name));
    each.removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  const image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width + 48, 2 * height + 48];
  const context = canvas.getContext("2d");
  context.fillStyle = background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 24, 24, 2 * width, 2 * height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
