// The curator's page: overview, fairness, ledger and analysts.
import { useEffect, useState } from "preact/hooks";

import { session, signOut } from "../api.js";
import { Logo } from "../signin.jsx";
import { nextTheme, theme } from "../theme.js";
import { Menu, ProblemBox, Tabs, Text, notify } from "../ui.jsx";
import { Analysts } from "./analysts.jsx";
import { Fairness } from "./fairness.jsx";
import { Ledger } from "./ledger.jsx";
import { LoadingOverview, Overview } from "./overview.jsx";
import { certificate, dataset, load, loadAnalysts, loadCertificate, loadEvents, loadSettings, reset, setPaused } from "./state.js";

const VIEWS = { Overview, Fairness, Ledger, Analysts };
/** How often the figures are read again while the page is visible, in milliseconds: sooner while the certificate is behind. */
const REFRESH = 10_000;
const REFRESH_BEHIND = 2_000;

const refresh = (view) => Promise.all([loadAnalysts(), loadCertificate(), loadSettings(), view === "Ledger" ? null : loadEvents()]);

export function CuratorPage() {
  const [view, setView] = useState("Overview");
  const [problem, setProblem] = useState(null);
  const start = () => {
    setProblem(null);
    load().catch(setProblem);
  };
  useEffect(() => {
    start();
    return reset;
  }, []);
  useEffect(() => {
    let timer;
    const again = () => {
      timer = setTimeout(async () => {
        if (document.visibilityState === "visible" && session.value) await refresh(view).catch(() => null);
        again();
      }, certificate.value?.behind ? REFRESH_BEHIND : REFRESH);
    };
    again();
    return () => clearTimeout(timer);
  }, [view, certificate.value?.behind > 0]);
  const paused = dataset.value?.paused;
  const toggle = async () => {
    setProblem(null);
    try {
      await setPaused(!paused);
      notify(paused ? "Questions are accepted again." : "Paused: no question is accepted until you resume.");
    } catch (error) {
      setProblem(error);
    }
  };
  const View = VIEWS[view];
  return (
    <div class="curator">
      <header class="top">
        <Logo />
        <h1>
          <Text>{session.value.dataset}</Text>
        </h1>
        {paused && <span class="badge">paused</span>}
        <div class="top-right">
          <button type="button" onClick={toggle} disabled={!dataset.value}>
            {paused ? "Resume" : "Pause"}
          </button>
          <Menu
            text={<Text>{session.value.name}</Text>}
            label={`Account of ${session.value.name}`}
            actions={[
              [`Theme: ${theme.value}`, nextTheme],
              ["Sign out", signOut],
            ]}
          />
        </div>
        <Tabs names={Object.keys(VIEWS)} current={view} onChange={setView} label="Views" id="view" />
      </header>
      <main class="main" id="view" role="tabpanel" aria-label={view}>
        {problem && (
          <ProblemBox problem={problem}>
            {!dataset.value && (
              <button type="button" onClick={start}>
                Try again
              </button>
            )}
          </ProblemBox>
        )}
        {dataset.value ? <View /> : !problem && <LoadingOverview />}
      </main>
    </div>
  );
}
