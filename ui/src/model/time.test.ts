import { describe, expect, test } from 'vitest';
import { absolute, duration, elapsed, fromLocal, relative, toLocal } from './time';

describe('durations', () => {
  test.each([
    [-5, '0 ms'],
    [84, '84 ms'],
    [3_249, '3.2 s'],
    [9_999, '9.9 s'],
    [42_000, '42 s'],
    [245_000, '4 min 5 s'],
    [120_000, '2 min'],
    [7_800_000, '2 h 10 min'],
    [273_600_000, '3 d 4 h'],
  ])('%d ms is %s', (ms, said) => expect(duration(ms)).toBe(said));

  test('a task that has not begun has none, and one that runs goes on', () => {
    expect(elapsed(null, null, 5)).toBeNull();
    expect(elapsed('1970-01-01T00:00:01Z', null, 3_000)).toBe(2_000);
    expect(elapsed('1970-01-01T00:00:01Z', '1970-01-01T00:00:02Z', 9_000)).toBe(1_000);
  });
});

describe('moments', () => {
  const now = Date.parse('2026-11-18T12:00:00Z');
  test.each([
    ['2026-11-18T11:59:58Z', 'just now'],
    ['2026-11-18T11:59:20Z', '40 s ago'],
    ['2026-11-18T09:00:00Z', '3 h ago'],
    ['2026-11-10T12:00:00Z', '8 d ago'],
    ['2026-11-18T12:00:01Z', 'just now'],
    ['2026-11-18T12:00:03Z', 'in 3 s'],
    ['2026-11-18T12:05:00Z', 'in 5 min'],
  ])('%s was %s', (at, said) => expect(relative(Date.parse(at), now)).toBe(said));

  test('are told with their zone', () => {
    expect(absolute(now, 'en-GB', 'Europe/Berlin')).toBe('18 Nov 2026, 13:00:00.000 CET');
  });

  test('go into inputs and come back', () => {
    expect(fromLocal('')).toBeUndefined();
    expect(toLocal(undefined)).toBe('');
    expect(fromLocal(toLocal('2026-11-18T12:34:00.000Z'))).toBe('2026-11-18T12:34:00.000Z');
  });
});
