/** What running one task again would lead to, from the tasks as they stand: the same words as the plan of a whole job. */
import type { TaskRow } from './run';

export interface TaskPlan {
  readonly rerun: readonly string[];
  /** What can run once it has completed. */
  readonly waiting: readonly string[];
  /** What needs it, and something else that failed or was cancelled, too. */
  readonly held: readonly string[];
  /** What these need and is done: it does not run again. */
  readonly reused: readonly string[];
}

const STOPPED = new Set(['failed', 'cancelled']);
const OPEN = new Set(['blocked', 'skipped', 'pending']);

export function planFrom(tasks: readonly TaskRow[], taskId: string): TaskPlan {
  const rows = new Map(tasks.map((task) => [task.taskId, task]));
  const reached = new Set([taskId]);
  const waiting: string[] = [];
  const held: string[] = [];
  const stays = new Set<string>();
  for (const task of inOrder(tasks)) {
    if (!OPEN.has(task.state) || task.taskId === taskId) continue;
    if (!task.dependsOn.some((up) => reached.has(up))) continue;
    reached.add(task.taskId);
    const stopped = (up: string) =>
      stays.has(up) || (up !== taskId && STOPPED.has(rows.get(up)?.state ?? '') && !rows.get(up)!.optional);
    if (task.dependsOn.some(stopped)) {
      stays.add(task.taskId);
      held.push(task.taskId);
    } else waiting.push(task.taskId);
  }
  const needed = new Set([taskId, ...waiting].flatMap((id) => rows.get(id)?.dependsOn ?? []));
  const reused = tasks.filter((task) => task.state === 'completed' && needed.has(task.taskId));
  return { rerun: [taskId], waiting, held, reused: reused.map((task) => task.taskId) };
}

/** Each after what it depends on: producers may have named them in any order. */
function inOrder(tasks: readonly TaskRow[]): TaskRow[] {
  const rows = new Map(tasks.map((task) => [task.taskId, task]));
  const done = new Set<string>();
  const sorted: TaskRow[] = [];
  for (const task of tasks) {
    const open = [task];
    while (open.length) {
      const next = open.at(-1)!;
      const before = next.dependsOn.map((up) => rows.get(up)).find((row) => row && !done.has(row.taskId));
      if (before && !done.has(next.taskId)) open.push(before);
      else {
        open.pop();
        if (!done.has(next.taskId)) sorted.push(next);
        done.add(next.taskId);
      }
    }
  }
  return sorted;
}
