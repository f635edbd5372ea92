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
const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const tick = (value) => (Math.abs(value) >= 10_000 ? `${number(value / 1000)}k` : number(value));

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
export function Bars({ rows, column, title }) {
  const [parent, width] = useWidth();
  const shown = rows.slice(0, MOST_BARS);
  const fields = shown.map((row) => row[column]);
  const names = shown.map((row) => row.filter((field) => field === null || typeof field !== "object").map(label).join(" · ") || title);
  const left = Math.min(Math.max(...names.map((each) => each.length)) * 7.2 + 14, width * 0.36);
  const right = 104;
  const all = [0, ...ends(fields)];
  const [from, to] = [Math.min(...all), Math.max(...all)];
  const pad = from < 0 ? 0.02 * (to - from) : 0;
  const scale = (value) => left + ((value - (from - pad)) / (to - from + pad || 1)) * (width - left - right);
  const height = shown.length * 28 + AXIS + 8;
  return (
    <div class="chart" ref={parent}>
      <svg width={width} height={height} role="img" aria-label={`Bars of ${title}, with 95 % intervals`}>
        <XAxis scale={scale} values={ticks(from, to, Math.max(2, Math.floor((width - left - right) / 90)))} y={height - AXIS} top={0} />
        {shown.map((row, at) => {
          const field = fields[at];
          const y = at * 28 + 16;
          const zero = scale(0);
          const value = field.value === null ? 0 : field.value;
          return (
            <g key={at} class="bar-row">
              <title>{`${names[at]}: ${estimate(field)}`}</title>
              <text x={left - 8} y={y + 5} text-anchor="end">
                {shorten(names[at], Math.floor((left - 10) / 7))}
              </text>
              <rect class={crossesZero(field) ? "bar open" : "bar"} x={Math.min(zero, scale(value))} y={y - 8} width={Math.max(1, Math.abs(scale(value) - zero))} height="16" rx="2" />
              <Whisker field={field} x={scale} y={y} />
              <text class="value" x={width - 4} y={y + 5} text-anchor="end">
                {number(field.value, halfWidth(field))} <tspan class="margin">{margin(field)}</tspan>
              </text>
            </g>
          );
        })}
      </svg>
      {rows.length > MOST_BARS && (
        <p class="muted">
          The first {MOST_BARS} of {rows.length} rows.
        </p>
      )}
    </div>
  );
}

/** A line through ordered groups, within the band of their intervals. */
export function Line({ rows, column, title }) {
  const [parent, width] = useWidth();
  const height = 300;
  const [left, right, top, bottom] = [64, 16, 12, 40];
  const fields = rows.map((row) => row[column]);
  const all = ends(fields);
  let [from, to] = [Math.min(...all), Math.max(...all)];
  // Zero belongs to the picture unless everything is far from it.
  if (from > 0 && from < 0.6 * to) from = 0;
  if (from === to) [from, to] = [from - 1, to + 1];
  const x = (at) => left + (rows.length > 1 ? at / (rows.length - 1) : 0.5) * (width - left - right);
  const y = (value) => top + (1 - (Math.min(Math.max(value, from), to) - from) / (to - from)) * (height - top - bottom);
  const known = fields.map((field, at) => [field, at]).filter(([field]) => field.value !== null);
  const band = [...known.map(([field, at]) => `${x(at)} ${y(high(field))}`), ...[...known].reverse().map(([field, at]) => `${x(at)} ${y(low(field))}`)];
  const step = Math.max(1, Math.ceil(rows.length / Math.max(2, (width - left) / 64)));
  return (
    <div class="chart" ref={parent}>
      <svg width={width} height={height} role="img" aria-label={`Line of ${title}, with a band of 95 % intervals`}>
        <g class="axis">
          {ticks(from, to, 5).map((value) => (
            <g key={value}>
              <line class={value === 0 ? "zero" : "grid"} x1={left} x2={width - right} y1={y(value)} y2={y(value)} />
              <text x={left - 8} y={y(value) + 4} text-anchor="end">
                {tick(value)}
              </text>
            </g>
          ))}
          {rows.map((row, at) =>
            at % step === 0 ? (
              <text key={at} x={x(at)} y={height - bottom + 18} text-anchor="middle">
                {shorten(label(row[0]), 10)}
              </text>
            ) : null,
          )}
        </g>
        <path class="band" d={`M${band.join("L")}Z`} />
        <path class="line" d={`M${known.map(([field, at]) => `${x(at)} ${y(field.value)}`).join("L")}`} />
        {known.map(([field, at]) => (
          <circle key={at} class={crossesZero(field) ? "dot open" : "dot"} cx={x(at)} cy={y(field.value)} r={rows.length > 40 ? 2.5 : 3.5}>
            <title>{`${label(rows[at][0])}: ${estimate(field)}`}</title>
          </circle>
        ))}
      </svg>
    </div>
  );
}

/** Two groupings as a grid; a cell whose interval contains 0 is struck through. */
export function HeatMap({ rows, column, title, columns }) {
  const [parent, width] = useWidth();
  const [first, second] = columns.map((each, at) => (each.kind === "group" ? at : -1)).filter((at) => at >= 0);
  const distinct = (at) => [...new Map(rows.map((row) => [label(row[at]), row[at]])).keys()];
  let [down, across, ofRow, ofColumn] = [distinct(first), distinct(second), first, second];
  if (across.length > down.length && across.length > 14) [down, across, ofRow, ofColumn] = [across, down, second, first];
  const byCell = new Map(rows.map((row) => [`${label(row[ofRow])}\n${label(row[ofColumn])}`, row[column]]));
  const values = finite(rows.map((row) => row[column].value ?? NaN));
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const left = Math.min(Math.max(...down.map((each) => each.length)) * 7.2 + 14, width * 0.3);
  const cell = Math.max(44, (width - left - 4) / across.length);
  const line = down.length > 30 ? 18 : 34;
  const [top, chartWidth] = [30, left + cell * across.length + 4];
  return (
    <div class="chart scroll" ref={parent} tabIndex={0} role="group" aria-label={`Heat map of ${title}`}>
      <svg width={chartWidth} height={top + line * down.length + 4} role="img" aria-label={`Heat map of ${title}; the table has the same numbers`}>
        <g class="axis">
          {across.map((name, at) => (
            <text key={name} x={left + cell * (at + 0.5)} y={18} text-anchor="middle">
              {shorten(name, Math.floor(cell / 7))}
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
                <rect class={`cell ${field.value < 0 ? "negative" : ""}`} x={x + 1} y={y + 1} width={cell - 2} height={line - 2} rx="3" fill-opacity={0.06 + 0.84 * strength} />
                {crossesZero(field) && <path class="strike" d={`M${x + 4} ${y + line - 4}L${x + cell - 4} ${y + 4}`} />}
                {cell >= 56 && line >= 30 && (
                  <text class={strength > 0.62 ? "on-dark" : ""} x={x + cell / 2} y={y + line / 2 + 4} text-anchor="middle">
                    {number(field.value, halfWidth(field))}
                  </text>
                )}
              </g>
            );
          }),
        )}
      </svg>
    </div>
  );
}

/** One row: each number on a scale of its own, with its interval. */
export function Intervals({ rows, columns }) {
  const [parent, width] = useWidth();
  const shown = columns.map((each, at) => [each, rows[0]?.[at]]).filter(([each, field]) => each.kind === "number" && field);
  return (
    <div class="chart" ref={parent}>
      {shown.map(([each, field]) => {
        const half = halfWidth(field);
        if (field.value === null || !Number.isFinite(half))
          return (
            <p key={each.name}>
              {each.name}: {estimate(field)}
            </p>
          );
        const [from, to] = [low(field) - 0.6 * half, high(field) + 0.6 * half];
        const scale = (value) => 40 + ((value - from) / (to - from || 1)) * (width - 80);
        return (
          <svg key={each.name} width={width} height="112" role="img" aria-label={`${each.name}: ${estimate(field)}`}>
            <XAxis scale={scale} values={ticks(from, to, Math.max(2, Math.floor(width / 110)))} y={84} top={20} />
            <rect class="band" x={scale(low(field))} y="38" width={Math.max(1, scale(high(field)) - scale(low(field)))} height="28" rx="4" />
            <Whisker field={field} x={scale} y={52} size={14} />
            <circle class={crossesZero(field) ? "dot open" : "dot"} cx={scale(field.value)} cy="52" r="6" />
            <text class="value" x={scale(field.value)} y="16" text-anchor="middle">
              {shown.length > 1 && <tspan class="margin">{shorten(each.name, 24)} </tspan>}
              {estimate(field)}
            </text>
          </svg>
        );
      })}
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
