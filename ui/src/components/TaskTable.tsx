import { Chip, Group, Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import { errorLine } from '../model/payload';
import { countStates, type TaskRow } from '../model/run';
import { label, TASK_STATES } from '../model/states';
import { Elapsed, State } from './bits';
import { Rows } from './Rows';

/** The tasks of a job in the producer's order, or only those that stand in one way. */
export function TaskTable({
  tasks,
  asOf,
  chosen,
  onChoose,
}: {
  tasks: readonly TaskRow[];
  /** When this was so, if that is past. */
  asOf: string | null;
  chosen: string | undefined;
  onChoose: (taskId: string) => void;
}) {
  const [picked, setPicked] = useState<string | null>(null);
  const counts = useMemo(() => countStates(tasks), [tasks]);
  const state = picked !== null && counts[picked] ? picked : null; // when the last of them moves on, all are shown again
  const shown = useMemo(
    () => (state === null ? tasks : tasks.filter((task) => task.state === state)),
    [tasks, state],
  );
  return (
    <div style={{ display: 'flex', flexDirection: 'column', height: '100%' }}>
      <Group gap={6} p="xs">
        {TASK_STATES.filter((name) => counts[name]).map((name) => (
          <Chip
            key={name}
            size="xs"
            variant="outline"
            checked={state === name}
            onChange={(on) => setPicked(on ? name : null)}
          >
            {label(name)} {counts[name]}
          </Chip>
        ))}
      </Group>
      <div style={{ flex: 1, minHeight: 0 }}>
        <Rows
          items={shown}
          height={32}
          label="Tasks"
          keyOf={(task) => task.taskId}
          isChosen={(task) => task.taskId === chosen}
          onChoose={(task) => onChoose(task.taskId)}
          render={(task) => (
            <>
              <span style={{ width: 110, flex: 'none' }}>
                <State state={task.state} />
              </span>
              <Text span fz="sm" fw={600} className="clip" w={{ sm: 200 }} flex={{ base: 1, sm: 'none' }}>
                {task.taskId}
              </Text>
              <Text span fz="sm" className="clip" w={170} flex="none" c="dimmed" visibleFrom="sm">
                {task.name}
              </Text>
              <Text span fz="sm" w={{ base: 74, sm: 90 }} flex="none">
                <Elapsed from={task.startedAt} to={task.finishedAt ?? asOf} />
              </Text>
              <Text span fz="sm" className="clip" flex={1} visibleFrom="sm">
                {task.error ? errorLine(task.error) : task.attempt > 1 ? `try ${task.attempt}` : ''}
              </Text>
            </>
          )}
        />
      </div>
    </div>
  );
}
