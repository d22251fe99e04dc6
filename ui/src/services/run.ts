/** A job with all its tasks, read page by page and kept true by its events. */
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useClient, type Client, type CombinedError } from 'urql';
import { useConnections } from '../api/connection';
import { useEvents } from '../api/live';
import { Run, type RunEvent, type TaskRow } from '../model/run';
import { EVENTS, TASKS } from './jobs';

const PAGE = 500;
const MOST_TASKS = 10_000;
const MOST_EVENTS = 50_000;
/** Tasks in these states are looked for beyond the first ones, too. */
const SOUGHT = ['failed', 'processing', 'waiting'] as const;

export interface TasksRead {
  readonly tasks: readonly TaskRow[];
  /** Where the first ones end, if there are more. */
  readonly cursor: string | null;
}

/** The first tasks of a job: all of them, unless there are very many. Null if there is no such job. */
export async function readTasks(client: Client, jobId: string): Promise<TasksRead | null> {
  const tasks: TaskRow[] = [];
  let after: string | null = null;
  do {
    const page = await readPage(client, jobId, after);
    if (page === null) return null;
    tasks.push(...page.nodes);
    after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
  } while (after !== null && tasks.length < MOST_TASKS);
  return { tasks, cursor: after };
}

async function readPage(client: Client, jobId: string, after: string | null, state?: string) {
  const answer = await client
    .query(TASKS, { jobId, first: PAGE, after, state }, { requestPolicy: 'network-only' })
    .toPromise();
  if (answer.error) throw answer.error;
  return answer.data?.job?.tasks ?? null;
}

/** Tasks beyond the first ones that one should know of: those that failed, run or wait. */
async function readSought(client: Client, jobId: string, after: string): Promise<TaskRow[]> {
  const pages = await Promise.all(SOUGHT.map((state) => readPage(client, jobId, after, state)));
  return pages.flatMap((page) => page?.nodes ?? []);
}

export interface LiveRun {
  readonly run: Run;
  readonly ready: boolean;
  readonly error: CombinedError | null;
  readonly again: () => void;
  /** Grows when the job itself has changed: its state, or its tasks. */
  readonly tick: number;
  /** How many tasks were read from the first one on, if there are more. */
  readonly first: number | null;
}

const NEW_TASKS = 'Job Tasks Added';
const DRAWN_MS = 60;
/** The job itself, and what is open beside it, is asked again so often at most. */
const ASKED_MS = 500;
/** Tasks beyond the first ones are looked for so often at most, while the job moves on. */
const SOUGHT_MS = 5_000;

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
  const seeking = useRef<ReturnType<typeof setTimeout> | null>(null);
  const loaded = useRef(false);
  const [cut, setCut] = useState<{ first: number; cursor: string } | null>(null);
  useEffect(
    () => () => {
      clearTimeout(drawing.current ?? undefined);
      clearTimeout(asking.current ?? undefined);
      clearTimeout(seeking.current ?? undefined);
      drawing.current = asking.current = seeking.current = null;
    },
    [],
  );

  const seek = async (cursor: string) => {
    const found = await readSought(client, jobId, cursor);
    if (loaded.current) run.include(found);
  };

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
    if (cut === null || event.taskId === null) return;
    seeking.current ??= setTimeout(() => {
      seeking.current = null;
      seek(cut.cursor).catch(setError);
    }, SOUGHT_MS);
  });

  useEffect(() => {
    let left = false;
    loaded.current = false;
    readTasks(client, jobId)
      .then(async (read) => {
        const cursor = read?.cursor ?? null;
        const sought = cursor === null ? [] : await readSought(client, jobId, cursor);
        if (left) return;
        const first = read?.tasks ?? [];
        run.replace([...first, ...sought]);
        setCut(cursor === null ? null : { first: first.length, cursor });
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

  const again = () => setReading((count) => count + 1);
  return { run, ready, error, again, tick, first: cut?.first ?? null };
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
  /** There are more than are read here. */
  readonly cut: boolean;
  readonly error: CombinedError | null;
  readonly again: () => void;
}

/** The events of a job, as they are read, but not more than a page can hold; `tick` reads what has come since. */
export function useHistory(jobId: string, tick: number, pause = false): History {
  const client = useClient();
  const [history, setHistory] = useState<Omit<History, 'again'>>({
    events: [],
    complete: false,
    cut: false,
    error: null,
  });
  const [trial, setTrial] = useState(0);
  const known = useRef<RunEvent[]>([]);
  const busy = useRef(false);
  const wanted = useRef(0);
  useEffect(() => {
    wanted.current = tick;
    if (pause || busy.current || known.current.length >= MOST_EVENTS) return;
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
        const cut = !complete && known.current.length >= MOST_EVENTS;
        setHistory({ events: known.current, complete, cut, error: null });
        if (cut || (complete && seen === wanted.current)) return;
      }
    };
    read()
      .catch((error: CombinedError) =>
        setHistory({ events: known.current, complete: false, cut: false, error }),
      )
      .finally(() => {
        busy.current = false;
      });
  }, [client, jobId, tick, pause, trial]);
  return { ...history, again: () => setTrial((count) => count + 1) };
}
