import { Button, Grid, Group, Paper, SegmentedControl, Stack, Switch, Text, Title } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useRef } from 'react';
import { useAsk, useTick } from '../api/live';
import { CopyAs, useAct } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Moment, Page, State } from '../components/bits';
import { DecideForm, outcome } from '../components/DecideForm';
import { useViewer } from '../components/Doorway';
import { Payload } from '../components/Payload';
import { bringIntoSight } from '../components/sight';
import { command, option, withQuery } from '../model/commands';
import type { ApprovalSearch } from '../model/search';
import {
  APPROVAL,
  APPROVAL_EVENTS,
  APPROVALS,
  DECIDE,
  type Approval,
  type ApprovalLine,
} from '../services/approvals';
import { may } from '../services/viewer';

const route = getRouteApi('/approvals');
const PAGE = 30;

export function Approvals() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const tick = useTick(APPROVAL_EVENTS);
  const filter = { state: search.state ?? 'waiting', approver: search.mine ? 'me' : undefined };
  const asked = useAsk(APPROVALS, { filter, first: PAGE, after: search.after }, { tick });
  const detail = useRef<HTMLDivElement>(null);
  const go = (change: ApprovalSearch) => void navigate({ search: (before) => ({ ...before, ...change }) });
  const first = asked.data?.approvals.nodes[0];
  const chosen =
    search.job !== undefined && search.task !== undefined
      ? { jobId: search.job, taskId: search.task, key: search.key ?? '' }
      : first;
  const unpinned = search.job === undefined || search.task === undefined ? first : undefined;
  /** Whatever is decided stays in sight until another one is chosen: a second click must not decide on the next. */
  const pin = useEffectEvent(({ jobId, taskId, key }: Place) => {
    const place = { job: jobId, task: taskId, key: key || undefined };
    void navigate({ search: (before) => ({ ...before, ...place }), replace: true });
  });
  useEffect(() => {
    if (unpinned) pin(unpinned);
  }, [unpinned?.jobId, unpinned?.taskId, unpinned?.key]); // oxlint-disable-line react/exhaustive-deps -- the same one may come in another object
  return (
    <Page
      title="Approvals"
      about="What people are asked, and what they have decided"
      actions={
        <CopyAs
          path={withQuery('/v1/approvals', filter)}
          cli={command(
            'ostinato approvals ls',
            ...option('--state', search.state),
            search.mine ? '--mine' : undefined,
          )}
        />
      }
    >
      <Group mb="sm">
        <SegmentedControl
          size="xs"
          aria-label="Which approvals"
          data={[
            { value: 'waiting', label: 'Waiting' },
            { value: 'any', label: 'All' },
          ]}
          value={filter.state}
          onChange={(state) =>
            go({
              state: state === 'waiting' ? undefined : state,
              after: undefined,
              job: undefined,
              task: undefined,
              key: undefined,
            })
          }
        />
        <Switch
          size="xs"
          label="Only what I may decide"
          checked={search.mine ?? false}
          onChange={(event) => go({ mine: event.currentTarget.checked || undefined, after: undefined })}
        />
      </Group>
      <Answer of={asked}>
        {({ approvals }) =>
          approvals.nodes.length === 0 && chosen === undefined ? (
            <Nothing title="Nobody is asked anything">Tasks that people have to decide on wait here.</Nothing>
          ) : (
            <Grid>
              <Grid.Col span={{ base: 12, lg: 5 }}>
                <Stack gap={6} role="list" aria-label="Inbox">
                  {approvals.nodes.map((line) => (
                    <Line
                      key={`${line.jobId}/${line.taskId}/${line.key}`}
                      line={line}
                      chosen={isSame(line, chosen)}
                      onChoose={() => bringIntoSight(detail.current)}
                    />
                  ))}
                  {approvals.pageInfo.hasNextPage && (
                    <Button
                      variant="default"
                      onClick={() => go({ after: approvals.pageInfo.endCursor ?? undefined })}
                    >
                      More
                    </Button>
                  )}
                </Stack>
              </Grid.Col>
              <Grid.Col span={{ base: 12, lg: 7 }} ref={detail} className="below-head">
                {chosen && (
                  <Detail
                    key={`${chosen.jobId}/${chosen.taskId}/${chosen.key}`}
                    of={chosen}
                    tick={tick}
                    again={asked.again}
                  />
                )}
              </Grid.Col>
            </Grid>
          )
        }
      </Answer>
    </Page>
  );
}

interface Place {
  readonly jobId: string;
  readonly taskId: string;
  readonly key: string;
}

function isSame(one: Place, other: Place | undefined): boolean {
  return one.jobId === other?.jobId && one.taskId === other.taskId && one.key === other.key;
}

function Line({ line, chosen, onChoose }: { line: ApprovalLine; chosen: boolean; onChoose: () => void }) {
  return (
    <Paper p="xs" role="listitem" className={chosen ? 'inbox-chosen' : undefined}>
      <Link
        className="tile"
        to="/approvals"
        resetScroll={false}
        onClick={onChoose}
        search={(before) => ({ ...before, job: line.jobId, task: line.taskId, key: line.key || undefined })}
      >
        <Group justify="space-between" wrap="nowrap">
          <Text fz="sm" fw={600} className="clip">
            {line.title}
          </Text>
          <State state={line.state} />
        </Group>
        <Text fz="xs" c="dimmed" component="div">
          {line.taskId} · asked <Moment at={line.requestedAt} />
          {line.quorum > 1 && ` · ${line.approvals} of ${line.quorum} have approved`}
          {line.dueAt && line.state === 'waiting' && (
            <>
              {' '}
              · due <Moment at={line.dueAt} />
            </>
          )}
          {line.escalatedAt && ' · escalated'}
        </Text>
      </Link>
    </Paper>
  );
}

function Detail({ of: place, tick, again }: { of: Place; tick: number; again: () => void }) {
  const asked = useAsk(
    APPROVAL,
    { jobId: place.jobId, taskId: place.taskId, key: place.key || null },
    { tick },
  );
  const viewer = useViewer();
  const act = useAct();
  return (
    <Paper component="section" aria-label="The approval">
      <Answer of={asked}>
        {({ approval: found }) => {
          if (found === null) return <Nothing title="Nothing is asked here" />;
          const { approval } = found;
          return (
            <Stack gap="sm">
              <Group justify="space-between" wrap="nowrap">
                <Title order={2}>{approval.title}</Title>
                <State state={approval.state} />
              </Group>
              <Text fz="xs" c="dimmed" component="div">
                <Link
                  className="link mono"
                  to="/jobs/$jobId"
                  params={{ jobId: approval.jobId }}
                  search={{ task: approval.taskId }}
                >
                  {approval.jobId} / {approval.taskId}
                </Link>{' '}
                · asked <Moment at={approval.requestedAt} />
                {approval.submittedBy && ` · submitted by ${approval.submittedBy}`}
                {approval.asked && ` · to be decided by ${approval.asked.join(', ')}`}
                {approval.quorum > 1 && ` · ${approval.approvals} of ${approval.quorum} have approved`}
                {approval.dueAt && (
                  <>
                    {' '}
                    · {approval.onDeadline} <Moment at={approval.dueAt} />
                  </>
                )}
              </Text>
              <Payload label="What it is about" value={approval.payload} />
              {Object.keys(found.outputs as object).length > 0 && (
                <Payload label="What came before" value={found.outputs} />
              )}
              {approval.state === 'waiting' && may(viewer, 'approvals:decide') && (
                <DecideForm
                  key={approval.version}
                  payload={approval.payload}
                  allowEdit={approval.allowEdit}
                  decisions={approval.decisions}
                  decide={async (made) => {
                    const { jobId, taskId, version } = approval;
                    const key = approval.key || null;
                    const done = await act(DECIDE, { jobId, taskId, key, version, ...made });
                    asked.again();
                    again();
                    return outcome(done.decide);
                  }}
                />
              )}
              <Made made={approval.made} />
            </Stack>
          );
        }}
      </Answer>
    </Paper>
  );
}

function Made({ made }: { made: Approval['made'] }) {
  if (made.length === 0) return null;
  return (
    <div>
      <Text fz="sm" fw={600}>
        Decisions
      </Text>
      {made.map((one) => (
        <Text key={`${one.by}${one.at}`} fz="sm">
          <b>{one.by}</b>: {one.decision}
          {one.edited && ' (after an edit)'}
          {one.notes && ` – ${one.notes}`}{' '}
          <Text span fz="xs" c="dimmed">
            <Moment at={one.at} />
          </Text>
        </Text>
      ))}
    </div>
  );
}
