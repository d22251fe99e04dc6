/** What is around every page: where one can go, what is wrong just now, who one is. */
import {
  ActionIcon,
  Alert,
  AppShell,
  Badge,
  Burger,
  Group,
  Kbd,
  Menu,
  Text,
  Tooltip,
  UnstyledButton,
  VisuallyHidden,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { spotlight } from '@mantine/spotlight';
import { Link, Outlet } from '@tanstack/react-router';
import { useConnection, useLost } from '../api/connection';
import { useAsk, useChanges, useTick } from '../api/live';
import { signOut } from '../api/session';
import { BADGE_EVENTS, BADGES } from '../services/dashboard';
import { may } from '../services/viewer';
import { useViewer } from './Doorway';
import { AlarmIcon, MoonIcon, SearchIcon, SunIcon, UserIcon } from './icons';
import { PAGES } from './pages';
import { Palette } from './Palette';

export function Shell() {
  const [opened, { toggle, close }] = useDisclosure();
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 208, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding="md"
    >
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Pages" />
            <Link to="/" className="tile">
              <Text fw={700} fz="md">
                Ostinato
              </Text>
            </Link>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <SearchButton />
            <Connection />
            <SchemeButton />
            <ViewerMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs">
        <Navigation onGo={close} />
      </AppShell.Navbar>
      <AppShell.Main id="page" tabIndex={-1}>
        <Away />
        <Outlet />
      </AppShell.Main>
      <Palette />
    </AppShell>
  );
}

/** What is shown stays, and so does what somebody is writing. */
function Away() {
  if (!useLost()) return null;
  return (
    <Alert color="red" variant="outline" mb="md" icon={<AlarmIcon />} title="The server cannot be reached">
      This is how things stood before. It is tried again every few seconds.
    </Alert>
  );
}

function Navigation({ onGo }: { onGo: () => void }) {
  const viewer = useViewer();
  useChanges();
  const badges = useAsk(BADGES, {}, { tick: useTick(BADGE_EVENTS, 2000) }).data;
  const letters = badges?.deadLetterDepth;
  const approvals = badges?.waiting.find((one) => one.kind === 'approval')?.tasks;
  return (
    <>
      {PAGES.filter((page) => may(viewer, page.scope)).map((page) => (
        <Link
          key={page.to}
          to={page.to}
          className="nav-link"
          activeProps={{ className: 'active' }}
          activeOptions={{ exact: page.to === '/', includeSearch: false }}
          onClick={onGo}
        >
          <page.icon />
          <span style={{ flex: 1 }}>{page.name}</span>
          {page.to === '/dead-letters' && (
            <Count of={letters?.depth} alarm={letters?.alarm} about="dead letters" />
          )}
          {page.to === '/approvals' && <Count of={approvals} about="waiting" />}
        </Link>
      ))}
    </>
  );
}

function Count({ of: count = 0, alarm, about }: { of?: number; alarm?: boolean; about: string }) {
  if (count === 0) return null;
  return (
    <Badge
      size="sm"
      variant={alarm ? 'filled' : 'default'}
      color="red.9"
      aria-label={`${count.toLocaleString()} ${about}`}
    >
      {count.toLocaleString()}
    </Badge>
  );
}

function SearchButton() {
  return (
    <UnstyledButton onClick={spotlight.open} px="xs" py={4}>
      <Group gap={6} wrap="nowrap">
        <SearchIcon size={16} />
        <VisuallyHidden hiddenFrom="sm">Search</VisuallyHidden>
        <Text fz="sm" c="dimmed" visibleFrom="sm">
          Search
        </Text>
        <Kbd size="xs" visibleFrom="sm">
          Ctrl K
        </Kbd>
      </Group>
    </UnstyledButton>
  );
}

const SAID = {
  live: 'Live: changes appear as they happen',
  connecting: 'Connecting…',
  offline: 'Offline: trying again',
};
const COLOUR = { live: 'completed', connecting: 'waiting', offline: 'failed' };

function Connection() {
  const state = useConnection();
  return (
    <Tooltip label={SAID[state]}>
      <span
        className="state-dot"
        role="status"
        aria-label={SAID[state]}
        data-connection={state}
        style={{ background: `var(--state-${COLOUR[state]})` }}
      />
    </Tooltip>
  );
}

function SchemeButton() {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme('light');
  const other = scheme === 'dark' ? 'light' : 'dark';
  return (
    <Tooltip label={`Use the ${other} colours`}>
      <ActionIcon
        variant="subtle"
        color="gray"
        onClick={() => setColorScheme(other)}
        aria-label={`Use the ${other} colours`}
      >
        {scheme === 'dark' ? <SunIcon /> : <MoonIcon />}
      </ActionIcon>
    </Tooltip>
  );
}

function ViewerMenu() {
  const viewer = useViewer();
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <UnstyledButton aria-label={`${viewer.tenant}: who you are`}>
          <Group gap={6} wrap="nowrap">
            <UserIcon />
            <Text fz="sm" visibleFrom="sm">
              {viewer.tenant}
            </Text>
          </Group>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {viewer.keyId === null ? 'Without a key, at this machine' : `Key ${viewer.name}`}
          <br />
          {viewer.scopes.join(', ')}
        </Menu.Label>
        {viewer.keyId !== null && <Menu.Item onClick={signOut}>Sign out</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  );
}
