/** Payloads are text, whatever is in them: they are never anything that a browser would act upon. */

export const SHOWN_LINES = 40;
export const SHOWN_CHARACTERS = 8_000;

export interface Shown {
  readonly text: string;
  readonly lines: number;
  readonly bytes: number;
  /** What is shown before somebody asks for all of it; null if that is all. */
  readonly head: string | null;
}

export function show(value: unknown): Shown {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'null');
  const lines = text.split('\n');
  const long = lines.length > SHOWN_LINES || text.length > SHOWN_CHARACTERS;
  return {
    text,
    lines: lines.length,
    bytes: new TextEncoder().encode(text).length,
    head: long ? lines.slice(0, SHOWN_LINES).join('\n').slice(0, SHOWN_CHARACTERS) : null,
  };
}

/** One line for a table. */
export function brief(value: unknown, most = 120): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} kB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** The error of a task as one line, from the shape that the engine gives it. */
export function errorLine(error: unknown): string {
  if (typeof error !== 'object' || error === null) return brief(error);
  const { type, message } = error as { type?: unknown; message?: unknown };
  const said = String(message ?? '').split('\n', 1)[0];
  return said ? `${String(type)}: ${said}` : String(type ?? 'failed');
}
