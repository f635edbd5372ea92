// Where a mistake is in a statement, and what mends it.

/** The range in a text of a position that the service has named, counted in lines and characters. */
export function rangeOf(text, where) {
  const lines = text.split("\n");
  const at = Math.min(Math.max(1, where.line), lines.length) - 1;
  const start = lines.slice(0, at).join("\n").length + (at > 0 ? 1 : 0);
  const from = start + Array.from(lines[at]).slice(0, where.column - 1).join("").length;
  const to = Math.min(text.length, from + Math.max(1, where.text?.length || 1));
  return from < to ? { from, to } : { from: Math.max(0, text.length - 1), to: text.length };
}

/** What replaces a mistake: {from, to, text}; null where the service suggests nothing that fits. */
export function correction(text, { where, suggestion }) {
  if (!where || !suggestion) return null;
  const { from, to } = rangeOf(text, where);
  const at = text.slice(from, to).indexOf(suggestion.change);
  if (at < 0) return null;
  return { from: from + at, to: from + at + suggestion.change.length, text: suggestion.to };
}
