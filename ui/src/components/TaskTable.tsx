import { Button, Chip, Group, Text, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import { errorLine } from '../model/payload';
import { countStates, type TaskRow } from '../model/run';
import { label, TASK_STATES } from '../model/states';
import { Elapsed, State } from './bits';
import { Rows } from './Rows';

function isCalled(task: TaskRow, text: string): boolean {
  return task.taskId.toLowerCase().includes(text) || task.name.toLowerCase().includes(text);
}

/** The tasks of a job in the producer's order, or only those that stand in one way. */
export function TaskTable({
  tasks,
  counts,
  total,
  asOf,
  chosen,
  onChoose,
}: {
  tasks: readonly TaskRow[];
  /** Of all tasks of the job, of which some may not be known here. */
  counts: Readonly<Record<string, number>>;
  total: number;
  /** When this was so, if that is past. */
  asOf: string | null;
  chosen: string | undefined;
  onChoose: (taskId: string) => void;
}) {
  const [picked, setPicked] = useState<string | null>(null);
  const [wanted, setWanted] = useState('');
  const known = useMemo(() => countStates(tasks), [tasks]);
  const all: Readonly<Record<string, number>> = { ...known, ...counts };
  const state = picked !== null && all[picked] ? picked : null; // when the last of them moves on, all are shown again
  const text = wanted.trim().toLowerCase();
  const shown = useMemo(() => {
    const found = state === null ? tasks : tasks.filter((task) => task.state === state);
    return text === '' ? found : found.filter((task) => isCalled(task, text));
  }, [tasks, state, text]);
  const there = state === null ? tasks.length : (known[state] ?? 0);
  const of = state === null ? total : all[state]!;
  return (
    <div style={{ display: 'flex', flexDirection: 'column', height: '100%' }}>
      <Group gap={6} p="xs">
        <TextInput
          size="xs"
          placeholder="Task or function"
          aria-label="Only tasks with this in their id or the name of their function"
          value={wanted}
          onChange={(change) => setWanted(change.currentTarget.value)}
        />
        {TASK_STATES.filter((name) => all[name]).map((name) => (
          <Chip
            key={name}
            size="xs"
            variant="outline"
            checked={state === name}
            onChange={(on) => setPicked(on ? name : null)}
          >
            {label(name)} {all[name]!.toLocaleString()}
          </Chip>
        ))}
        {of > there && (
          <Text fz="xs" c="dimmed" role="status">
            {there.toLocaleString()} of {of.toLocaleString()} are here
          </Text>
        )}
        {of > there && shown.length === 0 && text !== '' && (
          <Button size="compact-xs" variant="default" onClick={() => onChoose(wanted.trim())}>
            Open task {wanted.trim()}
          </Button>
        )}
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
