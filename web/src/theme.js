// Light or dark: as the system says, unless the user has chosen.
import { effect, signal } from "@preact/signals";

const KEY = "sharewell-theme";
const stored = () => {
  try {
    return localStorage.getItem(KEY) || "system";
  } catch {
    return "system";
  }
};

export const theme = signal(stored());

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme.value);
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
  }
});

export function nextTheme() {
  const all = ["system", "light", "dark"];
  theme.value = all[(all.indexOf(theme.value) + 1) % all.length];
}
