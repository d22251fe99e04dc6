import { Alert, Grid, Group, List, Paper, Stack, Text, Title } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useMemo, useState } from 'react';
import { useClient, type CombinedError } from 'urql';
import { JOB_EVENTS, useAsk, useTick } from '../api/live';
import { CopyAs } from '../components/actions';
import { Answer, Loading, Nothing, Trouble } from '../components/Answer';
import { Page } from '../components/bits';
import { DefinitionCard } from '../components/DefinitionCard';
import { useViewer } from '../components/Doorway';
import { ExecutionTable } from '../components/ExecutionTable';
import { RunPlaybook } from '../components/RunPlaybook';
import { command } from '../model/commands';
import { agentRows, type AgentDocument, type GraphDocument, type PlaybookDocument } from '../model/playbook';
import { Run, type TaskRow } from '../model/run';
import { KINDS } from '../services/definitions';
import { PLAN, PLAYBOOKS, RUNS, type Plan } from '../services/playbooks';
import { may } from '../services/viewer';

const JobGraph = lazy(() => import('../components/JobGraph'));
const route = getRouteApi('/playbooks/$name');
const WATCHED = { types: JOB_EVENTS };

export function PlaybookPage() {
  const { name } = route.useParams();
  const navigate = route.useNavigate();
  const viewer = useViewer();
  const shelf = useAsk(PLAYBOOKS, {});
  const playbook = shelf.data?.playbooks.find((one) => one.name === name);
  const version = playbook?.version ?? 0;
  const plan = useAsk(PLAN, { name }, { tick: version });
  const runs = useAsk(RUNS, { tag: `playbook=${name}` }, { tick: useTick(WATCHED) });
  const agents = useAgents(name, version);
  return (
    <Page
      title={name}
      about={playbook && `${playbook.type} for the domain ${playbook.domain}`}
      actions={
        <CopyAs
          path={`/v1/playbooks/${encodeURIComponent(name)}`}
          cli={command('ostinato playbooks show', name)}
        />
      }
    >
      <Answer of={shelf}>
        {() =>
          playbook === undefined ? (
            <Nothing title="There is no such playbook" />
          ) : (
            <Grid>
              <Grid.Col span={{ base: 12, lg: 7 }}>
                <Stack>
                  <Paper p={0}>
                    <div style={{ height: 300 }}>
                      {agents === null ? (
                        <Loading />
                      ) : agents instanceof Error ? (
                        <Trouble error={agents as CombinedError} />
                      ) : (
                        <Suspense fallback={<Loading />}>
                          <JobGraph
                            run={agents.run}
                            tasks={agents.rows}
                            label="Agents of the playbook"
                            chosen={undefined}
                            onChoose={(agent) =>
                              agent &&
                              void navigate({
                                to: '/definitions/$kind/$name',
                                params: { kind: 'agent', name: agent },
                              })
                            }
                          />
                        </Suspense>
                      )}
                    </div>
                  </Paper>
                  <Answer of={plan}>
                    {({ playbookPlan }) => playbookPlan && <PlanCard plan={playbookPlan} />}
                  </Answer>
                  <Paper>
                    <Title order={2} mb="xs">
                      Newest runs
                    </Title>
                    <Answer of={runs}>
                      {({ executions }) =>
                        executions.nodes.length === 0 ? (
                          <Text fz="sm">It has not run yet.</Text>
                        ) : (
                          <ExecutionTable executions={executions.nodes} compact />
                        )
                      }
                    </Answer>
                  </Paper>
                </Stack>
              </Grid.Col>
              <Grid.Col span={{ base: 12, lg: 5 }}>
                <Stack>
                  {may(viewer, 'jobs:write') && <RunPlaybook playbook={playbook} onRun={runs.again} />}
                  <DefinitionCard kind="playbook" name={name} onChange={shelf.again} />
                </Stack>
              </Grid.Col>
            </Grid>
          )
        }
      </Answer>
    </Page>
  );
}

function PlanCard({ plan }: { plan: Plan }) {
  return (
    <Paper component="section" aria-label="Plan">
      <Title order={2} mb="xs">
        Plan
      </Title>
      {plan.warnings.length > 0 && (
        <Alert color="orange" variant="outline" mb="sm" title="What to be warned of">
          <List size="sm">
            {plan.warnings.map((warning) => (
              <List.Item key={warning}>{warning}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Stack gap={4}>
        {plan.levels.map((level, index) => (
          <Group key={level.join()} gap="xs">
            <Text fz="sm" c="dimmed" w={64}>
              Level {index + 1}
            </Text>
            {level.map((agent) => (
              <Link
                key={agent}
                className="link"
                to="/definitions/$kind/$name"
                params={{ kind: 'agent', name: agent }}
                style={{ fontSize: 14 }}
              >
                {agent}
              </Link>
            ))}
          </Group>
        ))}
      </Stack>
      <Text fz="xs" c="dimmed" mt="xs">
        The chain that may take longest: {plan.criticalPath.join(' → ')}
      </Text>
    </Paper>
  );
}

interface Agents {
  readonly rows: readonly TaskRow[];
  readonly run: Run;
}

/** The agents with who needs whom, from the definitions of all of them. */
function useAgents(name: string, version: number): Agents | Error | null {
  const client = useClient();
  const [rows, setRows] = useState<readonly TaskRow[] | Error | null>(null);
  useEffect(() => {
    let left = false;
    async function read() {
      const one = async (kind: 'playbook' | 'graph' | 'agent', of: string) => {
        const answer = await client.query(KINDS[kind].one, { name: of }).toPromise();
        if (answer.error) throw answer.error;
        return answer.data?.found?.definition;
      };
      const playbook = (await one('playbook', name)) as PlaybookDocument | undefined;
      if (!playbook) return;
      const graph = playbook.graph
        ? ((await one('graph', playbook.graph)) as GraphDocument | undefined)
        : null;
      const agents = await Promise.all((playbook.agents ?? []).map((agent) => one('agent', agent)));
      const known = agents.filter((agent) => agent !== undefined) as AgentDocument[];
      if (!left) setRows(agentRows(playbook, graph ?? null, known));
    }
    read().catch((error: Error) => !left && setRows(error));
    return () => {
      left = true;
    };
  }, [client, name, version]);
  return useMemo(
    () => (rows === null || rows instanceof Error ? rows : { rows, run: new Run(rows) }),
    [rows],
  );
}
