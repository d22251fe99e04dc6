/** Numbers for the dashboard, from counts that leave out what there is none of. */
import { stateOf, STATUSES, type Status } from './states';

const HOUR = 3_600_000;
const HOURS = 24;

export interface Count {
  readonly key: string;
  readonly count: number;
}

export type Bucket = { at: number; hour: string } & Record<string, number | string>;

/** One bucket for each of the last hours, with how many began in it, by how they stand now. */
export function buckets(byStatus: Readonly<Record<Status, readonly Count[]>>, now: number): Bucket[] {
  const last = Math.floor(now / HOUR) * HOUR;
  return Array.from({ length: HOURS }, (_, index) => {
    const at = last - (HOURS - 1 - index) * HOUR;
    const bucket: Bucket = { at, hour: clockTime(at) };
    for (const status of STATUSES) {
      bucket[stateOf(status)] = byStatus[status].find((one) => Date.parse(one.key) === at)?.count ?? 0;
    }
    return bucket;
  });
}

export function clockTime(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
}

export function totals(byStatus: Readonly<Record<Status, readonly Count[]>>): Record<Status, number> {
  const sums = STATUSES.map((status) => [status, byStatus[status].reduce((sum, one) => sum + one.count, 0)]);
  return Object.fromEntries(sums) as Record<Status, number>;
}

/** Of those that have ended, how many went wrong; null if none has. */
export function failureRate(counted: Record<Status, number>): number | null {
  const wrong = counted.FAILED + counted.TIMED_OUT;
  const ended = wrong + counted.SUCCEEDED + counted.ABORTED;
  return ended === 0 ? null : wrong / ended;
}

export function percent(share: number | null): string {
  if (share === null) return '–';
  return share > 0 && share < 0.01 ? '< 1 %' : `${Math.round(100 * share)} %`;
}

export interface Numbers {
  readonly name: string;
  readonly completed: number;
  readonly failed: number;
  readonly retried: number;
  readonly seconds: number;
}

/** Those that fail most come first, and then those that take longest. */
export function worstFirst<T extends Numbers>(functions: readonly T[]): T[] {
  return functions.toSorted((one, other) => rateOf(other) - rateOf(one) || other.seconds - one.seconds);
}

export function rateOf(one: Numbers): number {
  return one.failed / Math.max(1, one.completed + one.failed);
}

interface Listed<T> {
  readonly nodes: readonly T[];
}

/** The task that says most about why a job goes on and on. One that failed and that nobody needs holds nothing up. */
export function culprit<T>(job: {
  readonly failed: Listed<T & { readonly optional: boolean }>;
  readonly pending: Listed<T>;
  readonly waiting: Listed<T>;
  readonly processing: Listed<T>;
}): T | null {
  const failed = job.failed.nodes.filter((task) => !task.optional);
  const others = [job.pending, job.waiting, job.processing].flatMap((tasks) => tasks.nodes);
  return [...failed, ...others][0] ?? null;
}
