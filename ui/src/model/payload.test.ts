import { expect, test } from 'vitest';
import { brief, errorLine, show, size } from './payload';

test('small ones are shown whole', () => {
  expect(show({ a: 1 })).toEqual({ text: '{\n  "a": 1\n}', lines: 3, bytes: 12, head: null });
  expect(show('plain text').text).toBe('plain text');
  expect(show(undefined).text).toBe('null');
});

test('large ones are cut until somebody asks', () => {
  const shown = show(Array.from({ length: 1000 }, (_, n) => n));
  expect(shown.head?.split('\n')).toHaveLength(40);
  expect(show('x'.repeat(10_000)).head).toHaveLength(8_000);
});

test('markup stays what it is', () => {
  expect(show('<img src=x onerror=alert(1)>').text).toBe('<img src=x onerror=alert(1)>');
});

test('in one line', () => {
  expect(brief({ a: 'x'.repeat(200) }, 20)).toHaveLength(20);
  expect(errorLine({ type: 'TerminalError', message: 'the card has expired\nTraceback' })).toBe(
    'TerminalError: the card has expired',
  );
  expect(errorLine({ type: 'Timeout' })).toBe('Timeout');
  expect(size(2048)).toBe('2.0 kB');
});
