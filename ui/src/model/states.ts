/** The words of the engine for how tasks, jobs and executions stand. */

export const TASK_STATES = [
  'processing',
  'pending',
  'waiting',
  'blocked',
  'completed',
  'failed',
  'cancelled',
  'skipped',
] as const;

export const STATUSES = ['RUNNING', 'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED'] as const;
export type Status = (typeof STATUSES)[number];

const STATE_OF: Record<Status, string> = {
  RUNNING: 'running',
  SUCCEEDED: 'completed',
  FAILED: 'failed',
  TIMED_OUT: 'timed_out',
  ABORTED: 'cancelled',
};

/** The index of executions speaks in capitals; a job is the same thing in our own word. */
export function stateOf(status: string): string {
  return STATE_OF[status as Status] ?? status.toLowerCase();
}

export function isStatus(text: unknown): text is Status {
  return (STATUSES as readonly unknown[]).includes(text);
}

export function label(state: string): string {
  return state.replaceAll('_', ' ');
}

const ENDED = new Set(['completed', 'failed', 'cancelled', 'skipped', 'timed_out']);

export function hasEnded(state: string): boolean {
  return ENDED.has(state);
}

/** What may be done to a task in a state: the engine refuses the rest. */
export function taskActions(state: string): { retry: boolean; skip: boolean; cancel: boolean } {
  return {
    retry: state === 'failed' || state === 'cancelled' || state === 'skipped',
    skip: state !== 'completed' && state !== 'skipped',
    cancel: !hasEnded(state),
  };
}

/** A job that runs on although a task has failed can be resumed, too. */
export function jobActions(state: string, hasFailure: boolean): { cancel: boolean; resume: boolean } {
  const running = state === 'running';
  return { cancel: running, resume: running ? hasFailure : state !== 'completed' };
}

/** A line of how many tasks stand how, in the order in which they are drawn: what is done comes first. */
const BAR_ORDER = [
  'completed',
  'skipped',
  'processing',
  'pending',
  'waiting',
  'blocked',
  'cancelled',
  'failed',
];

export function barParts(counts: Record<string, number>): { state: string; count: number; share: number }[] {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const known = [...BAR_ORDER, ...Object.keys(counts).filter((state) => !BAR_ORDER.includes(state))];
  return known
    .filter((state) => (counts[state] ?? 0) > 0)
    .map((state) => ({ state, count: counts[state]!, share: counts[state]! / total }));
}
