import { Alert, Grid, Group, List, Paper, Stack, Text, Title } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { JOB_EVENTS, together, useAsk, useTick } from '../api/live';
import { CopyAs } from '../components/actions';
import { AgentGraph } from '../components/AgentGraph';
import { Answer, Nothing } from '../components/Answer';
import { Page } from '../components/bits';
import { DefinitionCard } from '../components/DefinitionCard';
import { useViewer } from '../components/Doorway';
import { ExecutionTable } from '../components/ExecutionTable';
import { RunPlaybook } from '../components/RunPlaybook';
import { command } from '../model/commands';
import { KINDS } from '../services/definitions';
import { PLAN, PLAYBOOKS, RUNS, type Plan } from '../services/playbooks';
import { may } from '../services/viewer';

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
  const definition = useAsk(KINDS.playbook.one, { name }, { tick: version });
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
      <Answer of={together(shelf, plan, runs, definition)}>
        {() =>
          playbook === undefined ? (
            <Nothing title="There is no such playbook" />
          ) : (
            <Grid>
              <Grid.Col span={{ base: 12, lg: 7 }}>
                <Stack>
                  <Paper p={0}>
                    <Answer of={definition}>
                      {({ found }) => (
                        <AgentGraph
                          kind="playbook"
                          definition={found?.definition}
                          label="Agents of the playbook"
                          onChoose={(agent) =>
                            void navigate({
                              to: '/definitions/$kind/$name',
                              params: { kind: 'agent', name: agent },
                            })
                          }
                        />
                      )}
                    </Answer>
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
