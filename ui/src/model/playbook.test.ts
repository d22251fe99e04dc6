import { expect, test } from 'vitest';
import { agentRows, agentsIn, isOver, levelsOf, told } from './playbook';

test('agents stand where their graph and they themselves say', () => {
  const rows = agentRows(
    { agents: ['place', 'district', 'risk'], graph: 'places' },
    {
      edges: [
        { from: 'place', to: 'district' },
        { from: 'elsewhere', to: 'risk' },
      ],
    },
    [
      { name: 'place', kind: 'function' },
      { name: 'district', kind: 'llm', dependencyParents: ['place'] },
    ],
  );
  expect(rows.map(({ taskId, state, dependsOn }) => [taskId, state, dependsOn])).toEqual([
    ['place', 'function', []],
    ['district', 'llm', ['place']],
    ['risk', 'unknown', []],
  ]);
});

test('a graph says who runs at the same time, and that some would never begin', () => {
  const edges = [
    { from: 'a', to: 'c' },
    { from: 'b', to: 'c' },
  ];
  const rows = (graph: { edges: { from: string; to: string }[] }) =>
    agentRows({ agents: agentsIn(graph) }, graph, []);
  expect(levelsOf(rows({ edges }))).toEqual([['a', 'b'], ['c']]);
  expect(levelsOf(rows({ edges: [...edges, { from: 'c', to: 'a' }] }))).toBeNull();
});

test('what is half-written is drawn as far as it goes', () => {
  const half = {
    agents: ['a', 5, 'b', 'a'],
    edges: [{ from: 'a' }, { from: 'a', to: 'a' }, null, { from: 'a', to: 'b' }],
  };
  const rows = agentRows(half as never, half as never, []);
  expect(rows.map(({ taskId, dependsOn }) => [taskId, dependsOn])).toEqual([
    ['a', []],
    ['b', ['a']],
  ]);
  expect(agentRows({ agents: 'a' } as never, { edges: 'a' } as never, [])).toEqual([]);
});

test('a status that comes again is told once', () => {
  const first = told([], { status: 'loading_agents', cursor: '1' });
  const second = told(first, { status: 'completed', cursor: '2' });
  expect(told(second, { status: 'loading_agents', cursor: '1' })).toBe(second);
  expect([isOver(first), isOver(second)]).toEqual([false, true]);
});
