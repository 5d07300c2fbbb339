// A local time; the exact time appears on hover.

import { exact, local, now } from "../time";

/** A short local time, which updates with the page's clock. */
export function When({ at }: { at: string }) {
  return <time dateTime={at} title={exact(at)}>{local(at, now.value)}</time>;
}
