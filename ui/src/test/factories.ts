/** Values for tests: whatever a test does not say is what it usually is. */
import type { StatusCount } from '../model/board';
import type { PipelineDocument } from '../model/pipeline';
import type { RunEvent, TaskRow } from '../model/run';

let position = 0;

export function task(taskId: string, fields: Partial<TaskRow> = {}): TaskRow {
  position += 1;
  return {
    taskId,
    name: 'echo',
    state: 'blocked',
    attempt: 0,
    position,
    optional: false,
    dependsOn: [],
    error: null,
    startedAt: null,
    finishedAt: null,
    ...fields,
  };
}

/** A completed task that ran from one second to another. */
export function ran(taskId: string, from: number, to: number, fields: Partial<TaskRow> = {}): TaskRow {
  return task(taskId, {
    state: 'completed',
    attempt: 1,
    startedAt: second(from),
    finishedAt: second(to),
    ...fields,
  });
}

export function second(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

/** Events of a job from lines such as `1 a Task Processing 1`: second, task, type, attempt. */
export function events(...lines: string[]): RunEvent[] {
  return lines.map((line, index) => {
    const [, at, taskId, type, attempt] = /^(\S+) (\S+) (\D+?)(?: (\d+))?$/.exec(line)!;
    return {
      seq: index + 1,
      at: second(Number(at)),
      taskId: taskId === '-' ? null : taskId!,
      type: type!,
      attempt: attempt === undefined ? null : Number(attempt),
      properties: type === 'Task Failed' ? { error: { type: 'Broken' } } : {},
    };
  });
}

/** A short pipeline with one of everything. */
export function pipeline(fields: Partial<PipelineDocument> = {}): PipelineDocument {
  return {
    course: [
      { status: 'found' },
      { step: 'fetch', statuses: ['to_fetch', 'fetching', 'fetched'], ends: ['gone'] },
      {
        together: [
          { step: 'tag', statuses: ['to_tag', 'tagging', 'tagged'] },
          { step: 'draw', statuses: ['to_draw', 'drawing', 'drawn'] },
        ],
      },
      {
        review: 'review',
        waiting: 'asked',
        taken: 'looking',
        reject: 'rejected',
        again: { 're-tag': 'tag' },
      },
      { status: 'published' },
    ],
    failed: 'failed',
    deadLetter: 'dead',
    moves: [{ from: 'published', to: 'updated' }],
    ...fields,
  };
}

export function status(code: number, name: string, items = 0): StatusCount {
  return { code, name, phase: null, items };
}
