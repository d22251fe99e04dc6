import { expect, test } from 'vitest';
import { describe } from './errors';

test('an answer of the server speaks for itself', () => {
  const told = {
    message: 'this key does not have the scope admin',
    extensions: { code: 'forbidden', status: 403 },
  };
  expect(describe({ message: '', graphQLErrors: [told] })).toEqual({
    title: 'This key may not do that',
    message: 'this key does not have the scope admin',
    code: 'forbidden',
  });
});

test('no answer is said to be none', () => {
  expect(describe({ message: '', networkError: new Error('x') }).title).toBe('The server cannot be reached');
  expect(describe({ message: '', response: { status: 429 } }).code).toBe('too_many_requests');
  expect(describe({ message: '', response: { status: 503 } }).message).toContain('503');
});

test('what was never sent is not blamed on the server', () => {
  expect(describe(new Error('This is not JSON')).message).toBe('This is not JSON');
});
