import { getRouteApi } from '@tanstack/react-router';
import { Nothing } from '../components/Answer';
import { Page } from '../components/bits';
import { DefinitionCard } from '../components/DefinitionCard';
import { isKind } from '../services/definitions';

const route = getRouteApi('/definitions/$kind/$name');

export function DefinitionPage() {
  const { kind, name } = route.useParams();
  if (!isKind(kind)) return <Nothing title="There is no such page" />;
  return (
    <Page title={name} about={kind}>
      <DefinitionCard key={name} kind={kind} name={name} />
    </Page>
  );
}
