import { Paper, Stack } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useAsk } from '../api/live';
import { AgentGraph } from '../components/AgentGraph';
import { CopyAs } from '../components/actions';
import { Nothing } from '../components/Answer';
import { Page } from '../components/bits';
import { DefinitionCard } from '../components/DefinitionCard';
import { command } from '../model/commands';
import { isKind, KINDS } from '../services/definitions';

const route = getRouteApi('/definitions/$kind/$name');

export function DefinitionPage() {
  const { kind, name } = route.useParams();
  if (!isKind(kind)) return <Nothing title="There is no such page" />;
  return (
    <Page
      title={name}
      about={kind}
      actions={
        <CopyAs
          path={`/v1/${kind}s/${encodeURIComponent(name)}`}
          cli={command(`ostinato ${kind}s show`, name)}
        />
      }
    >
      <Stack>
        {kind === 'graph' && <Drawn name={name} />}
        <DefinitionCard key={name} kind={kind} name={name} />
      </Stack>
    </Page>
  );
}

function Drawn({ name }: { name: string }) {
  const navigate = route.useNavigate();
  const asked = useAsk(KINDS.graph.one, { name });
  if (!asked.data?.found) return null;
  return (
    <Paper p={0}>
      <AgentGraph
        kind="graph"
        definition={asked.data.found.definition}
        label="Agents of the graph"
        onChoose={(agent) =>
          void navigate({ to: '/definitions/$kind/$name', params: { kind: 'agent', name: agent } })
        }
      />
    </Paper>
  );
}
