import { expect, test } from 'vitest';
import { ran, task } from '../test/factories';
import { criticalPath, depths, edgesOf, shapeOf } from './graph';

test('edges lead from what is needed to what needs it', () => {
  expect(edgesOf([task('a'), task('b', { dependsOn: ['a', 'not-here'] })])).toEqual([{ from: 'a', to: 'b' }]);
});

test('the critical path is what the end had to wait for', () => {
  const tasks = [
    ran('slow', 0, 9),
    ran('quick', 0, 1),
    ran('join', 9, 10, { dependsOn: ['quick', 'slow'] }),
    ran('aside', 1, 2, { dependsOn: ['quick'] }),
  ];
  expect(criticalPath(tasks)).toEqual(['slow', 'join']);
});

test('of what has not run it is the longest chain', () => {
  const tasks = [
    task('a'),
    task('b', { dependsOn: ['a'] }),
    task('c', { dependsOn: ['b'] }),
    task('d', { dependsOn: ['a'] }),
  ];
  expect(criticalPath(tasks)).toEqual(['a', 'b', 'c']);
  expect(criticalPath([])).toEqual([]);
  expect(Object.fromEntries(depths(tasks))).toEqual({ a: 1, b: 2, c: 3, d: 2 });
});

test('thousands are no trouble', () => {
  const tasks = Array.from({ length: 5000 }, (_, n) => task(`t${n}`, { dependsOn: n ? [`t${n - 1}`] : [] }));
  expect(criticalPath(tasks)).toHaveLength(5000);
});

test('the shape changes with the tasks, not with their states', () => {
  const tasks = [task('a'), task('b', { dependsOn: ['a'] })];
  expect(shapeOf(tasks)).toBe(shapeOf(tasks.map((row) => ({ ...row, state: 'completed' }))));
  expect(shapeOf(tasks)).not.toBe(shapeOf([...tasks, task('c')]));
});
