/** Attempts of tasks over time, from the events of a job. */
import type { RunEvent, TaskRow } from './run';

export interface Attempt {
  readonly taskId: string;
  readonly attempt: number;
  readonly start: number;
  /** Null while it runs. */
  readonly end: number | null;
  readonly outcome: string;
}

export interface Lane {
  readonly taskId: string;
  readonly attempts: readonly Attempt[];
}

const OUTCOMES: Readonly<Record<string, string>> = {
  'Task Completed': 'completed',
  'Task Failed': 'failed',
  'Task Retry Scheduled': 'failed',
  'Task Lost': 'failed',
  'Task Released': 'pending',
  'Task Waiting': 'waiting',
  'Task Cancelled': 'cancelled',
  'Task Skipped': 'skipped',
};

/** One lane for each task that has begun, in the order in which they did. A function that waits holds no worker. */
export function lanes(events: readonly RunEvent[]): Lane[] {
  const found = new Map<string, Attempt[]>();
  for (const event of events) {
    if (event.taskId === null) continue;
    const at = Date.parse(event.at);
    if (event.type === 'Task Processing') {
      const begun = {
        taskId: event.taskId,
        attempt: event.attempt ?? 1,
        start: at,
        end: null,
        outcome: 'processing',
      };
      found.set(event.taskId, [...(found.get(event.taskId) ?? []), begun]);
      continue;
    }
    const outcome = OUTCOMES[event.type];
    const attempts = found.get(event.taskId);
    const last = attempts?.at(-1);
    if (outcome !== undefined && attempts && last && last.end === null) {
      attempts[attempts.length - 1] = { ...last, end: at, outcome };
    }
  }
  return [...found].map(([taskId, attempts]) => ({ taskId, attempts }));
}

/** With the last attempt of each task of which that is not known, or not how it ended. */
export function lastAttempts(known: readonly Lane[], tasks: readonly TaskRow[]): Lane[] {
  const found = new Map(known.map((lane) => [lane.taskId, lane.attempts]));
  for (const { taskId, attempt, state, startedAt, finishedAt } of tasks) {
    if (startedAt === null || (finishedAt === null && state !== 'processing')) continue;
    const before = found.get(taskId) ?? [];
    if (before.at(-1)?.attempt === attempt && before.at(-1)!.end !== null) continue;
    const last = {
      taskId,
      attempt,
      start: Date.parse(startedAt),
      end: finishedAt === null ? null : Date.parse(finishedAt),
      outcome: state,
    };
    found.set(taskId, [...before.filter((one) => one.attempt !== attempt), last]);
  }
  return [...found].map(([taskId, attempts]) => ({ taskId, attempts }));
}

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** From the first beginning to the last end, or to now if something still runs. */
export function span(all: readonly Lane[], now: number): Span {
  let start = Infinity;
  let end = -Infinity;
  for (const { attempts } of all) {
    for (const attempt of attempts) {
      start = Math.min(start, attempt.start);
      end = Math.max(end, attempt.end ?? now);
    }
  }
  return Number.isFinite(start) ? { start, end: Math.max(end, start + 1) } : { start: now, end: now + 1 };
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 18e5, 36e5, 216e5, 864e5,
  6048e5,
];

/** Round moments to draw lines at, about as many as wanted. */
export function marks({ start, end }: Span, wanted = 6): number[] {
  const step = STEPS.find((size) => (end - start) / size <= wanted) ?? (end - start) / wanted;
  const found = [];
  for (let at = 0; at <= end - start; at += step) found.push(at);
  return found;
}
