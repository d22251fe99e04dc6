import { expect, test } from 'vitest';
import { columns } from './board';

test('statuses stand in their phase, in the order of their codes', () => {
  const found = columns([
    { code: 400, name: 'published', phase: 'publication', items: 7 },
    { code: 110, name: 'fetching', phase: 'discovery', items: 2 },
    { code: 100, name: 'discovered', phase: 'discovery', items: 1 },
    { code: 900, name: 'odd', phase: null, items: 0 },
  ]);
  expect(
    found.map(({ phase, items, statuses }) => [phase, items, statuses.map((one) => one.name).join(' ')]),
  ).toEqual([
    ['discovery', 3, 'discovered fetching'],
    ['publication', 7, 'published'],
    ['other', 0, 'odd'],
  ]);
});
