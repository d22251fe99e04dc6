/**
 * Pages stay true by asking again when something has happened, at most once in a while. An event is a hint: what none tells of,
 * or nobody could tell, is found by asking now and then.
 */
import { useEffect, useEffectEvent, useRef, useState, useSyncExternalStore } from 'react';
import {
  createRequest,
  useClient,
  useQuery,
  type AnyVariables,
  type CombinedError,
  type TypedDocumentNode,
  type UseQueryArgs,
} from 'urql';
import { onEnd, pipe, subscribe } from 'wonka';
import { connection, useConnections } from './connection';
import { graphql, type ResultOf, type VariablesOf } from './graphql';

const EVENTS = graphql(`
  subscription Events($filter: EventFilter) {
    events(filter: $filter) {
      jobId
      seq
      type
      at
      taskId
      attempt
      properties
      jobName
    }
  }
`);

const CHANGES = graphql(`
  subscription Changes {
    changes
  }
`);

export type LiveEvent = ResultOf<typeof EVENTS>['events'];
export type EventFilter = NonNullable<VariablesOf<typeof EVENTS>['filter']>;

export const JOB_EVENTS = [
  'Job Created',
  'Job Completed',
  'Job Failed',
  'Job Cancelled',
  'Job Timed Out',
  'Job Resumed',
];

const SHORTEST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** Calls back for all that a subscription brings. A stream that the server has ended, because we were too slow, say, begins anew. */
function useStream<Data, Variables extends AnyVariables>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  onData: (data: Data) => void,
  pause = false,
): void {
  const client = useClient();
  const handle = useEffectEvent(onData);
  const wanted = JSON.stringify(variables);
  const [turn, setTurn] = useState(0);
  const failures = useRef(0);
  useEffect(() => {
    if (pause) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let left = false;
    const begin = () => {
      if (left || timer !== undefined) return;
      timer = setTimeout(
        () => setTurn((count) => count + 1),
        Math.min(LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS * 2 ** failures.current),
      );
      failures.current += 1;
    };
    const { unsubscribe } = pipe(
      client.subscription(document, JSON.parse(wanted) as Variables),
      onEnd(begin),
      subscribe((result) => {
        if (result.error) begin();
        if (!result.data) return;
        failures.current = 0;
        handle(result.data);
      }),
    );
    connection.settle();
    return () => {
      left = true;
      clearTimeout(timer);
      unsubscribe();
    };
  }, [client, document, wanted, pause, turn]);
}

/** Calls back for each event from now on. */
export function useEvents(filter: EventFilter, onEvent: (event: LiveEvent) => void, pause = false): void {
  useStream(EVENTS, { filter }, ({ events }) => onEvent(events), pause);
}

/**
 * What no event tells of, such as a definition that somebody has changed: then all that is shown is asked again. So it is when this
 * begins, since what changed between the first answer and then nobody tells.
 */
export function useChanges(): void {
  useStream(CHANGES, {}, beat);
}

/**
 * A number that grows when something has happened, at most once in so many milliseconds, and when the socket is back.
 * `isWanted` chooses among the events that a filter cannot.
 */
export function useTick(
  filter: EventFilter,
  every = 1000,
  isWanted: (event: LiveEvent) => boolean = () => true,
): number {
  const [tick, setTick] = useState(0);
  const waiting = useRef<ReturnType<typeof setTimeout> | null>(null);
  const connections = useConnections();
  useEffect(() => () => clearTimeout(waiting.current ?? undefined), []);
  useEvents(filter, (event) => {
    if (!isWanted(event)) return;
    waiting.current ??= setTimeout(() => {
      waiting.current = null;
      setTick((count) => count + 1);
    }, every);
  });
  return tick + connections;
}

export interface Asked<Data> {
  readonly data: Data | undefined;
  readonly error: CombinedError | undefined;
  readonly fetching: boolean;
  readonly again: () => void;
}

/** The first of them; to try it again is to try again all that have failed with it, which would only be seen after it. */
export function together<Data>(
  first: Asked<Data>,
  ...others: readonly { readonly error?: unknown; readonly again: () => void }[]
): Asked<Data> {
  const again = () => [first, ...others].filter((asked) => asked.error).forEach((asked) => asked.again());
  return { ...first, again };
}

const PULSE_MS = 20_000;
const pulse = { count: 0, listeners: new Set<() => void>() };
setInterval(() => {
  if (!document.hidden) beat();
}, PULSE_MS);

function beat(): void {
  pulse.count += 1;
  for (const listener of pulse.listeners) listener();
}

function watchPulse(listener: () => void): () => void {
  pulse.listeners.add(listener);
  return () => pulse.listeners.delete(listener);
}

/**
 * A query that is asked again when `tick` changes and now and then, and keeps showing the last answer meanwhile. With `still`, it
 * is asked again for a tick only.
 */
export function useAsk<Data, Variables extends AnyVariables>(
  query: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  { tick = 0, pause = false, still = false }: { tick?: number; pause?: boolean; still?: boolean } = {},
): Asked<Data> {
  const [result, execute] = useQuery({ query, variables, pause } as UseQueryArgs<Variables, Data>);
  const beat = useSyncExternalStore(watchPulse, () => (still ? 0 : pulse.count));
  const now = `${tick}/${beat}`;
  const asked = useRef(now);
  useEffect(() => {
    if (asked.current !== now && !pause) {
      asked.current = now;
      execute({ requestPolicy: 'network-only' });
    }
  }, [now, execute, pause]);
  const { data, operation } = result;
  const { key } = createRequest(query, variables);
  const [last, setLast] = useState<{ of: number | undefined; data: Data | undefined }>();
  if (data && last?.data !== data) setLast({ of: operation?.key, data });
  return {
    // An error brings no data, nor does the next attempt at first: what is known stays, if it answers the same question.
    data: data ?? (last?.of === key ? last.data : undefined),
    error: result.error,
    fetching: result.fetching,
    again: () => execute({ requestPolicy: 'network-only' }),
  };
}
