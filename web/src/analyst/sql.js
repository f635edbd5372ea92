// SQL as text: names, constants, and the statement that the form describes.

export const KEYWORDS = ["SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE", "AS", "ASC", "DESC", "CASE", "WHEN", "THEN", "ELSE", "END", "FILTER", "TRUE", "FALSE", "NULL", "DISTINCT", "WITH", "OVER", "PARTITION BY", "ROLLUP", "CUBE", "GROUPING SETS", "WITHIN GROUP", "INTERVAL", "DATE", "OFFSET", "NULLS FIRST", "NULLS LAST", "ILIKE", "SIMILAR TO", "IS DISTINCT FROM"];
export const FUNCTIONS = [
  ["COUNT(*)", "the number of rows"],
  ["COUNT", "the number of values of a column"],
  ["SUM", "the sum of a column"],
  ["AVG", "the average of a column"],
  ["COUNT_IF", "the number of rows where a condition holds"],
  ["MEDIAN", "the median of a column"],
  ["QUANTILE_CONT", "a quantile: of a column, such as 0.9"],
  ["STDDEV", "the standard deviation of integers"],
  ["VARIANCE", "the variance of integers"],
  ...["ABS", "ROUND", "FLOOR", "CEIL", "SQRT", "LN", "EXP", "POWER", "GREATEST", "LEAST", "WIDTH_BUCKET", "CAST"].map((each) => [each, "of numbers"]),
  ...["UPPER", "LOWER", "TRIM", "LEFT", "RIGHT", "SUBSTRING", "REPLACE", "LENGTH", "CONCAT", "STARTS_WITH", "CONTAINS"].map((each) => [each, "of text"]),
  ...["EXTRACT", "DATE_TRUNC", "DATE_DIFF", "YEAR", "QUARTER", "MONTH", "DAY"].map((each) => [each, "of dates"]),
  ...["COALESCE", "NULLIF", "IF"].map((each) => [each, "a choice"]),
];

const RESERVED = new Set(`${KEYWORDS.join(" ")} JOIN ON UNION ALL ANY USER TABLE`.split(" "));

/** A name as SQL needs it written. */
export const name = (text) =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(text) && !RESERVED.has(text.toUpperCase()) ? text : `"${text.replaceAll('"', '""')}"`;

/** A label as a constant. */
export const constant = (value) => {
  if (value === null) return "NULL";
  if (typeof value === "boolean") return value ? "TRUE" : "FALSE";
  return typeof value === "number" ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
};

/** All that can be named in a statement: {name, kind, labels, of} for columns and their bins. */
export function columns(dataset) {
  return dataset.attributes.flatMap((each) => [
    { name: each.name, kind: each.kind, labels: each.labels, of: null },
    ...Object.entries(each.bins).map(([bin, labels]) => ({ name: bin, kind: "bins", labels, of: each.name })),
  ]);
}

/** What an aggregate works on: measures and columns of numbers; a median is of columns only. */
export function numericNames(dataset, aggregate) {
  const attributes = dataset.attributes.filter((each) => ["integer", "binned"].includes(each.kind)).map((each) => each.name);
  const measures = aggregate === "MEDIAN" ? [] : dataset.measures.map((each) => each.name);
  return [...new Set([...measures, ...attributes])];
}

function condition({ column, kind, operator, value, upTo }) {
  const left = name(column);
  if (kind === "integer" && operator === "between") return `${left} BETWEEN ${value} AND ${upTo}`;
  if (value === null) return operator === "is" ? `${left} IS NULL` : `${left} IS NOT NULL`;
  if (typeof value === "boolean") return (operator === "is") === value ? left : `NOT ${left}`;
  return `${left} ${operator === "is" ? "=" : "<>"} ${constant(value)}`;
}

/** The statement that a form describes: {aggregate, of, filters, groups}. */
export function fromForm(table, { aggregate, of, filters, groups }) {
  const number = aggregate === "COUNT" ? "COUNT(*)" : `${aggregate}(${name(of)})`;
  const keys = groups.map(name);
  const lines = [`SELECT ${[...keys, number].join(", ")}`, `FROM ${name(table)}`];
  if (filters.length) lines.push(`WHERE ${filters.map(condition).join("\n  AND ")}`);
  if (keys.length) lines.push(`GROUP BY ${keys.join(", ")}`);
  return lines.join("\n");
}

/** Simple statements about a dataset, each with its meaning: [[meaning, statement], ...]. */
export function examples(dataset) {
  const form = { aggregate: "COUNT", of: null, filters: [], groups: [] };
  const found = [["How many rows are there?", form]];
  const [grouped] = columns(dataset).filter((each) => each.labels.length <= 12);
  if (grouped) found.push([`How many by ${grouped.name}?`, { ...form, groups: [grouped.name] }]);
  const [average] = numericNames(dataset, "AVG");
  if (average) found.push([`What is the average ${average}?`, { ...form, aggregate: "AVG", of: average }]);
  return found.map(([meaning, each]) => [meaning, fromForm(dataset.name, each)]);
}
