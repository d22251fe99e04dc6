/** A definition as it is kept, its versions, what changed between them, and the way back. */
import { Button, Grid, Group, Modal, Paper, Select, Stack, Text, Title } from '@mantine/core';
import { useDebouncedValue, useDisclosure } from '@mantine/hooks';
import { useState } from 'react';
import { useAsk } from '../api/live';
import { KINDS, type Definition, type Kind, type Version } from '../services/definitions';
import { may } from '../services/viewer';
import { Action, JsonInput, parsed, useAct } from './actions';
import { AgentGraph, hasGraph } from './AgentGraph';
import { Answer, Nothing } from './Answer';
import { Moment } from './bits';
import { useViewer } from './Doorway';
import { Payload } from './Payload';
import { TextDiff } from './TextDiff';

export function DefinitionCard({
  kind,
  name,
  onChange,
}: {
  kind: Kind;
  name: string;
  onChange?: () => void;
}) {
  const asked = useAsk(KINDS[kind].one, { name });
  const viewer = useViewer();
  const [comparing, { open, close }] = useDisclosure();
  function changed() {
    asked.again();
    onChange?.();
  }
  return (
    <Paper component="section" aria-label={`Definition of ${name}`}>
      <Answer of={asked}>
        {({ found }) =>
          found === null ? (
            <Nothing title={`There is no ${kind} ${name}`} />
          ) : (
            <Stack gap="xs">
              <Group justify="space-between">
                <div>
                  <Title order={2}>Definition</Title>
                  <Text fz="xs" c="dimmed">
                    version {found.version}, <Moment at={found.createdAt} />
                    {found.createdBy && ` by ${found.createdBy}`}
                  </Text>
                </div>
                <Group gap="xs">
                  <Button variant="default" onClick={open}>
                    Versions
                  </Button>
                  {may(viewer, 'config:write') && <Edit kind={kind} found={found} onSaved={changed} />}
                </Group>
              </Group>
              <Payload label="JSON" value={found.definition} />
              <Modal
                opened={comparing}
                onClose={close}
                title={<Text fw={600}>Versions of {name}</Text>}
                size="xl"
              >
                <Versions kind={kind} found={found} onBack={changed} />
              </Modal>
            </Stack>
          )
        }
      </Answer>
    </Paper>
  );
}

function Edit({ kind, found, onSaved }: { kind: Kind; found: Definition; onSaved: () => void }) {
  const act = useAct();
  const [text, setText] = useState('');
  /** What was opened, and not what it may have become meanwhile. */
  const [opened, setOpened] = useState(found.version);
  return (
    <Action
      label="Edit…"
      title={`Another version of ${found.name}`}
      confirm="Save"
      wide
      onOpen={() => {
        setText(JSON.stringify(found.definition, null, 2));
        setOpened(found.version);
      }}
      act={async () => {
        const { value, error } = parsed(text);
        if (error !== null) throw new Error(error);
        const { defined } = await act(KINDS[kind].define, {
          definition: value,
          expectedVersion: opened,
        });
        onSaved();
        return `${defined.name} is at version ${defined.version}`;
      }}
    >
      <Grid>
        <Grid.Col span={hasGraph(kind) ? { base: 12, md: 6 } : 12}>
          <JsonInput
            label="Definition"
            about="It is checked before it is saved, and only saved if nobody else was quicker."
            value={text}
            onChange={setText}
            most={28}
          />
        </Grid.Col>
        {hasGraph(kind) && (
          <Grid.Col span={{ base: 12, md: 6 }}>
            <Picture kind={kind} text={text} />
          </Grid.Col>
        )}
      </Grid>
    </Action>
  );
}

const PAUSE_MS = 300;

/** What has been written so far, as a graph; the last that could be read, while somebody is in the middle of a word. */
function Picture({ kind, text }: { kind: 'playbook' | 'graph'; text: string }) {
  const [written] = useDebouncedValue(text, PAUSE_MS);
  const [drawn, setDrawn] = useState(text);
  if (drawn !== written && readable(written)) setDrawn(written);
  const { value } = parsed(drawn);
  return (
    <section aria-label="As a graph">
      {readable(drawn) && (
        <AgentGraph kind={kind} definition={value} label="Graph of what is written" height={280} withLevels />
      )}
    </section>
  );
}

function readable(text: string): boolean {
  const { value } = parsed(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function Versions({ kind, found, onBack }: { kind: Kind; found: Definition; onBack: () => void }) {
  const asked = useAsk(KINDS[kind].versions, { name: found.name }, { tick: found.version });
  const viewer = useViewer();
  const act = useAct();
  const [chosen, setChosen] = useState<number | null>(null);
  return (
    <Answer of={asked}>
      {({ versions }) => {
        const earlier = (versions ?? []).filter((one) => one.version !== found.version);
        const before = chosen ?? earlier.find((one) => !one.removed)?.version ?? null;
        if (earlier.length === 0) return <Nothing title="There is only this version" />;
        return (
          <Stack>
            <Group align="flex-end">
              <Select
                label="Compare with version"
                data={earlier.map((one) => ({
                  value: String(one.version),
                  label: said(one),
                  disabled: one.removed,
                }))}
                value={before === null ? null : String(before)}
                onChange={(version) => setChosen(version === null ? null : Number(version))}
                allowDeselect={false}
              />
              {before !== null && may(viewer, 'config:write') && (
                <Action
                  label={`Go back to version ${before}`}
                  title={`Make version ${before} the newest one`}
                  confirm="Go back"
                  act={async () => {
                    const { defined } = await act(KINDS[kind].rollBack, {
                      name: found.name,
                      version: before,
                    });
                    setChosen(null);
                    onBack();
                    return `Version ${defined.version} is what version ${before} was`;
                  }}
                >
                  <Text fz="sm">What runs goes on with the version that it began with.</Text>
                </Action>
              )}
            </Group>
            {before !== null && <Difference kind={kind} found={found} version={before} />}
          </Stack>
        );
      }}
    </Answer>
  );
}

function said(one: Version): string {
  return `${one.version}${one.removed ? ' (removed)' : ''}${one.createdBy ? ` by ${one.createdBy}` : ''}`;
}

function Difference({ kind, found, version }: { kind: Kind; found: Definition; version: number }) {
  const asked = useAsk(KINDS[kind].one, { name: found.name, version });
  return (
    <Answer of={asked}>
      {(data) => (
        <TextDiff
          before={pretty(data.found?.definition)}
          now={pretty(found.definition)}
          label={`From version ${version} to version ${found.version}`}
        />
      )}
    </Answer>
  );
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? '';
}
