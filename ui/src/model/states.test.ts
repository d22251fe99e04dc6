import { expect, test } from 'vitest';
import { barParts, jobActions, stateOf, taskActions } from './states';

test('the statuses of the index are states of jobs', () => {
  expect(['RUNNING', 'SUCCEEDED', 'FAILED', 'TIMED_OUT', 'ABORTED'].map(stateOf)).toEqual([
    'running',
    'completed',
    'failed',
    'timed_out',
    'cancelled',
  ]);
});

test('only what the engine would do is offered', () => {
  expect(taskActions('failed')).toEqual({ retry: true, skip: true, cancel: false });
  expect(taskActions('completed')).toEqual({ retry: false, skip: false, cancel: false });
  expect(taskActions('waiting')).toEqual({ retry: false, skip: true, cancel: true });
  expect(jobActions('running', false)).toEqual({ cancel: true, resume: false });
  expect(jobActions('running', true)).toEqual({ cancel: true, resume: true });
  expect(jobActions('timed_out', false)).toEqual({ cancel: false, resume: true });
  expect(jobActions('completed', true)).toEqual({ cancel: false, resume: false });
});

test('a bar has what is done first, and nothing of what there is none of', () => {
  expect(barParts({ failed: 1, completed: 2, blocked: 1, waiting: 0 })).toEqual([
    { state: 'completed', count: 2, share: 0.5 },
    { state: 'blocked', count: 1, share: 0.25 },
    { state: 'failed', count: 1, share: 0.25 },
  ]);
});
