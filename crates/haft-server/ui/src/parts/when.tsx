// A local time; the exact time appears on hover.

import { dated, exact, local, now } from "../time";

/** A short local time, which updates with the page's clock; with `day`, it always names the day. */
export function When({ at, day = false }: { at: string; day?: boolean }) {
  return <time dateTime={at} title={exact(at)}>{(day ? dated : local)(at, now.value)}</time>;
}
