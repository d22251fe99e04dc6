import { expect, test } from 'vitest';
import { events, ran, task } from '../test/factories';
import { lanes, lastAttempts, marks, span } from './timeline';

const STORY = events(
  '0 - Job Created',
  '1 a Task Processing 1',
  '2 a Task Retry Scheduled 1',
  '3 a Task Processing 2',
  '4 a Task Waiting 2',
  '9 a Task Processing 2',
  '4 b Task Processing 1',
);

test('every try has its bar, and waiting takes none', () => {
  const [a, b] = lanes(STORY);
  expect(a?.attempts.map(({ attempt, start, end, outcome }) => [attempt, start, end, outcome])).toEqual([
    [1, 1000, 2000, 'failed'],
    [2, 3000, 4000, 'waiting'],
    [2, 9000, null, 'processing'],
  ]);
  expect(b?.attempts).toHaveLength(1);
});

test('what still runs reaches until now', () => {
  expect(span(lanes(STORY), 20_000)).toEqual({ start: 1000, end: 20_000 });
  expect(span([], 5)).toEqual({ start: 5, end: 6 });
});

test('lines are at round moments', () => {
  expect(marks({ start: 1000, end: 12_000 })).toEqual([0, 2000, 4000, 6000, 8000, 10_000]);
  expect(marks({ start: 0, end: 1 })).toEqual([0, 1]);
});

test('where not all events are known, the last attempt of each task is', () => {
  const tasks = [
    ran('a', 3, 4, { attempt: 2, state: 'failed' }),
    ran('late', 20, 21, { state: 'failed' }),
    task('idle'),
  ];
  const found = lastAttempts(lanes(STORY.slice(0, 3)), tasks);
  expect(found.map((lane) => [lane.taskId, lane.attempts.map(({ outcome }) => outcome)])).toEqual([
    ['a', ['failed', 'failed']],
    ['late', ['failed']],
  ]);
});
