// The health page: the checks of `haft doctor`, repeated twice a minute.

import { useEffect } from "preact/hooks";
import { useKeys } from "../keys";
import { session } from "../session";
import type { Health } from "../shapes";
import { bytes, span } from "../time";
import { ConnectedClients } from "./overview";
import { PageHead } from "../parts/head";
import { Pending, useReading } from "../parts/reading";
import { Sentence } from "../parts/text";
import { When } from "../parts/when";

const AGAIN = 30_000;

export function HealthPage() {
  const reading = useReading<Health>("/health");
  useEffect(() => {
    const timer = setInterval(reading.again, AGAIN);
    return () => clearInterval(timer);
  }, []);
  useKeys(() => [{ key: "r", does: "check again", run: reading.again }]);
  const health = reading.value;
  return (
    <div class="page health">
      <PageHead title="Health"><span class="gap" /><button type="button" onClick={reading.again}>Check again <kbd>r</kbd></button></PageHead>
      <Pending reading={reading} />
      {health && (
        <>
          <dl class="facts about-haft">
            <div><dt>version</dt><dd>haft {health.version}</dd></div>
            <div><dt>running for</dt><dd>{span(health.uptime_s * 1000)}</dd></div>
            <div><dt>disk</dt><dd>{health.disk ? <>{bytes(health.disk.total)}: runs {bytes(health.disk.runs)}, artifacts {bytes(health.disk.artifacts)}, database {bytes(health.disk.database)} <span class="dim">measured <When at={health.disk.measured} /></span></> : "being measured"}</dd></div>
            <div><dt>you</dt><dd>{session.value?.user}, profile {session.value?.profile}, in {session.value?.workspace === undefined ? "all folders" : <span class="mono">{session.value.workspace}</span>}</dd></div>
          </dl>
          <ConnectedClients clients={health.clients ?? []} />
          <h2>Checks</h2>
          <p>Sandbox <strong>{health.sandbox.backend}</strong>, strength <strong>{health.sandbox.strength}</strong>.</p>
          <ul class="checks" aria-label="checks">
            {health.checks.map((check, index) => (
              <li key={index}><span class={`badge ${check.ok ? "good" : "wait"}`}>{check.ok ? "ok" : "attention"}</span>
                <strong>{check.name}</strong> <span class="check-detail"><Sentence text={check.detail} />{check.advice && <span class="dim check-advice"><Sentence text={check.advice} /></span>}</span></li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
