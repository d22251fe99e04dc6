import {
  Alert,
  Button,
  Grid,
  Group,
  Paper,
  Select,
  Stack,
  Table,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState, type CSSProperties } from 'react';
import { useAsk, useTick } from '../api/live';
import { Action, CopyAs, JsonInput, parsed, useAct } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Elapsed, Moment, Page, Progress, State } from '../components/bits';
import { DefinitionCard } from '../components/DefinitionCard';
import { useViewer } from '../components/Doorway';
import { GateBar } from '../components/GateBar';
import { AlarmIcon, PlayIcon, RetryIcon } from '../components/icons';
import { command } from '../model/commands';
import { brief } from '../model/payload';
import {
  ARRIVE,
  GATE_KEYS,
  GATE_STATUS,
  gateEvents,
  OPEN_GATE,
  RESET_GATE,
  type Arrival,
  type GateStatus,
} from '../services/gates';
import { KINDS } from '../services/definitions';
import { may } from '../services/viewer';
import { Sheet } from '../components/Sheet';

const route = getRouteApi('/gates/$name');
const PAGE = 20;

export function GatePage() {
  const { name } = route.useParams();
  return <OneGate key={name} name={name} />;
}

function OneGate({ name }: { name: string }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const tick = useTick(gateEvents(name));
  const gate = useAsk(KINDS.gate.one, { name });
  const keys = useAsk(
    GATE_KEYS,
    { gate: name, first: PAGE, after: search.after },
    { tick, pause: !gate.data?.found },
  );
  const chosen = search.key ?? keys.data?.gateKeys.nodes[0]?.key;
  return (
    <Page
      title={name}
      about="Who has reported, who is missing, and what it started"
      actions={
        <CopyAs path={`/v1/gates/${encodeURIComponent(name)}`} cli={command('ostinato gates show', name)} />
      }
    >
      <Answer of={gate}>
        {(data) =>
          data.found === null ? (
            <Nothing title="There is no such gate" />
          ) : (
            <Grid>
              <Grid.Col span={{ base: 12, lg: 4 }}>
                <Stack>
                  <Paper>
                    <Title order={2} mb="xs">
                      Keys
                    </Title>
                    <Answer of={keys}>
                      {({ gateKeys }) => (
                        <>
                          {gateKeys.nodes.length === 0 && <Text fz="sm">Nobody has reported yet.</Text>}
                          {gateKeys.nodes.map((one) => (
                            <GateBar key={one.key} gate={name} one={one} chosen={one.key === chosen} />
                          ))}
                          {gateKeys.pageInfo.hasNextPage && (
                            <Button
                              variant="default"
                              mt="xs"
                              onClick={() =>
                                void navigate({
                                  search: {
                                    key: search.key,
                                    after: gateKeys.pageInfo.endCursor ?? undefined,
                                  },
                                })
                              }
                            >
                              Older keys
                            </Button>
                          )}
                        </>
                      )}
                    </Answer>
                  </Paper>
                </Stack>
              </Grid.Col>
              <Grid.Col span={{ base: 12, lg: 8 }}>
                <Stack>
                  {chosen !== undefined && (
                    <Status
                      key={chosen}
                      gate={name}
                      keyOf={chosen}
                      tick={tick}
                      jobId={keys.data?.gateKeys.nodes.find((one) => one.key === chosen)?.jobId}
                    />
                  )}
                  <DefinitionCard kind="gate" name={name} />
                </Stack>
              </Grid.Col>
            </Grid>
          )
        }
      </Answer>
    </Page>
  );
}

function Status({
  gate,
  keyOf,
  tick,
  jobId,
}: {
  gate: string;
  keyOf: string;
  tick: number;
  jobId: string | undefined;
}) {
  const asked = useAsk(GATE_STATUS, { gate, key: keyOf }, { tick });
  const viewer = useViewer();
  return (
    <Paper component="section" aria-label={`Key ${keyOf}`}>
      <Answer of={asked}>
        {({ gateStatus }) =>
          gateStatus === null ? (
            <Nothing title="Nobody has reported for this key" />
          ) : (
            <Stack>
              <Group justify="space-between">
                <Group>
                  <Title order={2}>{keyOf}</Title>
                  <State state={gateStatus.status} />
                  <Text fz="sm" c="dimmed">
                    <Elapsed from={gateStatus.since} to={gateStatus.openedAt ?? gateStatus.endedAt} />
                  </Text>
                  {jobId && (
                    <Link className="link" to="/jobs/$jobId" params={{ jobId }} style={{ fontSize: 13 }}>
                      its job
                    </Link>
                  )}
                </Group>
                {may(viewer, 'jobs:write') && (
                  <GateActions gate={gate} keyOf={keyOf} status={gateStatus} again={asked.again} />
                )}
              </Group>
              <Sentence status={gateStatus} />
              <Trouble of={gateStatus.error} />
              <Progress
                counts={{
                  completed: gateStatus.completedCount,
                  blocked: gateStatus.expectedCount - gateStatus.completedCount,
                }}
              />
              <Members
                title={`Missing (${gateStatus.missing.length})`}
                names={gateStatus.missing}
                state="blocked"
              />
              <Arrivals
                title={`Arrived (${gateStatus.completedCount} of ${gateStatus.expectedCount})`}
                found={gateStatus.arrived}
              />
              <Arrivals title="Failed" found={gateStatus.failed} />
              <Arrivals title="Late" found={gateStatus.late} />
              <Triggers
                title={gateStatus.status === 'waiting' ? 'What it will trigger' : 'What it has triggered'}
                found={gateStatus.triggered as readonly Triggered[]}
                jobId={jobId}
              />
            </Stack>
          )
        }
      </Answer>
    </Paper>
  );
}

/** The status in words, with times in the viewer's zone. */
function Sentence({ status }: { status: GateStatus }) {
  const { completedCount, expectedCount, openedBy, reason, since, openedAt, endedAt } = status;
  return (
    <Text fz="sm" component="div">
      {completedCount} of {expectedCount} have reported
      {status.status === 'waiting' ? (
        <>
          , the first <Moment at={since} />
        </>
      ) : (
        <>
          ; {status.status} <Moment at={openedAt ?? endedAt} />
          {openedBy && ` by ${openedBy}`}
          {reason && ` (${reason})`}
        </>
      )}
    </Text>
  );
}

/** Why a gate that has its reports could not go on, and what to do about it. */
function Trouble({ of: error }: { of: unknown }) {
  if (error === null || error === undefined) return null;
  const { type, message } = error as { type: string; message: string };
  return (
    <Alert
      color="red"
      variant="outline"
      icon={<AlarmIcon />}
      title="What was reported could not be put together"
    >
      {type}: {message}. Correct the definition, then resume its job.
    </Alert>
  );
}

interface Triggered {
  readonly target: string;
  readonly state: string;
  readonly result: unknown;
  readonly error: { readonly type: string; readonly message: string } | null;
}

function Triggers({
  title,
  found,
  jobId,
}: {
  title: string;
  found: readonly Triggered[];
  jobId: string | undefined;
}) {
  if (found.length === 0) return null;
  return (
    <div>
      <Text fz="sm" fw={600}>
        {title}
      </Text>
      <Sheet>
        <Table.Tbody>
          {found.map(({ target, state, result, error }) => (
            <Table.Tr key={target}>
              <Table.Td>
                {jobId === undefined ? (
                  target
                ) : (
                  <Link className="link mono" to="/jobs/$jobId" params={{ jobId }} search={{ task: target }}>
                    {target}
                  </Link>
                )}
              </Table.Td>
              <Table.Td>
                <State state={state} />
              </Table.Td>
              <Table.Td className="clip" maw={360}>
                {error === null ? <Outcome of={result} /> : `${error.type}: ${error.message}`}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Sheet>
    </div>
  );
}

/** The job that was started, or whatever else came of it. */
function Outcome({ of: result }: { of: unknown }) {
  const jobId = (result as { jobId?: unknown } | null)?.jobId;
  if (typeof jobId === 'string') {
    return (
      <>
        the job{' '}
        <Link className="link mono" to="/jobs/$jobId" params={{ jobId }}>
          {jobId}
        </Link>
      </>
    );
  }
  return <span className="mono">{result === null ? '' : brief(result, 120)}</span>;
}

function Members({ title, names, state }: { title: string; names: readonly string[]; state: string }) {
  if (names.length === 0) return null;
  return (
    <div>
      <Text fz="sm" fw={600} mb={4}>
        {title}
      </Text>
      <Group gap={6} component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
        {names.map((name) => (
          <li
            key={name}
            className="gate-member"
            style={{ '--state': `var(--state-${state})` } as CSSProperties}
          >
            {name}
          </li>
        ))}
      </Group>
    </div>
  );
}

function Arrivals({ title, found }: { title: string; found: readonly Arrival[] }) {
  if (found.length === 0) return null;
  return (
    <div>
      <Text fz="sm" fw={600}>
        {title}
      </Text>
      <Sheet>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Member</Table.Th>
            <Table.Th>Status</Table.Th>
            <Table.Th>When</Table.Th>
            <Table.Th>Records</Table.Th>
            <Table.Th>Correlation id</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {found.map((one) => (
            <Table.Tr key={`${one.member}${one.arrivedAt}`}>
              <Table.Td fw={600}>{one.member}</Table.Td>
              <Table.Td>{one.status}</Table.Td>
              <Table.Td>
                <Moment at={one.arrivedAt} />
              </Table.Td>
              <Table.Td>{one.recordCount === null ? '–' : String(one.recordCount)}</Table.Td>
              <Table.Td className="mono clip" maw={220}>
                {one.correlationId ?? '–'}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Sheet>
    </div>
  );
}

function GateActions({
  gate,
  keyOf,
  status,
  again,
}: {
  gate: string;
  keyOf: string;
  status: GateStatus;
  again: () => void;
}) {
  const act = useAct();
  const [reason, setReason] = useState('');
  const [member, setMember] = useState<string | null>(null);
  const [data, setData] = useState('');
  const why = (
    <TextInput
      label="Reason, for the history"
      value={reason}
      onChange={(event) => setReason(event.currentTarget.value)}
    />
  );
  return (
    <Group gap="xs">
      {status.missing.length > 0 && status.status === 'waiting' && (
        <>
          <Action
            label="Report…"
            title="Report for a member"
            confirm="Report"
            act={async () => {
              const { value, error } = parsed(data);
              if (error !== null) throw new Error(error);
              const { arrive } = await act(ARRIVE, {
                gate,
                key: keyOf,
                member: member ?? status.missing[0]!,
                data: value ?? null,
              });
              again();
              return arrive.opened ? 'The gate is open' : `The report: ${arrive.outcome}`;
            }}
          >
            <Select
              label="Member"
              data={status.missing}
              value={member ?? status.missing[0]!}
              onChange={setMember}
              allowDeselect={false}
            />
            <JsonInput label="Data" about="JSON; may be left empty" value={data} onChange={setData} />
          </Action>
          <Action
            label="Open without them…"
            icon={<PlayIcon size={14} />}
            title="Open the gate without those who are missing"
            confirm="Open"
            danger
            act={async () => {
              await act(OPEN_GATE, { gate, key: keyOf, reason: reason || 'opened by hand' });
              again();
              return 'The gate is open';
            }}
          >
            <Members title="These are missing" names={status.missing} state="blocked" />
            {why}
          </Action>
        </>
      )}
      <Action
        label="Reset…"
        icon={<RetryIcon size={14} />}
        title="Forget what was reported for this key"
        confirm="Reset"
        danger
        act={async () => {
          await act(RESET_GATE, { gate, key: keyOf, reason: reason || null });
          again();
          return 'The key begins anew';
        }}
      >
        <Text fz="sm">All members have to report again. What was triggered stays as it is.</Text>
        {why}
      </Action>
    </Group>
  );
}
