import { expect, test } from 'vitest';
import { ran, task } from '../test/factories';
import { criticalPath, depths, edgesOf, opening, shapeOf } from './graph';

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

test('a graph that is wider than the screen is opened where one should look, to be read', () => {
  const phone = { width: 366, height: 480 };
  const chain = { x: 0, y: 0, width: 2000, height: 46 };
  expect(opening({ ...chain, width: 400 }, phone, { x: 0, y: 0 }, 0.7)).toBeNull();
  const begin = opening(chain, phone, { x: 88, y: 23 }, 0.7)!;
  expect(begin.zoom).toBe(0.8);
  expect(begin.x).toBe(24); // its beginning is at the left, not in the middle
  expect(begin.y + 23 * begin.zoom).toBe(240); // it is low, and stands in the middle
  expect(opening(chain, phone, { x: 1000, y: 23 }, 0.7)!.x + 1000 * 0.8).toBe(183);
  expect(opening(chain, phone, { x: 1990, y: 23 }, 0.7)!.x + 2000 * 0.8).toBe(366 - 24);
});
