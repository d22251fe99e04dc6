/** A large graph from afar: thousands of tasks as colours on one canvas, because as elements they would be slow to move. */
import { useComputedColorScheme } from '@mantine/core';
import { useStore } from '@xyflow/react';
import { useEffect, useMemo, useRef } from 'react';
import { edgesOf, NODE, type Layout } from '../model/graph';
import type { Run, TaskRow } from '../model/run';
import { barParts, label } from '../model/states';
import { countStates } from '../model/run';

type Places = Layout['places'];

export interface OverviewProps {
  readonly run: Run;
  readonly tasks: readonly TaskRow[];
  readonly places: Places;
  readonly chosen: string | undefined;
  readonly path: ReadonlySet<string> | null;
}

export function Overview({ run, tasks, places, chosen, path }: OverviewProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scheme = useComputedColorScheme('light');
  const width = useStore((store) => store.width);
  const height = useStore((store) => store.height);
  const [x, y, zoom] = useStore((store) => store.transform);
  const { aside, critical } = useMemo(() => lines(tasks, places, path), [places, path]); // oxlint-disable-line react/exhaustive-deps -- states draw no lines
  useEffect(() => {
    let frame = requestAnimationFrame(draw);
    function draw() {
      const target = canvas.current;
      const brush = target?.getContext('2d');
      if (!target || !brush) return;
      const scale = window.devicePixelRatio;
      target.width = width * scale;
      target.height = height * scale;
      brush.setTransform(zoom * scale, 0, 0, zoom * scale, x * scale, y * scale);
      const colour = colours(target);
      brush.lineWidth = Math.max(1, 0.6 / zoom);
      brush.strokeStyle = colour('--state-blocked');
      brush.globalAlpha = 0.45;
      brush.stroke(aside);
      brush.globalAlpha = 1;
      if (path !== null) {
        brush.lineWidth = 2.5 / zoom;
        brush.strokeStyle = colour('--state-timed_out');
        brush.stroke(critical);
      }
      for (const task of run.all()) {
        const place = places[task.taskId];
        if (!place) continue;
        brush.fillStyle = colour(`--state-${task.state}`);
        brush.fillRect(place.x, place.y, NODE.width, NODE.height);
      }
      const place = chosen === undefined ? undefined : places[chosen];
      if (place) {
        brush.lineWidth = 3 / zoom;
        brush.strokeStyle = colour('--mantine-color-text');
        brush.strokeRect(place.x, place.y, NODE.width, NODE.height);
      }
    }
    const leave = run.watchAll(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(draw);
    });
    return () => {
      leave();
      cancelAnimationFrame(frame);
    };
  }, [run, places, chosen, path, aside, critical, width, height, x, y, zoom, scheme]);
  const said = barParts(countStates(tasks)).map(({ state, count }) => `${count} ${label(state)}`);
  return (
    <canvas
      ref={canvas}
      className="overview"
      role="img"
      aria-label={`${tasks.length} tasks from afar: ${said.join(', ')}. Zoom in to read them, or look at the list of tasks.`}
    />
  );
}

/** The task at a point of the graph. */
export function taskAt(places: Places, point: { x: number; y: number }): string | undefined {
  for (const [taskId, { x, y }] of Object.entries(places)) {
    if (point.x >= x && point.x <= x + NODE.width && point.y >= y && point.y <= y + NODE.height)
      return taskId;
  }
  return undefined;
}

export function boundsOf(places: Places): { x: number; y: number; width: number; height: number } {
  const all = Object.values(places);
  const x = Math.min(...all.map((place) => place.x));
  const y = Math.min(...all.map((place) => place.y));
  return {
    x,
    y,
    width: Math.max(...all.map((place) => place.x)) + NODE.width - x,
    height: Math.max(...all.map((place) => place.y)) + NODE.height - y,
  };
}

function lines(tasks: readonly TaskRow[], places: Places, path: ReadonlySet<string> | null) {
  const aside = new Path2D();
  const critical = new Path2D();
  for (const { from, to } of edgesOf(tasks)) {
    const [start, end] = [places[from], places[to]];
    if (!start || !end) continue;
    const into = path?.has(from) && path.has(to) ? critical : aside;
    into.moveTo(start.x + NODE.width, start.y + NODE.height / 2);
    into.lineTo(end.x, end.y + NODE.height / 2);
  }
  return { aside, critical };
}

function colours(element: Element): (name: string) => string {
  const style = getComputedStyle(element);
  const known = new Map<string, string>();
  return (name) => {
    const found = known.get(name) ?? style.getPropertyValue(name).trim();
    known.set(name, found);
    return found;
  };
}
