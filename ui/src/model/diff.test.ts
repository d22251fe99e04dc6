import { expect, test } from 'vitest';
import { ran, task } from '../test/factories';
import { compareRuns, compareText, differs } from './diff';

test('runs differ in tasks, states, attempts and times', () => {
  const here = [ran('a', 0, 1), ran('b', 0, 9), task('c', { state: 'failed', attempt: 3 }), task('new')];
  const there = [ran('a', 0, 1), ran('b', 0, 2), ran('c', 0, 1), task('gone')];
  const found = compareRuns(here, there, 0);
  expect(found.filter(differs).map(({ taskId, changes }) => [taskId, changes])).toEqual([
    ['b', ['time']],
    ['c', ['state', 'attempt']],
    ['new', []],
    ['gone', []],
  ]);
});

test('texts differ line by line', () => {
  const lines = compareText('a\nb\nc', 'a\nx\nc\nd');
  expect(lines.map(({ kind, text }) => `${kind[0]}${text}`)).toEqual(['sa', 'rb', 'ax', 'sc', 'ad']);
  expect(compareText('same', 'same').every((line) => line.kind === 'same')).toBe(true);
});
