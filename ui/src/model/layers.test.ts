import { expect, test } from 'vitest';
import { isLarge, layered } from './layers';

test('what depends on something stands to the right of it', () => {
  const { places } = layered({
    ids: ['a', 'b', 'c'],
    edges: [
      { from: 'a', to: 'b' },
      { from: 'b', to: 'c' },
    ],
  });
  expect(places.a!.x).toBeLessThan(places.b!.x);
  expect(places.b!.x).toBeLessThan(places.c!.x);
});

test('neighbours stand beside each other, so that edges do not cross', () => {
  const ids = ['a', 'b', 'c', 'x', 'y', 'z'];
  const edges = [
    { from: 'a', to: 'z' },
    { from: 'b', to: 'y' },
    { from: 'c', to: 'x' },
  ];
  const { places } = layered({ ids, edges });
  const order = (names: string[]) =>
    names.toSorted((one, other) => places[one]!.y - places[other]!.y).join('');
  expect([order(['a', 'b', 'c']), order(['x', 'y', 'z'])]).toEqual(['abc', 'zyx']);
});

test('a thousand tasks that need nothing are a block, not a thread', () => {
  const request = { ids: Array.from({ length: 1000 }, (_, n) => `t${n}`), edges: [] };
  expect(isLarge(request)).toBe(true);
  const places = Object.values(layered(request).places);
  expect(new Set(places.map(({ x, y }) => `${x},${y}`)).size).toBe(1000);
  expect(Math.max(...places.map(({ y }) => y))).toBeLessThan(2000);
  expect(isLarge({ ids: ['a', 'b'], edges: [] })).toBe(false);
});

test('ten thousand are laid out while one waits', () => {
  const ids = Array.from({ length: 10_000 }, (_, n) => `t${n}`);
  const edges = ids.slice(40).flatMap((to, n) => [
    { from: ids[n]!, to },
    { from: ids[Math.floor(n / 40) * 40 + ((n * 7) % 40)]!, to },
  ]);
  const began = performance.now();
  layered({ ids, edges });
  expect(performance.now() - began).toBeLessThan(5000);
});
