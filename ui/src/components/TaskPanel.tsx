/** One task: why it stands as it does, what went in and came out, and what can be done about it. */
import { Accordion, ActionIcon, Group, Paper, Stack, Table, Text, TextInput, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useEffect, useRef, useState, type CSSProperties } from 'react';
import { useAsk } from '../api/live';
import { command } from '../model/commands';
import { errorLine, size } from '../model/payload';
import { planFrom } from '../model/resume';
import { stamp, type TaskRow } from '../model/run';
import { taskActions } from '../model/states';
import {
  CANCEL_TASK,
  COMPLETE_TASK,
  FAIL_TASK,
  PAYLOADS,
  RETRY,
  SIGNAL,
  SKIP,
  STEP_OUTPUTS,
  TASK,
  type Task,
} from '../services/jobs';
import { may } from '../services/viewer';
import { Action, JsonInput, parsed, useAct } from './actions';
import { Answer, Nothing } from './Answer';
import { Copy, Elapsed, Moment, State } from './bits';
import { useViewer } from './Doorway';
import { PlayIcon, RetryIcon, SkipIcon, StopIcon } from './icons';
import { Payload } from './Payload';
import { PlanOfTask } from './Plan';
import { bringIntoSight } from './sight';

export function TaskPanel({
  jobId,
  taskId,
  tasks,
  tick,
  onClose,
  onChoose,
}: {
  jobId: string;
  taskId: string;
  /** All of the job, for what would come after this one. */
  tasks: readonly TaskRow[];
  tick: number;
  onClose: () => void;
  onChoose: (taskId: string) => void;
}) {
  const asked = useAsk(TASK, { jobId, taskId }, { tick });
  const panel = useRef<HTMLElement>(null);
  useEffect(() => bringIntoSight(panel.current), []);
  return (
    <Paper ref={panel} className="job-panel" component="aside" aria-label={`Task ${taskId}`}>
      <Group justify="space-between" wrap="nowrap" mb="xs">
        <Title order={2} className="clip" title={taskId}>
          {taskId}
        </Title>
        <ActionIcon variant="subtle" color="gray" onClick={onClose} aria-label="Close the task">
          ✕
        </ActionIcon>
      </Group>
      <Answer of={asked}>
        {({ task }) =>
          task === null ? (
            <Nothing title="There is no such task" />
          ) : (
            <Contents jobId={jobId} task={task} tasks={tasks} again={asked.again} onChoose={onChoose} />
          )
        }
      </Answer>
    </Paper>
  );
}

function Contents({
  jobId,
  task,
  tasks,
  again,
  onChoose,
}: {
  jobId: string;
  task: Task;
  tasks: readonly TaskRow[];
  again: () => void;
  onChoose: (taskId: string) => void;
}) {
  const viewer = useViewer();
  const { detail } = task;
  const payloads = useAsk(PAYLOADS, { jobId, taskId: task.taskId }, { tick: stamp(task), still: true });
  return (
    <Stack gap="sm">
      <Group gap="md">
        <State state={task.state} />
        <Text fz="sm" c="dimmed">
          {task.name}
        </Text>
        <Text fz="sm" c="dimmed">
          <Elapsed from={task.startedAt} to={task.finishedAt} />
        </Text>
      </Group>
      <Text
        fz="sm"
        className="attention"
        data-why={task.why.code}
        style={{ '--state': `var(--state-${task.state})`, marginTop: 0 } as CSSProperties}
      >
        {task.why.sentence}
      </Text>
      {may(viewer, 'jobs:write') && (
        <TaskActions
          jobId={jobId}
          task={task}
          tasks={tasks}
          input={payloads.data?.task?.detail.input}
          again={again}
        />
      )}
      {task.error !== null && <Payload label="Error" value={errorText(task.error)} />}
      <Answer of={payloads} lines={2}>
        {(data) =>
          data.task && (
            <>
              <Payload label="Input" value={data.task.detail.input} />
              {task.state === 'completed' && <Payload label="Output" value={data.task.detail.output} />}
            </>
          )
        }
      </Answer>
      <Attempts task={task} />
      {detail.steps.length > 0 && <Steps jobId={jobId} task={task} />}
      {detail.dependsOn.length > 0 && (
        <div>
          <Text fz="xs" fw={600} c="dimmed" mb={4}>
            Depends on
          </Text>
          <Group gap={6}>
            {detail.dependsOn.map((taskId) => (
              <button key={taskId} type="button" className="link-button" onClick={() => onChoose(taskId)}>
                {taskId}
              </button>
            ))}
          </Group>
        </div>
      )}
      <Text fz="xs" c="dimmed">
        queue {task.queue} · priority {task.priority}
        {task.optional && ' · optional'} · if a dependency fails: {task.onDependencyFailure}
        <Copy text={command('ostinato tasks why', jobId, task.taskId)} label="Copy as a command" />
      </Text>
    </Stack>
  );
}

function errorText(error: unknown): string {
  const { traceback } = error as { traceback?: unknown };
  return typeof traceback === 'string' ? `${errorLine(error)}\n\n${traceback}` : errorLine(error);
}

function Attempts({ task }: { task: Task }) {
  const { attempts } = task.detail;
  if (attempts.length === 0) return null;
  return (
    <div>
      <Text fz="xs" fw={600} c="dimmed">
        Attempts
      </Text>
      <Table fz="xs" horizontalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>#</Table.Th>
            <Table.Th>Outcome</Table.Th>
            <Table.Th>Began</Table.Th>
            <Table.Th>Took</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {attempts.map((attempt) => (
            <Table.Tr key={attempt.key} title={attempt.worker ? `on worker ${attempt.worker}` : undefined}>
              <Table.Td>{attempt.attempt}</Table.Td>
              <Table.Td>
                <State state={attempt.outcome === 'lost' ? 'failed' : attempt.outcome} size="xs" />
                {attempt.error !== null && (
                  <Text fz="xs" c="dimmed" className="clip" maw={170} title={errorLine(attempt.error)}>
                    {errorLine(attempt.error)}
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <Moment at={attempt.startedAt} />
              </Table.Td>
              <Table.Td>
                <Elapsed from={attempt.startedAt} to={attempt.endedAt} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

function Steps({ jobId, task }: { jobId: string; task: Task }) {
  const [opened, setOpened] = useState<string | null>(null);
  const asked = useAsk(
    STEP_OUTPUTS,
    { jobId, taskId: task.taskId },
    { pause: opened === null, tick: task.detail.steps.length, still: true },
  );
  const outputs = asked.data?.task?.detail.steps;
  return (
    <div>
      <Text fz="xs" fw={600} c="dimmed">
        Steps{task.detail.moreSteps && ' (the first of them)'}
      </Text>
      <Accordion variant="separated" chevronPosition="left" value={opened} onChange={setOpened}>
        {task.detail.steps.map((step) => (
          <Accordion.Item key={step.key} value={step.key}>
            <Accordion.Control>
              <Group justify="space-between" wrap="nowrap">
                <Text fz="sm" className="clip">
                  {step.key}
                </Text>
                <Text fz="xs" c="dimmed" flex="none">
                  {size(step.size)} · <Moment at={step.recordedAt} />
                </Text>
              </Group>
            </Accordion.Control>
            <Accordion.Panel>
              {opened === step.key && (
                <Answer of={asked} lines={1}>
                  {() => (
                    <Payload label="Result" value={outputs?.find((one) => one.key === step.key)?.output} />
                  )}
                </Answer>
              )}
            </Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
    </div>
  );
}

function TaskActions({
  jobId,
  task,
  tasks,
  input: before,
  again,
}: {
  jobId: string;
  task: Task;
  tasks: readonly TaskRow[];
  /** Undefined until it is known. */
  input: unknown;
  again: () => void;
}) {
  const act = useAct();
  const can = taskActions(task.state);
  const retries = can.retry || task.why.code === 'retry';
  const [reason, setReason] = useState('');
  const [input, setInput] = useState('');
  const [answer, setAnswer] = useState('');
  const { taskId } = task;
  async function done(work: Promise<unknown>, said: string): Promise<string> {
    await work;
    again();
    return said;
  }
  const signal = (task.why.details as { signal?: string }).signal;
  const why = (
    <TextInput
      label="Reason, for the history"
      value={reason}
      onChange={(event) => setReason(event.currentTarget.value)}
    />
  );
  const given = parsed(input);
  /** What was written by hand; what is not JSON is not sent as something else. */
  function written(): unknown {
    const { value, error } = parsed(answer);
    if (error !== null) throw new Error(error);
    return value ?? null;
  }
  return (
    <Group gap="xs">
      {retries && (
        <Action
          label={task.why.code === 'retry' ? 'Try now' : 'Retry'}
          icon={<RetryIcon size={14} />}
          variant="filled"
          title={`Run ${taskId} again`}
          confirm="Run again"
          disabled={before === undefined}
          onOpen={() => setInput(JSON.stringify(before, null, 2))}
          act={async () => {
            if (given.error) throw new Error(given.error);
            const changed = JSON.stringify(given.value) !== JSON.stringify(before);
            return done(
              act(RETRY, { jobId, taskId, input: changed ? given.value : undefined }),
              `${taskId} runs again`,
            );
          }}
        >
          <Text fz="sm">The job goes on from here: the task gets all its attempts again.</Text>
          <PlanOfTask plan={planFrom(tasks, taskId)} />
          <JsonInput label="Input" value={input} onChange={setInput} />
        </Action>
      )}
      {task.why.code === 'signal' && signal !== undefined && (
        <Action
          label="Send the signal…"
          icon={<PlayIcon size={14} />}
          variant="filled"
          title={`Send the signal “${signal}”`}
          confirm="Send"
          act={async () =>
            done(act(SIGNAL, { jobId, name: signal, payload: written() }), `“${signal}” was sent`)
          }
        >
          <JsonInput label="Payload" about="JSON; empty is null" value={answer} onChange={setAnswer} />
        </Action>
      )}
      {task.why.code === 'approval' && (
        <Link to="/approvals" search={{ job: jobId, task: taskId }} className="link">
          Decide on it
        </Link>
      )}
      {task.why.code === 'external' && (
        <>
          <Action
            label="Complete…"
            icon={<PlayIcon size={14} />}
            variant="filled"
            title={`Complete ${taskId}`}
            confirm="Complete"
            act={async () =>
              done(act(COMPLETE_TASK, { jobId, taskId, output: written() }), `${taskId} is completed`)
            }
          >
            <JsonInput label="Output" about="JSON; empty is null" value={answer} onChange={setAnswer} />
          </Action>
          <Action
            label="Fail…"
            title={`Say that ${taskId} has failed`}
            confirm="It has failed"
            danger
            act={() =>
              done(
                act(FAIL_TASK, { jobId, taskId, message: reason || 'said so by hand' }),
                `${taskId} has failed`,
              )
            }
          >
            {why}
          </Action>
        </>
      )}
      {can.skip && (
        <Action
          label="Skip"
          icon={<SkipIcon size={14} />}
          title={`Go on without ${taskId}`}
          act={() => done(act(SKIP, { jobId, taskId, reason: reason || null }), `${taskId} is skipped`)}
        >
          <Text fz="sm">What depends on it runs as if it had completed, without its output.</Text>
          {why}
        </Action>
      )}
      {can.cancel && (
        <Action
          label="Cancel"
          icon={<StopIcon size={14} />}
          title={`Cancel ${taskId}`}
          confirm="Cancel the task"
          danger
          act={() =>
            done(act(CANCEL_TASK, { jobId, taskId, reason: reason || null }), `${taskId} is cancelled`)
          }
        >
          <Text fz="sm">It stops. What depends on it stays blocked.</Text>
          {why}
        </Action>
      )}
    </Group>
  );
}
