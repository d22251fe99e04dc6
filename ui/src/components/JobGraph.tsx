/** The graph of a job with the states of its tasks. A task that moves on draws itself again, and nothing else. */
import '@xyflow/react/dist/style.css';
import { Button, Center, Group, Loader, Switch, Text, useComputedColorScheme } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import {
  Background,
  BackgroundVariant,
  Controls,
  Handle,
  MiniMap,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
  useStoreApi,
  type Edge,
  type Node,
  type NodeProps,
} from '@xyflow/react';
import {
  createContext,
  memo,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useState,
  useSyncExternalStore,
  type CSSProperties,
} from 'react';
import { attention } from '../model/attention';
import {
  criticalPath,
  edgesOf,
  NODE,
  opening,
  shapeOf,
  type Layout,
  type LayoutRequest,
} from '../model/graph';
import type { Run, TaskRow } from '../model/run';
import { label } from '../model/states';
import { Nothing } from './Answer';
import { Elapsed } from './bits';
import { boundsOf, Overview, taskAt } from './Overview';

const FEW = 20;
const MANY = 300;
/** Further away than this, words are specks: only colours are drawn. */
const READABLE = 0.45;
const NARROW = '(max-width: 48em)';
const LEGIBLE_IN_HAND = 0.7;

const RunContext = createContext<Run | null>(null);

export interface JobGraphProps {
  readonly run: Run;
  readonly tasks: readonly TaskRow[];
  readonly chosen: string | undefined;
  readonly onChoose: (taskId: string | undefined) => void;
  readonly label?: string;
}

export default function JobGraph(props: JobGraphProps) {
  return (
    <ReactFlowProvider>
      <RunContext.Provider value={props.run}>
        <Drawing {...props} />
      </RunContext.Provider>
    </ReactFlowProvider>
  );
}

function Drawing({ run, tasks, chosen, onChoose, label: name = 'Graph of the job' }: JobGraphProps) {
  const scheme = useComputedColorScheme('light');
  const { fitBounds, fitView, screenToFlowPosition, setViewport } = useReactFlow();
  const pane = useStoreApi();
  const narrow = useMediaQuery(NARROW, undefined, { getInitialValueInEffect: false });
  const [critical, setCritical] = useState(false);
  const places = useLayout(tasks);
  const shape = shapeOf(tasks);
  const { nodes, edges } = useMemo(() => draw(tasks, places), [shape, places]); // oxlint-disable-line react/exhaustive-deps -- states are not drawn here
  const path = useMemo(() => (critical ? new Set(criticalPath(tasks)) : null), [critical, tasks]);
  const shown = useMemo(
    () => (path === null ? edges : edges.map((edge) => marked(edge, path))),
    [edges, path],
  );
  const withChosen = useMemo(
    () => nodes.map((node) => (node.id === chosen ? { ...node, selected: true } : node)),
    [nodes, chosen],
  );
  const large = tasks.length > MANY;
  const [placed, setPlaced] = useState(false);
  const tiny = useStore((store) => store.transform[2] < READABLE);
  const afar = large && (tiny || !placed); // a pane that has no size yet would draw every card
  const showAll = useCallback(() => {
    if (places) void fitBounds(boundsOf(places), { padding: 0.04 }).then(() => setPlaced(true));
  }, [places, fitBounds]);
  /** At what one should look at, if all of it would be too small to read. A small one is held nearer than a large one. */
  const begin = () => {
    if (places === null) return;
    const first = places[chosen ?? attention(tasks)[0]?.taskId ?? tasks[0]!.taskId] ?? { x: 0, y: 0 };
    const middle = { x: first.x + NODE.width / 2, y: first.y + NODE.height / 2 };
    const view = opening(boundsOf(places), pane.getState(), middle, narrow ? LEGIBLE_IN_HAND : READABLE);
    void (view === null ? fitView(FIT) : setViewport(view));
  };
  if (tasks.length === 0) return <Nothing title="It has no tasks yet" />;
  if (places === null) {
    return (
      <Center h="100%">
        <Group>
          <Loader size="sm" role="status" aria-label="Laying out" />
          <Text fz="sm">Laying out {tasks.length.toLocaleString()} tasks…</Text>
        </Group>
      </Center>
    );
  }
  return (
    <ReactFlow
      nodes={afar ? NO_NODES : withChosen}
      edges={afar ? NO_EDGES : shown}
      nodeTypes={NODE_TYPES}
      colorMode={scheme}
      onInit={large ? showAll : begin}
      minZoom={0.02}
      maxZoom={2}
      onlyRenderVisibleElements={large}
      nodesDraggable={false}
      nodesConnectable={false}
      edgesFocusable={false}
      deleteKeyCode={null}
      onNodeClick={(_, node) => onChoose(node.id)}
      onPaneClick={({ clientX, clientY }) =>
        onChoose(afar ? taskAt(places, screenToFlowPosition({ x: clientX, y: clientY })) : undefined)
      }
      onKeyDown={(event) => {
        const id = (event.target as Element).getAttribute('data-id');
        if (id === null || (event.key !== 'Enter' && event.key !== ' ')) return;
        event.preventDefault();
        onChoose(id);
      }}
      aria-label={name}
    >
      {afar && <Overview run={run} tasks={tasks} places={places} chosen={chosen} path={path} />}
      <Background variant={BackgroundVariant.Dots} gap={18} size={1} />
      <Controls showInteractive={false} fitViewOptions={FIT} onFitView={large ? showAll : undefined} />
      {tasks.length > FEW && !large && !narrow && (
        <MiniMap pannable zoomable nodeColor={(node) => `var(--state-${stateIn(tasks, node.id)})`} />
      )}
      <Toolbar
        critical={critical}
        onCritical={setCritical}
        place={chosen === undefined ? undefined : places[chosen]}
      />
    </ReactFlow>
  );
}

/** Beside what lies on it: the switch above, the buttons at the left. */
const FIT = {
  maxZoom: 1,
  padding: { top: '52px', left: '52px', right: '16px', bottom: '20px' },
} as const;
const NO_NODES: Node[] = [];
const NO_EDGES: Edge[] = [];

function marked(edge: Edge, path: ReadonlySet<string>): Edge {
  return {
    ...edge,
    className: path.has(edge.source) && path.has(edge.target) ? 'edge-critical' : 'edge-aside',
  };
}

function Toolbar({
  critical,
  onCritical,
  place,
}: {
  critical: boolean;
  onCritical: (on: boolean) => void;
  place: { x: number; y: number } | undefined;
}) {
  const { setCenter } = useReactFlow();
  return (
    <Group className="graph-tools" gap="xs">
      <Switch
        size="xs"
        label="Critical path"
        checked={critical}
        onChange={(event) => onCritical(event.currentTarget.checked)}
      />
      {place && (
        <Button
          size="compact-xs"
          variant="default"
          onClick={() =>
            void setCenter(place.x + NODE.width / 2, place.y + NODE.height / 2, { zoom: 1, duration: 200 })
          }
        >
          Show the task
        </Button>
      )}
    </Group>
  );
}

function stateIn(tasks: readonly TaskRow[], taskId: string): string {
  return tasks.find((task) => task.taskId === taskId)?.state ?? 'blocked';
}

function draw(tasks: readonly TaskRow[], places: Layout['places'] | null): { nodes: Node[]; edges: Edge[] } {
  if (places === null) return { nodes: [], edges: [] };
  const nodes = tasks
    .filter((task) => places[task.taskId] !== undefined)
    .map((task) => ({
      id: task.taskId,
      type: 'task',
      position: places[task.taskId]!,
      data: {},
      width: NODE.width,
      height: NODE.height,
      ariaLabel: `Task ${task.taskId}`,
    }));
  const edges = edgesOf(tasks).map(({ from, to }) => ({
    id: `${from}>${to}`,
    source: from,
    target: to,
    focusable: false,
  }));
  return { nodes, edges };
}

function useLayout(tasks: readonly TaskRow[]): Layout['places'] | null {
  const [places, setPlaces] = useState<Layout['places'] | null>(null);
  const shape = shapeOf(tasks);
  useEffect(() => {
    if (tasks.length === 0) return undefined;
    const worker = new Worker(new URL('./layout.worker.ts', import.meta.url), { type: 'module' });
    worker.onmessage = ({ data }: MessageEvent<Layout>) => setPlaces(data.places);
    worker.postMessage({
      ids: tasks.map((task) => task.taskId),
      edges: edgesOf(tasks),
    } satisfies LayoutRequest);
    return () => worker.terminate();
    // oxlint-disable-next-line react/exhaustive-deps -- only the shape decides where things are
  }, [shape]);
  return places;
}

const TaskNode = memo(({ id, selected }: NodeProps) => {
  const run = useContext(RunContext)!;
  const task = useSyncExternalStore(
    (listener) => run.watch(id, listener),
    () => run.get(id),
  );
  const readable = useStore((store) => store.transform[2] >= READABLE);
  const state = task?.state ?? 'blocked';
  return (
    <div
      className={`task-node${selected ? ' chosen' : ''}`}
      data-state={state}
      title={`${id}: ${label(state)}`}
      style={{ '--state': `var(--state-${state})` } as CSSProperties}
    >
      <Handle type="target" position={Position.Left} isConnectable={false} />
      {readable && task && (
        <>
          <div className="task-node-id clip">{id}</div>
          <div className="task-node-about clip">
            {label(state)}
            {task.attempt > 1 && ` · try ${task.attempt}`}
            {task.startedAt && (
              <>
                {' · '}
                {state === 'processing' || task.finishedAt ? (
                  <Elapsed from={task.startedAt} to={task.finishedAt ?? run.asOf} />
                ) : (
                  task.name
                )}
              </>
            )}
          </div>
        </>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
});

const NODE_TYPES = { task: TaskNode };
