import { expect, test } from 'vitest';
import { command, curl, jobPath, option, quote, withQuery } from './commands';

test('what goes into a shell stays one word', () => {
  expect(quote('plain-word')).toBe('plain-word');
  expect(quote("it's; rm -rf /")).toBe(`'it'\\''s; rm -rf /'`);
});

test('requests are those of the page, and keys are not written out', () => {
  expect(curl('http://localhost:8080', true, jobPath('order-17', '/events'))).toBe(
    `curl -sS http://localhost:8080/v1/jobs/order-17/events -H "Authorization: Bearer $KEY"`,
  );
  expect(curl('http://localhost', false, '/v1/jobs')).toBe('curl -sS http://localhost/v1/jobs');
});

test('only what has a value is asked for', () => {
  expect(
    withQuery('/v1/executions', { agentName: undefined, status: ['FAILED', 'ABORTED'], tag: 'a=b c' }),
  ).toBe('/v1/executions?status=FAILED&status=ABORTED&tag=a%3Db+c');
  expect(withQuery('/v1/executions', {})).toBe('/v1/executions');
  expect(command('ls', ...option('--tag', 'a b'), ...option('--agent', undefined))).toBe(`ls --tag 'a b'`);
});

test('words that people have chosen are only words to a shell', () => {
  expect(command('ostinato jobs show', "it's; reboot", undefined, 'a-1')).toBe(
    `ostinato jobs show 'it'\\''s; reboot' a-1`,
  );
});
