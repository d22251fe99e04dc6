/** Nobody sees a page before the server has said who they are. The address stays, so that a link leads where it should. */
import { Button, Center, Loader, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { RouterProvider } from '@tanstack/react-router';
import { createContext, useContext, useEffect, useMemo, useState, type FormEvent } from 'react';
import { Provider } from 'urql';
import { makeClient } from '../api/client';
import { useAsk } from '../api/live';
import { signIn, useSession } from '../api/session';
import { router } from '../router';
import { VIEWER, type Viewer } from '../services/viewer';
import { Trouble } from './Answer';

const ViewerContext = createContext<Viewer | null>(null);

export function useViewer(): Viewer {
  const viewer = useContext(ViewerContext);
  if (viewer === null) throw new Error('only below the doorway');
  return viewer;
}

export function Doorway() {
  const session = useSession();
  const client = useMemo(() => makeClient(session.key), [session.key]);
  if (session.refused) return <SignIn wrong={session.key !== null} />;
  return (
    <Provider value={client} key={session.key}>
      <Inside />
    </Provider>
  );
}

function Inside() {
  const asked = useAsk(VIEWER, {});
  const viewer = asked.data?.viewer;
  if (viewer) {
    return (
      <ViewerContext.Provider value={viewer}>
        <RouterProvider router={router} />
      </ViewerContext.Provider>
    );
  }
  return (
    <Center h="100vh" component="main">
      {asked.error ? (
        <Trouble error={asked.error} again={asked.again} />
      ) : (
        <Loader role="status" aria-label="Loading" />
      )}
    </Center>
  );
}

function SignIn({ wrong }: { wrong: boolean }) {
  const [key, setKey] = useState('');
  useEffect(() => {
    document.title = 'Sign in · Ostinato';
  }, []);
  function submit(event: FormEvent) {
    event.preventDefault();
    if (key.trim()) signIn(key);
  }
  return (
    <Center mih="100vh" component="main" p="md">
      <Paper w={420} p="xl" component="form" onSubmit={submit}>
        <Stack>
          <Title order={1}>Ostinato</Title>
          <Text c="dimmed" fz="sm">
            This server wants a key. It stays in this tab, and is forgotten when you close it.
          </Text>
          <PasswordInput
            label="Key"
            placeholder="ost_…"
            autoComplete="off"
            data-autofocus
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            error={wrong ? 'This key does not work: it is mistyped, expired or revoked.' : null}
          />
          <Button type="submit" size="sm" disabled={!key.trim()}>
            Sign in
          </Button>
          <Text c="dimmed" fz="xs">
            Whoever runs the server makes one with{' '}
            <span className="mono">ostinato keys create --scopes jobs:read,jobs:write</span>
          </Text>
        </Stack>
      </Paper>
    </Center>
  );
}
