import { expect, test } from 'vitest';
import { buckets, culprit, failureRate, percent, totals, worstFirst } from './dashboard';

const NOW = Date.parse('2026-11-18T12:34:56Z');
const COUNTS = {
  RUNNING: [],
  SUCCEEDED: [
    { key: '2026-11-18T12:00:00Z', count: 6 },
    { key: '2026-11-17T13:00:00Z', count: 1 },
    { key: '2026-11-17T12:00:00Z', count: 99 },
  ],
  FAILED: [{ key: '2026-11-18T11:00:00Z', count: 2 }],
  TIMED_OUT: [],
  ABORTED: [],
};

test('every one of the last hours has its place', () => {
  const found = buckets(COUNTS, NOW);
  expect(found).toHaveLength(24);
  expect(found.map((bucket) => bucket.completed)).toEqual([1, ...Array(22).fill(0), 6]);
  expect(found.at(-2)).toMatchObject({ failed: 2, completed: 0 });
});

test('rates are of what has ended', () => {
  const counted = totals({ ...COUNTS, SUCCEEDED: COUNTS.SUCCEEDED.slice(0, 1) });
  expect(failureRate(counted)).toBe(0.25);
  expect(failureRate({ RUNNING: 3, SUCCEEDED: 0, FAILED: 0, TIMED_OUT: 0, ABORTED: 0 })).toBeNull();
  expect([null, 0, 0.001, 0.256].map(percent)).toEqual(['–', '0 %', '< 1 %', '26 %']);
});

test('what fails most is looked at first', () => {
  const numbers = (name: string, completed: number, failed: number, seconds: number) => ({
    name,
    completed,
    failed,
    retried: 0,
    seconds,
  });
  const found = worstFirst([numbers('fine', 10, 0, 1), numbers('slow', 10, 0, 9), numbers('bad', 1, 1, 0)]);
  expect(found.map((one) => one.name)).toEqual(['bad', 'slow', 'fine']);
});

test('a job is held up by what failed, unless nobody needs it, and then by what waits', () => {
  const ofState = (...taskIds: string[]) => ({
    nodes: taskIds.map((taskId) => ({ taskId, optional: false })),
  });
  const job = {
    failed: { nodes: [{ taskId: 'thumbnail', optional: true }] },
    pending: ofState(),
    waiting: ofState('review'),
    processing: ofState('tag'),
  };
  expect(culprit(job)?.taskId).toBe('review');
  expect(culprit({ ...job, failed: ofState('pay') })?.taskId).toBe('pay');
  expect(
    culprit({ failed: ofState(), pending: ofState(), waiting: ofState(), processing: ofState() }),
  ).toBeNull();
});
