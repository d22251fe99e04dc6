/** A job with all its tasks, read page by page and kept true by its events. */
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useClient, type Client, type CombinedError } from 'urql';
import { useConnections } from '../api/connection';
import { useEvents } from '../api/live';
import { Run, type RunEvent, type TaskRow } from '../model/run';
import { EVENTS, TASKS } from './jobs';

const PAGE = 500;
const MOST_TASKS = 10_000;

export async function readTasks(client: Client, jobId: string): Promise<TaskRow[] | null> {
  const tasks: TaskRow[] = [];
  let after: string | null = null;
  do {
    const answer = await client
      .query(TASKS, { jobId, first: PAGE, after }, { requestPolicy: 'network-only' })
      .toPromise();
    if (answer.error) throw answer.error;
    if (!answer.data?.job) return null;
    const page: NonNullable<typeof answer.data.job>['tasks'] = answer.data.job.tasks;
    tasks.push(...page.nodes);
    after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
  } while (after !== null && tasks.length < MOST_TASKS);
  return tasks;
}

export interface LiveRun {
  readonly run: Run;
  readonly ready: boolean;
  readonly error: CombinedError | null;
  readonly again: () => void;
  /** Grows when the job itself has changed: its state, or its tasks. */
  readonly tick: number;
}

const NEW_TASKS = 'Job Tasks Added';
const DRAWN_MS = 60;
/** The job itself, and what is open beside it, is asked again so often at most. */
const ASKED_MS = 500;

/** Events that come while the tasks are read are applied after: together they are never older than either. */
export function useRun(jobId: string): LiveRun {
  const client = useClient();
  const connections = useConnections();
  const [run] = useState(() => new Run());
  const [ready, setReady] = useState(false);
  const [error, setError] = useState<CombinedError | null>(null);
  const [reading, setReading] = useState(0);
  const [tick, setTick] = useState(0);
  const waiting = useRef<RunEvent[]>([]);
  const drawing = useRef<ReturnType<typeof setTimeout> | null>(null);
  const asking = useRef<ReturnType<typeof setTimeout> | null>(null);
  const loaded = useRef(false);
  useEffect(
    () => () => {
      clearTimeout(drawing.current ?? undefined);
      clearTimeout(asking.current ?? undefined);
      drawing.current = asking.current = null;
    },
    [],
  );

  useEvents({ jobId }, (event) => {
    waiting.current.push(event);
    if (event.type === NEW_TASKS) setReading((count) => count + 1);
    // No frames: a tab behind others gets none, and would keep all events until somebody looks.
    drawing.current ??= setTimeout(() => {
      drawing.current = null;
      if (loaded.current) run.apply(waiting.current.splice(0));
    }, DRAWN_MS);
    asking.current ??= setTimeout(() => {
      asking.current = null;
      setTick((count) => count + 1);
    }, ASKED_MS);
  });

  useEffect(() => {
    let left = false;
    loaded.current = false;
    readTasks(client, jobId)
      .then((tasks) => {
        if (left) return;
        run.replace(tasks ?? []);
        run.apply(waiting.current.splice(0));
        loaded.current = true;
        setError(null);
        setReady(true);
        setTick((count) => count + 1);
      })
      .catch((failure: CombinedError) => !left && setError(failure));
    return () => {
      left = true;
    };
  }, [client, jobId, run, reading, connections]);

  return { run, ready, error, again: () => setReading((count) => count + 1), tick };
}

export function useTasks(run: Run): readonly TaskRow[] {
  return useSyncExternalStore(
    (listener) => run.watchAll(listener),
    () => run.all(),
  );
}

export interface History {
  readonly events: readonly RunEvent[];
  readonly complete: boolean;
  readonly error: CombinedError | null;
  readonly again: () => void;
}

/** All events of a job, as they are read; `tick` reads what has come since. */
export function useHistory(jobId: string, tick: number, pause = false): History {
  const client = useClient();
  const [history, setHistory] = useState<Omit<History, 'again'>>({
    events: [],
    complete: false,
    error: null,
  });
  const [trial, setTrial] = useState(0);
  const known = useRef<RunEvent[]>([]);
  const busy = useRef(false);
  const wanted = useRef(0);
  useEffect(() => {
    wanted.current = tick;
    if (pause || busy.current) return;
    busy.current = true;
    const read = async () => {
      for (;;) {
        const seen = wanted.current;
        const after = String(known.current.at(-1)?.seq ?? 0);
        const answer = await client
          .query(EVENTS, { jobId, first: PAGE, after }, { requestPolicy: 'network-only' })
          .toPromise();
        if (answer.error) throw answer.error;
        const page = answer.data?.job?.events;
        known.current = [...known.current, ...(page?.nodes ?? [])];
        const complete = !page?.pageInfo.hasNextPage;
        setHistory({ events: known.current, complete, error: null });
        if (complete && seen === wanted.current) return;
      }
    };
    read()
      .catch((error: CombinedError) => setHistory({ events: known.current, complete: false, error }))
      .finally(() => {
        busy.current = false;
      });
  }, [client, jobId, tick, pause, trial]);
  return { ...history, again: () => setTrial((count) => count + 1) };
}
