/** A long list of which only what can be seen is there. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef, type ReactNode } from 'react';

export interface RowsProps<Item> {
  readonly items: readonly Item[];
  readonly height: number;
  readonly label: string;
  readonly keyOf: (item: Item) => string | number;
  readonly render: (item: Item) => ReactNode;
  readonly isChosen?: (item: Item) => boolean;
  readonly onChoose?: (item: Item) => void;
}

export function Rows<Item>({ items, height, label, keyOf, render, isChosen, onChoose }: RowsProps<Item>) {
  const parent = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => parent.current,
    estimateSize: () => height,
    overscan: 12,
  });
  return (
    // oxlint-disable-next-line no-noninteractive-tabindex -- it scrolls, and must do so by keyboard, too
    <div ref={parent} className="scrolls" role="group" aria-label={label} tabIndex={0}>
      <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const item = items[index]!;
          const style = { height, transform: `translateY(${start}px)` };
          const className = `row${isChosen?.(item) ? ' chosen' : ''}`;
          return onChoose ? (
            <button
              key={keyOf(item)}
              type="button"
              className={`row-button ${className}`}
              style={style}
              onClick={() => onChoose(item)}
            >
              {render(item)}
            </button>
          ) : (
            <div key={keyOf(item)} className={className} style={style}>
              {render(item)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
