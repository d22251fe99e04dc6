/** What there is while an answer is not there yet, when it is an error, and when it is empty. */
import { Alert, Button, Paper, Skeleton, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { CombinedError } from 'urql';
import { useLost } from '../api/connection';
import type { Asked } from '../api/live';
import { describe } from '../model/errors';
import { AlarmIcon } from './icons';

export function Trouble({ error, again }: { error: CombinedError; again?: () => void }) {
  const told = describe(error);
  return (
    <Alert color="red" variant="outline" icon={<AlarmIcon />} title={told.title} role="alert">
      <Text fz="sm" mb={again ? 'xs' : 0}>
        {told.message}
      </Text>
      {again && (
        <Button variant="default" onClick={again}>
          Try again
        </Button>
      )}
    </Alert>
  );
}

export function Nothing({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <Paper ta="center" py="xl">
      <Text fw={600}>{title}</Text>
      {children && (
        <Text c="dimmed" fz="sm" mt={4} component="div">
          {children}
        </Text>
      )}
    </Paper>
  );
}

export function Loading({ lines = 4 }: { lines?: number }) {
  return (
    <Stack gap="xs" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} height={18} width={`${96 - ((line * 13) % 40)}%`} />
      ))}
    </Stack>
  );
}

/** The answer once it is there. An error beside an older answer does not hide it; that the server is away is said once for all. */
export function Answer<Data>({
  of: asked,
  lines,
  children,
}: {
  of: Asked<Data>;
  lines?: number;
  children: (data: Data) => ReactNode;
}) {
  const lost = useLost();
  if (asked.data === undefined || asked.data === null) {
    return asked.error ? <Trouble error={asked.error} again={asked.again} /> : <Loading lines={lines} />;
  }
  return (
    <>
      {asked.error && !(lost && asked.error.networkError) && (
        <Trouble error={asked.error} again={asked.again} />
      )}
      {children(asked.data)}
    </>
  );
}
