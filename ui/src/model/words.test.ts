import { expect, test } from 'vitest';
import { counted } from './words';

test('one thing is not several', () => {
  expect(counted(1, 'task')).toBe('1 task');
  expect(counted(0, 'task')).toBe('0 tasks');
  expect(counted(1, 'task has', 'tasks have')).toBe('1 task has');
  expect(counted(2, 'task has', 'tasks have')).toBe('2 tasks have');
});
