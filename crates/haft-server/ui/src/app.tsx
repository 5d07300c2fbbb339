// The console: logs in, opens the stream of events, and shows the page that the address names.

import { effect } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { readApprovals } from "./approvals";
import { connect, opened } from "./live";
import { follow, go, page, parts } from "./route";
import { begin, login, session } from "./session";
import { reportVisibility } from "./tabs";
import { Frame, LoginBox } from "./parts/frame";
import { PageHead } from "./parts/head";
import { SafeText } from "./parts/text";
import { HealthPage } from "./pages/health";
import { Memory } from "./pages/memory";
import { Overview } from "./pages/overview";
import { Policy } from "./pages/policy";
import { Runs } from "./pages/runs";
import { Skills } from "./pages/skills";
import { Tools } from "./pages/tools";
import { Waiting } from "./pages/waiting";
import "./app.css";

function Page() {
  switch (page.value) {
    case "overview": return <Overview />;
    case "waiting": return <Waiting />;
    case "runs": return <Runs />;
    case "tools": return <Tools />;
    case "skills": return <Skills />;
    case "memory": return <Memory />;
    case "policy": return <Policy />;
    case "health": return <HealthPage />;
    case undefined: return <NoSuchPage />;
  }
}

/** The page for an unknown address. */
function NoSuchPage() {
  return (
    <>
    <PageHead title="No such page" />
    <section class="empty">
      <p>The console has no page at <code><SafeText text={location.pathname} /></code>. The link may be mistyped, or from another version of haft.</p>
      <p><a href="/overview" onClick={follow}>Overview</a> · <a href="/waiting" onClick={follow}>Waiting</a> · <a href="/runs" onClick={follow}>Runs</a></p>
    </section>
    </>
  );
}

/** The page for a browser without a session: how to sign in. */
function SignIn() {
  return (
    <main class="front">
      <h1>haft</h1>
      <p>The console shows what your agents do and ask for, and lets you decide. Each browser signs in with a link that works once.</p>
      <p>On the machine that runs haft, in any folder:</p>
      <pre class="block">haft console</pre>
      <p class="dim">It opens the console in your browser, logged in. With <code>--no-open</code> it prints the link.</p>
      <LoginBox />
    </main>
  );
}

function App() {
  const known = session.value !== undefined;
  useEffect(() => { if (known) connect(); }, [known]);
  useEffect(() => { if (opened.value > 0) void readApprovals(); }, [opened.value]);
  if (known) return <Frame><Page /></Frame>;
  if (login.value === "unknown") return null;
  return <SignIn />;
}

// Reads the login code before the address changes.
void begin();
reportVisibility();
if (!parts.value.length) go("/overview", true);
const root = document.getElementById("app");
let drawn = false;
// The document's own frame stays until the login state is known; then the page replaces it.
effect(() => {
  if (!root || drawn || (login.value === "unknown" && session.value === undefined)) return;
  drawn = true;
  root.replaceChildren();
  render(<App />, root);
});
