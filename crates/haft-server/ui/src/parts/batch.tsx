// Decides several requests together, each with its own choice; only requests that the user has opened can be approved.

import { useState } from "preact/hooks";
import { errorText } from "../api";
import { approvals, decideAll, seenWhole, type Choice } from "../approvals";
import { useKeys } from "../keys";
import { mayAct } from "../live";
import { go, pathOf } from "../route";
import type { Approval } from "../shapes";
import { spellOut } from "../visible";
import { RiskWord } from "./badges";
import { SafeText } from "./text";

declare const WITHOUT_APPROVE: boolean;

type Word = "approve" | "deny" | "leave";

/** Returns why a request cannot be approved in a batch; empty if it can. */
function bar(approval: Approval): string {
  if (approval.kind === "question") return "answer questions one by one";
  if (approval.risk === "critical") return "critical: approve it on its own card";
  if (!seenWhole.value.has(approval.id)) return "open it first";
  return "";
}

export function Batch({ ids, close, drop }: { ids: string[]; close: () => void; drop: (id: string) => void }) {
  const chosen = approvals.value.filter((approval) => ids.includes(approval.id) && approval.status === "pending");
  const [words, setWords] = useState<Record<string, Word>>({});
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  useKeys(() => [{ key: "Escape", does: "clear the selection", run: close }]);
  const wordOf = (approval: Approval): Word => {
    const word = words[approval.id] ?? "leave";
    return word === "approve" && bar(approval) ? "leave" : word;
  };
  const all = (word: Word) => setWords(Object.fromEntries(chosen.map((approval) => [approval.id, word === "approve" && approval.alone ? "leave" : word])));
  const ready = chosen.filter((approval) => wordOf(approval) !== "leave");
  const send = async () => {
    setBusy(true);
    const choices = ready.map((approval) => ({ id: approval.id, choice: { decision: wordOf(approval) } as Choice }));
    try {
      const refused = await decideAll(choices);
      if (refused === 0) close();
      else setProblem(refused === 1 ? "1 was refused: its card says why" : `${refused} were refused: their cards say why`);
    } catch (error) {
      setProblem(errorText(error));
    }
    setBusy(false);
  };
  return (
    <section class="detail batch" aria-label="batch">
      <h2>{chosen.length === 1 ? "1 request selected" : `${chosen.length} requests selected`}</h2>
      <div class="choices">
        {!WITHOUT_APPROVE && <button type="button" onClick={() => all("approve")}>Approve all eligible</button>}
        <button type="button" onClick={() => all("deny")}>Deny all</button>
        <button type="button" onClick={close}>Clear selection <kbd>Esc</kbd></button>
      </div>
      <ul class="batch-list">
        {chosen.map((approval) => (
          <li key={approval.id}>
            <div class="batch-fact"><code><SafeText text={approval.fact.text} /></code>
              <span class="queue-meta"><span class="tool"><SafeText text={approval.tool} /></span> <RiskWord risk={approval.risk} />
                {(bar(approval) || approval.alone) && <span class="dim">{bar(approval) || approval.alone}</span>}
                {!seenWhole.value.has(approval.id) && <button type="button" class="link" onClick={() => { drop(approval.id); close(); go(pathOf("waiting", approval.id)); }}>open</button>}</span></div>
            <select aria-label={`choice for ${spellOut(approval.fact.text).slice(0, 80)}`} value={wordOf(approval)} onChange={(e) => setWords({ ...words, [approval.id]: e.currentTarget.value as Word })}>
              <option value="leave">leave</option>
              {!WITHOUT_APPROVE && <option value="approve" disabled={bar(approval) !== ""}>approve</option>}
              <option value="deny">deny</option>
            </select>
          </li>
        ))}
      </ul>
      {problem && <p class="note bad-text" role="alert">{problem}</p>}
      <div class="choices"><button type="button" class="primary" disabled={busy || !ready.length || !mayAct()} onClick={() => void send()}>
        {ready.length === 0 ? "Decide" : `Decide ${ready.length}`}</button></div>
    </section>
  );
}
