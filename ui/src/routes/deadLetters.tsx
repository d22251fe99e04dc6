import { Button, Group, Paper, Stack, Text } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { JOB_EVENTS, together, useAsk, useTick } from '../api/live';
import { Action, CopyAs, useAct } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Moment, Page } from '../components/bits';
import { useViewer } from '../components/Doorway';
import { Draft } from '../components/Draft';
import { RetryIcon } from '../components/icons';
import { Payload } from '../components/Payload';
import { command, option, withQuery } from '../model/commands';
import { errorLine } from '../model/payload';
import { pruned, type LetterSearch } from '../model/search';
import { counted } from '../model/words';
import { DEAD_LETTERS, DEPTH, REDRIVE, type DeadLetter } from '../services/deadLetters';
import { PAYLOADS } from '../services/jobs';
import { may } from '../services/viewer';

const route = getRouteApi('/dead-letters');
const WATCHED = { types: [...JOB_EVENTS, 'Task Failed'] };
const PAGE = 25;

export function DeadLetters() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const viewer = useViewer();
  const tick = useTick(WATCHED);
  const filter = { name: search.name, jobId: search.job, errorType: search.error };
  const asked = useAsk(DEAD_LETTERS, { filter, first: PAGE, after: search.after }, { tick });
  const counting = useAsk(DEPTH, {}, { tick });
  const depth = counting.data?.deadLetterDepth;
  const act = useAct();
  const [preview, setPreview] = useState<number | null>(null);
  const filtered = Object.values(filter).some((value) => value !== undefined);
  const wanted = filtered ? filter : { all: true };
  const go = (next: LetterSearch) => void navigate({ search: pruned(next) });
  return (
    <Page
      title="Dead letters"
      about={
        depth &&
        `${counted(depth.depth, 'task has', 'tasks have')} failed for good${depth.alarm ? `: more than ${depth.threshold}, which is a reason for alarm` : ''}`
      }
      actions={
        <>
          <CopyAs
            path={withQuery('/v1/dead-letters', filter)}
            cli={command(
              'ostinato dead-letters ls',
              ...option('--function', search.name),
              ...option('--job', search.job),
              ...option('--error', search.error),
            )}
          />
          {may(viewer, 'jobs:write') && depth !== undefined && depth.depth > 0 && (
            <Action
              label={filtered ? 'Redrive all that match…' : 'Redrive all…'}
              icon={<RetryIcon size={14} />}
              title="Run dead letters again"
              confirm="Redrive"
              onOpen={async () => {
                setPreview(null);
                setPreview((await act(REDRIVE, { input: { ...wanted, dryRun: true } })).redrive.count);
              }}
              act={async () => {
                const { redrive } = await act(REDRIVE, { input: wanted });
                asked.again();
                return `${redrive.count} run again`;
              }}
            >
              <Text fz="sm">
                {preview === null
                  ? 'Counting…'
                  : `${counted(preview, 'task runs', 'tasks run')} again, each with all its attempts.`}
              </Text>
            </Action>
          )}
        </>
      }
    >
      <Filters search={search} onChange={go} />
      <Answer of={together(asked, counting)}>
        {({ deadLetters }) => (
          <Stack gap="xs">
            {deadLetters.nodes.length === 0 && (
              <Nothing title={filtered ? 'No dead letter matches' : 'There are no dead letters'}>
                Tasks that fail for good are listed here, with what they were given and why they failed.
              </Nothing>
            )}
            {deadLetters.nodes.map((letter) => (
              <Letter key={`${letter.jobId}/${letter.taskId}`} letter={letter} again={asked.again} />
            ))}
            <Group justify="flex-end">
              {search.after && (
                <Button variant="default" onClick={() => go({ ...search, after: undefined })}>
                  First page
                </Button>
              )}
              {deadLetters.pageInfo.hasNextPage && (
                <Button
                  variant="default"
                  onClick={() => go({ ...search, after: deadLetters.pageInfo.endCursor ?? undefined })}
                >
                  Next page
                </Button>
              )}
            </Group>
          </Stack>
        )}
      </Answer>
    </Page>
  );
}

function Filters({ search, onChange }: { search: LetterSearch; onChange: (search: LetterSearch) => void }) {
  const take = (change: LetterSearch) => onChange({ ...search, after: undefined, ...change });
  return (
    <Group align="flex-end" gap="xs" mb="sm" role="search" aria-label="Dead letters">
      <Draft label="Function" placeholder="any" value={search.name} onTake={(name) => take({ name })} />
      <Draft label="Job id" placeholder="any" value={search.job} onTake={(job) => take({ job })} />
      <Draft label="Error type" placeholder="any" value={search.error} onTake={(error) => take({ error })} />
    </Group>
  );
}

/** It may be large, and few of them are looked at. */
function Input({ jobId, taskId }: { jobId: string; taskId: string }) {
  const asked = useAsk(PAYLOADS, { jobId, taskId }, { still: true });
  return (
    <Answer of={asked} lines={2}>
      {({ task }) => task && <Payload label="Input" value={task.detail.input} />}
    </Answer>
  );
}

function Letter({ letter, again }: { letter: DeadLetter; again: () => void }) {
  const viewer = useViewer();
  const act = useAct();
  const [opened, setOpened] = useState(false);
  const { jobId, taskId } = letter;
  return (
    <Paper p="sm">
      <div className="letter">
        <div style={{ minWidth: 0 }}>
          <Text fz="sm" fw={600} lineClamp={3} className="unbroken" title={errorLine(letter.error)}>
            {errorLine(letter.error)}
          </Text>
          <Text fz="xs" c="dimmed" component="div" className="unbroken">
            {letter.name} ·{' '}
            <Link className="link mono" to="/jobs/$jobId" params={{ jobId }} search={{ task: taskId }}>
              {jobId} / {taskId}
            </Link>{' '}
            · {counted(letter.attempts, 'attempt')} · <Moment at={letter.failedAt} />
          </Text>
        </div>
        <Group gap="xs" wrap="nowrap">
          <Button variant="subtle" onClick={() => setOpened(!opened)} aria-expanded={opened}>
            {opened ? 'Less' : 'Details'}
          </Button>
          {may(viewer, 'jobs:write') && (
            <Action
              label="Redrive"
              icon={<RetryIcon size={14} />}
              title={`Run ${taskId} again`}
              act={async () => {
                await act(REDRIVE, { input: { letters: [{ jobId, taskId }] } });
                again();
                return `${taskId} runs again`;
              }}
            >
              <Text fz="sm">
                It gets all its attempts again, with the same input. What it depends on is not run again.
              </Text>
            </Action>
          )}
        </Group>
      </div>
      {opened && (
        <Stack gap="xs" mt="sm">
          <Payload label="Error" value={letter.error} />
          <Input jobId={jobId} taskId={taskId} />
        </Stack>
      )}
    </Paper>
  );
}
