import { Grid, Group, Stack, Table } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useAsk } from '../api/live';
import { Action, CopyAs, useAct } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Moment, Page, State } from '../components/bits';
import { DefinitionCard } from '../components/DefinitionCard';
import { useViewer } from '../components/Doorway';
import { KINDS } from '../services/definitions';
import { RULES } from '../services/rules';
import { may } from '../services/viewer';
import { Sheet } from '../components/Sheet';

const route = getRouteApi('/rules');

export function Rules() {
  const { name } = route.useSearch();
  const asked = useAsk(RULES, {});
  return (
    <Page
      title="Rules"
      about="Which events start what"
      actions={<CopyAs path="/v1/rules" cli="ostinato rules ls" />}
    >
      <Answer of={asked}>
        {({ rules }) =>
          rules.length === 0 ? (
            <Nothing title="There are no rules">Define one with “ostinato rules apply rule.json”.</Nothing>
          ) : (
            <Grid>
              <Grid.Col span={{ base: 12, lg: name === undefined ? 12 : 6 }}>
                <Sheet highlightOnHover>
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Rule</Table.Th>
                      <Table.Th>State</Table.Th>
                      <Table.Th>Version</Table.Th>
                      <Table.Th>Changed</Table.Th>
                      <Table.Th />
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {rules.map((rule) => (
                      <Table.Tr key={rule.name}>
                        <Table.Td>
                          <Link className="link" to="/rules" search={{ name: rule.name }}>
                            {rule.name}
                          </Link>
                          {rule.description && <div>{rule.description}</div>}
                        </Table.Td>
                        <Table.Td>
                          <State state={rule.enabled ? 'enabled' : 'disabled'} />
                        </Table.Td>
                        <Table.Td>{rule.version}</Table.Td>
                        <Table.Td>
                          <Moment at={rule.createdAt} />
                        </Table.Td>
                        <Table.Td>
                          <Link className="link" to="/executions" search={{ agent: `rule:${rule.name}` }}>
                            firings
                          </Link>
                        </Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Sheet>
              </Grid.Col>
              {name !== undefined && (
                <Grid.Col span={{ base: 12, lg: 6 }}>
                  <OneRule name={name} again={asked.again} />
                </Grid.Col>
              )}
            </Grid>
          )
        }
      </Answer>
    </Page>
  );
}

function OneRule({ name, again }: { name: string; again: () => void }) {
  const asked = useAsk(KINDS.rule.one, { name });
  const viewer = useViewer();
  const act = useAct();
  const rule = asked.data?.found;
  const definition = rule?.definition as { enabled?: boolean } | undefined;
  const enabled = definition?.enabled !== false;
  function changed() {
    asked.again();
    again();
  }
  return (
    <Stack gap="xs">
      <DefinitionCard key={rule?.version} kind="rule" name={name} onChange={changed} />
      {rule && may(viewer, 'config:write') && (
        <Group>
          <Action
            label={enabled ? 'Turn off' : 'Turn on'}
            title={`${enabled ? 'Turn off' : 'Turn on'} ${name}`}
            act={async () => {
              await act(KINDS.rule.define, {
                definition: { ...definition, enabled: !enabled },
                expectedVersion: rule.version,
              });
              changed();
              return enabled ? `${name} is off` : `${name} is on`;
            }}
          >
            {enabled
              ? 'Events that match it start nothing any more.'
              : 'From now on, events that match it start its targets.'}
          </Action>
        </Group>
      )}
    </Stack>
  );
}
