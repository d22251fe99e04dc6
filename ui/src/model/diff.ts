/** Two runs of the same thing, side by side; and two texts. */
import type { TaskRow } from './run';
import { elapsed } from './time';

export interface TaskDifference {
  readonly taskId: string;
  readonly here: TaskRow | null;
  readonly there: TaskRow | null;
  /** How the states, attempts and times differ; empty if only one of them has the task. */
  readonly changes: readonly ('state' | 'attempt' | 'time')[];
  readonly hereMs: number | null;
  readonly thereMs: number | null;
}

/** A time that differs by more than half, and by more than a second, is worth a look. */
export const SLOWER = 1.5;
const WORTH_MS = 1000;

export function compareRuns(
  here: readonly TaskRow[],
  there: readonly TaskRow[],
  now: number,
): TaskDifference[] {
  const others = new Map(there.map((task) => [task.taskId, task]));
  const ids = [...new Set([...here, ...there].map((task) => task.taskId))];
  const own = new Map(here.map((task) => [task.taskId, task]));
  return ids.map((taskId) => compare(taskId, own.get(taskId) ?? null, others.get(taskId) ?? null, now));
}

function compare(taskId: string, here: TaskRow | null, there: TaskRow | null, now: number): TaskDifference {
  const hereMs = here && elapsed(here.startedAt, here.finishedAt, now);
  const thereMs = there && elapsed(there.startedAt, there.finishedAt, now);
  const changes: ('state' | 'attempt' | 'time')[] = [];
  if (here && there) {
    if (here.state !== there.state) changes.push('state');
    if (here.attempt !== there.attempt) changes.push('attempt');
    if (hereMs !== null && thereMs !== null && farApart(hereMs, thereMs)) changes.push('time');
  }
  return { taskId, here, there, changes, hereMs, thereMs };
}

function farApart(one: number, other: number): boolean {
  return Math.abs(one - other) > WORTH_MS && Math.max(one, other) > SLOWER * Math.min(one, other);
}

export function differs(difference: TaskDifference): boolean {
  return difference.here === null || difference.there === null || difference.changes.length > 0;
}

export interface Line {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
}

/** Line by line, by their longest common subsequence. Texts are definitions, which are short. */
export function compareText(before: string, now: string): Line[] {
  const old = before.split('\n');
  const young = now.split('\n');
  const common = Array.from({ length: old.length + 1 }, () => new Array<number>(young.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = young.length - 1; j >= 0; j -= 1) {
      common[i]![j] =
        old[i] === young[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
    }
  }
  const lines: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < young.length) {
    if (i < old.length && j < young.length && old[i] === young[j]) {
      lines.push({ kind: 'same', text: old[i]! });
      i += 1;
      j += 1;
    } else if (i < old.length && (j >= young.length || common[i + 1]![j]! >= common[i]![j + 1]!)) {
      lines.push({ kind: 'removed', text: old[i]! });
      i += 1;
    } else {
      lines.push({ kind: 'added', text: young[j]! });
      j += 1;
    }
  }
  return lines;
}
