/** A job as the browser knows it: the tasks as they were read, moved on by each event since. */

export interface TaskRow {
  readonly taskId: string;
  readonly name: string;
  readonly state: string;
  readonly attempt: number;
  readonly position: number;
  readonly optional: boolean;
  readonly dependsOn: readonly string[];
  readonly error: unknown;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
}

export interface RunEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly taskId: string | null;
  readonly attempt: number | null;
  readonly properties: unknown;
}

/** A task event puts its task into one state. */
export const STATE_AFTER: Readonly<Record<string, string>> = {
  'Task Blocked': 'blocked',
  'Task Pending': 'pending',
  'Task Processing': 'processing',
  'Task Completed': 'completed',
  'Task Failed': 'failed',
  'Task Retry Scheduled': 'waiting',
  'Task Waiting': 'waiting',
  'Task Lost': 'pending',
  'Task Released': 'pending',
  'Task Skipped': 'skipped',
  'Task Cancelled': 'cancelled',
};

const ENDS = new Set(['completed', 'failed', 'skipped', 'cancelled']);

/** The task after the event, or the same one if the event says nothing of its state. */
export function after(task: TaskRow, event: RunEvent): TaskRow {
  const state = STATE_AFTER[event.type];
  if (state === undefined) return task;
  const error = (event.properties as { error?: unknown } | null)?.error ?? null;
  return {
    ...task,
    state,
    attempt: event.attempt ?? task.attempt,
    error:
      state === 'failed' || event.type === 'Task Retry Scheduled'
        ? error
        : state === 'completed'
          ? null
          : task.error,
    startedAt: state === 'processing' ? event.at : task.startedAt,
    finishedAt: ENDS.has(state) ? event.at : null,
  };
}

/** An event that was read meanwhile may have told more than what was asked for before it. */
function isLater(read: TaskRow, known: TaskRow): boolean {
  const at = (task: TaskRow) => Date.parse(task.finishedAt ?? task.startedAt ?? '') || 0;
  return read.attempt > known.attempt || (read.attempt === known.attempt && at(read) > at(known));
}

type Listener = () => void;

/** Tasks that can be watched one by one: a change of one does not draw the other two thousand again. */
export class Run {
  private rows = new Map<string, TaskRow>();
  private order: readonly string[] = [];
  private readonly watching = new Map<string, Set<Listener>>();
  private readonly watchingAll = new Set<Listener>();
  private snapshot: readonly TaskRow[] = [];

  /** When this was so, if that is past: what ran then has run until then. */
  readonly asOf: string | null;

  constructor(tasks: readonly TaskRow[] = [], asOf: string | null = null) {
    this.asOf = asOf;
    this.replace(tasks);
  }

  get size(): number {
    return this.order.length;
  }

  get(taskId: string): TaskRow | undefined {
    return this.rows.get(taskId);
  }

  /** All tasks in the producer's order; the same list until something changes. */
  all(): readonly TaskRow[] {
    return this.snapshot;
  }

  replace(tasks: readonly TaskRow[]): void {
    this.rows = new Map(tasks.map((task) => [task.taskId, task]));
    this.order = tasks.map((task) => task.taskId);
    this.changed([...this.watching.keys()]);
  }

  /** More tasks, or those that are known as they were read later. */
  include(tasks: readonly TaskRow[]): void {
    const fresh = tasks.filter((task) => {
      const known = this.rows.get(task.taskId);
      return known === undefined || isLater(task, known);
    });
    const added = fresh.filter((task) => !this.rows.has(task.taskId)).map((task) => task.taskId);
    for (const task of fresh) this.rows.set(task.taskId, task);
    this.order = [...this.order, ...added];
    if (fresh.length) this.changed(fresh.map((task) => task.taskId));
  }

  /** Events in their order. Those of tasks that are not known yet are left for the next reading. */
  apply(events: readonly RunEvent[]): void {
    const moved = new Set<string>();
    for (const event of events) {
      const task = event.taskId === null ? undefined : this.rows.get(event.taskId);
      const next = task && after(task, event);
      if (task && next && next !== task) {
        this.rows.set(task.taskId, next);
        moved.add(task.taskId);
      }
    }
    if (moved.size) this.changed([...moved]);
  }

  watch(taskId: string, listener: Listener): () => void {
    const listeners = this.watching.get(taskId) ?? new Set();
    this.watching.set(taskId, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  watchAll(listener: Listener): () => void {
    this.watchingAll.add(listener);
    return () => this.watchingAll.delete(listener);
  }

  private changed(taskIds: readonly string[]): void {
    this.snapshot = this.order.map((taskId) => this.rows.get(taskId)!);
    for (const taskId of taskIds) for (const listener of this.watching.get(taskId) ?? []) listener();
    for (const listener of this.watchingAll) listener();
  }
}

/** The tasks as they were after the event with the number `seq`. */
export function asOf(tasks: readonly TaskRow[], events: readonly RunEvent[], seq: number): TaskRow[] {
  const rows = new Map<string, TaskRow>(
    tasks.map((task) => [
      task.taskId,
      { ...task, state: 'blocked', attempt: 0, error: null, startedAt: null, finishedAt: null },
    ]),
  );
  for (const event of events) {
    if (event.seq > seq) break;
    const task = event.taskId === null ? undefined : rows.get(event.taskId);
    if (task) rows.set(task.taskId, after(task, event));
  }
  return tasks.map((task) => rows.get(task.taskId)!);
}

const MOVES = Object.values(STATE_AFTER);

/** A number that is another one when a task stands in another way than before. */
export function stamp(task: Pick<TaskRow, 'state' | 'attempt' | 'startedAt' | 'finishedAt'>): number {
  const at = Date.parse(task.finishedAt ?? task.startedAt ?? '') || 0;
  return at + (task.attempt * MOVES.length + MOVES.indexOf(task.state)) / 1e4;
}

export function countStates(tasks: readonly TaskRow[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const task of tasks) counts[task.state] = (counts[task.state] ?? 0) + 1;
  return counts;
}
