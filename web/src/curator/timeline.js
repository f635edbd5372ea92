// Times in columns: minutes, hours, days or months of the reader's own clock.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** 1970 began on a Thursday; weeks begin on Mondays. */
const MONDAY = 4 * DAY;

const fixed = (name, size, shift = 0) => ({
  name,
  size,
  floor: (time) => Math.floor((time - shift) / size) * size + shift,
  next: (time) => time + size,
});

const months = (name, many) => ({
  name,
  size: many * 30 * DAY,
  floor: (time) => {
    const date = new Date(time);
    return Date.UTC(date.getUTCFullYear(), Math.floor(date.getUTCMonth() / many) * many);
  },
  next: (time) => {
    const date = new Date(time);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + many);
  },
});

/** What a column may stand for, from the shortest. */
const UNITS = [
  fixed("a minute", MINUTE),
  ...[2, 5, 10, 15, 30].map((many) => fixed(`${many} minutes`, many * MINUTE)),
  fixed("an hour", HOUR),
  ...[2, 3, 6, 12].map((many) => fixed(`${many} hours`, many * HOUR)),
  fixed("a day", DAY),
  fixed("2 days", 2 * DAY),
  fixed("a week", 7 * DAY, MONDAY),
  fixed("2 weeks", 14 * DAY, MONDAY),
  months("a month", 1),
  months("3 months", 3),
  months("a year", 12),
];

/** Seconds since 1970 as the reader's clock shows them, counted as if that clock were UTC: every day has 24 hours. */
function onTheClock(seconds) {
  const time = seconds * SECOND;
  return time - new Date(time).getTimezoneOffset() * MINUTE;
}

const unitFor = (span, most) => UNITS.find(({ size }) => span / size < most) ?? UNITS.at(-1);

/** The columns from the first to the last of some times, and the marks of their axis.
 *
 * At most `most` columns and `mostMarks` marks, and at least `least` columns: a few questions are not drawn broader than many.
 */
export function timeline(seconds, { most = 40, least = 12, mostMarks = 8 } = {}) {
  const times = seconds.map(onTheClock);
  const [first, last] = [times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b))];
  const unit = unitFor(last - first, most);
  const columns = [];
  for (let from = unit.floor(first); from <= last || columns.length < least; from = unit.next(from)) columns.push({ from, to: unit.next(from), members: [] });
  const places = new Map(columns.map((column) => [column.from, column]));
  times.forEach((time, at) => places.get(unit.floor(time)).members.push(at));
  const [start, end] = [columns[0].from, columns.at(-1).to];
  const step = UNITS.find((each) => each.size >= unit.size && (end - start) / each.size <= mostMarks) ?? UNITS.at(-1);
  const marks = [];
  for (let at = step.floor(start); at < end; at = step.next(at)) if (at >= start) marks.push({ at, text: markText(at, step.size) });
  return { columns, marks, unit: unit.name, start, end, first, last };
}

const formatter = (options) => {
  const format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
  return (time) => format.format(time).replaceAll(" ", "\u00a0");
};
const showTime = formatter({ hour: "2-digit", minute: "2-digit" });
const showDay = formatter({ day: "numeric", month: "short" });
const showMonth = formatter({ month: "short" });
const showYear = formatter({ year: "numeric" });

/** A time of a clock in words; the year where it is another than a reference's. */
export function moment(time, reference = time) {
  const year = showYear(time) === showYear(reference) ? "" : ` ${showYear(time)}`;
  return `${showDay(time)}${year}, ${showTime(time)}`;
}

/** A time in words, beside one that was written before it: without what they have in common. */
export const until = (from, to) => (showDay(from) === showDay(to) && showYear(from) === showYear(to) ? showTime(to) : moment(to, from));

/** A mark: the time, the day at midnight; the day; the month, the year in January. */
function markText(time, size) {
  if (size < DAY) return time % DAY ? showTime(time) : showDay(time);
  if (size < 28 * DAY) return showDay(time);
  return size >= 360 * DAY || new Date(time).getUTCMonth() === 0 ? showYear(time) : showMonth(time);
}
