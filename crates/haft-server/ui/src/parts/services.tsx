// The running commands of a run that serve, or that work in the background: their ports, and a button that ends each.

import { useEffect, useState } from "preact/hooks";
import { errorText, post } from "../api";
import { mayAct } from "../live";
import type { ExposedPort, RunningService } from "../service-shapes";
import { useReading } from "./reading";
import { SafeText } from "./text";
import { When } from "./when";

/** How often the list is read again, in milliseconds: no event tells that a command begins to listen. */
const AGAIN = 3000;
/** Maximum number of ports shown of one command. */
const SHOWN = 8;

export function Services({ run, open }: { run: string; open: boolean }) {
  const path = `/runs/${encodeURIComponent(run)}/services`;
  const reading = useReading<RunningService[]>(path, open);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    if (!open) return;
    const timer = setInterval(reading.again, AGAIN);
    return () => clearInterval(timer);
  }, [path, open]);
  const exposed = useReading<ExposedPort[]>(`/runs/${encodeURIComponent(run)}/exposed`, reading.value).value ?? [];
  const services = reading.value ?? [];
  if (services.length + exposed.length === 0) return null;
  const stop = (name: string) => post(`${path}/${encodeURIComponent(name)}/stop`).then(() => { setTrouble(""); reading.again(); }, (error) => setTrouble(errorText(error)));
  return (
    <section class="services" aria-label="running commands">
      <ul>{services.map((one) => (
        <li key={one.name}>
          <span class="badge">running</span> <code><SafeText text={one.command} /></code> <span class="mono">{ports(one)}</span> <span class="dim"><When at={one.started} /></span>{" "}
          <button type="button" disabled={!mayAct()} onClick={() => stop(one.name)} aria-label={`End ${one.command}`}>End</button>
        </li>
      ))}
        {exposed.map((one) => (
          <li key={one.at}><span class="badge">open to this machine</span> <a href={`http://${one.at}/`} target="_blank" rel="noreferrer noopener">http://{one.at}/</a> leads to its port {one.port}. A page there is the run's, never haft's: it needs no token.</li>
        ))}</ul>
      {trouble && <p class="note bad-text" role="alert">{trouble}</p>}
    </section>
  );
}

/** Returns the ports of a command as the run's other commands reach them. */
function ports(one: RunningService): string {
  const hidden = Math.max(0, one.ports.length - SHOWN) + (one.more_ports ?? 0);
  const shown = one.ports.slice(0, SHOWN).map((port) => `127.0.0.1:${port}`).join(", ");
  return hidden ? `${shown} and ${hidden.toLocaleString("en")} more` : shown;
}
