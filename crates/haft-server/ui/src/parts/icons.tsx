// The icons of the rail and of the themes, drawn inline, so that nothing is fetched.

/** The path of each icon, in a square of 16. */
const DRAWN = {
  overview: "M2 13V8M6 13V3M10 13V6M14 13v-3",
  waiting: "M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z",
  runs: "M2 4h7M5 8h9M3.500 12h6",
  tools: "M9.500 6.500 3 13M9 2.500a3.500 3.500 0 1 0 4.500 4.500L11 6 10 5Z",
  skills: "M3 2.500h7.500L13 5v8.500H3ZM5.500 7h5M5.500 10h5",
  memory: "M4 4h8v8H4ZM6.500 1.500V4M9.500 1.500V4M6.500 12v2.500M9.500 12v2.500M1.500 6.500H4M1.500 9.500H4M12 6.500h2.500M12 9.500h2.500",
  policy: "M8 1.500 13 3.500V8c0 3-2 5.200-5 6.500C5 13.200 3 11 3 8V3.500Z",
  health: "M1.500 8.500H5l1.500-5 3 9 1.500-4h3.500",
  auto: "M8 2.500v11M8 2.500a5.500 5.500 0 0 1 0 11 5.500 5.500 0 0 1 0-11ZM8 5.500h4.500M8 8h5.500M8 10.500h4.500",
  light: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6ZM8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
  dark: "M13.500 9.500A5.800 5.800 0 0 1 6.500 2.500a5.800 5.800 0 1 0 7 7Z",
} as const;

export type Sign = keyof typeof DRAWN;

export function Icon({ sign }: { sign: Sign }) {
  return <svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d={DRAWN[sign]} /></svg>;
}
