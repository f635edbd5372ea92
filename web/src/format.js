// Numbers, amounts and labels as text, as the command line writes them.

/** Digits after the point that an error justifies: those of its first two digits. */
const decimals = (error) => Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(error))));

const fixed = (value, digits) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** A number with as many digits as its error justifies. */
export function number(value, error) {
  if (value === null || value === undefined) return "NULL";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "NaN";
  const text =
    error > 0 && Number.isFinite(error)
      ? fixed(value, decimals(error))
      : value.toLocaleString("en-US", { maximumSignificantDigits: Number.isInteger(value) ? 21 : 6 });
  return /^-[0.,]*$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

export const low = (field) => field.interval?.[0] ?? -Infinity;
export const high = (field) => field.interval?.[1] ?? Infinity;
/** Half the width of a number's 95 % interval. */
export const halfWidth = (field) => (high(field) - low(field)) / 2;

/** What follows a number: ± half of its interval, or both ends where they are not symmetric. */
export function margin(field) {
  const half = halfWidth(field);
  if (field.value === null) return "";
  if (!Number.isFinite(half)) return "± ?";
  const above = high(field) - field.value;
  if (Math.abs(above - (field.value - low(field))) <= 1e-3 * Math.abs(above) + 1e-9)
    return `± ${number(half, half)}`;
  return `(${number(low(field), half)} to ${number(high(field), half)})`;
}

/** A number with its interval. */
export const estimate = (field) =>
  `${number(field.value, halfWidth(field))} ${margin(field)}`.trim();

/** A label of a group, as SQL writes it. */
export const label = (value) => (value === null ? "NULL" : String(value));

/** An exact amount such as "1/60" as a number. */
export function amount(text) {
  const [over, under = "1"] = String(text).split("/");
  return Number(over) / Number(under);
}

/** An amount to read: exact where that is short. */
export const showAmount = (text) => (String(text).length <= 9 ? String(text) : amount(text).toPrecision(4));

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;

export const percent = (part) => `${(100 * part).toFixed(part < 0.1 && part > 0 ? 1 : 0)} %`;

/** How many times as likely any conclusion becomes, at most. */
export const odds = (epsilon) => Number(Math.exp(epsilon).toPrecision(3)).toLocaleString("en-US", { maximumSignificantDigits: 3 });
