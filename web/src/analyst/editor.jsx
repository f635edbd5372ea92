// The SQL editor: a box that is there at once, and CodeMirror in it as soon as it has come.
import { useEffect, useRef, useState } from "preact/hooks";

import { ProblemBox } from "../ui.jsx";
import { draft, draftLater, sql } from "./state.js";

let view;

/** Change a range of the text, as if it were typed: undo takes it back. */
export function replace({ from, to, text }) {
  if (view) {
    view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + text.length }, scrollIntoView: true });
    return;
  }
  sql.value = sql.value.slice(0, from) + text + sql.value.slice(to);
  draftLater();
}

/** Replace the whole text. */
export const setText = (text) => replace({ from: 0, to: sql.value.length, text });

export const focusEditor = () => view?.focus();

/** Insert a name or a constant at the cursor. */
export function insert(text) {
  const { from, to } = view?.state.selection.main ?? { from: sql.value.length, to: sql.value.length };
  const spaced = /[\w"']/.test(sql.value.slice(Math.max(0, from - 1), from)) ? ` ${text}` : text;
  replace({ from, to, text: spaced });
  focusEditor();
}

/** Mend a mistake, and go on typing. */
export function mend(correction) {
  replace(correction);
  focusEditor();
}

export function Editor() {
  const parent = useRef();
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    let stop;
    let ended = false;
    const start = ({ makeView, showMistake }) => {
      if (ended) return;
      const isFree = document.activeElement === document.body;
      view = makeView(parent.current);
      if (isFree) view.focus();
      stop = draft.subscribe((found) => showMistake(view, found, mend));
    };
    import("./codemirror.js").then(start).catch(setProblem);
    return () => {
      ended = true;
      stop?.();
      view?.destroy();
      view = undefined;
    };
  }, []);
  if (problem) return <ProblemBox problem={{ message: "The editor could not be loaded.", hint: "Reload the page: the service may have been updated." }} />;
  return <div class="editor" ref={parent} />;
}
