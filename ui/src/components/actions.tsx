/** Doing something: first what it would do, then whether it did. */
import { Button, Group, Menu, Modal, Stack, Text, Textarea, type ButtonProps } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { useCallback, useState, type ReactNode } from 'react';
import { useClient, type AnyVariables, type CombinedError, type TypedDocumentNode } from 'urql';
import { describe } from '../model/errors';
import { curl } from '../model/commands';
import { copyText } from './clipboard';
import { Trouble } from './Answer';
import { useViewer } from './Doorway';
import { TerminalIcon } from './icons';

/** Run a mutation: the data of its answer, or the error as an exception. */
export function useAct() {
  const client = useClient();
  return useCallback(
    async <Data, Variables extends AnyVariables>(
      document: TypedDocumentNode<Data, Variables>,
      variables: Variables,
    ): Promise<Data> => {
      const answer = await client.mutation(document, variables).toPromise();
      if (answer.error) throw answer.error;
      return answer.data as Data;
    },
    [client],
  );
}

/** Ask once, past whatever is remembered: the data of the answer, or the error as an exception. */
export function useLook() {
  const client = useClient();
  return useCallback(
    async <Data, Variables extends AnyVariables>(
      document: TypedDocumentNode<Data, Variables>,
      variables: Variables,
    ): Promise<Data> => {
      const answer = await client.query(document, variables, { requestPolicy: 'network-only' }).toPromise();
      if (answer.error) throw answer.error;
      return answer.data as Data;
    },
    [client],
  );
}

export function tell(message: string): void {
  notifications.show({ message, autoClose: 4000 });
}

export function complain(error: unknown): void {
  const told = describe(error as CombinedError);
  notifications.show({ title: told.title, message: told.message, color: 'red', autoClose: 10_000 });
}

export interface ActionProps {
  readonly label: string;
  readonly icon?: ReactNode;
  readonly title: string;
  /** What it would do. */
  readonly children?: ReactNode;
  readonly confirm?: string;
  readonly danger?: boolean;
  readonly disabled?: boolean;
  readonly variant?: ButtonProps['variant'];
  readonly size?: ButtonProps['size'];
  /** Do it; what comes back is told. */
  readonly act: () => Promise<string>;
  /** Called when it is opened. What it is about may have to be asked first: until then, it cannot be done. */
  readonly onOpen?: () => unknown;
  /** There is much to see or to write in it. */
  readonly wide?: boolean;
}

/** A button that asks once more, in a dialog that says what is going to happen. */
export function Action({
  label,
  icon,
  title,
  children,
  confirm,
  danger,
  disabled,
  variant = 'default',
  size,
  act,
  onOpen,
  wide = false,
}: ActionProps) {
  const [opened, { open, close }] = useDisclosure();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<CombinedError | null>(null);
  const [looked, setLooked] = useState<'not yet' | 'well' | 'in vain'>('well');
  async function look() {
    setError(null);
    const found = onOpen?.();
    open();
    if (!(found instanceof Promise)) return;
    setLooked('not yet');
    try {
      await found;
      setLooked('well');
    } catch (failure) {
      setLooked('in vain');
      setError(failure as CombinedError);
    }
  }
  async function go() {
    if (looked !== 'well') return;
    setBusy(true);
    setError(null);
    try {
      tell(await act());
      close();
    } catch (failure) {
      setError(failure as CombinedError);
    } finally {
      setBusy(false);
    }
  }
  return (
    <>
      <Button
        variant={variant}
        size={size}
        leftSection={icon}
        disabled={disabled}
        onClick={() => void look()}
      >
        {label}
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        title={<Text fw={600}>{title}</Text>}
        centered
        size={wide ? '70rem' : undefined}
      >
        <Stack>
          {looked !== 'in vain' && children}
          {error && <Trouble error={error} again={looked === 'in vain' ? () => void look() : undefined} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close} data-autofocus={danger || undefined}>
              Back
            </Button>
            <Button
              color={danger ? 'red.9' : undefined}
              loading={busy}
              onClick={() => void go()}
              data-autofocus={!danger || undefined}
              data-disabled={looked !== 'well' || undefined}
              aria-disabled={looked !== 'well' || undefined}
            >
              {confirm ?? label}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

/** JSON that somebody writes by hand. */
export function JsonInput({
  label,
  value,
  onChange,
  about,
  most = 16,
}: {
  label: string;
  value: string;
  onChange: (text: string) => void;
  about?: string;
  /** Lines, before it scrolls. */
  most?: number;
}) {
  return (
    <Textarea
      label={label}
      description={about}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={parsed(value).error}
      autosize
      minRows={3}
      maxRows={most}
      size="xs"
      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
    />
  );
}

export function parsed(text: string): { value: unknown; error: string | null } {
  if (text.trim() === '') return { value: undefined, error: null };
  try {
    return { value: JSON.parse(text), error: null };
  } catch (error) {
    return { value: undefined, error: `This is not JSON: ${(error as Error).message}` };
  }
}

/** The same as curl and on the command line. */
export function CopyAs({ path, cli }: { path?: string; cli: string }) {
  const viewer = useViewer();
  function copy(text: string) {
    copyText(text).then(() => tell('Copied'), complain);
  }
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" leftSection={<TerminalIcon size={16} />}>
          Copy as
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {path !== undefined && (
          <Menu.Item onClick={() => copy(curl(location.origin, viewer.keyId !== null, path))}>curl</Menu.Item>
        )}
        <Menu.Item onClick={() => copy(cli)}>ostinato command</Menu.Item>
        <Menu.Item onClick={() => copy(location.href)}>Link to this view</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
