/** Times as people say them. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long something took, in at most two units: `84 ms`, `3.2 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  const span = Math.max(0, ms);
  if (span < SECOND) return `${Math.round(span)} ms`;
  if (span < 10 * SECOND) return `${(Math.floor(span / 100) / 10).toFixed(1)} s`;
  if (span < MINUTE) return `${Math.floor(span / SECOND)} s`;
  if (span < HOUR) return two(span, MINUTE, 'min', SECOND, 's');
  if (span < DAY) return two(span, HOUR, 'h', MINUTE, 'min');
  return two(span, DAY, 'd', HOUR, 'h');
}

function two(span: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((span % large) / small);
  return `${Math.floor(span / large)} ${largeName}${rest ? ` ${rest} ${smallName}` : ''}`;
}

/** Clocks differ a little, and ours ticks once in a second: what is but that far ahead has happened. */
const SLACK = 2 * SECOND;

/** `just now`, `3 min ago`, `in 2 h`: one unit is enough to feel how long ago it was. */
export function relative(at: number, now: number): string {
  const span = Math.abs(now - at);
  if (span < (at > now ? SLACK : 5 * SECOND)) return 'just now';
  const [unit, name] =
    span < MINUTE ? [SECOND, 's'] : span < HOUR ? [MINUTE, 'min'] : span < DAY ? [HOUR, 'h'] : [DAY, 'd'];
  const said = `${Math.floor(span / unit)} ${name}`;
  return at > now ? `in ${said}` : `${said} ago`;
}

/** In the viewer's zone, which is named. */
export function absolute(at: number, locale?: string, timeZone?: string): string {
  return new Intl.DateTimeFormat(locale, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    timeZoneName: 'short',
    timeZone,
  }).format(at);
}

/** From a start to an end, or to now. */
export function elapsed(start: string | null, end: string | null, now: number): number | null {
  if (start === null) return null;
  return (end === null ? now : Date.parse(end)) - Date.parse(start);
}

/** A value of an input of the type `datetime-local`, which is in the viewer's zone, as a moment; and back. */
export function fromLocal(text: string): string | undefined {
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

export function toLocal(moment: string | undefined): string {
  if (moment === undefined || Number.isNaN(Date.parse(moment))) return '';
  const at = new Date(moment);
  return new Date(at.getTime() - at.getTimezoneOffset() * MINUTE).toISOString().slice(0, 16);
}
