// A time on this machine's clock; the exact one is shown on hover.

import { exact, local, now } from "../time";

/** A time, short; `seconds` of the day's clock move with the page's own. */
export function When({ at }: { at: string }) {
  return <time dateTime={at} title={exact(at)}>{local(at, now.value)}</time>;
}
