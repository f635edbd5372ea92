// The console: signs in, then shows the page of the role.
import { render } from "preact";
import { useEffect } from "preact/hooks";

import { online, resume, session, signIn } from "./api.js";
import { Workbench } from "./analyst/workbench.jsx";
import { CuratorPage } from "./curator/page.jsx";
import { PlanPage } from "./curator/plan.jsx";
import { SignIn } from "./signin.jsx";
import "./style.css";
import "./theme.js";
import { Toast } from "./ui.jsx";

const Offline = () =>
  online.value ? null : (
    <div class="offline" role="status">
      The service cannot be reached. The page goes on by itself when it is back.
    </div>
  );

function App() {
  const who = session.value;
  useEffect(() => {
    document.title = who ? `${who.dataset} · Sharewell` : "Sharewell";
  }, [who]);
  if (who === undefined) return <p class="muted starting">Loading…</p>;
  return (
    <>
      <Offline />
      {!who && <SignIn />}
      {who?.role === "analyst" && <Workbench key={who.csrf} />}
      {who?.role === "curator" && (who.begun ? <CuratorPage key={who.csrf} /> : <PlanPage key={who.csrf} />)}
      <Toast />
    </>
  );
}

/** Sign in with the code of a link, and take it out of the address and the history. */
async function start() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
    await signIn({ code }).catch(() => resume());
  } else {
    await resume();
  }
}

const root = document.getElementById("app");
root.classList.remove("starting");
root.textContent = "";
render(<App />, root);
start();
