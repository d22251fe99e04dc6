import { expect, test } from 'vitest';
import { command, curl, jobPath, quote } from './commands';

test('what goes into a shell stays one word', () => {
  expect(quote('plain-word')).toBe('plain-word');
  expect(quote("it's; rm -rf /")).toBe(`'it'\\''s; rm -rf /'`);
});

test('requests are those of the page, and keys are not written out', () => {
  expect(
    curl('http://localhost:8080', true, 'POST', jobPath('order-17', '/cancel'), { reason: "it's late" }),
  ).toBe(
    `curl -sS -X POST http://localhost:8080/v1/jobs/order-17/cancel -H "Authorization: Bearer $KEY" ` +
      `-H 'Content-Type: application/json' -d '{"reason":"it'\\''s late"}'`,
  );
  expect(curl('http://localhost', false, 'GET', '/v1/jobs')).toBe('curl -sS http://localhost/v1/jobs');
});

test('words that people have chosen are only words to a shell', () => {
  expect(command('ostinato jobs show', "it's; reboot", undefined, 'a-1')).toBe(
    `ostinato jobs show 'it'\\''s; reboot' a-1`,
  );
});
