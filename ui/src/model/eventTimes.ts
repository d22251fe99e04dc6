/** Times in the data of events, which the engine writes in microseconds since 1970. */

export interface EventTime {
  /** As people say it: `due` for `dueAt`. */
  readonly name: string;
  readonly at: string;
}

/** Between 2001 and 2286: a number beyond that is no time in microseconds. */
const EARLIEST = 1e15;
const LATEST = 1e16;

/** Those that the engine has set itself. What is further inside is somebody's payload, of which nobody knows the units. */
export function eventTimes(properties: unknown): EventTime[] {
  return entries(properties).flatMap(([key, value]) =>
    isTime(key, value) ? [{ name: words(key), at: new Date(value / 1000).toISOString() }] : [],
  );
}

/** All the rest, for a line beside the times. */
export function withoutTimes(properties: unknown): unknown {
  const all = entries(properties);
  const rest = all.filter(([key, value]) => !isTime(key, value));
  return rest.length === all.length ? properties : Object.fromEntries(rest);
}

function entries(properties: unknown): [string, unknown][] {
  return typeof properties === 'object' && properties !== null && !Array.isArray(properties)
    ? Object.entries(properties)
    : [];
}

function isTime(key: string, value: unknown): value is number {
  return (
    /[a-z]At$/.test(key) && Number.isInteger(value) && EARLIEST <= Number(value) && Number(value) < LATEST
  );
}

function words(key: string): string {
  return key
    .slice(0, -2)
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .trim();
}
