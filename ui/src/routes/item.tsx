import { Grid, Group, Paper, Stack, Table, Text, Title } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useMemo, type CSSProperties } from 'react';
import { useAsk, useTick } from '../api/live';
import { useAct } from '../components/actions';
import { Answer, Loading, Nothing } from '../components/Answer';
import { Copy, Elapsed, Moment, Page, State } from '../components/bits';
import { DecideForm, outcome } from '../components/DecideForm';
import { useViewer } from '../components/Doorway';
import { ItemActions } from '../components/ItemActions';
import { ItemHistory } from '../components/ItemHistory';
import { ItemSteps } from '../components/ItemSteps';
import { Payload } from '../components/Payload';
import { Tone } from '../components/Tone';
import { afterTime, money, tones, type PipelineDocument } from '../model/pipeline';
import { absolute } from '../model/time';
import { counted } from '../model/words';
import { APPROVAL, type Approval } from '../services/approvals';
import { KINDS } from '../services/definitions';
import { DECIDE_ITEM, isWork, ITEM, useMoves, type Item, type ItemRun } from '../services/items';
import { may } from '../services/viewer';
import { Sheet } from '../components/Sheet';

const route = getRouteApi('/items/$itemId');
const TYPES = [
  'Item Moved',
  'Approval Requested',
  'Approval Decided',
  'Approval Escalated',
  'Task Completed',
];
const WATCHED = { types: [...TYPES, 'Task Failed', 'Task Retry Scheduled'] };

export function ItemPage() {
  const { itemId } = route.useParams();
  return <OneItem key={itemId} itemId={itemId} />;
}

function OneItem({ itemId }: { itemId: string }) {
  /** Its runs are jobs under its id and their number. */
  const tick = useTick(WATCHED, 500, (event) => event.jobId.startsWith(`${itemId}:`));
  const asked = useAsk(ITEM, { itemId }, { tick });
  const item = asked.data?.item;
  useEffect(() => {
    if (item) document.title = `${item.itemId}: ${item.status} · Ostinato`;
  }, [item]);
  return (
    <Answer of={asked}>
      {(data) =>
        data.item === null ? (
          <Nothing title="There is no such item here">It may be another tenant’s.</Nothing>
        ) : (
          <Shown item={data.item} tick={tick} again={asked.again} />
        )
      }
    </Answer>
  );
}

const NO_DOCUMENT: PipelineDocument = { course: [], failed: '', deadLetter: '' };

function Shown({ item, tick, again }: { item: Item; tick: number; again: () => void }) {
  const found = useAsk(KINDS.pipeline.one, {
    name: item.pipeline,
    version: item.version,
  });
  const document = (found.data?.found?.definition ?? NO_DOCUMENT) as PipelineDocument;
  const colours = useMemo(() => tones(document), [document]);
  const history = useMoves(item.itemId, tick + item.run + Date.parse(item.statusAt));
  const { detail } = item;
  const tone = colours.get(item.status) ?? 'blocked';
  return (
    <Page
      title={
        <Group gap="sm" wrap="nowrap">
          <span className="clip">{item.itemId}</span>
          <Copy text={item.itemId} label="Copy the id of the item" />
          <Text span fz="sm" fw={400}>
            <Tone status={item.status} tone={tone} />
          </Text>
        </Group>
      }
      about={<About item={item} />}
      actions={<ItemActions item={item} document={document} again={again} />}
    >
      <Standing item={item} tone={tone} />
      <Grid mt="md">
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <Stack>
            <Review item={item} tick={tick} again={again} />
            <ItemSteps item={item} again={again} />
            <Paper component="section" aria-label="What it is">
              <Stack gap="sm">
                <Payload label="Payload" value={detail.payload} />
                <Payload label="Results so far, by step" value={detail.results} />
              </Stack>
            </Paper>
            <Runs runs={detail.runs} spent={detail.spent} />
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <ItemHistory history={history} tones={colours} />
        </Grid.Col>
      </Grid>
    </Page>
  );
}

function About({ item }: { item: Item }) {
  const { newestVersion, spent } = item.detail;
  return (
    <Group gap="2px 16px" wrap="wrap">
      <span>
        <Link className="link" to="/pipelines/$name" params={{ name: item.pipeline }}>
          {item.pipeline}
        </Link>{' '}
        version {item.version}
        {newestVersion > item.version && ` (the newest is ${newestVersion})`}
      </span>
      <span>
        {item.phase && `in ${item.phase}, `}
        {item.status} since <Moment at={item.statusAt} />
      </span>
      <span>
        entered <Moment at={item.enteredAt} />
        {item.submittedBy && ` by ${item.submittedBy}`}
      </span>
      {item.reviewedBy && (
        <span>
          reviewed by {item.reviewedBy} <Moment at={item.reviewedAt} />
        </span>
      )}
      <span>run {item.run}</span>
      {item.failures > 0 && <span>{counted(item.failures, 'failed attempt')}</span>}
      {spent > 0 && <span>cost {money(spent)}</span>}
    </Group>
  );
}

/** How it stands, in a sentence, with the last error if that is why. */
function Standing({ item, tone }: { item: Item; tone: string }) {
  const error = item.detail.lastError;
  const isWhy = item.errorType !== null && (item.retryAt !== null || !item.open);
  return (
    <section
      className="attention"
      aria-label="How it stands"
      style={{ '--state': `var(--state-${item.retryAt ? 'timed_out' : tone})` } as CSSProperties}
    >
      <Text fz="sm" fw={600} component="div">
        {item.retryAt ? (
          <>
            Retry scheduled for {absolute(Date.parse(item.retryAt))} (<Moment at={item.retryAt} />)
            {afterTime(item.sentence)}
          </>
        ) : (
          item.sentence
        )}
      </Text>
      {error && (
        <Text fz="xs" c={isWhy ? undefined : 'dimmed'} component="div">
          Last error, in {error.step}, run {error.run}, attempt {error.attempt}: {error.type}: {error.message}{' '}
          <Moment at={error.at} />
        </Text>
      )}
    </section>
  );
}

/** What people are asked about it, if they are. */
function Review({ item, tick, again }: { item: Item; tick: number; again: () => void }) {
  const isReview = item.detail.steps.some(
    (step) => step.step === item.step && !isWork(step) && step.state === 'waiting',
  );
  const waits = item.open && isReview && item.jobId !== null;
  const asked = useAsk(
    APPROVAL,
    { jobId: item.jobId ?? '', taskId: item.step ?? '' },
    { tick, pause: !waits },
  );
  if (!waits) return null;
  const approval = asked.data?.approval?.approval;
  return (
    <Paper component="section" aria-label="Review" className="inbox-chosen">
      {asked.data === undefined && !asked.error ? (
        <Loading />
      ) : (
        <Answer of={asked}>
          {() =>
            approval && approval.state === 'waiting' && <Ask approval={approval} item={item} again={again} />
          }
        </Answer>
      )}
    </Paper>
  );
}

function Ask({ approval, item, again }: { approval: Approval; item: Item; again: () => void }) {
  const viewer = useViewer();
  const act = useAct();
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={2}>{approval.title}</Title>
        <Text fz="xs" c="dimmed" component="div">
          asked <Moment at={approval.requestedAt} />
          {approval.quorum > 1 && ` · ${approval.approvals} of ${approval.quorum} have approved`}
          {approval.dueAt && (
            <>
              {' '}
              · {approval.onDeadline} <Moment at={approval.dueAt} />
            </>
          )}
        </Text>
      </Group>
      {may(viewer, 'approvals:decide') ? (
        <DecideForm
          key={JSON.stringify(item.detail.payload)}
          payload={item.detail.payload}
          allowEdit={approval.allowEdit}
          decisions={approval.decisions}
          decide={async (made) => {
            const { decideItem } = await act(DECIDE_ITEM, { itemId: item.itemId, ...made });
            again();
            return outcome(decideItem);
          }}
        />
      ) : (
        <Text fz="sm">This key may not decide.</Text>
      )}
    </Stack>
  );
}

function Runs({ runs, spent }: { runs: readonly ItemRun[]; spent: number }) {
  if (runs.length === 0) return null;
  return (
    <Paper component="section" aria-label="Runs">
      <Group justify="space-between" mb="xs">
        <Title order={2}>Runs</Title>
        <Text fz="xs" c="dimmed">
          cost {money(spent)} in all
        </Text>
      </Group>
      <Sheet>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Run</Table.Th>
            <Table.Th>Job</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th>Began</Table.Th>
            <Table.Th>Took</Table.Th>
            <Table.Th ta="right">Cost</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => (
            <Table.Tr key={run.jobId}>
              <Table.Td>
                {run.run}
                {run.undo && ' taken back'}
              </Table.Td>
              <Table.Td className="mono clip" maw={280}>
                <Link className="link" to="/jobs/$jobId" params={{ jobId: run.jobId }}>
                  {run.jobId}
                </Link>
              </Table.Td>
              <Table.Td>
                <State state={run.state} />
              </Table.Td>
              <Table.Td>
                <Moment at={run.createdAt} />
              </Table.Td>
              <Table.Td>
                <Elapsed from={run.createdAt} to={run.finishedAt} />
              </Table.Td>
              <Table.Td ta="right">{money(run.spent)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Sheet>
    </Paper>
  );
}
