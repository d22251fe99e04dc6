import { expect, test } from 'vitest';
import { task } from '../test/factories';
import { attention } from './attention';

const named = (...states: string[]) => states.map((state, index) => task(`t${index}`, { state }));

test('what failed comes first', () => {
  expect(attention(named('failed', 'processing', 'waiting')).map((row) => row.taskId)).toEqual(['t0']);
  expect(attention([task('a', { state: 'failed', optional: true })])).toEqual([]);
});

test('a job that moves needs nobody', () => {
  expect(attention(named('processing', 'waiting'))).toEqual([]);
  expect(attention(named('completed'))).toEqual([]);
});

test('one that stands still waits for something', () => {
  expect(attention(named('waiting', 'pending')).map((row) => row.state)).toEqual(['waiting']);
  expect(attention(named('pending', 'pending', 'pending', 'pending', 'blocked'))).toHaveLength(3);
});
