import { expect, test } from 'vitest';
import { executionFilter, readExecutionSearch, readJobSearch, refined } from './search';

test('filters are read from an address, and what is no filter is left out', () => {
  const search = readExecutionSearch({
    agent: 42,
    status: ['FAILED', 'nonsense'],
    from: 'yesterday',
    other: 1,
    tag: '',
  });
  expect(search).toEqual({ agent: '42', status: ['FAILED'] });
  expect(executionFilter(search)).toMatchObject({ agentName: '42', status: ['FAILED'], tag: undefined });
  expect(readExecutionSearch({ status: 'RUNNING' }).status).toEqual(['RUNNING']);
});

test('what cannot be read is said to be nothing, or the router would keep it', () => {
  const search = readExecutionSearch({ status: 'banana', from: 'yesterday' });
  expect(Object.keys(search)).toEqual(expect.arrayContaining(['status', 'from']));
  expect({ status: 'banana', from: 'yesterday', ...search }).toEqual({});
});

test('another filter begins at the first page, and the next page keeps the filters', () => {
  const search = { agent: 'a', after: 'cursor' };
  expect(refined(search, { tag: 'x' })).toEqual({ agent: 'a', tag: 'x' });
  expect(refined(search, { after: 'next' })).toEqual({ agent: 'a', after: 'next' });
  expect(refined(search, { agent: undefined })).toEqual({});
});

test('a job is shown as it is, unless a moment is named', () => {
  expect(readJobSearch({ tab: 'graph', at: 'x' })).toEqual({});
  expect(readJobSearch({ tab: 'events', at: '17', task: 'a' })).toEqual({ tab: 'events', at: 17, task: 'a' });
});

test("asks for the engine's own executions if the address says so", () => {
  expect(executionFilter(readExecutionSearch({ engine: 'true' })).includeEngine).toBe(true);
  expect(executionFilter(readExecutionSearch({})).includeEngine).toBeUndefined();
});
