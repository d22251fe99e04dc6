/** Pages stay true by asking again when something has happened, at most once in a while. */
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import {
  useClient,
  useQuery,
  type AnyVariables,
  type CombinedError,
  type TypedDocumentNode,
  type UseQueryArgs,
} from 'urql';
import { useConnections } from './connection';
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
    }
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

/** Calls back for each event from now on. */
export function useEvents(filter: EventFilter, onEvent: (event: LiveEvent) => void, pause = false): void {
  const client = useClient();
  const handle = useEffectEvent(onEvent);
  const wanted = JSON.stringify(filter);
  useEffect(() => {
    if (pause) return undefined;
    const variables = { filter: JSON.parse(wanted) as EventFilter };
    const { unsubscribe } = client.subscription(EVENTS, variables).subscribe((result) => {
      if (result.data) handle(result.data.events);
    });
    return unsubscribe;
  }, [client, wanted, pause]);
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

/** A query that is asked again when `tick` changes, and keeps showing the last answer meanwhile. */
export function useAsk<Data, Variables extends AnyVariables>(
  query: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  { tick = 0, pause = false }: { tick?: number; pause?: boolean } = {},
): Asked<Data> {
  const [result, execute] = useQuery({ query, variables, pause } as UseQueryArgs<Variables, Data>);
  const asked = useRef(tick);
  useEffect(() => {
    if (asked.current !== tick && !pause) {
      asked.current = tick;
      execute({ requestPolicy: 'network-only' });
    }
  }, [tick, execute, pause]);
  return {
    data: result.data,
    error: result.error,
    fetching: result.fetching,
    again: () => execute({ requestPolicy: 'network-only' }),
  };
}
