import { expect, test, vi } from 'vitest';
import { events, task } from '../test/factories';
import { asOf, countStates, Run } from './run';

const STORY = events(
  '0 - Job Created',
  '0 a Task Pending',
  '1 a Task Processing 1',
  '2 a Task Retry Scheduled 1',
  '3 a Task Processing 2',
  '4 a Task Completed 2',
  '4 b Task Processing 1',
  '5 b Task Failed 1',
);

test('events move tasks on', () => {
  const run = new Run([task('a'), task('b', { dependsOn: ['a'] })]);
  run.apply(STORY);
  expect(run.get('a')).toMatchObject({
    state: 'completed',
    attempt: 2,
    startedAt: '1970-01-01T00:00:03.000Z',
  });
  expect(run.get('b')).toMatchObject({ state: 'failed', error: { type: 'Broken' } });
  expect(countStates(run.all())).toEqual({ completed: 1, failed: 1 });
});

test('whoever watches a task hears of that one only', () => {
  const run = new Run([task('a'), task('b')]);
  const [a, b, all] = [vi.fn(), vi.fn(), vi.fn()];
  run.watch('a', a);
  const leave = run.watch('b', b);
  run.watchAll(all);
  const before = run.all();
  run.apply(STORY.slice(0, 2));
  expect([a, b, all].map((heard) => heard.mock.calls.length)).toEqual([1, 0, 1]);
  expect(run.all()).not.toBe(before);
  leave();
  run.apply(events('1 - Status Published', '1 unknown Task Pending'));
  expect(all).toHaveBeenCalledTimes(1);
});

test('a job can be seen as it was', () => {
  const tasks = [task('a', { state: 'completed' }), task('b', { state: 'failed' })];
  expect(asOf(tasks, STORY, 4).map((row) => row.state)).toEqual(['waiting', 'blocked']);
  expect(asOf(tasks, STORY, 7).map((row) => row.state)).toEqual(['completed', 'processing']);
  expect(asOf(tasks, STORY, 99).map((row) => row.state)).toEqual(['completed', 'failed']);
});

test('tasks that are read later are added, and replace what is older', () => {
  const run = new Run([task('a'), task('b')]);
  run.apply(STORY);
  run.include([task('a', { state: 'pending' }), task('z', { state: 'failed', attempt: 1 })]);
  expect(run.all().map(({ taskId, state }) => [taskId, state])).toEqual([
    ['a', 'completed'],
    ['b', 'failed'],
    ['z', 'failed'],
  ]);
});
