import { Text } from '@mantine/core';
import type { CSSProperties } from 'react';
import { useAsk } from '../api/live';
import { attention } from '../model/attention';
import { errorLine } from '../model/payload';
import { stamp, type TaskRow } from '../model/run';
import { WHY } from '../services/jobs';

/** The reason why a job is not done, before anybody has looked for it. */
export function Attention({
  jobId,
  tasks,
  counts,
  onChoose,
}: {
  jobId: string;
  tasks: readonly TaskRow[];
  /** Of all tasks, of which some may not be known here. */
  counts: Readonly<Record<string, number>>;
  onChoose: (taskId: string) => void;
}) {
  const found = attention(tasks, counts.processing);
  if (found.length === 0) return null;
  return (
    <section
      className="attention"
      aria-label="What to look at"
      style={{ '--state': `var(--state-${found[0]!.state})` } as CSSProperties}
    >
      {found.map((task) => (
        <Text key={task.taskId} fz="sm" lineClamp={2} className="unbroken">
          <button type="button" className="link-button" onClick={() => onChoose(task.taskId)}>
            {task.taskId}
          </button>{' '}
          {task.state === 'failed' ? errorLine(task.error) : <Why jobId={jobId} task={task} />}
        </Text>
      ))}
    </section>
  );
}

function Why({ jobId, task }: { jobId: string; task: TaskRow }) {
  const asked = useAsk(WHY, { jobId, taskId: task.taskId }, { tick: stamp(task) });
  return <>{asked.data?.task?.why.sentence ?? '…'}</>;
}
