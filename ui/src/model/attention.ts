/** What somebody who opens a job should look at first. */
import type { TaskRow } from './run';

const MOST = 3;

/** Tasks that failed; or, if nothing runs although the job has not ended, what it waits for. */
export function attention(tasks: readonly TaskRow[], processing = 0): readonly TaskRow[] {
  const failed = tasks.filter((task) => task.state === 'failed' && !task.optional);
  if (failed.length) return failed.slice(0, MOST);
  if (processing > 0 || tasks.some((task) => task.state === 'processing')) return [];
  const waiting = tasks.filter((task) => task.state === 'waiting');
  return (waiting.length ? waiting : tasks.filter((task) => task.state === 'pending')).slice(0, MOST);
}
