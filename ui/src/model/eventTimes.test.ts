import { expect, test } from 'vitest';
import { eventTimes, withoutTimes } from './eventTimes';

const DUE = Date.parse('2026-11-18T12:00:00.250Z') * 1000;

test('a time of the engine is found, and told in words', () => {
  expect(eventTimes({ kind: 'retry', dueAt: DUE })).toEqual([
    { name: 'due', at: '2026-11-18T12:00:00.250Z' },
  ]);
  expect(eventTimes({ nextDueAt: DUE })[0]?.name).toBe('next due');
  expect(withoutTimes({ kind: 'retry', dueAt: DUE })).toEqual({ kind: 'retry' });
});

test('other numbers, and what somebody else has put inside, stay as they are', () => {
  const properties = { dueAt: null, format: DUE, delayAt: 5, output: { dueAt: DUE } };
  expect(eventTimes(properties)).toEqual([]);
  expect(withoutTimes(properties)).toBe(properties);
});

test.each([null, undefined, 'text', 7, [DUE]])('%s has none', (value) => {
  expect(eventTimes(value)).toEqual([]);
  expect(withoutTimes(value)).toBe(value);
});
