// Signing in: a token is exchanged for a session, and kept nowhere.
import { useState } from "preact/hooks";

import { signIn, signedOutBecause } from "./api.js";
import { ProblemBox } from "./ui.jsx";

export function SignIn() {
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const onSubmit = async (event) => {
    event.preventDefault();
    const field = event.currentTarget.elements.token;
    const token = field.value.trim();
    if (!token) {
      field.focus();
      return;
    }
    setBusy(true);
    setProblem(null);
    try {
      await signIn({ token });
    } catch (error) {
      setProblem(error);
      setBusy(false);
      field.select();
    }
  };
  return (
    <main class="sign-in">
      <form onSubmit={onSubmit}>
        <Logo />
        <h1>Sharewell</h1>
        <p class="lede">Ask questions of a sensitive table, together, under one privacy budget.</p>
        {signedOutBecause.value && !problem && (
          <p class="note" role="status">
            {signedOutBecause.value}
          </p>
        )}
        <label for="token">Your token</label>
        <input id="token" name="token" type="password" autocomplete="off" autofocus spellcheck={false} placeholder="sw_…" aria-invalid={Boolean(problem)} aria-describedby="token-help" />
        {problem && <ProblemBox problem={problem} />}
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
        <p class="muted" id="token-help">
          Your curator gives you the token. This page exchanges it for a session of 12 hours and does not keep it.
        </p>
        <p class="muted">Curators can read every question, with the name of the analyst who asked it.</p>
      </form>
    </main>
  );
}

export const Logo = () => (
  <svg class="logo" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">
    <rect width="32" height="32" rx="7" class="logo-back" />
    <path d="M7 22.5h18" stroke="#fff" stroke-width="2.4" stroke-linecap="round" opacity=".55" />
    <path d="M10 18V9M16 18V6.5M22 18v-6" stroke="#fff" stroke-width="2.4" stroke-linecap="round" />
    <circle cx="10" cy="13.5" r="2.6" fill="#fff" />
    <circle cx="16" cy="11" r="2.6" fill="#fff" />
    <circle cx="22" cy="15" r="2.6" fill="#fff" />
  </svg>
);
