// Small parts that several views use: dialogs, menus, messages, copying and downloads.
import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";

/** A text of users: shown as it is, whatever direction it is written in. */
export const Text = ({ children }) => <bdi>{children}</bdi>;

export function Dialog({ title, onClose, children, wide }) {
  const dialog = useRef();
  const id = useId();
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  const onClick = (event) => event.target === dialog.current && onClose();
  return (
    <dialog ref={dialog} class={wide ? "wide" : ""} aria-labelledby={id} onClose={onClose} onClick={onClick}>
      <div class="dialog-body">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" class="plain icon" aria-label="Close" onClick={onClose}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A button with a list of actions: [[text, action], ...]. */
export function Menu({ text, label, actions, align = "right" }) {
  const [open, setOpen] = useState(false);
  const root = useRef();
  useEffect(() => {
    if (!open) return undefined;
    root.current.querySelector("[role=menuitem]")?.focus();
    const close = (event) => root.current?.contains(event.target) || setOpen(false);
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, [open]);
  const onKeyDown = (event) => {
    const items = [...root.current.querySelectorAll("[role=menuitem]")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && open) {
      setOpen(false);
      root.current.querySelector("button").focus();
      event.stopPropagation();
    } else if (step && open) {
      const at = Math.max(items.indexOf(document.activeElement), step < 0 ? 0 : -1);
      items[(at + step + items.length) % items.length]?.focus();
      event.preventDefault();
    }
  };
  return (
    <div class="menu" ref={root} onKeyDown={onKeyDown}>
      <button type="button" class="plain" aria-haspopup="menu" aria-expanded={open} aria-label={label} onClick={() => setOpen(!open)}>
        {text} <span aria-hidden="true">▾</span>
      </button>
      {open && (
        <div role="menu" class={align}>
          {actions.map(([name, act]) => (
            <button
              type="button"
              role="menuitem"
              key={name}
              onClick={() => {
                setOpen(false);
                root.current.querySelector("button").focus();
                act();
              }}
            >
              {name}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** Tabs that the arrow keys move between. */
export function Tabs({ names, current, onChange, label, id }) {
  const onKeyDown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = names[(names.indexOf(current) + step + names.length) % names.length];
    onChange(next);
    event.currentTarget.querySelector(`[data-name="${next}"]`)?.focus();
    event.preventDefault();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {names.map((name) => (
        <button
          type="button"
          role="tab"
          key={name}
          data-name={name}
          aria-selected={name === current}
          aria-controls={id}
          tabIndex={name === current ? 0 : -1}
          onClick={() => onChange(name)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

/** A problem of the service, or an error of the page. */
export function ProblemBox({ problem, children }) {
  return (
    <div class="problem" role="alert">
      <strong>
        <Text>{problem.message}</Text>
      </strong>
      {problem.hint && (
        <p>
          <Text>{problem.hint}</Text>
        </p>
      )}
      {children}
      {problem.request_id && problem.code === "error" && <p class="muted">Request {problem.request_id}</p>}
    </div>
  );
}

export const toast = signal("");
let toastTimer;

/** Say something for a few seconds, to screen readers, too. */
export function notify(text) {
  toast.value = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toast.value = ""), 4000);
}

export const Toast = () => (
  <div class="toast" role="status" aria-live="polite" data-shown={Boolean(toast.value)}>
    {toast.value}
  </div>
);

/** Copy text; works over plain http, too, where there is no clipboard API. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  notify(`${what} copied.`);
}

/** Let the browser save a blob under a name. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const Spinner = ({ text }) => (
  <p class="spinner" role="status">
    <span aria-hidden="true" />
    {text}
  </p>
);
