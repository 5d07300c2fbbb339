// The card of a proposed rule: the rule, the reason in the client's own words, and the calls that it would have covered.

import type { ApprovalDetail } from "../shapes";
import type { ArgumentMap } from "./arguments";
import { clientName } from "./client";
import { Copy } from "./copy";
import { PastMatches, useRuleMatches } from "./rulematches";
import { SafeText } from "./text";

/** Returns whether a request proposes a rule, by the effect that the server states, not by the tool's name. */
export const isProposal = (detail: ApprovalDetail): boolean => detail.permissions.some((permission) => permission.kind === "allow rule");

export function Proposal({ detail, args }: { detail: ApprovalDetail; args: ArgumentMap }) {
  const rule = String(args.rule ?? "");
  const matches = useRuleMatches(detail.id, rule);
  return (
    <div class="fact">
      <section class="proposal" aria-label="the proposed rule">
        <p class="dim">A rule for this folder, proposed by <strong><SafeText text={clientName(detail)} /></strong>. If you accept it, calls that it covers run without asking.</p>
        <p class="place"><span class="badge good">allow</span> <code class="proposed"><SafeText text={rule} /></code> <Copy text={rule} what="the rule" /></p>
        <blockquote cite="">
          <p>“<SafeText text={String(args.reason ?? "")} lines />”</p>
          <footer class="dim">reason given by <SafeText text={clientName(detail)} />; haft has not checked it</footer>
        </blockquote>
      </section>
      <PastMatches matches={matches} />
    </div>
  );
}
