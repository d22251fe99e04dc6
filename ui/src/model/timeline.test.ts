import { expect, test } from 'vitest';
import { events } from '../test/factories';
import { lanes, marks, span } from './timeline';

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
