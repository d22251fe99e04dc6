/** What went wrong, in a sentence, from whatever the client was told. */
import type { CombinedError } from '@urql/core';

export interface Trouble {
  readonly title: string;
  readonly message: string;
  readonly code: string | null;
}

type Failure = Pick<CombinedError, 'message'> & {
  readonly networkError?: Error;
  readonly response?: { status?: number };
  readonly graphQLErrors?: readonly { message: string; extensions?: Record<string, unknown> }[];
};

export function describe(error: Failure): Trouble {
  const told = error.graphQLErrors?.[0];
  if (told) {
    const code = typeof told.extensions?.code === 'string' ? told.extensions.code : null;
    return { title: TITLES[code ?? ''] ?? 'That did not work', message: told.message, code };
  }
  const status = error.response?.status;
  if (status === 429) {
    return {
      title: 'Too many requests',
      message: 'The server asks for a moment of rest. Try again.',
      code: 'too_many_requests',
    };
  }
  if (status !== undefined && status >= 400) {
    return { title: 'The server refused', message: `It answered with status ${status}.`, code: null };
  }
  if (error.networkError === undefined) {
    return { title: 'That did not work', message: error.message, code: null };
  }
  return {
    title: 'The server cannot be reached',
    message: 'What is shown may be out of date. The page tries again by itself.',
    code: null,
  };
}

const TITLES: Record<string, string> = {
  forbidden: 'This key may not do that',
  query_too_large: 'That is too much at once',
  internal: 'Something broke on the server',
};
