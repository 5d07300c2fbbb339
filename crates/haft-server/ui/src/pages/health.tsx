// What works here and what does not, as `haft doctor` finds it, tried again twice a minute.

import { useEffect } from "preact/hooks";
import type { Health } from "../shapes";
import { Pending, useReading } from "../parts/reading";
import { Shown } from "../parts/text";

const AGAIN = 30_000;

export function HealthPage() {
  const reading = useReading<Health>("/health");
  useEffect(() => {
    const timer = setInterval(reading.again, AGAIN);
    return () => clearInterval(timer);
  }, []);
  const health = reading.value;
  return (
    <div class="page">
      <Pending reading={reading} />
      {health && (
        <>
          <p>Sandbox <strong>{health.sandbox.backend}</strong>, strength <strong>{health.sandbox.strength}</strong>. <button type="button" onClick={reading.again}>Look again</button></p>
          <ul class="checks" aria-label="checks">
            {health.checks.map((check, index) => (
              <li key={index}><span class={`badge ${check.ok ? "good" : "wait"}`}>{check.ok ? "ok" : "missing"}</span>
                <strong>{check.name}</strong> <span class="check-detail"><Shown text={check.detail} />{check.advice && <span class="dim check-advice"><Shown text={check.advice} /></span>}</span></li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
