/** The small parts that every page is made of. */
import { ActionIcon, Group, Text, Title, Tooltip, type MantineSize } from '@mantine/core';
import { useEffect, useState, useSyncExternalStore, type CSSProperties, type ReactNode } from 'react';
import { barParts, label } from '../model/states';
import { absolute, duration, elapsed, relative } from '../model/time';
import { copyText } from './clipboard';
import { CheckIcon, CopyIcon } from './icons';

/** One clock for all: what is relative to now moves together, and costs one timer. */
const clock = { now: Date.now(), listeners: new Set<() => void>() };
setInterval(() => {
  clock.now = Date.now();
  for (const listener of clock.listeners) listener();
}, 1000);

export function useNow(): number {
  return useSyncExternalStore(
    (listener) => {
      clock.listeners.add(listener);
      return () => clock.listeners.delete(listener);
    },
    () => clock.now,
  );
}

export function Moment({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at)
    return (
      <Text span c="dimmed" inherit>
        –
      </Text>
    );
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={absolute(time)} className="together">
      {relative(time, now)}
    </time>
  );
}

export function Elapsed({ from, to }: { from: string | null; to: string | null }) {
  const now = useNow();
  const span = elapsed(from, to, now);
  return <span className="together">{span === null ? '–' : duration(span)}</span>;
}

export function State({ state, size = 'sm' }: { state: string; size?: MantineSize }) {
  const alive = state === 'running' || state === 'processing';
  return (
    <Text span fz={size} className="state" style={{ '--state': `var(--state-${state})` } as CSSProperties}>
      <span className={`state-dot${alive ? ' alive' : ''}`} aria-hidden="true" />
      {label(state)}
    </Text>
  );
}

export function Progress({ counts, width }: { counts: Record<string, number>; width?: number | string }) {
  const parts = barParts(counts);
  const said = parts.map(({ state, count }) => `${count} ${label(state)}`).join(', ');
  return (
    <div className="bar" role="img" aria-label={`Tasks: ${said || 'none'}`} title={said} style={{ width }}>
      {parts.map(({ state, share }) => (
        <span
          key={state}
          style={
            {
              width: `${share * 100}%`,
              '--state': `var(--state-${state})`,
            } as CSSProperties
          }
        />
      ))}
    </div>
  );
}

const DONE = 'Copied';

export function Copy({ text, label: said }: { text: string; label: string }) {
  const [copied, setCopied] = useState<string | null>(null);
  useEffect(() => {
    if (copied === null) return undefined;
    const timer = setTimeout(() => setCopied(null), 1200);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () =>
    void copyText(text).then(
      () => setCopied(DONE),
      () => setCopied('It cannot be copied here'),
    );
  return (
    <Tooltip label={copied === null ? said : copied}>
      <ActionIcon variant="subtle" color="gray" size="sm" onClick={copy} aria-label={said}>
        {copied === DONE ? <CheckIcon size={14} /> : <CopyIcon size={14} />}
      </ActionIcon>
    </Tooltip>
  );
}

export function Id({ id, name = 'id' }: { id: string; name?: string }) {
  return (
    <Group gap={2} wrap="nowrap" display="inline-flex" maw="100%">
      <span className="mono clip" title={id}>
        {id}
      </span>
      <Copy text={id} label={`Copy the ${name}`} />
    </Group>
  );
}

/** A page: its title is that of the tab, too. */
export function Page({
  title,
  about,
  actions,
  children,
}: {
  title: ReactNode;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const name = typeof title === 'string' ? title : undefined;
  useEffect(() => {
    if (name !== undefined) document.title = `${name} · Ostinato`;
  }, [name]);
  return (
    <>
      <div className="page-head">
        <div className="page-title">
          <Title order={1} className="clip">
            {title}
          </Title>
          {about && (
            <Text c="dimmed" fz="sm" component="div">
              {about}
            </Text>
          )}
        </div>
        {actions && (
          <Group gap="xs" className="page-actions">
            {actions}
          </Group>
        )}
      </div>
      {children}
    </>
  );
}
