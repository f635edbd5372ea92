// The public schema: columns, their values and groups, to search and to insert.
import { useState } from "preact/hooks";

import { label } from "../format.js";
import { Text } from "../ui.jsx";
import { insert } from "./editor.jsx";
import { dataset } from "./state.js";
import { constant, name } from "./sql.js";

const MOST_VALUES = 60;

function summary({ kind, labels, size }) {
  if (kind === "boolean") return "yes / no";
  const values = labels.filter((each) => each !== null);
  if (["integer", "date", "binned"].includes(kind)) return `${values[0]} – ${values.at(-1)}`;
  return `${size} values`;
}

const Values = ({ labels }) => (
  <ul class="values">
    {labels.slice(0, MOST_VALUES).map((each) => (
      <li key={label(each)}>
        <button type="button" class="chip" onClick={() => insert(constant(each))} title={`Insert ${constant(each)}`}>
          <Text>{label(each)}</Text>
        </button>
      </li>
    ))}
    {labels.length > MOST_VALUES && <li class="muted">and {labels.length - MOST_VALUES} more</li>}
  </ul>
);

function Column({ column, search }) {
  const [open, setOpen] = useState(false);
  const values = search && column.labels.some((each) => label(each).toLowerCase().includes(search));
  const shown = open || (values && !column.name.toLowerCase().includes(search));
  const groups = Object.entries(column.bins ?? {});
  return (
    <li class="column">
      <div class="column-line">
        <button type="button" class="plain expand" aria-expanded={shown} aria-label={`Values of ${column.name}`} onClick={() => setOpen(!open)}>
          {shown ? "▾" : "▸"}
        </button>
        <button type="button" class="plain column-name" onClick={() => insert(name(column.name))} title={`Insert ${column.name}`}>
          <Text>{column.name}</Text>
        </button>
        <span class="muted">
          <Text>{summary(column)}</Text>
        </span>
      </div>
      {groups.map(([bin, labels]) => (
        <div class="column-line bin" key={bin}>
          <button type="button" class="plain column-name" onClick={() => insert(name(bin))} title={`Insert ${bin}`}>
            <Text>{bin}</Text>
          </button>
          <span class="muted">{labels.length} groups</span>
        </div>
      ))}
      {shown && (
        <>
          <Values labels={column.labels} />
          {groups.map(([bin, labels]) => (
            <div key={bin}>
              <h4>
                <Text>{bin}</Text>
              </h4>
              <Values labels={labels} />
            </div>
          ))}
        </>
      )}
    </li>
  );
}

const Measure = ({ measure }) => (
  <li class="column">
    <div class="column-line">
      <span class="expand" aria-hidden="true">
        Σ
      </span>
      <button type="button" class="plain column-name" onClick={() => insert(name(measure.name))} title={`Insert ${measure.name}`}>
        <Text>{measure.name}</Text>
      </button>
      <span class="muted">
        {measure.low} – {measure.high}
      </span>
    </div>
  </li>
);

export function Columns() {
  const [search, setSearch] = useState("");
  const info = dataset.value;
  const sought = search.trim().toLowerCase();
  const matches = (each) =>
    !sought ||
    [each.name, ...Object.keys(each.bins ?? {}), ...(each.labels ?? []).map(label)].some((text) => text.toLowerCase().includes(sought));
  const attributes = info?.attributes.filter(matches) ?? [];
  const measures = info?.measures.filter(matches) ?? [];
  return (
    <section class="columns" aria-labelledby="columns-title">
      <h2 id="columns-title">Columns</h2>
      <input id="column-search" type="search" placeholder="Search columns and values  /" aria-label="Search columns and values" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      {!info && <p class="skeleton" />}
      <ul>
        {attributes.map((each) => (
          <Column column={each} search={sought} key={each.name} />
        ))}
        {measures.map((each) => (
          <Measure measure={each} key={`measure ${each.name}`} />
        ))}
      </ul>
      {info && !attributes.length && !measures.length && <p class="muted">No column or value matches.</p>}
    </section>
  );
}
