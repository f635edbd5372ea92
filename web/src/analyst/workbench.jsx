// The analyst's page: columns and history on the left, editor, quote and answer on the right.
import { useEffect, useState } from "preact/hooks";

import { session, signOut } from "../api.js";
import { Logo } from "../signin.jsx";
import { nextTheme, theme } from "../theme.js";
import { Dialog, Menu, ProblemBox, Text, notify } from "../ui.jsx";
import { BudgetMeter } from "./budget.jsx";
import { Columns } from "./columns.jsx";
import { Editor } from "./editor.jsx";
import { QuestionForm } from "./form.jsx";
import { History } from "./history.jsx";
import { QuoteLine } from "./quote.jsx";
import { Results } from "./results.jsx";
import { dataset, load, reset, sayDone, takesTurns } from "./state.js";

const KEYS = [
  ["Ctrl-Enter", "Ask, and pay if it has to be measured"],
  ["Ctrl-Shift-Enter", "Ask for free"],
  ["Ctrl-Space", "Complete columns, values and functions"],
  ["/", "Search columns and values"],
  ["?", "This list"],
];

/** Keys that work outside of text fields. */
function useKeys(showKeys) {
  useEffect(() => {
    const onKeyDown = (event) => {
      if (event.target.closest("input, select, textarea, .cm-editor, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") {
        event.preventDefault();
        document.getElementById("column-search")?.focus();
      } else if (event.key === "?") showKeys(true);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}

export function Workbench() {
  const [problem, setProblem] = useState(null);
  const [keys, setKeys] = useState(false);
  const [form, setForm] = useState(false);
  const start = () => {
    setProblem(null);
    load().catch(setProblem);
  };
  useEffect(() => {
    start();
    return reset;
  }, []);
  useKeys(setKeys);
  const done = async () => {
    await sayDone().catch(() => null);
    notify("The others no longer wait for you. Asking again takes you back in.");
  };
  const actions = [
    [`Theme: ${theme.value}`, nextTheme],
    ["Keyboard", () => setKeys(true)],
    ...(takesTurns.value ? [["I’m done for now", done]] : []),
    ["Sign out", signOut],
  ];
  return (
    <div class="workbench">
      <header class="top">
        <Logo />
        <h1>
          <Text>{session.value.dataset}</Text>
        </h1>
        {dataset.value?.paused && (
          <span class="badge wide-only">paused by the curator</span>
        )}
        <div class="top-right">
          <BudgetMeter />
          <Menu text={<Text>{session.value.name}</Text>} label={`Account of ${session.value.name}`} actions={actions} />
        </div>
      </header>
      <aside class="side" aria-label="Columns and history">
        <Columns />
        <History />
      </aside>
      <main class="main">
        {problem && (
          <ProblemBox problem={problem}>
            <button type="button" onClick={start}>
              Try again
            </button>
          </ProblemBox>
        )}
        <section class="question" aria-label="Question">
          <div class="question-head">
            <h2>Question</h2>
            <button type="button" class="plain" aria-expanded={form} onClick={() => setForm(!form)} disabled={!dataset.value}>
              {form ? "Close the form" : "Build without SQL"}
            </button>
          </div>
          {form && dataset.value && <QuestionForm />}
          <Editor />
          <QuoteLine />
        </section>
        <Results />
      </main>
      {keys && (
        <Dialog title="Keyboard" onClose={() => setKeys(false)}>
          <dl class="keys">
            {KEYS.map(([key, meaning]) => [<dt key={key}>{key}</dt>, <dd key={`${key} meaning`}>{meaning}</dd>])}
          </dl>
        </Dialog>
      )}
    </div>
  );
}
