// A question without SQL: what to count, where, and by what. It writes the statement into the editor.
import { useEffect, useRef, useState } from "preact/hooks";

import { label } from "../format.js";
import { setText } from "./editor.jsx";
import { dataset, sql } from "./state.js";
import { columns, fromForm, numericNames } from "./sql.js";

const AGGREGATES = [
  ["COUNT", "Count rows"],
  ["SUM", "Sum of"],
  ["AVG", "Average of"],
  ["MEDIAN", "Median of"],
];
const MOST_GROUPS = 2;

const newFilter = (column) => {
  const values = column.labels;
  const isNumber = column.kind === "integer";
  return {
    column: column.name,
    kind: column.kind,
    operator: isNumber ? "between" : "is",
    value: column.kind === "boolean" ? true : values[0],
    upTo: isNumber ? values.filter((each) => typeof each === "number").at(-1) : undefined,
  };
};

function Select({ label: text, value, options, onChange }) {
  return (
    <select aria-label={text} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map(([key, name]) => (
        <option value={key} key={key}>
          {name}
        </option>
      ))}
    </select>
  );
}

function Filter({ filter, known, onChange, onRemove }) {
  const column = known.find((each) => each.name === filter.column);
  const at = column.labels.findIndex((each) => each === filter.value);
  const bound = (key, text) => (
    <input
      type="number"
      aria-label={text}
      value={filter[key]}
      onInput={(event) => event.currentTarget.value !== "" && onChange({ ...filter, [key]: Number(event.currentTarget.value) })}
    />
  );
  return (
    <li class="filter">
      <Select label="Column" value={filter.column} options={known.map((each) => [each.name, each.name])} onChange={(name) => onChange(newFilter(known.find((each) => each.name === name)))} />
      {filter.operator === "between" ? (
        <span class="bounds">
          from {bound("value", "From")} to {bound("upTo", "To")}
        </span>
      ) : (
        <span class="bounds">
          <Select label="Comparison" value={filter.operator} options={[["is", "is"], ["is not", "is not"]]} onChange={(operator) => onChange({ ...filter, operator })} />
          <Select label="Value" value={String(at)} options={column.labels.map((each, index) => [String(index), label(each)])} onChange={(index) => onChange({ ...filter, value: column.labels[Number(index)] })} />
        </span>
      )}
      <button type="button" class="plain icon" aria-label="Remove this condition" onClick={onRemove}>
        ✕
      </button>
    </li>
  );
}

export function QuestionForm() {
  const info = dataset.value;
  const known = columns(info);
  const [form, setForm] = useState({ aggregate: "COUNT", of: null, filters: [], groups: [] });
  const numeric = numericNames(info, form.aggregate);
  // What was typed before stays until the form is used.
  const untouched = useRef(Boolean(sql.value.trim()));
  useEffect(() => {
    if (!untouched.current) setText(fromForm(info.name, form));
    untouched.current = false;
  }, [form]);
  const change = (part) => setForm({ ...form, ...part });
  const aggregates = AGGREGATES.filter(([each]) => each === "COUNT" || numericNames(info, each).length);
  const choose = (aggregate) => {
    const names = numericNames(info, aggregate);
    change({ aggregate, of: names.includes(form.of) ? form.of : names[0] });
  };
  const unused = known.find((each) => each.kind !== "bins" && !form.filters.some((filter) => filter.column === each.name)) ?? known[0];
  const free = known.filter((each) => !form.groups.includes(each.name));
  return (
    <section class="form" aria-label="Build a question">
      <div class="form-row">
        <span class="form-label">What</span>
        <Select label="What" value={form.aggregate} options={aggregates} onChange={choose} />
        {form.aggregate !== "COUNT" && <Select label="Of" value={form.of} options={numeric.map((each) => [each, each])} onChange={(of) => change({ of })} />}
      </div>
      <div class="form-row">
        <span class="form-label">Where</span>
        <ul>
          {form.filters.map((filter, at) => (
            <Filter
              key={`${at} ${filter.column}`}
              filter={filter}
              known={known}
              onChange={(next) => change({ filters: form.filters.map((each, index) => (index === at ? next : each)) })}
              onRemove={() => change({ filters: form.filters.filter((_, index) => index !== at) })}
            />
          ))}
          <li>
            <button type="button" class="plain" onClick={() => change({ filters: [...form.filters, newFilter(unused)] })}>
              + condition
            </button>
          </li>
        </ul>
      </div>
      <div class="form-row">
        <span class="form-label">By</span>
        {form.groups.map((group) => (
          <span class="chip" key={group}>
            {group}{" "}
            <button type="button" class="plain icon" aria-label={`Do not group by ${group}`} onClick={() => change({ groups: form.groups.filter((each) => each !== group) })}>
              ✕
            </button>
          </span>
        ))}
        {form.groups.length < MOST_GROUPS && (
          <Select label="Group by" value="" options={[["", "+ group"], ...free.map((each) => [each.name, each.name])]} onChange={(group) => group && change({ groups: [...form.groups, group] })} />
        )}
      </div>
    </section>
  );
}
