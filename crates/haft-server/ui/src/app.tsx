// The console: logs in, opens the stream of events, and shows the page that the address names.

import { render } from "preact";
import { useEffect } from "preact/hooks";
import { readApprovals } from "./approvals";
import { keysShown, useKeys } from "./keys";
import { connect, opened } from "./live";
import { go, parts } from "./route";
import { begin, login, session } from "./session";
import { Frame, LoginBox } from "./parts/frame";
import { HealthPage } from "./pages/health";
import { Memory } from "./pages/memory";
import { Policy } from "./pages/policy";
import { Runs } from "./pages/runs";
import { Skills } from "./pages/skills";
import { Tools } from "./pages/tools";
import { Waiting } from "./pages/waiting";
import "./app.css";

function Page() {
  switch (parts.value[0]) {
    case "runs": return <Runs />;
    case "tools": return <Tools />;
    case "skills": return <Skills />;
    case "memory": return <Memory />;
    case "policy": return <Policy />;
    case "health": return <HealthPage />;
    default: return <Waiting />;
  }
}

function App() {
  const known = session.value !== undefined;
  useEffect(() => { if (known) connect(); }, [known]);
  useEffect(() => { if (opened.value > 0) void readApprovals(); }, [opened.value]);
  useKeys(() => [{ key: "?", does: "show all keys", run: () => { keysShown.value = true; } }]);
  if (known) return <Frame><Page /></Frame>;
  if (login.value === "unknown") return null;
  return <main class="front"><h1>haft</h1><p>The console shows what your agents ask for, and lets you decide.</p><LoginBox /></main>;
}

// The code is read before the address changes.
void begin();
if (!parts.value.length) go("/waiting", true);
const root = document.getElementById("app");
if (root) render(<App />, root);
