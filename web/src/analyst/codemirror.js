// CodeMirror for the SQL of the service: highlighting, completion, mistakes in place. Loaded after the page is drawn.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLDialect, sql as sqlLanguage } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, drawSelection, highlightSpecialChars, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { correction, rangeOf } from "./mistakes.js";
import { ask, dataset, draftLater, sql } from "./state.js";
import { FUNCTIONS, KEYWORDS, columns, constant, name } from "./sql.js";

/** The words of the SQL that the service answers. */
const DIALECT = SQLDialect.define({
  keywords: [...new Set(KEYWORDS.join(" ").toLowerCase().split(" "))].concat("escape").join(" "),
  builtin: FUNCTIONS.map(([each]) => each.replace("(*)", "").toLowerCase()).join(" "),
});

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--syntax-keyword)", fontWeight: "600" },
  { tag: tags.string, color: "var(--syntax-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--syntax-number)" },
  { tag: tags.standard(tags.name), color: "var(--syntax-function)" },
]);

/** The column whose values fit at the end of a text: after `region =`, `region IN (` and the like. */
function comparedColumn(before, known) {
  const found = /("(?:[^"]|"")+"|\w+)\s*(?:=|<>|!=|(?:NOT\s+)?IN\s*\((?:[^()]*,)?)\s*'?[^'\n]*$/i.exec(before);
  if (!found) return null;
  const text = found[1].startsWith('"') ? found[1].slice(1, -1).replaceAll('""', '"') : found[1];
  return known.find((each) => each.name.toLowerCase() === text.toLowerCase());
}

/** Complete names, values and functions of the public schema. */
function complete(context) {
  if (!dataset.value) return null;
  const before = context.state.sliceDoc(Math.max(0, context.pos - 500), context.pos);
  const known = columns(dataset.value);
  const text = context.matchBefore(/'[^'\n]*/);
  const compared = comparedColumn(before, known);
  if (text && compared) {
    const ahead = context.state.sliceDoc(context.pos, context.pos + 1) === "'" ? 1 : 0;
    const options = compared.labels.filter((each) => typeof each === "string").map((each) => ({ label: constant(each), type: "text", detail: compared.name }));
    return { from: text.from, to: context.pos + ahead, options, validFor: /^'[^'\n]*'?$/ };
  }
  const word = context.matchBefore(/[\w"]+/);
  if (!word && !context.explicit) return null;
  const values = compared ? compared.labels.map((each) => ({ label: constant(each), type: "text", detail: compared.name, boost: 3 })) : [];
  const options = [
    ...values,
    ...known.map((each) => ({ label: name(each.name), type: "property", detail: each.of ? `groups of ${each.of}` : each.kind, boost: 2 })),
    ...dataset.value.measures.map((each) => ({ label: name(each.name), type: "property", detail: "measure", boost: 2 })),
    { label: name(dataset.value.name), type: "class", detail: "table", boost: 1 },
    ...FUNCTIONS.map(([label, detail]) => ({ label, type: "function", detail, apply: label.endsWith(")") ? label : `${label}(` })),
    ...KEYWORDS.map((label) => ({ label, type: "keyword" })),
  ];
  // A word that is complete already, and the beginning of no other, needs no list over the text below it.
  const isComplete = (text) => {
    const begun = options.filter((each) => each.label.toLowerCase().startsWith(text.toLowerCase()));
    return begun.length === 1 && begun[0].label.toLowerCase() === text.toLowerCase();
  };
  if (word && !context.explicit && isComplete(word.text)) return null;
  return {
    from: word ? word.from : context.pos,
    validFor: (text) => /^[\w"]*$/.test(text) && !isComplete(text),
    options,
  };
}

const keys = Prec.highest(
  keymap.of([
    { key: "Mod-Enter", run: () => (ask(true), true) },
    { key: "Mod-Shift-Enter", run: () => (ask(false), true) },
    { key: "Tab", run: acceptCompletion },
  ]),
);

/**
 * Replace a selection by what is typed. Left to itself, Chromium would keep the look of the replaced text
 * by a style attribute, which the page's policy forbids.
 */
const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, editor) {
    if (event.inputType !== "insertText" || !event.data || editor.composing || editor.state.selection.main.empty) return false;
    event.preventDefault();
    editor.dispatch(editor.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

/** An editor of the draft, in an element. */
export function makeView(parent) {
  const nonce = document.querySelector("meta[name=csp-nonce]").content;
  return new EditorView({
    parent,
    state: EditorState.create({
      doc: sql.value,
      extensions: [
        EditorView.cspNonce.of(nonce),
        keys,
        replaceSelection,
        history(),
        drawSelection(),
        highlightSpecialChars(),
        bracketMatching(),
        closeBrackets(),
        syntaxHighlighting(COLOURS),
        sqlLanguage({ dialect: DIALECT }).language,
        autocompletion({ override: [complete], icons: false, interactionDelay: 0 }),
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
        placeholder("SELECT … FROM …   Type a question, or build one with the form."),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "Question in SQL", tabindex: "0", autocapitalize: "off", spellcheck: "false" }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          sql.value = update.state.doc.toString();
          draftLater();
        }),
      ],
    }),
  });
}

/** Underline the mistake of the last draft, with what would mend it. */
export function showMistake(view, found, replace) {
  const problem = found?.problem;
  const text = view.state.doc.toString();
  if (!problem?.where || found.sql !== text) {
    view.dispatch(setDiagnostics(view.state, []));
    return;
  }
  const mend = correction(text, problem);
  const diagnostics = [
    {
      ...rangeOf(text, problem.where),
      severity: "error",
      message: [problem.message, problem.hint].filter(Boolean).join(" "),
      actions: mend ? [{ name: `Replace with ${mend.text}`, apply: () => replace(mend) }] : [],
    },
  ];
  view.dispatch(setDiagnostics(view.state, diagnostics));
}
