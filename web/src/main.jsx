// The console: signs in, then shows the page of the role.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { online, resume, session, signIn, signedOutBecause } from "./api.js";
import { SignIn } from "./signin.jsx";
import "./style.css";
import "./theme.js";
import { ProblemBox, Toast } from "./ui.jsx";

/** The page of each role, loaded when it is needed. */
const analystPage = () => import("./analyst/workbench.jsx").then((found) => found.Workbench);
const curatorPage = () => import("./curator/page.jsx").then((found) => found.CuratorPage);
const planPage = () => import("./curator/plan.jsx").then((found) => found.PlanPage);
const pageOf = ({ role, begun }) => (role === "analyst" ? analystPage : begun ? curatorPage : planPage);

const Offline = () =>
  online.value ? null : (
    <div class="offline" role="status">
      The service cannot be reached. The page goes on by itself when it is back.
    </div>
  );

const Loading = () => <p class="muted starting">Loading…</p>;

/** The page of the user who is signed in. */
function RolePage({ who }) {
  const [Page, setPage] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    pageOf(who)().then((found) => setPage(() => found), setProblem);
  }, []);
  if (problem) return <ProblemBox problem={{ message: "The page could not be loaded.", hint: "Reload it: the service may have been updated." }} />;
  return Page ? <Page /> : <Loading />;
}

function App() {
  const who = session.value;
  useEffect(() => {
    document.title = who ? `${who.dataset} · Sharewell` : "Sharewell";
  }, [who]);
  useEffect(() => {
    // Most who sign in are analysts: their page is fetched while they look for the token.
    if (who === null) setTimeout(() => analystPage().catch(() => null), 300);
  }, [who]);
  if (who === undefined) return <Loading />;
  return (
    <>
      <Offline />
      {!who && <SignIn />}
      {who && <RolePage who={who} key={who.csrf} />}
      <Toast />
    </>
  );
}

/** Sign in with the code of a link, and take it out of the address and the history. */
async function start() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
    await signIn({ code }).catch(async (error) => {
      await resume();
      if (!session.value) signedOutBecause.value = error.message;
    });
  } else {
    await resume();
  }
}

const root = document.getElementById("app");
root.classList.remove("starting");
root.textContent = "";
render(<App />, root);
start();
