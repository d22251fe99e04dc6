import { expect, test } from 'vitest';
import { pipeline, status } from '../test/factories';
import {
  afterTime,
  beginnings,
  decisionsOf,
  delays,
  doneInDay,
  itemFilter,
  itemQuery,
  money,
  occupied,
  placesOf,
  stepsOf,
  tones,
  ways,
} from './pipeline';
import { readPipelineSearch } from './search';

test('a status has the colour of what it means for an item', () => {
  const found = tones(pipeline());
  expect(Object.fromEntries(found)).toEqual({
    found: 'blocked',
    to_fetch: 'pending',
    fetching: 'processing',
    fetched: 'blocked',
    gone: 'cancelled',
    to_tag: 'pending',
    tagging: 'processing',
    tagged: 'blocked',
    to_draw: 'pending',
    drawing: 'processing',
    drawn: 'blocked',
    asked: 'waiting',
    looking: 'waiting',
    rejected: 'cancelled',
    published: 'completed',
    updated: 'completed',
    failed: 'failed',
    dead: 'failed',
  });
});

test('where an item can begin, what can be run alone, and what people may decide', () => {
  expect(stepsOf(pipeline())).toEqual(['fetch', 'tag', 'draw']);
  expect(placesOf(pipeline())).toEqual(['found', 'fetch', 'tag', 'draw', 'review', 'published']);
  expect(beginnings(pipeline())).toEqual([{ decision: 're-tag', at: 'tag' }]);
  expect(decisionsOf(pipeline())).toEqual(['approve', 'reject', 're-tag']);
  expect(decisionsOf(pipeline({ course: [] }))).toEqual([]);
});

test('only statuses with items are counted up', () => {
  const statuses = [status(100, 'found', 2), status(300, 'asked'), status(110, 'to_fetch', 1)];
  expect(occupied(statuses).map((one) => one.name)).toEqual(['found', 'to_fetch']);
});

test('one filter at a time, in the address and in the question', () => {
  expect(itemFilter(readPipelineSearch({}))).toEqual({});
  expect(itemFilter(readPipelineSearch({ status: 'asked', show: 'held' }))).toEqual({ status: 'asked' });
  expect(itemFilter(readPipelineSearch({ show: 'stuck' }))).toEqual({ stuck: 3600 });
  expect(itemFilter(readPipelineSearch({ show: 'nonsense', tab: 'board' }))).toEqual({});
  expect(itemQuery({ show: 'retrying' })).toBe('?retrying=true');
  expect(itemQuery({})).toBe('');
});

test('ways out of a status are told by what they are for', () => {
  const move = (fromCode: number, fromStatus: string | null, code: number, to: string, kind: string) => ({
    fromCode,
    fromStatus,
    code,
    status: to,
    kind,
  });
  const found = ways([
    move(111, 'fetching', 599, 'dead', 'failure'),
    move(0, null, 100, 'found', 'enter'),
    move(111, 'fetching', 500, 'failed', 'failure'),
    move(111, 'fetching', 112, 'fetched', 'course'),
  ]);
  expect(found).toEqual([
    { code: 0, from: 'entered', to: [{ kind: 'enter', statuses: ['found'] }] },
    {
      code: 111,
      from: 'fetching',
      to: [
        { kind: 'course', statuses: ['fetched'] },
        { kind: 'failure', statuses: ['dead', 'failed'] },
      ],
    },
  ]);
});

test('numbers that people read', () => {
  const sentence = 'Retry scheduled for 2026-11-16T17:00:00.000Z: tag failed with Broken';
  expect(afterTime(sentence)).toBe(': tag failed with Broken');
  const usual = { maxAttempts: 3, baseDelay: 60, multiplier: 2, maxDelay: 86_400 };
  expect(delays(usual)).toEqual([60, 120]);
  expect(delays({ ...usual, maxAttempts: 9, maxDelay: 200 })).toEqual([60, 120, 200, 200]);
  expect(delays({ ...usual, maxAttempts: 1 })).toEqual([]);
  expect(doneInDay([{ items: 2 }, { items: 3 }])).toBe(5);
  expect([0, 0.00042, 0.5, 12].map(money)).toEqual(['0', '0.00042', '0.50', '12.00']);
});
